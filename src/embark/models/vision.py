"""Models of images alone: DINOv2 and DINOv3 of transformers, and all of timm. A video is the mean of its frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embark.models.checkpoints import Checkpoint, fetch_checkpoint
from embark.models.device import stack, to_device, to_numpy, without_gradients
from embark.models.encoder import Encoder, Towers, image_towers
from embark.models.hf import image_processor, load_model
from embark.models.loading import Loading, loaded_card
from embark.models.pixel_towers import pixel_towers
from embark.types import Array, EmbarkError, ModelCard

DINO = ("dinov2", "dinov2_with_registers", "dinov3_vit")  # config.json's model_type


def load_dino(card: ModelCard, loading: Loading) -> Encoder:
    """The last state of the class token, as in the papers' linear probes."""
    from transformers import AutoModel

    checkpoint = fetch_checkpoint(card, loading)
    if (kind := checkpoint.config.get("model_type", "")) not in DINO:
        raise EmbarkError(f"{card.name} is of model type '{kind}'; this loader knows {', '.join(DINO)}.")
    model = load_model(AutoModel, checkpoint, loading)
    return Towers(
        loaded_card(checkpoint.card, loading, model.config.hidden_size, ("image", "video")),
        pixel_towers(image_processor(checkpoint), model, lambda **inputs: model(**inputs).last_hidden_state[:, 0]),
    )


def load_timm(card: ModelCard, loading: Loading) -> Encoder:
    """The pooled features before the classifier, and the transform for evaluation that goes with the weights.

    A source is a hub id, a folder with timm's config.json, or a name of timm's own (vit_base_patch16_224.augreg_in1k).
    A repository without such a config needs the `architecture` in the card's options.
    """
    import timm
    import torch

    if "/" not in card.source and not Path(card.source).is_dir():  # a name of timm's own
        card = replace(card, source=f"timm/{card.source}")
    checkpoint = fetch_checkpoint(card, loading)
    model = _timm_model(checkpoint)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    model = to_device(model.to(getattr(torch, checkpoint.card.dtype)), checkpoint.card, loading)
    weight = next(model.parameters())

    @without_gradients
    def embed(rows: list[Any]) -> Array:
        return to_numpy(model(stack(rows, weight)))

    libraries = ("torch", "timm", "torchvision")
    ready = loaded_card(checkpoint.card, loading, model.head_hidden_size, ("image", "video"), libraries)
    return Towers(ready, image_towers(embed, OfColors(transform)))


@dataclass(frozen=True)
class OfColors:
    """A transform of pictures in RGB."""

    transform: Callable[[Any], Any]

    def __call__(self, image: Any) -> Any:
        return self.transform(image.convert("RGB"))


def _timm_model(checkpoint: Checkpoint) -> Any:
    """The model without its classifier; missing weights are an error, where timm would leave random numbers."""
    import timm

    architecture = checkpoint.card.options.get("architecture")
    if not (architecture or "architecture" in checkpoint.config):
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: its config.json is none of timm's and states no architecture. "
            "Name it in the card's options, as in options={'architecture': 'vit_base_patch16_224'}."
        )
    model = timm.create_model(architecture or f"local-dir:{checkpoint.folder}", pretrained=False, num_classes=0)
    weights = checkpoint.weight_files()[0]
    try:
        report = timm.models.load_checkpoint(model, str(weights), strict=False, weights_only=True)
    except RuntimeError as error:  # of other shapes
        reason = " ".join(str(error).split())[:200]
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: {weights.name} does not fit its model ({reason})."
        ) from error
    if missing := report.missing_keys:
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: {weights.name} lacks {len(missing)} weights of its model, "
            f"the first is {missing[0]}."
        )
    return model
