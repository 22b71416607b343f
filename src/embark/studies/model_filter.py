"""Some models of a matrix: by name, and by facts on their cards (architecture, training data, size…)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, grouped, load_matrix
from embark.catalogue import check_name, match_words
from embark.results import TaskResult
from embark.settings import Settings
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError, ModelCard

MILLION = 1e6
FEWEST_MODELS = 3  # that a line or a correlation over models needs
# Facts that can be held fixed or filtered by; sizes are in millions.
FACTS: dict[str, Callable[[ModelCard], Any]] = {
    "architecture": lambda card: card.architecture or None,
    "objective": lambda card: card.objective or None,
    "family": lambda card: card.family or None,
    "parameters": lambda card: card.parameters / MILLION if card.parameters else None,
    "data": lambda card: card.data,
    "dim": lambda card: card.dim,
    "price": lambda card: card.price,
    "image_size": lambda card: card.image_size,
}


def load_scores(
    tasks: Tasks,
    models: Wanted,
    where: Sequence[str],
    include: Include,
    settings: Settings | None,
) -> Matrix:
    """The scores of chosen models: those of these names or patterns that meet every condition (see `only_models`)."""
    return only_models(load_matrix(tasks, include=include, settings=settings), models, where)


def results_of(models: Wanted, results: Sequence[TaskResult]) -> tuple[TaskResult, ...]:
    """The results of the models of these names or patterns."""
    names = {result.model for result in results}
    wanted = match_words("model with results", names, models) if results else None
    return tuple(result for result in results if wanted is None or result.model in wanted)


def only_models(matrix: Matrix, models: Wanted = None, where: Sequence[str] = ()) -> Matrix:
    """The models of these names or patterns that meet every condition, FACT=VALUE or FACT=LOW..HIGH.

    Words may be patterns (`architecture=vit*`); parameters and data are in millions. A model whose card does not tell
    a fact does not meet a condition on it.
    """
    wanted = match_words("model with scores", matrix.models, models)
    conditions = [_condition(text) for text in where]
    cards = matrix.cards

    def chosen(model: str) -> bool:
        named = wanted is None or model in wanted
        return named and all(model in cards and condition(cards[model]) for condition in conditions)

    mask = np.array([chosen(model) for model in matrix.models], bool)
    if not mask.any():
        raise EmbarkError(f"None of {len(matrix.models)} models with scores meets {' and '.join(where)}.")
    return matrix.only(models=mask)


def group_means(matrix: Matrix, by: str) -> dict[str, Array]:
    """The mean of each model in each group of tasks; NaN where it lacks a task of the group."""
    return {name: matrix.values[:, columns].mean(axis=1) for name, columns in grouped(matrix.tasks, by).items()}


def sizes_of(matrix: Matrix, name: str) -> Array:
    """A fact on the card of each model that is a number, such as its parameters in millions; NaN where not known."""
    return np.array([fact(matrix.cards.get(model), name) or np.nan for model in matrix.models], float)


def fact(card: ModelCard | None, name: str) -> Any:
    """A fact on a card; None where it is not told."""
    check_name("fact of models", name, FACTS)
    return None if card is None else FACTS[name](card)


def _condition(text: str) -> Callable[[ModelCard], bool]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise EmbarkError(f"'{text}' is no condition on models: write FACT=VALUE or FACT=LOW..HIGH.")
    check_name("fact of models", name, FACTS)
    low, span, high = value.partition("..")
    if not span and not _is_number(value):
        return lambda card: fnmatchcase(str(FACTS[name](card) or "").casefold(), value.casefold())
    ends = (low or "-inf", high or "inf") if span else (value, value)
    if not all(map(_is_number, ends)):
        raise EmbarkError(f"'{text}': the ends of a range are numbers, such as {name}=100..500.")
    least, most = map(float, ends)
    return lambda card: (number := FACTS[name](card)) is not None and _within(number, least, most)


def _within(value: Any, least: float, most: float) -> bool:
    return isinstance(value, (int, float)) and least <= value <= most


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
