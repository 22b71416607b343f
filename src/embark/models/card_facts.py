"""Cards from plain values, as JSON and TOML have them; whatever comes from a file is checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from embark.field_types import field_types, fits, words
from embark.redaction import last_name
from embark.types import EmbarkError, ModelCard


def card_facts(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a card's fields; another kind of value than the field has is an error that names it."""
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}
    for name, value in facts.items():
        kind = field_types(ModelCard)[name]
        negative = type(value) in (int, float) and not value >= 0
        if negative or not fits(value, kind):
            expected = words(kind).replace("tuple", "list")  # as files have them
            raise EmbarkError(f"'{name}' of a model must be {expected}, not {stated[name]!r}.")
    return facts


LOCAL_REVISIONS = ("local-", "sha256-")  # begin the revisions of checkpoints on this machine: a hash of their files


def public_card(card: ModelCard) -> ModelCard:
    """The card for others: a checkpoint of this machine is named by its last folder, as nobody else has the others."""
    local = card.revision.startswith(LOCAL_REVISIONS) or Path(card.source).expanduser().is_absolute()
    return replace(card, source=last_name(card.source)) if local else card
