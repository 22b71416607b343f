"""The models of the page: what filters ask of a card, and all that it states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.boards.contamination import shares
from embark.boards.facts import card_facts
from embark.models import LOADERS
from embark.types import ModelCard


def model_data(cards: Mapping[str, ModelCard | None], speeds: Mapping[str, float]) -> dict[str, list[Any]]:
    """Models by column, by the names that boards have; a model without a card has empty cells.

    `speeds` are seconds for 1,000 items, where a run of yours measured them.
    """
    rows = [_row(name, card, speeds.get(name)) for name, card in cards.items()]
    return {column: [row[column] for row in rows] for column in rows[0]} if rows else {}


def _row(name: str, card: ModelCard | None, seconds: float | None) -> dict[str, Any]:
    loader = LOADERS.get(card.loader) if card else None
    kind = loader.type if loader else ""
    return {
        "name": name,
        "family": card.family if card else "",
        "type": kind,
        "parameters": card and card.parameters,
        "dim": card.dim if card and card.kind == "embedder" else None,  # others judge pairs, or write
        "price": card and card.price,
        "seconds": seconds,
        "modalities": list(card.modalities) if card else [],
        "access": "" if card is None else "API" if kind == "api" else "open",
        "facts": _lines(card) if card else [],
    }


def _lines(card: ModelCard) -> list[tuple[str, str]]:
    """The facts of a card as pairs of words."""
    facts = card_facts(card) | {"zero-shot": shares(card)}
    return [(name, text) for name, fact in facts.items() for text in fact_lines(fact)]


def fact_lines(fact: Any) -> list[str]:
    """A fact in words, one line for each entry of a mapping or a list of sentences."""
    if isinstance(fact, Mapping):
        return [f"{key}: {', '.join(fact_lines(value))}" for key, value in fact.items() if value not in (None, "", ())]
    if isinstance(fact, (list, tuple)):
        return [str(entry) for entry in fact]
    return [str(fact)] if fact not in (None, "") else []
