"""Recommends models: those within limits, ranked on the tasks that the user's needs name.

A need is a category, type, capability, domain or language of the benchmark's tasks. Needs have equal weights, and so
have the tasks of a need. Only models with a score on all of these tasks are ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, load_matrix
from embark.catalogue import UnknownName, match_words
from embark.field_types import checked
from embark.models import parameter_count
from embark.settings import Settings
from embark.stats.ranking import Place, over_kinds, places
from embark.studies.analysis import Analysis
from embark.studies.plotting import SAFE, color, legend_below, marker
from embark.tables import Exact, Note, Row, Score, Table, applicable, first, named, short
from embark.tasks import Tasks
from embark.types import MODALITIES, Array, EmbarkError, ModelCard, Task

TAGS = ("type", "capability", "subtype", "domain", "group", "subcategory", "skills")
SHOWN_MODELS = 15  # models that are shown


@checked
def recommend(
    needs: str | Iterable[str],
    tasks: Tasks = None,
    *,
    max_parameters: float | str | None = None,
    modalities: str | Iterable[str] = (),
    min_dim: int | None = None,
    max_dim: int | None = None,
    top: int = SHOWN_MODELS,
    include: Include = "all",
    settings: Settings | None = None,
) -> Recommendation:
    """Rank models for your needs, within your limits.

    `needs` are categories, types, capabilities, domains or languages ("retrieval,documents" or a list); a model must
    take all `modalities` and have at most `max_parameters` (4e8 or "400M"). `top` models are shown.
    """
    most = parameter_count(max_parameters) if isinstance(max_parameters, str) else max_parameters
    limits = Limits(most, frozenset(match_words("modality", MODALITIES, _names(modalities)) or ()), min_dim, max_dim)
    matrix = load_matrix(tasks, include=include, settings=settings)
    return replace(rank_models(matrix, matrix.cards, _names(needs), limits), top=top)


@dataclass(frozen=True)
class Limits:
    """Requirements on a model's card; a model whose card does not state a required value is left out, and counted."""

    parameters: float | None = None
    modalities: frozenset[str] = frozenset()
    min_dim: int | None = None
    max_dim: int | None = None

    def excludes(self, card: ModelCard | None) -> str | None:
        """The reason why a model is left out, or None if it is within the limits."""
        if self == Limits():
            return None
        if card is None:
            return "no card"
        dim = _dimension(card) or 0
        reasons = {
            "size not known": self.parameters is not None and card.parameters is None,
            "too large": self.parameters is not None and (card.parameters or 0) > self.parameters,
            "lacks a modality": not self.modalities <= set(card.modalities),
            "dimension not known": (self.min_dim or self.max_dim) and not dim,
            "other dimension": dim < (self.min_dim or dim) or dim > (self.max_dim or dim),
        }
        return next((reason for reason, applies in reasons.items() if applies), None)


@dataclass(frozen=True)
class RecommendedModel:
    """A model with its mean over the needs, the mean of each, and its place; NaN and None where scores are missing."""

    name: str
    total: float
    needs: tuple[float, ...]
    scored: int  # tasks with a score
    need_counts: tuple[int, ...]  # tasks of each need with a score
    place: Place | None
    card: ModelCard | None


@dataclass(frozen=True)
class Recommendation(Analysis):
    """Models best first, those with missing scores after them, and how many were left out for which reason."""

    needs: Mapping[str, tuple[int, ...]]  # the columns of each need's tasks
    tasks: int
    models: tuple[RecommendedModel, ...]
    left_out: Mapping[str, int]
    sure: bool  # there are enough tasks to tell how sure the ranks are
    multilingual: bool  # some tasks are means over several languages
    top: int = SHOWN_MODELS

    @property
    def title(self) -> str:
        return f"For {' and '.join(self.needs)}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.6 + 0.28 * min(self.top, len(self.models))

    def table(self, top: int | None = None) -> Table:
        """The first models with ranks, ties and the mean of each need."""
        shown = first(self.models, self.top if top is None else top)
        partial = any(model.place is None for model in shown)
        sizes = (self.tasks, *map(len, self.needs.values()))
        rows = [_row(model, self.sure, sizes, partial) for model in shown]
        tasks = ("tasks",) if partial else ()
        columns = ("#", "ranks", "tie", "model", *tasks, "mean", *self.needs, "size", "dim")
        return Table(columns, tuple(rows), self._table_notes(len(shown), partial), models="rows")

    def draw(self, figure: Any) -> None:
        """A line per model: the means of the needs as points."""
        axes = figure.subplots()
        shown = self.models[: self.top]
        lines = range(len(shown))
        for number, need in enumerate(self.needs):
            values = [100 * model.needs[number] for model in shown]
            axes.plot(values, lines, marker(number * SAFE), color=color(number), ms=5, ls="", label=need)
        if len(self.needs) > 1:
            axes.plot([100 * model.total for model in shown], lines, "|", color="black", ms=11, mew=2, label="mean")
        names = [f"{short(model.name, 30)}{'' if model.place else ' (partial)'}" for model in shown]
        axes.set_yticks(lines, names, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("score (points)")
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])

    def _table_notes(self, shown: int, partial: bool) -> tuple[str, ...]:
        counts = ", ".join(f"{need} {len(columns)}" for need, columns in self.needs.items())
        reasons = ", ".join(f"{count} ({reason})" for reason, count in self.left_out.items())
        more = len(self.models) - shown
        notes = {
            f"Mean over the needs of the mean over their tasks ({counts}).": True,
            "Models with one tie letter cannot be told apart. Ranks: 95 %. Both: on other tasks like these.": self.sure,
            "Too few tasks to say how sure the order is: close models may well change places.": not self.sure,
            "Without a rank: some of the tasks have no score; the mean is over the others.": partial,
            "Tasks in several languages count with their mean over languages.": self.multilingual,
            f"Left out: {reasons}.": self.left_out,
            Note(f"{more} more models follow", "--top, or top in Python"): more > 0,
        }
        return applicable(notes)


def rank_models(
    matrix: Matrix, cards: Mapping[str, ModelCard], needs: Sequence[str], limits: Limits | None = None
) -> Recommendation:
    """Rank the models within the limits on the tasks of the needs."""
    limits = limits or Limits()
    columns_of = {need: _columns(matrix.tasks, need) for need in needs}
    if not columns_of:
        raise EmbarkError("Say what the model is needed for, such as retrieval or documents.")
    reasons = [limits.excludes(cards.get(model)) for model in matrix.models]
    within = matrix.only(models=np.array([reason is None for reason in reasons]))
    weights = np.zeros(len(matrix.tasks))
    for columns in columns_of.values():
        weights[list(columns)] += 1 / (len(columns_of) * len(columns))
    used = np.flatnonzero(weights)
    scored = (~np.isnan(within.values[:, used])).sum(axis=1)
    if not scored.any():
        raise EmbarkError("No model within these limits has a score on what is needed; widen the limits.")
    means = np.stack([_mean(within.values[:, list(columns)]) for columns in columns_of.values()], axis=1)
    totals = _mean(means)
    complete = np.flatnonzero(scored == len(used))
    complete_places, sure = _places(within.values[np.ix_(complete, used)], weights[used])
    place_of = dict(zip(complete.tolist(), complete_places, strict=True))

    def best_first(row: int) -> tuple[bool, int, float]:
        """Ranked models by their total, the others by the number of their scores."""
        ranked = row in place_of
        return not ranked, 0 if ranked else -int(scored[row]), -float(totals[row])

    models = [
        RecommendedModel(
            within.models[row],
            float(totals[row]),
            tuple(means[row].tolist()),
            int(scored[row]),
            tuple((~np.isnan(within.values[row, list(columns)])).sum().item() for columns in columns_of.values()),
            place_of.get(row),
            cards.get(within.models[row]),
        )
        for row in sorted(np.flatnonzero(scored).tolist(), key=best_first)
    ]
    multilingual = any(len(matrix.tasks[column].languages) > 1 for column in used)
    left_out = dict(Counter(reason for reason in reasons if reason))
    return Recommendation(columns_of, len(used), tuple(models), left_out, sure, multilingual, notes=matrix.notes)


def _names(words: str | Iterable[str]) -> list[str]:
    """Names in a list, or in a text between commas."""
    parts = words.split(",") if isinstance(words, str) else words
    return [word.strip() for word in parts if word.strip()]


def _columns(tasks: Sequence[Task], need: str) -> tuple[int, ...]:
    """The tasks that a need is about: those of the category of that name, else of another group or language of that
    name, else of groups whose names hold the word.
    """
    word = need.strip().lower()
    stem = word.removesuffix("s")
    for fits in (
        lambda task: word == task.category.lower(),
        lambda task: word in (value.lower() for value in (*_groups(task), *_codes(task))),
        lambda task: len(word) > 2 and any(word in value.lower() for value in _groups(task)),
        lambda task: len(stem) > 2 and any(stem in value.lower() for value in _groups(task)),
    ):
        if columns := tuple(column for column, task in enumerate(tasks) if fits(task)):
            return columns
    known = dict.fromkeys(value for task in tasks for value in (*_groups(task), *_codes(task)))
    raise UnknownName("category, capability, domain or language", need, known)


def _groups(task: Task) -> list[str]:
    return [task.category, *(task.tags[tag] for tag in TAGS if tag in task.tags)]


def _codes(task: Task) -> list[str]:
    return [code for language in task.languages for code in (language, language.partition("-")[0])]


def _mean(values: Array) -> Array:
    """Over the columns that have a score; NaN where none has."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.asarray(np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan))


def _places(values: Array, weights: Array) -> tuple[list[Place], bool]:
    """Ranks with intervals and ties, and whether there are enough tasks for them. The kinds of tasks are what was asked
    for, so the tasks count as drawn, and not the kinds.
    """
    if not len(values):
        return [], False
    spread = over_kinds(values, np.broadcast_to(weights, values.shape), range(len(weights)))
    return places(values @ weights, spread), spread is not None


def _dimension(card: ModelCard) -> int | None:
    """The length of a model's vectors; none of one that judges pairs or writes, whatever is stored of it."""
    return card.dim if card.kind == "embedder" else None


def _row(model: RecommendedModel, sure: bool, sizes: Sequence[int], partial: bool) -> Row:
    place, card = model.place, model.card
    ranks, tie = (place.interval, place.tie) if place and sure else ("", "")
    means = zip((model.total, *model.needs), (model.scored, *model.need_counts), sizes, strict=True)
    scores = (None if np.isnan(mean) else Score(mean, np.nan, np.nan, count, of) for mean, count, of in means)
    size = Exact(card.parameters, f"{card.parameters / 1e6:,.0f}M") if card and card.parameters else None
    dim = _dimension(card) if card else None
    shown_dim = Exact(dim, str(dim)) if dim else None
    covered = (f"{model.scored}/{sizes[0]}",) if partial else ()
    return Row((place.rank if place else None, ranks, tie, named(model.name, 40), *covered, *scores, size, shown_dim))
