"""The median score over models on each task, against chance (UniBench, Figures 2 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, group_of
from embark.catalogue import counted
from embark.settings import Settings
from embark.stats.intervals import LEVEL
from embark.studies.analysis import Analysis
from embark.studies.model_filter import load_scores
from embark.studies.plotting import color, legend_below, legend_entry, short_task
from embark.tables import Row, Score, Table, applicable, named, points
from embark.tables.drawing import PAGE
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError, Task

MODELS_OF_MEDIAN = 6  # models that an interval of their median needs: the range of fewer covers it less often than 95 %


def medians(
    tasks: Tasks = None,
    *,
    by: str = "category",
    models: Wanted = None,
    where: Sequence[str] = (),
    include: Include = "all",
    settings: Settings | None = None,
) -> Medians:
    """The median score over models on each task, beside the score of guessing; tasks are colored `by` category, type…

    `models` are names or patterns, `where` conditions on their cards: "architecture=vit", "data=400..2000" (millions).
    """
    return field_medians(load_scores(tasks, models, where, include, settings), by)


@dataclass(frozen=True)
class TaskMedian:
    """A task's median over models with its 95 % interval, the quartiles, and the best model; scores from 0 to 1."""

    task: Task
    group: str
    models: int
    median: float
    low: float
    high: float
    quartiles: tuple[float, float]
    best: str
    best_score: float

    @property
    def above_chance(self) -> float | None:
        """The median minus the score of guessing; None where that is not known."""
        return None if self.task.chance is None else self.median - self.task.chance

    @property
    def at_chance(self) -> bool:
        """Whether the interval of the median reaches down to the score of guessing."""
        return self.task.chance is not None and self.low <= self.task.chance


@dataclass(frozen=True)
class Medians(Analysis):
    """Tasks in the order of how far the field's median lies above chance, furthest first."""

    by: str
    tasks: tuple[TaskMedian, ...]
    models: int

    @property
    def title(self) -> str:
        return f"Median over {counted(self.models, 'model')} against chance, by task"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.3 + 0.145 * len(self.tasks)

    def table(self) -> Table:
        """One line per task."""
        rows = [
            Row(
                (
                    named(row.task.name, 34), row.group, row.models, Score(row.median, row.low, row.high),
                    points(row.task.chance), points(row.above_chance), "at chance" if row.at_chance else "",
                    named(row.best, 26), points(row.best_score),
                )
            )
            for row in self.tasks
        ]  # fmt: skip
        few = any(row.models < MODELS_OF_MEDIAN for row in self.tasks)
        unknown = sum(row.task.chance is None for row in self.tasks)
        notes = {
            "median: over the models that have the task, with a 95 % interval over models; best: the highest.": True,
            "at chance: the interval of the median reaches the score of guessing.": True,
            f"No interval, and no verdict, where fewer than {MODELS_OF_MEDIAN} models have the task.": few,
            f"The score of guessing is not known for {counted(unknown, 'task')}, which come last.": unknown,
        }
        columns = ("task", self.by, "models", "median", "chance", "above", "verdict", "best model", "best")
        return Table(columns, tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """A line per task: quartiles as a bar, the median as a point, chance as a tick."""
        axes = figure.subplots()
        groups = list(dict.fromkeys(row.group for row in self.tasks))
        for line, row in enumerate(self.tasks):
            tint = color(groups.index(row.group))
            axes.hlines(line, 100 * row.quartiles[0], 100 * row.quartiles[1], color=tint, lw=3.5, alpha=0.35)
            axes.plot(100 * row.median, line, "o", color=tint)
            if row.task.chance is not None:
                axes.plot(100 * row.task.chance, line, "|", color="black", ms=7, mew=1.2)
        axes.set_yticks(range(len(self.tasks)), [f"{short_task(r.task.name, 26)} ({r.models})" for r in self.tasks])
        axes.set_ylim(len(self.tasks) - 0.4, -0.6)
        axes.set(xlabel="score (points); in brackets: number of models")
        looks = {group: legend_entry(color=color(number), marker="o") for number, group in enumerate(groups)}
        looks["quartiles"] = legend_entry(color="#888888", lw=3.5, alpha=0.5)
        looks["chance"] = legend_entry(color="black", marker="|", ms=7)
        legend_below(figure, list(looks), list(looks.values()))


def field_medians(matrix: Matrix, by: str = "category") -> Medians:
    """The medians of the tasks that have scores, over the models that have each."""
    rows = [
        _median(task, group_of(task, by), matrix.models, matrix.values[:, column])
        for column, task in enumerate(matrix.tasks)
        if not np.isnan(matrix.values[:, column]).all()
    ]
    if not rows:
        raise EmbarkError("The chosen models have no score on these tasks.")
    rows.sort(key=lambda row: (row.above_chance is None, -(row.above_chance or 0.0), -row.median))
    return Medians(by, tuple(rows), len(matrix.models), notes=matrix.notes)


def median_interval(values: Array) -> tuple[float, float]:
    """The 95 % interval of a median by order statistics, which needs no shape of distribution; NaN for few values."""
    from scipy.stats import binom

    if len(values) < MODELS_OF_MEDIAN:
        return np.nan, np.nan
    ordered = np.sort(values)
    skipped = int(binom.ppf((1 - LEVEL) / 2, len(ordered), 0.5))  # values beyond each end
    covers = skipped > 0 and binom.cdf(skipped - 1, len(ordered), 0.5) <= (1 - LEVEL) / 2
    beyond = skipped - 1 if covers else 0
    return float(ordered[beyond]), float(ordered[len(ordered) - 1 - beyond])


def _median(task: Task, group: str, models: Sequence[str], column: Array) -> TaskMedian:
    known = np.flatnonzero(~np.isnan(column))
    values = column[known]
    best = known[values.argmax()]
    first, middle, third = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    low, high = median_interval(values)
    return TaskMedian(task, group, len(known), middle, low, high, (first, third), models[best], float(column[best]))
