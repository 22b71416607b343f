"""Dual encoders of transformers: a text tower and an image tower with one vector space (CLIP, SigLIP, ALIGN…).

The vector of a mixed item is the sum of its parts' raw vectors; that of a video is the mean direction of its frames'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from embark.models.device import compile_children
from embark.models.encoder import Encoder, Tower, Towers
from embark.models.hf import Tokenizer, image_processor, load_model, text_tower
from embark.models.hub import Checkpoint, fetch_checkpoint
from embark.models.loading import Loading, loaded_card
from embark.models.pixels import pixel_towers
from embark.types import EmbarkError, ModelCard


class Architecture(NamedTuple):
    """How a model type differs from the others; `model` is its class in transformers.

    `filled`: trained on lower-case text, padded to its full length, without a mask, and pooled at the end.
    `reserved`: positions that hold no token, as RoBERTa counts them.
    """

    model: str
    filled: bool = False
    reserved: int = 0


ARCHITECTURES = {  # by config.json's model_type
    "clip": Architecture("CLIPModel"),
    "metaclip_2": Architecture("MetaClip2Model"),
    "altclip": Architecture("AltCLIPModel", reserved=2),
    "chinese_clip": Architecture("ChineseCLIPModel"),
    "siglip": Architecture("SiglipModel", filled=True),
    "siglip2": Architecture("Siglip2Model", filled=True),  # NaFlex; SigLIP 2 of fixed size is of type siglip
    "align": Architecture("AlignModel"),
    "flava": Architecture("FlavaModel"),
}


def load(card: ModelCard, loading: Loading) -> Encoder:
    """Both towers. Option of the card: `tokens`, at which texts are cut."""
    import transformers

    checkpoint = fetch_checkpoint(card, loading)
    architecture = _architecture(checkpoint)
    model = load_model(getattr(transformers, architecture.model), checkpoint, loading)
    compile_children(model, loading)
    text = _text_tower(model, checkpoint, architecture)
    dim = text.embed([text.prepare("a")]).shape[1]
    images = pixel_towers(
        image_processor(checkpoint), model, lambda **inputs: _vectors(model.get_image_features(**inputs))
    )
    return Towers(loaded_card(checkpoint.card, loading, dim, fusion=card.fusion or "sum"), {"text": text, **images})


def _architecture(checkpoint: Checkpoint) -> Architecture:
    kind = checkpoint.config.get("model_type", "")
    if kind not in ARCHITECTURES:
        raise EmbarkError(
            f"{checkpoint.name} is of model type '{kind}', which is no dual encoder that embark knows: "
            f"{', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[kind]


def _text_tower(model: Any, checkpoint: Checkpoint, architecture: Architecture) -> Tower:
    tokenizer = Tokenizer(checkpoint, checkpoint.card.options.get("tokens"))
    tokenizer.limit = min(tokenizer.limit, model.config.text_config.max_position_embeddings - architecture.reserved)

    def filled_tokens(text: str) -> list[int]:
        ids = tokenizer(text.lower())
        padding = [tokenizer.padding] * (tokenizer.limit - len(ids))
        return padding + ids if tokenizer.inner.padding_side == "left" else ids + padding

    def forward(ids: Any, mask: Any) -> Any:
        return _vectors(model.get_text_features(ids, attention_mask=None if architecture.filled else mask))

    return text_tower(tokenizer, model, forward, filled_tokens if architecture.filled else None)


def _vectors(out: Any) -> Any:
    """The projected vectors; FLAVA projects every token, of which the first is the vector."""
    pooled = getattr(out, "pooler_output", out)  # older versions of transformers return the vectors themselves
    return pooled[:, 0] if pooled.ndim == 3 else pooled
