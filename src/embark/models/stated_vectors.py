"""The vectors that a checkpoint's own files state, computed by the library that writes such files.

`embark doctor` compares a model with them. Two kinds of folders state enough: those of sentence-transformers
(modules.json, with pooling, normalization, text length and prompts), and models of images of transformers
(preprocessor_config.json). Of each, the usual departures can be computed as well: another pooling, another length.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embark.models.checkpoints import Checkpoint, read_json
from embark.models.device import to_numpy, without_gradients
from embark.models.dual import ARCHITECTURES, tower_vectors
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD, image_processor, load_model
from embark.models.loading import Loading
from embark.models.text import check_code, load_modules, role_prompts
from embark.models.text_length import TextLength, text_length
from embark.models.vision import DINO
from embark.types import Array, EmbarkError, Modality

LARGEST_BYTES = 3 << 30  # bytes of weights that are loaded a second time
# Options with which a card replaces what the files say.
REPLACING = ("pooling", "pool_prompt", "causal", "tokenizer", "template")
POOLINGS = {"mean": "the mean of all tokens", "cls": "the first token", "lasttoken": "the last token",
            "max": "the maximum of all tokens"}  # fmt: skip
LENGTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # tokens at which texts are often cut or filled up
Embed = Callable[[Sequence[Any]], Array]


@dataclass(frozen=True)
class Departure:
    """Vectors of a model that departs from its files in one way; `fault` says what it does and what the files say."""

    fault: str
    embed: Embed


@dataclass(frozen=True)
class StatedVectors:
    """What the files of `folder` state.

    `embed` gives the vectors of values of that kind (texts, or pictures of PIL) in a role. `departures` are those of a
    role, for a model that puts a prompt of its own before texts. `similarity` is None where the files state none.
    """

    folder: Path
    kind: Modality
    embed: Callable[[Sequence[Any], str], Array]
    departures: Callable[[str, str], Iterator[Departure]]
    similarity: str | None = None


def stated_vectors(checkpoint: Checkpoint, loading: Loading) -> StatedVectors:
    """What the checkpoint's files state, with what its card states besides (prompts, the length of texts).

    An error says why the files do not state enough.
    """
    folder = checkpoint.folder
    is_text = (folder / "modules.json").is_file()
    model_type = str(checkpoint.config.get("model_type", ""))
    if not (is_text or model_type in (*ARCHITECTURES, *DINO)):
        raise EmbarkError(
            f"{folder} has no modules.json of sentence-transformers, and its model type '{model_type}' is none whose "
            "vectors follow from its files; say what to compare with: --against FOLDER"
        )
    if replaced := [option for option in REPLACING if option in checkpoint.card.options]:
        raise EmbarkError(f"the card replaces what the files say, by its own {', '.join(replaced)}")
    files = [path for pattern in ("*.safetensors", "*.bin") for path in folder.rglob(pattern)]
    if not files:
        raise EmbarkError(f"{folder} has no weights of torch; say what to compare with: --against FOLDER")
    if (size := sum(path.stat().st_size for path in files)) > LARGEST_BYTES:
        raise EmbarkError(f"its weights have {size / 2**30:.1f} GB, too much to load them a second time")
    return _stated_texts(checkpoint, loading) if is_text else _stated_images(checkpoint, loading, model_type)


# ── texts, by sentence-transformers ──────────────────────────────────────────────────────────────────────────────────


def _stated_texts(checkpoint: Checkpoint, loading: Loading) -> StatedVectors:
    import torch
    from sentence_transformers import SentenceTransformer

    check_code(checkpoint)
    card = checkpoint.card
    model = load_modules(SentenceTransformer, checkpoint, loading, {"dtype": getattr(torch, card.dtype)})
    length = TextLength(None)
    modules = json.loads((checkpoint.folder / "modules.json").read_text())
    if modules[0]["type"].endswith(".Transformer"):
        folder = checkpoint.folder / modules[0]["path"]
        length = text_length(folder, model[0].config.to_dict(), card.options.get("tokens"))
        model.max_seq_length = length.tokens or model.max_seq_length
    prompts = {**role_prompts(model), **card.options.get("prompts", {})}
    path = checkpoint.folder / "config_sentence_transformers.json"

    def embed(texts: Sequence[str], prompt: str) -> Array:
        vectors = [model.encode(text, prompt=prompt, convert_to_tensor=True, show_progress_bar=False) for text in texts]
        return np.stack([to_numpy(vector) for vector in vectors])

    def departures(role: str, prompt: str) -> Iterator[Departure]:
        for other in dict.fromkeys(("", prompt, *prompts.values())):
            if other != prompts[role]:
                yield _other_prompt(role, prompts[role], other, embed)
        yield from _other_modules(model, length, lambda texts: embed(texts, prompts[role]))

    return StatedVectors(
        checkpoint.folder,
        "text",
        lambda texts, role: embed(texts, prompts[role]),
        departures,
        read_json(path).get("similarity_fn_name") if path.is_file() else None,
    )


def _other_prompt(role: str, stated: str, other: str, embed: Callable[[Sequence[str], str], Array]) -> Departure:
    has = f"have the prompt {other!r}" if other else "have no prompt"
    says = f"the prompt {stated!r}" if stated else "none"
    return Departure(f"texts of the role {role} {has}; the files say {says}", lambda texts: embed(texts, other))


def _other_modules(model: Any, length: TextLength, embed: Embed) -> Iterator[Departure]:
    """Another pooling, another length of texts, and padding that is not masked."""
    pooling = next((module for module in model if isinstance(getattr(module, "pooling_mode", None), str)), None)
    if pooling is not None:
        stated = pooling.pooling_mode
        says = POOLINGS.get(stated, stated)
        for mode, words in POOLINGS.items():
            if mode != stated:
                yield Departure(f"pools {words}; the files say {says}", _with(pooling, "pooling_mode", mode, embed))
    if not length.tokens:
        return
    most = getattr(model[0].config, "max_position_embeddings", length.tokens)
    for tokens in LENGTHS:
        if tokens != length.tokens and tokens <= most:
            fault = f"texts are cut at {tokens} tokens; {length.stated_by} says {length.tokens:,}"
            yield Departure(fault, _with(model, "max_seq_length", tokens, embed))
    for tokens in sorted({length.tokens, *LENGTHS}):
        if tokens <= length.tokens:
            fault = f"texts are filled up to {tokens} tokens, and what is filled in counts: padding is not masked"
            filled = _with(model[0], "forward", _filled(model[0], tokens), embed)
            yield Departure(fault, _with(model, "max_seq_length", tokens, filled))


def _with(owner: Any, name: str, value: Any, embed: Embed) -> Embed:
    """`embed` while an attribute of the model has another value."""

    def changed(values: Sequence[Any]) -> Array:
        before = getattr(owner, name)
        setattr(owner, name, value)
        try:
            return embed(values)
        finally:
            setattr(owner, name, before)

    return changed


def _filled(transformer: Any, tokens: int) -> Callable[..., Any]:
    """The forward pass of the first module on texts that are filled up to a length, with a mask of ones."""
    import torch

    forward = transformer.forward
    padding = int(getattr(transformer.tokenizer, "pad_token_id", None) or 0)

    def filled(features: dict[str, Any], **more: Any) -> Any:
        missing = max(0, tokens - features["input_ids"].shape[1])
        fills = {"input_ids": padding, "attention_mask": 1, "token_type_ids": 0}
        filled_up = {
            name: torch.nn.functional.pad(features[name], (0, missing), value=value)
            for name, value in fills.items()
            if name in features
        }
        filled_up["attention_mask"] = torch.ones_like(filled_up["attention_mask"])
        return forward({**features, **filled_up}, **more)

    return filled


# ── images, by transformers ──────────────────────────────────────────────────────────────────────────────────────────


def _stated_images(checkpoint: Checkpoint, loading: Loading, model_type: str) -> StatedVectors:
    import transformers

    if not (checkpoint.folder / "preprocessor_config.json").is_file():
        raise EmbarkError(f"{checkpoint.folder} has no preprocessor_config.json")
    architecture = ARCHITECTURES.get(model_type)
    kind = transformers.AutoModel if architecture is None else getattr(transformers, architecture.model)
    model = load_model(kind, checkpoint, loading)
    processor = image_processor(checkpoint)

    @without_gradients
    def embed(pictures: Sequence[Any], **changes: Any) -> Array:
        rows = []
        for picture in pictures:
            inputs = processor([picture.convert("RGB")], return_tensors="pt", **changes).to(model.device, model.dtype)
            rows.append(
                model(**inputs).last_hidden_state[:, 0]
                if architecture is None
                else tower_vectors(model.get_image_features(**inputs))
            )
        return np.concatenate([to_numpy(row) for row in rows])

    def departures(role: str, prompt: str) -> Iterator[Departure]:
        def reversed_channels(pictures: Sequence[Any]) -> Array:
            return embed([_reversed_channels(picture) for picture in pictures])

        yield Departure("pictures have their channels in the order BGR; the files say RGB", reversed_channels)
        for fault, changes in _other_pixels(processor):
            yield Departure(fault, lambda pictures, changes=changes: embed(pictures, **changes))  # type: ignore[misc]

    return StatedVectors(checkpoint.folder, "image", lambda pictures, role: embed(pictures), departures,
                         "cosine" if architecture else None)  # fmt: skip


def _reversed_channels(picture: Any) -> Any:
    from PIL import Image

    return Image.fromarray(np.asarray(picture.convert("RGB"))[:, :, ::-1].copy())


def _other_pixels(processor: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Faults of preprocessing, and the processor's options that make them."""
    if getattr(processor, "do_normalize", False):
        yield "pixels are not normalized; the files say do_normalize", {"do_normalize": False}
        if getattr(processor, "do_rescale", False):
            yield (
                "pixels are not scaled to 0…1 before they are normalized; the files say do_rescale",
                {"do_rescale": False},
            )
            yield "pixels are neither scaled nor normalized; the files say both", {
                "do_rescale": False, "do_normalize": False
            }  # fmt: skip
        own = (tuple(processor.image_mean), tuple(processor.image_std))
        known = {"CLIP": (CLIP_MEAN, CLIP_SPREAD), "0.5": ((0.5,) * 3, (0.5,) * 3),
                 "ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))}  # fmt: skip
        for name, (mean, spread) in known.items():
            if not np.allclose(own, (mean, spread)):
                fault = f"pixels are normalized by the mean and spread of {name}; the files say {own[0]} and {own[1]}"
                yield fault, {"image_mean": list(mean), "image_std": list(spread)}
    resample = getattr(processor, "resample", None)
    for name, code in {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3}.items():
        if resample is not None and code != int(resample):
            yield (
                f"pictures are resized by {name} resampling; the files say {int(resample)} (of Pillow)",
                {"resample": code},
            )
    crop = getattr(processor, "crop_size", None)
    if crop and getattr(processor, "do_center_crop", False):
        side = {"height": crop["height"], "width": crop["width"]}
        yield "pictures are squeezed into a square, not cropped; the files say do_center_crop", {
            "size": side, "do_center_crop": False
        }  # fmt: skip
        yield "pictures are cropped, but not resized before; the files say do_resize", {"do_resize": False}
        sizes = ", ".join(f"{name} {pixels}" for name, pixels in dict(processor.size).items() if pixels)
        larger = round(crop["height"] * 8 / 7)
        yield f"pictures are resized to {larger} pixels before they are cropped; the files say {sizes}", {
            "size": {"shortest_edge": larger}
        }  # fmt: skip
