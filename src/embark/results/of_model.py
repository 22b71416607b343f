"""The results and the card of one model, which may be named in all the ways in which a run takes models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from embark.catalogue import UnknownName, listed
from embark.models import LOADERS, MODELS, find_card, own_models
from embark.models.checkpoints import folder_revision
from embark.models.encoder import Encoder
from embark.results import Results, TaskResult
from embark.settings import Settings, load_settings
from embark.types import EmbarkError, ModelCard


def results_of_model(stored: Results, results: Sequence[TaskResult], model: str | Encoder) -> list[TaskResult]:
    """A model's results among those of a folder: by name, name@revision, checkpoint folder, LOADER:SOURCE or encoder.

    Where a name has several revisions, it must say which, unless it is one of embark.toml: that is at one now.
    """
    name = model if isinstance(model, str) else model.card.name
    named = [result for result in results if name in (result.model, f"{result.model}@{result.revision}")]
    card = None if named and isinstance(model, str) and model not in own_models() else _present_card(model)
    if card is not None:
        names = [other.name for other in stored.cards() if _same(other, card)]
        in_results = card.name if card.name in names else next(iter(names), card.name)
        named = [result for result in results if (result.model, result.revision) == (in_results, card.revision)]
        if not named:
            raise EmbarkError(f"There are no results of {name} ({card.revision}) in {stored.root}: run it first.")
        return named
    if not named:
        raise UnknownName("model in the results folder", name, {result.model for result in results})
    if len(revisions := sorted({result.revision for result in named})) > 1:
        raise EmbarkError(f"{name} has several revisions; name {' or '.join(f'{name}@{r}' for r in revisions)}.")
    return named


def results_card(name: str, settings: Settings | None = None) -> ModelCard | None:
    """The card of a model that has results, by its name, or name@revision; None where no result is of such a model."""
    cards = [
        card
        for card in Results((settings or load_settings()).results).cards()
        if name in (card.name, f"{card.name}@{card.revision}")
    ]
    if len(cards) > 1:
        choices = [f"{card.name}@{card.revision}" for card in cards]
        raise EmbarkError(f"{name} has results of several revisions; say {listed(choices)}.")
    return cards[0] if cards else None


def _present_card(model: str | Encoder) -> ModelCard | None:
    """The card of an encoder, or of a checkpoint folder as it is now; None where a name alone does not tell."""
    if not isinstance(model, str):
        return model.card
    loader, colon, source = model.partition(":")
    folder = Path(source if colon and loader in LOADERS else model).expanduser()
    if model in MODELS or not (folder.is_dir() or "checkpoint" in own_models().get(model, {})):
        return None
    card = find_card(model)
    return replace(card, revision=folder_revision(Path(card.source).expanduser()))


def _same(card: ModelCard, other: ModelCard) -> bool:
    """Whether two cards are of one model, whatever names their users gave them."""
    return (card.keyed_as or card.name, card.revision) == (other.keyed_as or other.name, other.revision)
