"""Dual encoders of transformers: a text tower and an image tower with one vector space (CLIP, SigLIP, ALIGN…).

The vector of a mixed item is the sum of its parts' raw vectors; that of a video is the mean direction of its frames'.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from embark.models.checkpoints import Checkpoint, fetch_checkpoint
from embark.models.device import compile_children, release_weights
from embark.models.encoder import Encoder, Tower, Towers
from embark.models.hf import Tokenizer, image_processor, load_model, text_tower
from embark.models.loading import Loading, loaded_card, logit_scale
from embark.models.pixel_towers import pixel_towers
from embark.models.pixels import image_preprocessor, with_unibench_pixels
from embark.types import EmbarkError, ModelCard


class Architecture(NamedTuple):
    """How a model type differs from the others; `model` is its class in transformers.

    `filled`: trained on lower-case text, padded to its full length, without a mask, and pooled at the end.
    """

    model: str
    filled: bool = False


ARCHITECTURES = {  # by config.json's model_type
    "clip": Architecture("CLIPModel"),
    "metaclip_2": Architecture("MetaClip2Model"),
    "altclip": Architecture("AltCLIPModel"),
    "chinese_clip": Architecture("ChineseCLIPModel"),
    "siglip": Architecture("SiglipModel", filled=True),
    "siglip2": Architecture("Siglip2Model", filled=True),  # NaFlex; SigLIP 2 of fixed size is of type siglip
    "align": Architecture("AlignModel"),
    "flava": Architecture("FlavaModel"),
}


def load(card: ModelCard, loading: Loading) -> Encoder:
    """Both towers. Options of the card: `tokens`, at which texts are cut; `own_code`: the checkpoint brings a class
    with the same methods, which runs only for a trusted revision.
    """
    import transformers

    checkpoint = fetch_checkpoint(card, loading)
    architecture = _architecture(checkpoint)
    if card.options.get("own_code"):
        checkpoint.require_trust("its modelling code would run")
        kind = transformers.AutoModel
    else:
        kind = getattr(transformers, architecture.model)
    model = load_model(kind, checkpoint, replace(loading, weights=True))
    compile_children(model, loading)
    text = _text_tower(model, checkpoint, architecture)
    dim = text.embed([text.prepare("a")]).shape[1]
    processor = _image_processor(checkpoint, model)
    card = with_unibench_pixels(checkpoint.card, image_preprocessor(processor).pixels)
    images = pixel_towers(processor, model, lambda **inputs: tower_vectors(model.get_image_features(**inputs)), card)
    facts: dict[str, Any] = {"fusion": card.fusion or "sum", "logit_scale": logit_scale(model)}
    release_weights(model, loading)
    return Towers(loaded_card(card, loading, dim, **facts), {"text": text, **images})


def _architecture(checkpoint: Checkpoint) -> Architecture:
    kind = checkpoint.config.get("model_type", "")
    if kind not in ARCHITECTURES:
        raise EmbarkError(
            f"{checkpoint.name} is of model type '{kind}', which is no dual encoder that embark knows: "
            f"{', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[kind]


def _image_processor(checkpoint: Checkpoint, model: Any) -> Any:
    """The checkpoint's; CLIP's at the model's size, where a checkpoint with code of its own has none."""
    from transformers import CLIPImageProcessorPil

    if (checkpoint.folder / "preprocessor_config.json").is_file() or "own_code" not in checkpoint.card.options:
        return image_processor(checkpoint)
    side = model.config.vision_config.image_size
    return CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})


def _text_tower(model: Any, checkpoint: Checkpoint, architecture: Architecture) -> Tower:
    tokenizer = Tokenizer(checkpoint, checkpoint.card.options.get("tokens"), model.config.text_config.to_dict())

    def filled_tokens(texts: list[str]) -> list[list[int]]:
        rows = tokenizer.many([text.lower() for text in texts])
        paddings = [[tokenizer.padding] * (tokenizer.limit - len(ids)) for ids in rows]
        left = tokenizer.inner.padding_side == "left"
        return [padding + ids if left else ids + padding for ids, padding in zip(rows, paddings, strict=True)]

    def forward(ids: Any, mask: Any) -> Any:
        return tower_vectors(model.get_text_features(ids, attention_mask=None if architecture.filled else mask))

    return text_tower(tokenizer, model, forward, filled_tokens if architecture.filled else None)


def tower_vectors(out: Any) -> Any:
    """The projected vectors; FLAVA projects every token, of which the first is the vector."""
    pooled = getattr(out, "pooler_output", out)  # older versions of transformers return the vectors themselves
    return pooled[:, 0] if pooled.ndim == 3 else pooled
