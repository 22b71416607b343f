"""A task's score by what its data tell about each item: a corruption, an attribute, a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.comparable_results import load_results
from embark.catalogue import check_name, listed
from embark.results import ABOUT, TaskResult
from embark.results.table import Exact, Row, Score, Table, short
from embark.settings import Settings
from embark.stats.outcomes import NAMES, observations_of, statistic_of
from embark.stats.shared import ItemNumbers, Observations, part_interval
from embark.studies.plotting import COLORS
from embark.studies.study import Study
from embark.tasks import Tasks
from embark.types import Benchmark, EmbarkError


def breakdown(
    benchmark: str | Benchmark | None = None,
    tasks: Tasks = None,
    *,
    by: str | None = None,
    own: bool = True,
    settings: Settings | None = None,
) -> Breakdown:
    """The scores of your own runs within groups of items, by a fact that the data tell about them.

    `by` names the fact (default: every one that a task has). Published scores have no outcomes of items, so they
    cannot be broken down; `own` changes nothing.
    """
    results = load_results(benchmark, tasks, published=False, settings=settings)
    parts = [part for result in results.results for part in _parts(result)]
    facts = dict.fromkeys(part.fact for part in parts)
    if not parts:
        raise EmbarkError(
            "No result on disk has facts about its items to go by: only some readers keep them (webdataset), and only "
            "scores that are means of items can be broken down."
        )
    if by is not None:
        check_name("fact about items", by, facts)
    return Breakdown(tuple(part for part in parts if by in (None, part.fact)), notes=results.notes)


@dataclass(frozen=True)
class Part:
    """The score of a model on the items of a task that have one value of a fact."""

    model: str
    task: str
    fact: str
    value: str
    score: float
    interval: tuple[float, float]
    items: int


@dataclass(frozen=True)
class Breakdown(Study):
    """Scores by task, fact and value, of several models."""

    parts: tuple[Part, ...]

    @property
    def title(self) -> str:
        return f"Scores by {listed(sorted({part.fact for part in self.parts}))}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, max(4.5, 1.5 + 0.22 * len(self._groups))

    def table(self) -> Table:
        """A row for each group of items, a column for each model."""
        cells = {(part.task, part.fact, part.value, part.model): part for part in self.parts}
        rows = []
        for group in self._groups:
            parts = [cells.get((*group, model)) for model in self._models]
            scores = [Score(p.score, *p.interval) if p else None for p in parts]
            count = max(part.items for part in parts if part)
            rows.append(Row((*group, Exact(count, f"{count:,}"), *scores)))
        return Table(("task", "fact", "value", "items", *map(short, self._models)), tuple(rows))

    def draw(self, figure: Any) -> None:
        """A line of points for each model, one point for each group."""
        axes = figure.subplots()
        places = {group: -row for row, group in enumerate(self._groups)}
        for number, model in enumerate(self._models):
            own = [part for part in self.parts if part.model == model]
            scores = [100 * part.score for part in own]
            rows = [places[part.task, part.fact, part.value] for part in own]
            axes.plot(scores, rows, "o", ms=4, color=COLORS[number % len(COLORS)], label=short(model))
        axes.set_yticks(list(places.values()), [f"{task} · {value}" for task, _, value in places], fontsize=7)
        axes.set(xlabel="score (points)")
        axes.legend(fontsize=8)

    @property
    def _groups(self) -> list[tuple[str, str, str]]:
        return sorted({(part.task, part.fact, part.value) for part in self.parts})

    @property
    def _models(self) -> list[str]:
        return list(dict.fromkeys(part.model for part in self.parts))


def _parts(result: TaskResult) -> Sequence[Part]:
    """The groups of a result, by every fact that its outcomes hold; none where the score is not a mean of items."""
    try:
        table = result.outcomes()
    except (EmbarkError, OSError, ValueError):  # an imported result has none
        return ()
    facts = [name for name in table.column_names if name.startswith(ABOUT)]
    names = [name for name in (*facts, result.metric, *NAMES) if facts and name in table.column_names]
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in names}
    if not facts or statistic_of(result, columns) != "mean":
        return ()
    items = observations_of(columns, result.dataset_revision, ItemNumbers())
    parts = []
    for fact in facts:
        for value in sorted({*columns[fact].tolist()} - {None}):
            rows = np.flatnonzero(columns[fact] == value)
            outcomes = columns[result.metric][rows].astype(float)
            mean = float(np.mean(outcomes))
            shared = Observations(items.first[rows], items.second[rows])
            ends = part_interval("mean", result.metric, {result.metric: outcomes}, shared)
            parts.append(Part(result.model, result.task, fact.removeprefix(ABOUT), value, mean, ends, len(outcomes)))
    return parts
