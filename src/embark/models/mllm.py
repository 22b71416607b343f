"""Embedders made of multimodal language models: a prompt with media in it, and the state of its last token.

What sets them apart (prompt, instruction, pixels, pooling) is the card's `options`; `cards/mllm.py` says what each key
means. One class serves LLaVA-NeXT, Qwen2-VL, Qwen2.5-VL and Qwen3-VL here, and Qwen2.5-Omni in `omni.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from embark.models import hub
from embark.models.cards.mllm import DEFAULTS
from embark.models.device import POOLING, pad, to_numpy, without_gradients
from embark.models.encoder import Encoder, some
from embark.models.hf import Tokenizer, image_processor, weights
from embark.models.loading import Loading, put_to_work, with_dim
from embark.models.lora import adapted, merge
from embark.types import Array, Content, EmbarkError, Item, Modality, ModelCard, Part, Rendered, Text

PLACED = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")  # patches have a place in the picture, if told which tokens they are
TYPES = ("llava_next", *PLACED)
LIMIT = 1 << 20  # tokens; more than any model reads, so that the tokeniser never cuts: `cut` knows what may go


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a vision-language checkpoint, whole or as an adapter of its base model."""
    from transformers import AutoConfig, AutoModel

    found, base = adapted(hub.checkpoint(card, loading), loading)
    config = AutoConfig.from_pretrained(base.folder, local_files_only=True, trust_remote_code=base.trusted)
    if config.model_type not in TYPES:
        raise EmbarkError(
            f"{card.name} is built on a model of type '{config.model_type}', which this loader does not know; "
            f"it knows {', '.join(TYPES)}."
        )
    model = weights(AutoModel, base, loading)
    if base is not found:
        merge(model, found)
    card = complete(found.card, config.model_type, config.get_text_config().hidden_size, ("text", "image", "video"))
    parts = found if (found.folder / "preprocessor_config.json").is_file() else base
    tokenizer, processor = Tokenizer(parts, LIMIT), image_processor(parts)
    if config.model_type == "llava_next":
        senses: dict[Modality, Sense] = {"image": Anyres(card.options, config, processor, tokenizer).image}
    else:
        senses = Grid(card.options, config, processor, tokenizer).senses
    return Reader(put_to_work(card, loading, ("torch", "transformers")), model, tokenizer, senses)


def complete(card: ModelCard, kind: str, dim: int, modalities: tuple[Modality, ...]) -> ModelCard:
    """The card with what only the checkpoint knows, and the default options of its type where it has none."""
    style = {**DEFAULTS[kind], **card.options}
    seen = tuple(each for each in modalities if each != "video" or style["video"])
    return replace(with_dim(card, dim), modalities=card.modalities or seen, options=style, fusion="native")


class Seen(NamedTuple):
    """A medium as the model takes it: what stands for it in the prompt, and its tensors by their name in `forward`."""

    prompt: str
    tensors: Mapping[str, Any]


class Prompt(NamedTuple):
    """A prepared item: tokens, and for each of its media the tensors."""

    ids: list[int]
    media: tuple[Mapping[str, Any], ...]


Sense = Callable[[Any], Seen]


class Reader(Encoder):
    """A decoder that reads the whole item in one prompt; the vector is pooled from its final, normalised states."""

    def __init__(self, card: ModelCard, model: Any, tokenizer: Tokenizer, senses: Mapping[Modality, Sense]) -> None:
        self.card, self.model, self.tokenizer, self.senses = card, model, tokenizer, senses
        ids = [getattr(model.config, f"{kind}_token_id") for kind in senses]
        # In a text, a placeholder would ask for media that are not there.
        self.foreign = re.compile("|".join(map(re.escape, tokenizer.inner.convert_ids_to_tokens(ids))))
        self.special = frozenset(tokenizer.inner.all_special_ids) | frozenset(tokenizer.inner.added_tokens_decoder)
        forms = [*card.options["templates"].values(), *card.options.get("asking", {}).values()]
        self.endings = {form.split("}")[-1]: len(tokenizer(form.split("}")[-1])) for form in forms}

    # ── the prompt ──

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, word for word, with the item's media in their places."""
        style = self.card.options
        reads = role not in style["uninstructed"]
        asked = _sentence(instruction, style["stop"]) if instruction and reads and self.card.instructed else ""
        texts = [part.text for part in item.parts if isinstance(part, Text)]
        media = [part for part in item.parts if not isinstance(part, Text)]
        forms = style.get("asking", style["templates"]) if reads else style["templates"]
        said = texts or (asked and "{asked}" in forms["mixed"])
        fields: dict[str, Sequence[Part]] = {
            "{media}": media,
            "{text}": [Text("\n".join(texts))],
            "{asked}": [Text(_joined(asked, "\n".join(texts)))],
            "{instruction}": [Text(asked)],
            "{system}": [Text(asked or style["system"])],
            "{prefix}": [Text(style["prefixes"].get(role, style["prefixes"].get("", "")))],
        }
        form = forms["mixed" if media and said else "media" if media else "text"]
        pieces = [fields.get(piece, [Text(piece)]) for piece in re.split(r"(\{[a-z]+\})", form)]
        return Rendered(tuple(_merged([part for piece in pieces for part in piece])))

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """Media to tensors and placeholders, the whole to tokens."""
        seen = [
            Seen(self.foreign.sub(" ", content.value), {})
            if content.kind == "text"
            else self.senses[content.kind](content.value)
            for content in contents
        ]
        ids = some(self.tokenizer("".join(each.prompt for each in seen)))
        if self.card.context and len(ids) > self.card.context:
            ids = self._cut(ids, seen[-1].prompt)
        return Prompt(ids, tuple(each.tensors for each in seen if each.tensors))

    def _cut(self, ids: list[int], tail: str) -> list[int]:
        """The last ordinary tokens go; special ones stay, and so does how the template ends."""
        kept = max((tokens for ending, tokens in self.endings.items() if tail.endswith(ending)), default=0)
        loose = [at for at, token in enumerate(ids[: len(ids) - kept]) if token not in self.special]
        gone = set(loose[-(len(ids) - (self.card.context or 0)) :])
        return [token for at, token in enumerate(ids) if at not in gone]

    # ── the forward pass ──

    @without_gradients
    def embed(self, batch: Sequence[Prompt]) -> Array:
        """One pass over the batch."""
        import torch

        style, device = self.card.options, self.model.device
        ids, mask = pad([prompt.ids for prompt in batch], self.tokenizer.padding, style["padding"], device)
        inputs = {
            name: tensor.to(device, self.model.dtype if tensor.is_floating_point() else None)
            for name, tensor in collated([tensors for prompt in batch for tensors in prompt.media]).items()
        }
        if style["positions"] == "flat":
            inputs["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        if (config := self.model.config).model_type in PLACED:
            inputs["mm_token_type_ids"] = (ids == config.image_token_id).int() + 2 * (
                ids == config.video_token_id
            ).int()
        out = self.model(input_ids=ids, attention_mask=mask, use_cache=False, **self._wanted(), **inputs)
        vectors = self._pooled(out, mask, batch).float()
        return to_numpy(torch.nn.functional.normalize(vectors, dim=-1) if style["normalise"] else vectors)

    def _wanted(self) -> dict[str, Any]:
        """What else the forward pass shall return."""
        return {}

    def _pooled(self, out: Any, mask: Any, batch: Sequence[Prompt]) -> Any:
        return POOLING[self.card.options["pooling"]](out.last_hidden_state, mask)


def collated(media: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All media of a batch, by tensor name; along the last axis they are made equally long (sounds differ there)."""
    import torch

    out = {}
    for name in dict.fromkeys(name for tensors in media for name in tensors):
        rows = [tensors[name] for tensors in media if name in tensors]
        longest = max(row.shape[-1] for row in rows)
        out[name] = torch.cat([torch.nn.functional.pad(row, (0, longest - row.shape[-1])) for row in rows])
    return out


def _sentence(instruction: str, stop: bool) -> str:
    ended = not stop or unicodedata.category(instruction.strip()[-1:] or ".").startswith("P")
    return instruction if ended else f"{instruction.strip()}."


def _joined(asked: str, text: str) -> str:
    glue = " " if asked and text and not asked[-1].isspace() else ""
    return f"{asked}{glue}{text}"


def _merged(parts: Sequence[Part]) -> list[Part]:
    """Neighbouring texts as one, empty ones left out."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and out and isinstance(out[-1], Text):
            out[-1] = Text(out[-1].text + part.text)
        elif not isinstance(part, Text) or part.text:
            out.append(part)
    return out


# ── eyes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Anyres:
    """LLaVA-NeXT's: a picture as a whole and in tiles, by its shape."""

    def __init__(self, style: Mapping[str, Any], config: Any, processor: Any, tokenizer: Tokenizer) -> None:
        from transformers import LlavaNextProcessor

        self.side = style.get("resize")
        self.token = tokenizer.inner.convert_ids_to_tokens(config.image_token_id)
        self.counter = LlavaNextProcessor(
            processor,
            tokenizer.inner,
            patch_size=config.vision_config.patch_size,
            vision_feature_select_strategy=config.vision_feature_select_strategy,
            image_token=self.token,
            num_additional_image_tokens=int(config.vision_config.model_type == "clip_vision_model"),  # its class token
        )

    def image(self, image: Any) -> Seen:
        """As many placeholders as the tiles have patches."""
        if self.side:
            image = image.resize((self.side, self.side))
        out = self.counter.image_processor(images=[image.convert("RGB")], return_tensors="pt")
        prompt = self.counter.replace_image_token(out, 0)
        return Seen(prompt, {"pixel_values": out["pixel_values"][0], "image_sizes": out["image_sizes"]})


class Grid:
    """Qwen's: a picture in patches, as many as its pixels need; a film in blocks of a few frames."""

    def __init__(self, style: Mapping[str, Any], config: Any, processor: Any, tokenizer: Tokenizer) -> None:
        self.processor, self.style, self.kind = processor, style, config.model_type
        names = tokenizer.inner.convert_ids_to_tokens
        self.picture, self.film = names(config.image_token_id), names(config.video_token_id)
        bare = self.style["bare"]
        self.start: str = "" if bare else names(config.vision_start_token_id)
        self.end: str = "" if bare else names(config.vision_end_token_id)
        self.senses: dict[Modality, Sense] = {"image": self.image, "video": self.video}

    def image(self, image: Any) -> Seen:
        """One placeholder for each merged patch."""
        return self._images([image], self.style["pixels"])

    def video(self, frames: Sequence[Any]) -> Seen:
        """As the card says: natively, as so many pictures, or its middle frame alone."""
        if self.style["video"] == "middle":
            return self.image(frames[len(frames) // 2])
        if self.style["video"] == "frames":
            return self._images(frames, self._frame_pixels(len(frames)))
        return self._native([frame.convert("RGB").resize(frames[0].size) for frame in frames])

    def _images(self, images: Sequence[Any], pixels: Sequence[int] | None) -> Seen:
        out = self._patches(images, pixels)
        counts = (out["image_grid_thw"].prod(1) // self.processor.merge_size**2).tolist()
        prompt = "".join(f"{self.start}{self.picture * count}{self.end}" for count in counts)
        return Seen(prompt, dict(out))

    def _native(self, frames: Sequence[Any]) -> Seen:
        import torch

        depth, merge = self.processor.temporal_patch_size, self.processor.merge_size
        frames = [*frames, *[frames[-1]] * (-len(frames) % depth)]
        out = self._patches(frames, self._frame_pixels(len(frames)))
        _, high, wide = out["image_grid_thw"][0].tolist()
        # The library's own film processor needs torchvision. A picture is patched as a film of equal frames: one layer
        # of each such film, put together, is the film of different ones.
        size, blocks = self.processor.patch_size**2, len(frames) // depth
        layers = out["pixel_values"].view(blocks, depth, high * wide, -1, depth, size)[..., 0, :]
        patches = layers.permute(0, 2, 3, 1, 4).reshape(blocks * high * wide, -1)
        tensors = {"pixel_values_videos": patches, "video_grid_thw": torch.tensor([[blocks, high, wide]])}
        count, seconds = high * wide // merge**2, depth / self.style["fps"]
        if self.kind == "qwen3_vl":  # it is told when each block of frames is shown: the mean of their times
            times = [seconds * block + (depth - 1) / (2 * self.style["fps"]) for block in range(blocks)]
            marks = [f"<{time:.1f} seconds>{self.start}{self.film * count}{self.end}" for time in times]
            return Seen("".join(marks), tensors)
        if name := {"qwen2_5_vl": "second_per_grid_ts", "qwen2_5_omni_thinker": "video_second_per_grid"}.get(self.kind):
            tensors[name] = torch.tensor([seconds])
        return Seen(f"{self.start}{self.film * count * blocks}{self.end}", tensors)

    def _patches(self, images: Sequence[Any], pixels: Sequence[int] | None) -> Any:
        size = {"size": {"shortest_edge": pixels[0], "longest_edge": pixels[1]}} if pixels else {}
        return self.processor(images=[image.convert("RGB") for image in images], return_tensors="pt", **size)

    def _frame_pixels(self, frames: int) -> Sequence[int] | None:
        """Fewest and most pixels of a frame; a long film has smaller ones where the card limits the whole."""
        pixels: Sequence[int] | None = self.style["frame_pixels"] or self.style["pixels"]
        total = self.style["film_pixels"]
        if not pixels or not total:
            return pixels
        least, most = pixels
        return least, max(min(most, total * self.processor.temporal_patch_size // frames), int(1.05 * least))
