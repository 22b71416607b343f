"""The facts about checkpoints, as tables."""

from __future__ import annotations

from embark.models.cards import (
    api,
    blip,
    builtin,
    clip_variants,
    dual,
    generate,
    late,
    mllm,
    open_clip,
    rerank,
    text,
    unibench,
    vision,
)
from embark.models.cards.training_data import with_training_data
from embark.types import ModelCard

_TABLES: tuple[ModelCard, ...] = (
    *builtin.CARDS,
    *builtin.RECORDED,
    *api.CARDS,
    *blip.CARDS,
    *dual.CARDS,
    *clip_variants.CARDS,
    *open_clip.CARDS,
    *text.CARDS,
    *unibench.CARDS,
    *vision.CARDS,
    *mllm.CARDS,
    *late.CARDS,
    *rerank.CARDS,
    *generate.CARDS,
)

CARDS: tuple[ModelCard, ...] = tuple(map(with_training_data, _TABLES))

_XVLM = "their weights fit their authors' code alone"
NO_CARD = {"xvlm_coco": _XVLM, "xvlm_flickr": _XVLM}  # models of the papers that embark does not load, and why
