"""Multimodal language models as embedders: an item becomes a prompt, and its last token's state the vector.

Prompts, instructions, pixels and pooling are the card's `options`, whose keys `cards/mllm.py` explains. One class
serves LLaVA-NeXT, Qwen2-VL, Qwen2.5-VL and Qwen3-VL here, and Qwen2.5-Omni in `omni.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from embark.models import checkpoints
from embark.models.cards.mllm import DEFAULTS
from embark.models.device import POOLING, pad, to_numpy, without_gradients
from embark.models.encoder import Capabilities, Encoder, require_tokens
from embark.models.hf import Tokenizer, image_processor, load_model
from embark.models.loading import Loading, loaded_card
from embark.models.lora import adapter_and_base, merge
from embark.models.rendering import answer_of, render_prompt
from embark.types import Array, Content, EmbarkError, Item, Modality, ModelCard, Rendered, Style

QWEN_VL = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")  # types that give patches 2-D positions, by `token_kinds`
TYPES = ("llava_next", *QWEN_VL)
# The argument for the seconds of a block of frames, by model type.
SECONDS_NAMES = {"qwen2_5_vl": "second_per_grid_ts", "qwen2_5_omni_thinker": "video_second_per_grid"}


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a vision-language checkpoint, whole or as an adapter of its base model."""
    from transformers import AutoConfig, AutoModel

    checkpoint, base = adapter_and_base(checkpoints.fetch_checkpoint(card, loading), loading)
    config = AutoConfig.from_pretrained(base.folder, local_files_only=True, trust_remote_code=base.trusted)
    if config.model_type not in TYPES:
        raise EmbarkError(
            f"{card.name} is built on a model of type '{config.model_type}', which this loader does not know; "
            f"it knows {', '.join(TYPES)}."
        )
    model = load_model(AutoModel, base, loading)
    if loading.weights:
        merge(model, checkpoint)
    dim = config.get_text_config().hidden_size
    card = complete_card(checkpoint.card, loading, config.model_type, dim, ("text", "image", "video"))
    with_processor = checkpoint if (checkpoint.folder / "preprocessor_config.json").is_file() else base
    tokenizer = Tokenizer(with_processor, cut=False)
    kind = AnyresProcessor if config.model_type == "llava_next" else GridProcessor
    images = image_processor(with_processor)
    by_style = processors_by_style(card, lambda options: kind(options, config, images, tokenizer).by_modality)
    return MllmEncoder(card, model, tokenizer, by_style.pop(""), by_style)


def processors_by_style(
    card: ModelCard, make: Callable[[Mapping[str, Any]], Mapping[Modality, MediaProcessor]]
) -> dict[str, Mapping[Modality, MediaProcessor]]:
    """The processors of the card's options ("") and of each of its answers to styles, as `make` makes them."""
    return {name: make({**card.options, **answer}) for name, answer in {"": {}, **card.styles}.items()}


def complete_card(
    card: ModelCard, loading: Loading, model_type: str, dim: int, modalities: tuple[Modality, ...]
) -> ModelCard:
    """The card of a loaded model, with its dimension, its modalities and the default options of its type."""
    options = {**DEFAULTS[model_type], **card.options}
    possible = tuple(kind for kind in modalities if kind != "video" or options["video"])
    return loaded_card(card, loading, dim, card.modalities or possible, options=options, fusion="native")


class MediaInput(NamedTuple):
    """A medium as the model takes it: its placeholders in the prompt, and its tensors by their name in `forward`."""

    prompt: str
    tensors: Mapping[str, Any]


class Prompt(NamedTuple):
    """A prepared item: tokens, and the tensors of each of its media."""

    ids: list[int]
    media: tuple[Mapping[str, Any], ...]


MediaProcessor = Callable[[Any], MediaInput]


class MllmEncoder(Encoder):
    """A decoder that reads the whole item in one prompt; the vector is pooled from its final, normalised states."""

    forward_options: Mapping[str, Any] = {}  # further arguments of the forward pass

    def __init__(
        self,
        card: ModelCard,
        model: Any,
        tokenizer: Tokenizer,
        processors: Mapping[Modality, MediaProcessor],
        styled: Mapping[str, Mapping[Modality, MediaProcessor]] | None = None,
    ) -> None:
        """`styled` are the processors of the card's answers to styles, by name."""
        self.card = card
        self.model = model
        self.tokenizer = tokenizer
        self.processors = processors
        self.styled = styled or {}
        ids = [getattr(model.config, f"{kind}_token_id") for kind in processors]
        self.placeholders = re.compile("|".join(map(re.escape, tokenizer.inner.convert_ids_to_tokens(ids))))
        self.special = frozenset(tokenizer.inner.all_special_ids) | frozenset(tokenizer.inner.added_tokens_decoder)
        prompts = [card.options["templates"], card.options.get("asking", {})]
        prompts += [answer.get("templates", {}) for answer in card.styles.values()]
        templates = [template for by_kind in prompts for template in by_kind.values()]
        endings = {template.split("}")[-1] for template in templates}
        self.endings = {ending: len(tokenizer(ending)) for ending in endings}  # → number of tokens
        self.capabilities = Capabilities(prepare_many=self._prompts, render_styled=self._render_styled)

    # ── the prompt ──

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The whole prompt, with the item's media in their places."""
        return render_prompt(self.card, item, role, instruction)

    def _render_styled(self, item: Item, role: str, instruction: str | None, style: Style) -> Rendered:
        """The prompt as the card answers the row's style."""
        return render_prompt(self.card, item, role, instruction, style)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """The tokens of the prompt, and the tensors of its media."""
        return self._prompts([contents], [mode])[0]

    def _prompts(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[Prompt]:
        """As `prepare` for each item; all are tokenised together."""
        items = list(map(self._inputs, batch, modes))
        rows = self.tokenizer.many(["".join(part.prompt for part in inputs) for inputs in items])
        return [
            Prompt(
                self._cut(require_tokens(ids), inputs[-1].prompt, mode),
                tuple(part.tensors for part in inputs if part.tensors),
            )
            for ids, inputs, mode in zip(rows, items, modes, strict=True)
        ]

    def _inputs(self, contents: Sequence[Content], mode: str) -> list[MediaInput]:
        style, _ = answer_of(self.card, mode)
        processors = self.styled.get(style, self.processors)
        return [prompt_part(content, processors, self.placeholders) for content in contents]

    def _cut(self, ids: list[int], tail: str, mode: str) -> list[int]:
        """The tokens of a prompt, cut to the context in front of its ending; `tail` is the last part of the prompt."""
        _, answer = answer_of(self.card, mode)
        context = answer.get("context", self.card.context)
        if not context or len(ids) <= context:
            return ids
        protected = max((count for ending, count in self.endings.items() if tail.endswith(ending)), default=0)
        body = len(ids) - protected
        return [*drop_last(ids[:body], len(ids) - context, self.special), *ids[body:]]

    # ── the forward pass ──

    @without_gradients
    def embed(self, batch: Sequence[Prompt]) -> Array:
        """One pass over the batch."""
        import torch

        options = self.card.options
        ids, mask = pad([prompt.ids for prompt in batch], self.tokenizer.padding, options["padding"], self.model.device)
        inputs = collate(batch, self.model)
        if options["positions"] == "flat":
            inputs["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        if self.model.config.model_type in QWEN_VL:
            inputs["mm_token_type_ids"] = token_kinds(ids, self.model.config)
        out = self.model(input_ids=ids, attention_mask=mask, use_cache=False, **self.forward_options, **inputs)
        vectors = self._pool(out, mask, batch).float()
        return to_numpy(torch.nn.functional.normalize(vectors, dim=-1) if options["normalise"] else vectors)

    def _pool(self, out: Any, mask: Any, batch: Sequence[Prompt]) -> Any:
        return POOLING[self.card.options["pooling"]](out.last_hidden_state, mask)


def prompt_part(
    content: Content, processors: Mapping[Modality, MediaProcessor], placeholders: re.Pattern[str]
) -> MediaInput:
    """A part of an item as it stands in the prompt; in a text, a placeholder would need media that are not there."""
    if content.kind == "text":
        return MediaInput(placeholders.sub(" ", content.value), {})
    return processors[content.kind](content.value)


def collate(batch: Sequence[Prompt], model: Any) -> dict[str, Any]:
    """The tensors of all media, by name, on the model's device; the last axis is padded, along which sounds differ."""
    import torch

    media = [tensors for prompt in batch for tensors in prompt.media]
    out = {}
    for name in dict.fromkeys(name for tensors in media for name in tensors):
        rows = [tensors[name] for tensors in media if name in tensors]
        longest = max(row.shape[-1] for row in rows)
        stacked = torch.cat([torch.nn.functional.pad(row, (0, longest - row.shape[-1])) for row in rows])
        out[name] = stacked.to(model.device, model.dtype if stacked.is_floating_point() else None)
    return out


def token_kinds(ids: Any, config: Any) -> Any:
    """For each token: 1 if it stands for an image, 2 for a video, else 0."""
    return (ids == config.image_token_id).int() + 2 * (ids == config.video_token_id).int()


def drop_last(ids: list[int], count: int, special: Collection[int]) -> list[int]:
    """The tokens without the last `count` ordinary ones; special ones stay."""
    ordinary = [position for position, token in enumerate(ids) if token not in special]
    dropped = set(ordinary[max(0, len(ordinary) - count) :])
    return [token for position, token in enumerate(ids) if position not in dropped]


# ── images and films ─────────────────────────────────────────────────────────────────────────────────────────────────


class AnyresProcessor:
    """LLaVA-NeXT's images: the whole and tiles of it, by its shape."""

    def __init__(self, options: Mapping[str, Any], config: Any, processor: Any, tokenizer: Tokenizer) -> None:
        from transformers import LlavaNextProcessor

        self.side = options.get("resize")
        self.by_modality: dict[Modality, MediaProcessor] = {"image": self.image}
        self.processor = LlavaNextProcessor(
            processor,
            tokenizer.inner,
            patch_size=config.vision_config.patch_size,
            vision_feature_select_strategy=config.vision_feature_select_strategy,
            image_token=tokenizer.inner.convert_ids_to_tokens(config.image_token_id),
            num_additional_image_tokens=int(config.vision_config.model_type == "clip_vision_model"),  # its class token
        )

    def image(self, image: Any) -> MediaInput:
        """One placeholder for each patch of the tiles."""
        if self.side:
            image = image.resize((self.side, self.side))
        out = self.processor.image_processor(images=[image.convert("RGB")], return_tensors="pt")
        prompt = self.processor.replace_image_token(out, 0)
        return MediaInput(prompt, {"pixel_values": out["pixel_values"][0], "image_sizes": out["image_sizes"]})


class GridProcessor:
    """Qwen's images, in patches, as many as the pixels need; films in blocks of a few frames."""

    def __init__(self, options: Mapping[str, Any], config: Any, processor: Any, tokenizer: Tokenizer) -> None:
        self.processor = processor
        self.options = options
        self.model_type = config.model_type
        names = tokenizer.inner.convert_ids_to_tokens
        self.image_token = names(config.image_token_id)
        self.video_token = names(config.video_token_id)
        self.start: str = "" if options["bare"] else names(config.vision_start_token_id)
        self.end: str = "" if options["bare"] else names(config.vision_end_token_id)
        self.by_modality: dict[Modality, MediaProcessor] = {"image": self.image, "video": self.video}

    def image(self, image: Any) -> MediaInput:
        """One placeholder for each merged patch."""
        return self._images([image], self.options["pixels"])

    def video(self, frames: Sequence[Any]) -> MediaInput:
        """By the card's option: natively, as images, or the middle frame alone."""
        if self.options["video"] == "middle":
            return self.image(frames[len(frames) // 2])
        if self.options["video"] == "frames":
            return self._images(frames, self._frame_pixels(len(frames)))
        return self._native([frame.convert("RGB").resize(frames[0].size) for frame in frames])

    def _images(self, images: Sequence[Any], pixels: Sequence[int] | None) -> MediaInput:
        out = self._patches(images, pixels)
        counts = (out["image_grid_thw"].prod(1) // self.processor.merge_size**2).tolist()
        return MediaInput("".join(f"{self.start}{self.image_token * count}{self.end}" for count in counts), dict(out))

    def _native(self, frames: Sequence[Any]) -> MediaInput:
        import torch

        depth = self.processor.temporal_patch_size
        frames = [*frames, *[frames[-1]] * (-len(frames) % depth)]
        out = self._patches(frames, self._frame_pixels(len(frames)))
        _, high, wide = out["image_grid_thw"][0].tolist()
        # The library's own video processor needs torchvision. An image is patched as a film of equal frames: one layer
        # of each such film, put together, is the film of different frames.
        size = self.processor.patch_size**2
        blocks = len(frames) // depth
        layers = out["pixel_values"].view(blocks, depth, high * wide, -1, depth, size)[..., 0, :]
        patches = layers.permute(0, 2, 3, 1, 4).reshape(blocks * high * wide, -1)
        tensors = {"pixel_values_videos": patches, "video_grid_thw": torch.tensor([[blocks, high, wide]])}
        count = high * wide // self.processor.merge_size**2
        seconds = depth / self.options["fps"]
        if self.model_type == "qwen3_vl":  # its prompt has the time of each block: the mean of its frames' times
            times = [seconds * block + (depth - 1) / (2 * self.options["fps"]) for block in range(blocks)]
            marked = [f"<{time:.1f} seconds>{self.start}{self.video_token * count}{self.end}" for time in times]
            return MediaInput("".join(marked), tensors)
        if name := SECONDS_NAMES.get(self.model_type):
            tensors[name] = torch.tensor([seconds])
        return MediaInput(f"{self.start}{self.video_token * count * blocks}{self.end}", tensors)

    def _patches(self, images: Sequence[Any], pixels: Sequence[int] | None) -> Any:
        size = {"size": {"shortest_edge": pixels[0], "longest_edge": pixels[1]}} if pixels else {}
        return self.processor(images=[image.convert("RGB") for image in images], return_tensors="pt", **size)

    def _frame_pixels(self, frames: int) -> Sequence[int] | None:
        """Fewest and most pixels of a frame; frames of a long film are smaller where the card limits the whole film."""
        pixels: Sequence[int] | None = self.options["frame_pixels"] or self.options["pixels"]
        total = self.options["film_pixels"]
        if not pixels or not total:
            return pixels
        least, most = pixels
        return least, max(min(most, total * self.processor.temporal_patch_size // frames), int(1.05 * least))
