"""The open_clip library: its architectures with their published weights, its hub repositories, and files in its format.

A source is a folder or hub id with an open_clip_config.json, or ARCHITECTURE/WEIGHTS, where the weights are one of the
library's tags, a file or an address: ViT-B-32/laion2b_s34b_b79k, ViT-B-32/negclip.pth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from embark.models.checkpoints import Checkpoint, fetch_checkpoint, fetch_weights_file, is_weights_file
from embark.models.device import compile_module, release_weights, stack, to_device, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, image_towers
from embark.models.loading import Loading, loaded_card, logit_scale
from embark.models.pixels import styled_preparations, with_unibench_pixels
from embark.types import Array, EmbarkError, Modality, ModelCard

CONFIG = "open_clip_config.json"


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder, with the library's own preprocessing for evaluation and its own tokeniser."""
    import open_clip
    import torch
    from open_clip.transform import PreprocessCfg, image_transform_v2

    card = resolve_source(card, open_clip.list_models(), open_clip.get_pretrained_cfg)
    fetch = fetch_weights_file if is_weights_file(card.source) else _fetch_folder
    checkpoint, weights = fetch(card, loading)
    model, tokenizer, dim = _build(checkpoint, weights)
    libraries = ("torch", "open_clip_torch", "torchvision")
    facts: dict[str, Any] = {"fusion": card.fusion or "sum", "logit_scale": logit_scale(model)}
    transform = image_transform_v2(PreprocessCfg(**model.visual.preprocess_cfg), is_train=False)
    card = with_unibench_pixels(checkpoint.card, transform)
    ready = loaded_card(card, loading, dim, libraries=libraries, **facts)
    model = to_device(model.to(getattr(torch, ready.dtype)), ready, replace(loading, compile=False))
    # Compiled are the towers: the library's encode_… methods bypass the whole model's `forward`.
    for tower in {"visual", "text", "transformer"} & dict(model.named_children()).keys():
        compile_module(getattr(model, tower), loading)
    release_weights(model, loading)
    return Towers(ready, build_towers(model, tokenizer, transform, ready))


def build_towers(
    model: Any, tokenizer: Any, transform: Callable[[Any], Any], card: ModelCard | None = None
) -> dict[Modality, Tower]:
    """The towers of a model on its device; `transform` makes a tensor of an image, the card's answers other ones."""
    import torch

    weight = next(model.parameters())
    lock = Lock()

    def tokens(texts: list[str]) -> list[Any]:
        with lock:  # transformers' tokenisers keep state between calls
            return list(tokenizer(texts))

    @without_gradients
    def embed_texts(batch: list[Any]) -> Array:
        return to_numpy(model.encode_text(torch.stack(batch).to(weight.device)))

    @without_gradients
    def embed_images(batch: list[Any]) -> Array:
        return to_numpy(model.encode_image(stack(batch, weight)))

    styled = {name: PixelValues(prepare) for name, prepare in (styled_preparations(card) if card else {}).items()}
    text = Tower(embed_texts, lambda text: tokens([text])[0], prepare_many=tokens)
    return {"text": text, **image_towers(embed_images, transform, styled)}


@dataclass(frozen=True)
class PixelValues:
    """The pixels alone of a preparation."""

    prepare: Callable[[Any], Mapping[str, Any]]

    def __call__(self, image: Any) -> Any:
        return self.prepare(image)["pixel_values"]


def resolve_source(
    card: ModelCard, architectures: Collection[str], get_tag: Callable[[str, str], Mapping[str, Any]]
) -> ModelCard:
    """The card of a source ARCHITECTURE/WEIGHTS, with the architecture in its options and the weights as its source."""
    architecture, _, weights = card.source.partition("/")
    if "architecture" in card.options or architecture not in architectures or Path(card.source).expanduser().is_dir():
        return card
    options = {**card.options, "architecture": architecture}
    if is_weights_file(weights):
        return replace(card, source=weights, options=options)
    tag = get_tag(architecture, weights)
    if not tag:
        raise EmbarkError(
            f"{card.name} is not loaded: '{weights}' is no file here and no weights that open_clip knows for "
            f"{architecture} (open_clip.list_pretrained() lists them)."
        )
    quick = f"{architecture}-quickgelu"
    if tag.get("quick_gelu") and quick in architectures:
        raise EmbarkError(
            f"{card.name} is not loaded: these weights were trained with another activation than {architecture} has; "
            f"open_clip:{quick}/{weights} is the architecture that they belong to."
        )
    source = "/".join(tag["hf_hub"].split("/")[:2])  # "organisation/name/", perhaps with a file's name
    return replace(card, source=source, options={**options, "pretrained": weights})


def _fetch_folder(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Path]:
    """A repository and its weights in the library's own format: a copy for transformers beside them has other names."""
    checkpoint = fetch_checkpoint(card, loading)
    files = sorted(checkpoint.folder.glob("open_clip*.safetensors"))
    if not files:
        checkpoint.require_trust("its weights for open_clip are pickles, which can run any code when they are opened")
        pickles = [path for pattern in ("*.bin", "*.pt", "*.pth") for path in checkpoint.folder.glob(pattern)]
        files = sorted(pickles, key=lambda path: (not path.name.startswith("open_clip"), path.name))
    if not files:
        raise EmbarkError(f"{card.name} is not loaded: there are no weights in {checkpoint.folder}.")
    return checkpoint, files[0]


def _build(checkpoint: Checkpoint, weights: Path) -> tuple[Any, Any, int]:
    """(model, tokeniser, dimension); weights that do not fit are an error, never random numbers."""
    import open_clip

    folder = f"local-dir:{checkpoint.folder}" if (checkpoint.folder / CONFIG).is_file() else ""
    architecture = checkpoint.card.options.get("architecture")
    if not (folder or architecture):
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: {checkpoint.folder} has no {CONFIG}; name the architecture of these "
            "weights, as in open_clip:ViT-B-32/WEIGHTS."
        )
    pretrained = checkpoint.card.options.get("pretrained", "")
    tag = open_clip.get_pretrained_cfg(architecture, pretrained) if architecture else {}
    try:
        model = open_clip.create_model(
            architecture or folder, str(weights) if architecture else None, require_pretrained=True,
            force_preprocess_cfg={name: value for name, value in tag.items() if name != "size"},
        )  # fmt: skip
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: {weights.name} does not fit its model ({reason})."
        ) from error
    dim = int(open_clip.get_model_config(architecture or folder)["embed_dim"])
    return model, open_clip.get_tokenizer(folder or architecture), dim
