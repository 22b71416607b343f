"""Which model for which need: the models within given limits, ranked on the tasks that the needs name.

A need is a category, type, capability, domain or language of the benchmark's tasks. Needs count alike, and within a
need its tasks do. Only models with a score on all of these tasks are ranked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix
from embark.catalogue import UnknownName
from embark.results.table import Exact, Row, Score, Table, named, short
from embark.stats.ranking import FEWEST, Place, freedom, over_tasks, places
from embark.studies.draw import color, marker
from embark.studies.study import Study
from embark.types import Array, EmbarkError, Modality, ModelCard, Task

TAGS = ("type", "capability", "subtype", "domain", "group", "subcategory", "skills")
SHOWN = 15
UNITS = {"K": 1e3, "M": 1e6, "B": 1e9}


@dataclass(frozen=True)
class Limits:
    """What a model must be; a model whose card does not tell is left out, and counted."""

    parameters: float | None = None
    modalities: tuple[Modality, ...] = ()
    min_dim: int | None = None
    max_dim: int | None = None

    def against(self, card: ModelCard | None) -> str | None:
        """Why a model is out, or None."""
        if self == Limits():
            return None
        if card is None:
            return "no card"
        if self.parameters is not None and not card.parameters:
            return "size not known"
        if self.parameters is not None and (card.parameters or 0) > self.parameters:
            return "too large"
        if not set(self.modalities) <= set(card.modalities):
            return "lacks a modality"
        if (self.min_dim or self.max_dim) and not card.dim:
            return "dimension not known"
        if (self.min_dim and (card.dim or 0) < self.min_dim) or (self.max_dim and (card.dim or 0) > self.max_dim):
            return "other dimension"
        return None


@dataclass(frozen=True)
class Entry:
    """A model with its mean over the needs, the mean of each, and its place; NaN and None where scores are missing."""

    model: str
    total: float
    needs: tuple[float, ...]
    scored: int
    place: Place | None
    card: ModelCard | None


@dataclass(frozen=True)
class Recommendation:
    """Models best first, those with missing scores after them, and how many were out for which reason."""

    needs: Mapping[str, tuple[int, ...]]
    tasks: int
    entries: tuple[Entry, ...]
    out: Mapping[str, int]
    tellable: bool  # there are tasks enough to tell ties
    mixed: bool  # some tasks are means over several languages

    def study(self, top: int = SHOWN) -> Study:
        """The first models with ranks and ties; the needs' means as dots."""
        shown = self.entries[:top]
        partial = any(one.place is None for one in shown)
        rows = [_row(one, self.tellable, [f"{one.scored}/{self.tasks}"] * partial) for one in shown]
        columns = ("#", "ranks", "tie", "model", *["tasks"] * partial, "mean", *self.needs, "size", "dim")
        return Study(
            f"For {' and '.join(self.needs)}", Table(columns, tuple(rows), self._notes(top), models="rows"),
            lambda figure: self._draw(figure, top), (7.0, 1.6 + 0.28 * min(top, len(self.entries))),
        )  # fmt: skip

    def _notes(self, top: int) -> tuple[str, ...]:
        counts = ", ".join(f"{need} {len(columns)}" for need, columns in self.needs.items())
        notes = [f"Mean over the needs of the mean over their tasks ({counts})."]
        if self.tellable:
            notes.append("Models with one tie letter cannot be told apart. Ranks: 95 %. Both: tasks resampled.")
        else:
            notes.append("Too few tasks to say how sure the order is: close models may well change places.")
        if any(one.place is None for one in self.entries[:top]):
            notes.append("Without a rank: some of the tasks have no score; the mean is over the others.")
        if self.mixed:
            notes.append("Tasks in several languages count with their mean over languages.")
        if self.out:
            notes.append("Left out: " + ", ".join(f"{count} ({why})" for why, count in self.out.items()) + ".")
        if len(self.entries) > top:
            notes.append(f"{len(self.entries) - top} more models follow (--top).")
        return tuple(notes)

    def _draw(self, figure: Any, top: int) -> None:
        axes, shown = figure.subplots(), self.entries[:top]
        for at, need in enumerate(self.needs):
            values = [100 * one.needs[at] for one in shown]
            axes.plot(values, range(len(shown)), marker(at * 10), color=color(at), ms=5, ls="", label=need)
        axes.plot([100 * one.total for one in shown], range(len(shown)), "|", color="black", ms=11, mew=2, label="mean")
        names = [f"{short(one.model, 30)}{'' if one.place else ' (partial)'}" for one in shown]
        axes.set_yticks(range(len(shown)), names, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("score (points)")
        figure.legend(loc="outside lower center", ncols=4, fontsize=8)


def recommend(
    matrix: Matrix, cards: Mapping[str, ModelCard], wanted: Sequence[str], limits: Limits | None = None
) -> Recommendation:
    """Rank the models within the limits on what is needed."""
    limits = limits or Limits()
    needs = {need: _meant(matrix.tasks, need) for need in wanted}
    if not needs:
        raise EmbarkError("Say what the model is needed for, such as --need retrieval,documents.")
    why = [limits.against(cards.get(model)) for model in matrix.models]
    out = Counter(reason for reason in why if reason)
    inside = matrix.only(models=np.array([reason is None for reason in why]))
    share = np.zeros(len(matrix.tasks))
    for columns in needs.values():
        share[list(columns)] += 1 / (len(needs) * len(columns))
    used = np.flatnonzero(share)
    scored = (~np.isnan(inside.values[:, used])).sum(axis=1)
    if not scored.any():
        raise EmbarkError("No model within these limits has a score on what is needed; widen the limits.")
    means = np.stack([_mean(inside.values[:, list(columns)]) for columns in needs.values()], axis=1)
    whole = np.flatnonzero(scored == len(used))
    found, tellable = _places(inside.values[np.ix_(whole, used)], share[used])
    ranked = dict(zip(whole.tolist(), found, strict=True))
    totals = _mean(means)
    order = sorted(
        np.flatnonzero(scored).tolist(),
        key=lambda at: (at not in ranked, -scored[at] * (at not in ranked), -totals[at]),
    )
    entries = tuple(
        Entry(name := inside.models[at], float(totals[at]), tuple(means[at].tolist()), int(scored[at]), ranked.get(at),
              cards.get(name))
        for at in order
    )  # fmt: skip
    mixed = any(len(matrix.tasks[at].languages) > 1 for at in used)
    return Recommendation(needs, len(used), entries, dict(out), tellable, mixed)


def amount(text: str) -> float:
    """A number of parameters as people write it: 400M, 1.5B, 7e9."""
    found = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMB]?)\s*", text, flags=re.I)
    try:
        if found:
            return float(found[1]) * UNITS.get(found[2].upper(), 1.0)
    except ValueError:
        pass
    raise EmbarkError(f"'{text}' is not a number of parameters; write 400M or 1.5B.")


def _meant(tasks: Sequence[Task], need: str) -> tuple[int, ...]:
    """The tasks that a need is about: those of the category of that name, else of another group or language of that
    name, else of groups whose names hold the word.
    """
    word, stem = need.strip().lower(), need.strip().lower().removesuffix("s")
    for fits in (
        lambda task: word == task.category.lower(),
        lambda task: word in (value.lower() for value in (*_groups(task), *_codes(task))),
        lambda task: len(word) > 2 and any(word in value.lower() for value in _groups(task)),
        lambda task: len(stem) > 2 and any(stem in value.lower() for value in _groups(task)),
    ):
        if found := tuple(at for at, task in enumerate(tasks) if fits(task)):
            return found
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


def _places(values: Array, share: Array) -> tuple[list[Place], bool]:
    """Ranks with intervals and ties, and whether there are tasks enough for them."""
    if not len(values):
        return [], False
    weight = np.broadcast_to(share, values.shape)
    sure = freedom(weight)
    draws = over_tasks(values, weight)
    return places(values @ share, draws, max(sure, 1.0)), sure + 1 >= FEWEST


def _row(one: Entry, tellable: bool, covered: list[str]) -> Row:
    place, card = one.place, one.card
    ranks, tie = (place.interval, place.tie) if place and tellable else ("", "")
    cells = (Score(value, np.nan, np.nan) if not np.isnan(value) else None for value in (one.total, *one.needs))
    size = Exact(card.parameters, f"{card.parameters / 1e6:,.0f}M") if card and card.parameters else None
    dim = Exact(card.dim, str(card.dim)) if card and card.dim else None
    return Row((place.rank if place else None, ranks, tie, named(one.model, 40), *covered, *cells, size, dim))
