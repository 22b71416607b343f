"""Models of images alone: DINOv2 and its kin in transformers, and everything in timm. Videos are the mean of frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embark.models.device import settle, stack, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hf import image_processor, weights
from embark.models.hub import Checkpoint, checkpoint
from embark.models.loading import Loading, loaded
from embark.models.pixels import Prepared, pixels
from embark.types import Array, EmbarkError, ModelCard

DINO = ("dinov2", "dinov2_with_registers", "dinov3_vit")  # config.json's model_type


def load_dino(card: ModelCard, loading: Loading) -> Encoder:
    """The last state of the class token, as the papers probe it."""
    from transformers import AutoModel

    found = checkpoint(card, loading)
    if (kind := found.config.get("model_type", "")) not in DINO:
        raise EmbarkError(f"{card.name} is of model type '{kind}'; this loader knows {', '.join(DINO)}.")
    model, look = weights(AutoModel, found, loading), pixels(image_processor(found))

    @without_gradients
    def embed(rows: list[Prepared]) -> Array:
        return to_numpy(model(**look.batch(rows, model)).last_hidden_state[:, 0])

    image = Tower(embed, look.prepare)
    ready = loaded(found.card, loading, model.config.hidden_size, ("image", "video"))
    return Towers(ready, {"image": image, "video": frame_mean(image)})


def load_timm(card: ModelCard, loading: Loading) -> Encoder:
    """The pooled features before the classifier, and the transform for evaluation that goes with the weights.

    A source is a hub id, a folder with timm's config.json, or a name of timm's own (vit_base_patch16_224.augreg_in1k).
    A repository without such a config needs the `architecture` in the card's options.
    """
    import timm
    import torch

    own = "/" not in card.source and not Path(card.source).is_dir()
    found = checkpoint(replace(card, source=f"timm/{card.source}") if own else card, loading)
    model = _timm_model(found)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    model = settle(model.to(getattr(torch, found.card.dtype)), found.card, loading)
    weight = next(model.parameters())

    @without_gradients
    def embed(rows: list[Any]) -> Array:
        return to_numpy(model(stack(rows, weight)))

    image = Tower(embed, lambda picture: transform(picture.convert("RGB")))
    libraries = ("torch", "timm", "torchvision")
    ready = loaded(found.card, loading, model.head_hidden_size, ("image", "video"), libraries)
    return Towers(ready, {"image": image, "video": frame_mean(image)})


def _timm_model(found: Checkpoint) -> Any:
    """The model without its classifier; weights that it lacks are an error, where timm would leave random numbers."""
    import timm

    architecture = found.card.options.get("architecture")
    if not (architecture or "architecture" in found.config):
        raise EmbarkError(
            f"{found.card.name} is not loaded: its config.json is none of timm's, so nothing says which architecture "
            "its weights belong to."
        )
    model = timm.create_model(architecture or f"local-dir:{found.folder}", pretrained=False, num_classes=0)
    files = found.weights()
    if not files:
        raise EmbarkError(f"{found.card.name} is not loaded: there are no weights in {found.folder}.")
    try:
        told = timm.models.load_checkpoint(model, str(files[0]), strict=False, weights_only=True)
    except RuntimeError as error:  # of other shapes
        told = " ".join(str(error).split())[:200]
        raise EmbarkError(
            f"{found.card.name} is not loaded: {files[0].name} does not fit its model ({told})."
        ) from error
    if missing := told.missing_keys:
        raise EmbarkError(
            f"{found.card.name} is not loaded: {files[0].name} lacks {len(missing)} weights of its model, "
            f"the first is {missing[0]}."
        )
    return model
