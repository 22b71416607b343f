"""Dual encoders of transformers: a text tower and an image tower that meet in one space (CLIP, SigLIP, ALIGN…).

Mixed items are the sum of their parts' vectors as they are; videos the mean direction of their frames'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from embark.models.device import pad, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hf import Tokenizer, image_processor, weights
from embark.models.hub import Checkpoint, checkpoint
from embark.models.loading import Loading, loaded
from embark.models.pixels import Prepared, pixels
from embark.types import Array, EmbarkError, ModelCard


class Architecture(NamedTuple):
    """What tells a model type from the others; `model` is its class in transformers.

    `filled`: trained on lower-case text that was filled up to its full length, without a mask, and pooled at the end.
    `reserved`: positions that hold no token, as RoBERTa counts them.
    """

    model: str
    filled: bool = False
    reserved: int = 0


ARCHITECTURES = {  # config.json's model_type → what is special about it
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
    """Both towers; the card's options may say at how many `tokens` texts are cut."""
    import transformers

    found = checkpoint(card, loading)
    kind = _architecture(found)
    model = weights(getattr(transformers, kind.model), found, loading)
    if loading.compile:
        for part in model.children():  # features bypass `forward`, which is all that compiling the whole reaches
            part.compile()
    text, image = _text_tower(model, found, kind), _image_tower(model, found)
    dim = text.embed([text.prepare("a")]).shape[1]
    ready = loaded(found.card, loading, dim, fusion=card.fusion or "sum")
    return Towers(ready, {"text": text, "image": image, "video": frame_mean(image)})


def _architecture(found: Checkpoint) -> Architecture:
    kind = found.config.get("model_type", "")
    if kind not in ARCHITECTURES:
        raise EmbarkError(
            f"{found.card.name} is of model type '{kind}', which is no dual encoder that embark knows: "
            f"{', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[kind]


def _text_tower(model: Any, found: Checkpoint, kind: Architecture) -> Tower:
    tokens = Tokenizer(found, found.card.options.get("tokens"))
    tokens.limit = min(tokens.limit, model.config.text_config.max_position_embeddings - kind.reserved)

    def fill(text: str) -> list[int]:
        ids = tokens(text.lower())
        rest = [tokens.padding] * (tokens.limit - len(ids))
        return rest + ids if tokens.inner.padding_side == "left" else ids + rest

    @without_gradients
    def embed(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, tokens.padding, "right", model.device)
        return _vectors(model.get_text_features(ids, attention_mask=None if kind.filled else mask))

    return Tower(embed, fill if kind.filled else tokens)


def _image_tower(model: Any, found: Checkpoint) -> Tower:
    look = pixels(image_processor(found))

    @without_gradients
    def embed(rows: list[Prepared]) -> Array:
        return _vectors(model.get_image_features(**look.batch(rows, model)))

    return Tower(embed, look.prepare)


def _vectors(out: Any) -> Array:
    """The projected vectors; FLAVA projects every token, and the first one stands for all."""
    pooled = getattr(out, "pooler_output", out)  # older versions of transformers return the vectors themselves
    return to_numpy(pooled[:, 0] if pooled.ndim == 3 else pooled)
