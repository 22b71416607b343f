"""A task's score by the labels that its data give each item: a skill, a corruption, an attribute, a class."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from embark.catalogue import check_name, group_values, listed
from embark.results import ABOUT, TaskResult
from embark.settings import Settings
from embark.stats.outcomes import observations_of, require_outcomes
from embark.stats.shared import ItemNumbers, Observations, part_interval
from embark.studies.analysis import Analysis
from embark.studies.outcomes import columns_of, load_outcomes
from embark.studies.plotting import draw_series
from embark.tables import Exact, Row, Score, Table, short
from embark.tasks import Tasks
from embark.types import Array, EmbarkError

CLASS = "class"  # of classification: what confusion tells in more detail, so it is broken down by on request alone
CONDITION = "condition"  # of robustness tasks


def breakdown(
    tasks: Tasks = None,
    *,
    by: str | None = None,
    pool: bool = False,
    settings: Settings | None = None,
) -> Breakdown:
    """The scores of your own runs within groups of items, by a label that the data give them.

    `by` names the label (default: every one that a task has): ARK's skills and demand, UniBench's corruption or
    attribute, whatever a reader keeps; "condition" of robustness tasks; "class" of classification. An item with several
    values of a label counts in each of their groups. `pool` puts the items of all tasks together: one group a value.
    Published scores have no outcomes of items, so they cannot be broken down.
    """
    results = load_outcomes(tasks, settings=settings)
    numbers: dict[str, ItemNumbers] = {}
    groups = [
        group
        for result in results.results
        for group in _groups(result, numbers.setdefault(result.model, ItemNumbers()), by == CLASS)
    ]
    labels = dict.fromkeys(group.label for group in groups)
    if not groups:
        raise EmbarkError(
            "No result on disk has facts about its items to go by: only some readers keep them (webdataset, ark), and "
            "only scores that are means of items can be broken down."
        )
    if by is not None:
        check_name("fact about items", by, labels)
    groups = [group for group in groups if by in (None, group.label)]
    return Breakdown(tuple(map(_part, _pooled(groups) if pool else groups)), notes=results.notes)


class LabeledItems(NamedTuple):
    """The outcomes of a model on the items of a task that have one value of a label."""

    model: str
    task: str
    metric: str
    label: str
    value: str
    outcomes: Array
    items: Observations


@dataclass(frozen=True)
class LabelScore:
    """The score of a model on the items of a task that have one value of a fact."""

    model: str
    task: str
    fact: str
    value: str
    score: float
    interval: tuple[float, float]
    items: int


@dataclass(frozen=True)
class Breakdown(Analysis):
    """Scores by task, fact and value, of several models."""

    parts: tuple[LabelScore, ...]

    @property
    def title(self) -> str:
        tasks = list(dict.fromkeys(part.task for part in self.parts))
        return f"Scores by {listed(sorted({part.fact for part in self.parts}))}: {listed(tasks, 2)}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.6 + (0.1 + 0.1 * len(self._models)) * max(len(self._groups), 6)

    def table(self) -> Table:
        """A row for each group of items, a column for each model."""
        cells = {(part.task, part.fact, part.value, part.model): part for part in self.parts}
        rows = []
        for group in self._groups:
            parts = [cells.get((*group, model)) for model in self._models]
            scores = [Score(p.score, *p.interval) if p else None for p in parts]
            count = max(part.items for part in parts if part)
            rows.append(Row((*group, Exact(count, f"{count:,}"), *scores)))
        notes = ("Means over the items of a group, with 95 % intervals; an item with several values counts in each.",)
        return Table(("task", "fact", "value", "items", *map(short, self._models)), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """A row for each group, and in it a point with its interval for each model."""
        axes = figure.subplots()
        heights = {group: -row for row, group in enumerate(self._groups)}
        several = len({task for task, _, _ in heights}) > 1
        series: dict[str, dict[float, Score]] = {short(model): {} for model in self._models}
        for part in self.parts:
            height = heights[part.task, part.fact, part.value]
            series[short(part.model)][height] = Score(part.score, *part.interval)
        draw_series(axes, series)
        counts = {(part.task, part.fact, part.value): part.items for part in self.parts}
        names = [
            f"{f'{short(task)} · ' if several else ''}{value} ({counts[task, fact, value]:,})"
            for task, fact, value in heights
        ]
        axes.set_yticks(list(heights.values()), names, fontsize=7)
        axes.set(xlabel="score (%), with 95 % intervals over items; in brackets: items", ylim=(0.3 - len(heights), 0.7))
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside lower center", ncols=3, fontsize=8)

    @property
    def _groups(self) -> list[tuple[str, str, str]]:
        return sorted({(part.task, part.fact, part.value) for part in self.parts})

    @property
    def _models(self) -> list[str]:
        return list(dict.fromkeys(part.model for part in self.parts))


def _groups(result: TaskResult, numbers: ItemNumbers, classes: bool) -> Iterator[LabeledItems]:
    """The groups of a result, by every label that its outcomes hold; none where the score is not a mean of items."""
    columns = columns_of(result)
    labels = {name.removeprefix(ABOUT): columns[name] for name in columns if name.startswith(ABOUT)}
    if classes and "label" in columns:
        labels[CLASS] = columns["label"]
    conditions = _conditions(result, columns)
    if not (labels or conditions) or result.records[0].statistic != "mean" or result.metric not in columns:
        return
    require_outcomes("mean", result.metric, columns)
    items = observations_of(columns, result.task, numbers)  # ids repeat from task to task
    for label, values in labels.items():
        for value, rows in sorted(_rows(values).items()):
            shared = Observations(items.first[rows], items.second[rows])
            outcomes = columns[result.metric][rows].astype(float)
            yield LabeledItems(result.model, result.task, result.metric, label, value, outcomes, shared)
    for value in conditions:
        yield LabeledItems(result.model, result.task, value, CONDITION, value, columns[value].astype(float), items)


def _conditions(result: TaskResult, columns: Collection[str]) -> list[str]:
    """The conditions of a robustness task, each of which has outcomes of its own; "clean" is one."""
    if not {"clean", "mean_corrupted"} <= {*columns}:
        return []
    return [name for name in result.records[0].metrics if name in columns and name not in ("mean_corrupted", "drop")]


def _rows(values: Array) -> dict[str, list[int]]:
    """The rows of each value of a label; a row with several values is in each."""
    pairs = [
        (str(value), row)
        for row, cell in enumerate(values.tolist())
        if cell is not None
        for value in (cell if isinstance(cell, (list, np.ndarray)) else [cell])
    ]
    return group_values(pairs)


def _pooled(groups: Sequence[LabeledItems]) -> list[LabeledItems]:
    """The groups of all tasks put together, one for each model and value."""
    metrics = dict.fromkeys(group.metric for group in groups if group.label != CONDITION)
    if len(metrics) > 1:
        raise EmbarkError(f"Items that are scored by {listed(list(metrics))} cannot be pooled: choose tasks of one.")
    pooled = []
    by_value = group_values(((group.model, group.label, group.value), group) for group in groups)
    for (model, label, value), parts in by_value.items():
        items = Observations(*(np.concatenate([part.items[side] for part in parts]) for side in (0, 1)))
        outcomes = np.concatenate([part.outcomes for part in parts])
        pooled.append(LabeledItems(model, "all tasks", parts[0].metric, label, value, outcomes, items))
    return pooled


def _part(group: LabeledItems) -> LabelScore:
    ends = part_interval("mean", group.metric, {group.metric: group.outcomes}, group.items)
    mean = float(np.mean(group.outcomes))
    return LabelScore(group.model, group.task, group.label, group.value, mean, ends, len(group.outcomes))
