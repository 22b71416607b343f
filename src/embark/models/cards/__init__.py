"""The facts about checkpoints, as tables."""

from __future__ import annotations

from embark.models.cards import builtin
from embark.types import ModelCard

CARDS: tuple[ModelCard, ...] = (*builtin.CARDS,)
