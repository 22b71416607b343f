"""The cards of models on boards: of the catalogue, else what stands beside the scores and in embark.toml."""

from __future__ import annotations

from dataclasses import replace

from embark.models import MODELS, own_models
from embark.models.folder_models import stated_facts
from embark.results import TaskResult
from embark.types import ModelCard


def card_of(result: TaskResult) -> ModelCard | None:
    """The card of a result's model; None where nobody states one. What embark.toml states now goes before the rest."""
    if card := MODELS.get(result.model):
        return card
    card = result.card()
    stated = own_models().get(result.model)
    return replace(card, **stated_facts(stated)) if card and stated else card
