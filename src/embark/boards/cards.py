"""The cards of models by the names that scores have them under."""

from __future__ import annotations

from collections.abc import Iterable

from embark.boards.matrix import model_of
from embark.models import MODELS
from embark.types import ModelCard


def cards(models: Iterable[str], family: str) -> dict[str, ModelCard]:
    """The card of every model that has one: by its name in the family's published tables, or its own."""
    known = {**MODELS, **{card.aliases[family]: card for card in MODELS.values() if family in card.aliases}}
    cards_by_model = {model: known.get(model) or known.get(model_of(model)) for model in models}
    return {model: card for model, card in cards_by_model.items() if card is not None}
