"""Omni models as embedders: `mllm.py` with audio. They are built on the thinker of Qwen2.5-Omni."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embark.models import checkpoints
from embark.models.checkpoints import Checkpoint
from embark.models.device import last_token, to_device
from embark.models.encoder import Encoder
from embark.models.hf import Tokenizer, image_processor, load_model, read_weights, two_layers
from embark.models.loading import Loading
from embark.models.mllm import (
    GridProcessor,
    MediaInput,
    MediaProcessor,
    MllmEncoder,
    Prompt,
    complete_card,
    processors_by_style,
)
from embark.types import Audio, EmbarkError, Modality, ModelCard

OWN_LAYERS = "classify_linear."  # prefix of WAVE's own layers


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a thinker: alone, or as a part of Qwen2.5-Omni, whose speech part is left out."""
    from transformers import Qwen2_5OmniThinkerModel

    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    config = _config(checkpoint)
    modalities: tuple[Modality, ...] = ("text", "image", "video", "audio")
    card = complete_card(checkpoint.card, loading, config.model_type, config.text_config.hidden_size, modalities)
    config.text_config.is_causal = card.options["causal"]
    model = load_model(Qwen2_5OmniThinkerModel, checkpoint, loading, config=config)
    tokenizer = Tokenizer(checkpoint, cut=False)
    images = image_processor(checkpoint)
    audio = AudioProcessor(checkpoint, config, tokenizer)

    def processors(options: Mapping[str, Any]) -> dict[Modality, MediaProcessor]:
        return {**GridProcessor(options, config, images, tokenizer).by_modality, "audio": audio}

    by_style = processors_by_style(card, processors)
    usual = by_style.pop("")
    if card.options["pooling"] != "layers":
        return MllmEncoder(card, model, tokenizer, usual, by_style)
    head = _head(checkpoint, loading) if loading.weights else None
    return LayersEncoder(card, model, tokenizer, usual, by_style, head=head)


class AudioProcessor:
    """The spectrogram of a sound for the speech encoder, and a placeholder for each of its states."""

    def __init__(self, checkpoint: Checkpoint, config: Any, tokenizer: Tokenizer) -> None:
        from transformers import WhisperFeatureExtractor

        self.extractor = WhisperFeatureExtractor.from_pretrained(checkpoint.folder, local_files_only=True)
        names = tokenizer.inner.convert_ids_to_tokens
        self.start, self.end = names([config.audio_start_token_id, config.audio_end_token_id])
        self.token = names(config.audio_token_id)

    def __call__(self, audio: Audio) -> MediaInput:
        """As the library's processor computes it, but padded by one window of silence instead of to five minutes."""
        import torch

        rate = self.extractor.sampling_rate
        hop = self.extractor.hop_length
        if audio.rate != rate:
            raise EmbarkError(
                f"This model takes sound at {rate} Hz, but its card says {audio.rate} Hz. Correct the card."
            )
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
        return MediaInput(f"{self.start}{self.token * count}{self.end}", tensors)


class LayersEncoder(MllmEncoder):
    """WAVE: the vector of an item with media is a head's, over the last token's states after all layers."""

    forward_options: Mapping[str, Any] = {"output_hidden_states": True}

    def __init__(self, *args: Any, head: Any) -> None:
        super().__init__(*args)
        self.head = head

    def _pool(self, out: Any, mask: Any, batch: Sequence[Prompt]) -> Any:
        import torch

        states = [last_token(layer, mask) for layer in out.hidden_states[1:]]
        media = torch.tensor([bool(prompt.media) for prompt in batch], device=mask.device)
        return torch.where(media[:, None], self.head(torch.cat(states, -1)), states[-1])


def _config(checkpoint: Checkpoint) -> Any:
    """The thinker's configuration, for all model types that a checkpoint may state."""
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniThinkerConfig

    if checkpoint.config.get("model_type") == "qwen2_5_omni":
        return Qwen2_5OmniConfig.from_pretrained(checkpoint.folder, local_files_only=True).thinker_config
    facts = {name: value for name, value in checkpoint.config.items() if name not in ("model_type", "auto_map")}
    return Qwen2_5OmniThinkerConfig.from_dict(facts)


def _head(checkpoint: Checkpoint, loading: Loading) -> Any:
    """WAVE's two layers, from the files of the checkpoint."""
    import torch

    state = {
        name.split(OWN_LAYERS)[1]: tensor for name, tensor in read_weights(checkpoint).items() if OWN_LAYERS in name
    }
    if not state:
        raise EmbarkError(f"{checkpoint.name} has no {OWN_LAYERS}* among its weights, which its vectors are made with.")
    return to_device(two_layers(state, torch.nn.GELU()), checkpoint.card, loading)
