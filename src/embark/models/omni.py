"""Omni models as embedders: what `mllm.py` does, with ears. Built on the thinker of Qwen2.5-Omni."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.models import hub
from embark.models.device import POOLING, settle
from embark.models.encoder import Encoder
from embark.models.hf import Tokenizer, image_processor, tensors, weights
from embark.models.hub import Checkpoint
from embark.models.loading import Loading, put_to_work
from embark.models.mllm import LIMIT, Grid, Prompt, Reader, Seen, Sense, complete
from embark.types import Audio, EmbarkError, Modality, ModelCard

HEAD = "classify_linear."  # WAVE's own layers, beside those of the thinker


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a thinker: alone, or in a whole Qwen2.5-Omni, whose other half (speech) is left out."""
    from transformers import Qwen2_5OmniThinkerModel

    found = hub.checkpoint(card, loading)
    config = _config(found)
    card = complete(found.card, config.model_type, config.text_config.hidden_size, ("text", "image", "video", "audio"))
    config.text_config.is_causal = card.options["causal"]
    model = weights(Qwen2_5OmniThinkerModel, found, loading, config=config)
    tokenizer = Tokenizer(found, LIMIT)
    eyes = Grid(card.options, config, image_processor(found), tokenizer)
    senses: dict[Modality, Sense] = {**eyes.senses, "audio": Ears(found, config, tokenizer)}
    card = put_to_work(card, loading, ("torch", "transformers"))
    if card.options["pooling"] != "layers":
        return Reader(card, model, tokenizer, senses)
    return Fused(card, model, tokenizer, senses, head=_head(found, loading))


class Ears:
    """The speech encoder's view of a sound: a spectrogram, and a placeholder for each of its states."""

    def __init__(self, found: Checkpoint, config: Any, tokenizer: Tokenizer) -> None:
        from transformers import WhisperFeatureExtractor

        self.extractor = WhisperFeatureExtractor.from_pretrained(found.folder, local_files_only=True)
        names = tokenizer.inner.convert_ids_to_tokens
        self.start, self.end = names([config.audio_start_token_id, config.audio_end_token_id])
        self.token = names(config.audio_token_id)

    def __call__(self, audio: Audio) -> Seen:
        """As the library's processor has it, which pads to five minutes: here with as much silence as a window sees."""
        import torch

        rate, hop = self.extractor.sampling_rate, self.extractor.hop_length
        if audio.rate != rate:
            raise EmbarkError(f"This model hears {rate} samples a second, and its card says {audio.rate}.")
        samples = audio.samples[: self.extractor.n_samples]
        out = self.extractor(
            samples, sampling_rate=rate, padding="max_length", return_attention_mask=True, return_tensors="pt",
            max_length=min(self.extractor.n_samples, (len(samples) // hop + 1) * hop + self.extractor.n_fft),
        )  # fmt: skip
        length = int(out["attention_mask"].sum())
        count = ((length - 1) // 2 + 1 - 2) // 2 + 1
        tensors = {
            "input_features": out["input_features"][..., :length],
            "feature_attention_mask": torch.ones(1, length, dtype=torch.long),
        }
        return Seen(f"{self.start}{self.token * count}{self.end}", tensors)


class Fused(Reader):
    """WAVE: where there are media, a head reads the last token's state after every layer; a text is its last state."""

    def __init__(self, *given: Any, head: Any) -> None:
        super().__init__(*given)
        self.head = head

    def _wanted(self) -> dict[str, Any]:
        return {"output_hidden_states": True}

    def _pooled(self, out: Any, mask: Any, batch: Sequence[Prompt]) -> Any:
        import torch

        last = POOLING["last"]
        states = [last(layer, mask) for layer in out.hidden_states[1:]]
        media = torch.tensor([bool(prompt.media) for prompt in batch], device=mask.device)
        return torch.where(media[:, None], self.head(torch.cat(states, -1)), states[-1])


def _config(found: Checkpoint) -> Any:
    """The thinker's, whatever the checkpoint calls its own type."""
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniThinkerConfig

    if found.config.get("model_type") == "qwen2_5_omni":
        return Qwen2_5OmniConfig.from_pretrained(found.folder, local_files_only=True).thinker_config
    facts = {name: value for name, value in found.config.items() if name not in ("model_type", "auto_map")}
    return Qwen2_5OmniThinkerConfig.from_dict(facts)


def _head(found: Checkpoint, loading: Loading) -> Any:
    """Two layers, from the files of the checkpoint."""
    import torch

    given: dict[str, Any] = {}
    for path in found.weights():
        given |= {name.split(HEAD)[1]: tensor for name, tensor in tensors(path).items() if HEAD in name}
    if not given:
        raise EmbarkError(f"{found.card.name} has no {HEAD}* among its weights, which its vectors are made with.")
    first, second = given["0.weight"], given["2.weight"]
    head = torch.nn.Sequential(
        torch.nn.Linear(*reversed(first.shape)), torch.nn.GELU(), torch.nn.Linear(*reversed(second.shape))
    )
    head.load_state_dict(given)
    return settle(head, found.card, loading)
