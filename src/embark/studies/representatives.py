"""The task of each group that correlates most with the others: UniBench's Tables 3 and 4, for any grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, group_of, grouped
from embark.published import scores
from embark.studies.analysis import Analysis
from embark.studies.correlate import correlations
from embark.studies.fidelity import Fidelity, fidelity
from embark.studies.plotting import COLORS, short_task
from embark.tables import Cell, Row, Table, named, short
from embark.types import Array

IN_PAPER = {"category": "UniBench Table 3", "type": "UniBench Table 3", "capability": "UniBench Table 4"}


@dataclass(frozen=True)
class TaskGroup:
    """The tasks of a group, most representative first, and the mean correlation of each with the others (1 alone)."""

    name: str
    columns: tuple[int, ...]
    r: tuple[float, ...]


@dataclass(frozen=True)
class Representatives(Analysis):
    """The groups, and how well their most representative tasks together stand for all."""

    matrix: Matrix
    by: str
    correlation: str
    groups: tuple[TaskGroup, ...]
    fidelity: Fidelity

    @property
    def tasks(self) -> tuple[str, ...]:
        """The name of each group's most representative task."""
        return tuple(self.matrix.names[group.columns[0]] for group in self.groups)

    @property
    def title(self) -> str:
        return f"The most representative task of each {self.by}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.4 + 0.34 * len(self.groups)

    def table(self) -> Table:
        """One line per group, with the paper's choice where there is one."""
        in_paper = _in_paper(self.matrix, self.by)
        rows = []
        for group in self.groups:
            best, *others = [named(self.matrix.names[column], 26) for column in group.columns[:2]]
            paper: tuple[Cell, ...] = in_paper.get(group.name.lower(), ("", None)) if in_paper else ()
            rows.append(Row((group.name, len(group.columns), best, group.r[0], *(others or ("",)), *paper)))
        columns = (
            self.by,
            "tasks",
            "representative",
            "mean r",
            "next best",
            *(["paper", "r in it"] if in_paper else []),
        )
        notes = (
            f"Mean {self.correlation.capitalize()} r with the other tasks of the group, over "
            f"{len(self.matrix.models)} models that have every task.",
            *self.fidelity.sentences,
        )
        return Table(columns, tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """Every task's mean correlation, one line per group."""
        axes = figure.subplots()
        for line, group in enumerate(self.groups):
            axes.plot(group.r, [line] * len(group.r), "|", ms=9, color="#999999")
            axes.plot(group.r[0], line, "o", ms=5, color=COLORS[0])
            axes.annotate(
                short_task(self.matrix.names[group.columns[0]]), (group.r[0], line), (6, 0),
                textcoords="offset points", fontsize=7.5, va="center",
            )  # fmt: skip
        labels = [f"{short(group.name, 34)} ({len(group.columns)})" for group in self.groups]
        axes.set_yticks(range(len(self.groups)), labels)
        axes.invert_yaxis()
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick <= 1]
        axes.set_xlim(low, high + 0.36 * (high - low))  # room for names
        axes.set_xticks(ticks)
        axes.set_xlabel(f"mean {self.correlation.capitalize()} r with the other tasks of its group (a task alone: 1)")


def find_representatives(matrix: Matrix, by: str = "category", correlation: str = "spearman") -> Representatives:
    """Order the tasks of every group by their mean correlation with the others."""
    matrix = matrix.complete()
    groups = _groups(matrix, matrix.values, by, correlation)

    def representatives(groups: tuple[TaskGroup, ...]) -> list[int]:
        return sorted(group.columns[0] for group in groups)

    without = [
        representatives(_groups(matrix, np.delete(matrix.values, model, axis=0), by, correlation))
        for model in range(len(matrix.models))
    ]
    names = [group_of(task, by) for task in matrix.tasks]
    measured = fidelity(matrix, representatives(groups), without, names, by)
    return Representatives(matrix, by, correlation, groups, measured, notes=matrix.notes)


def _groups(matrix: Matrix, values: Array, by: str, correlation: str) -> tuple[TaskGroup, ...]:
    r = correlations(values, correlation)
    groups = []
    for name, columns in grouped(matrix.tasks, by).items():
        within = r[np.ix_(columns, columns)]
        mean = (within.sum(axis=1) - 1) / (len(columns) - 1) if len(columns) > 1 else np.ones(1)
        order = np.argsort(-mean, kind="stable")
        groups.append(
            TaskGroup(name, tuple(columns[task] for task in order), tuple(float(mean[task]) for task in order))
        )
    return tuple(groups)


def _in_paper(matrix: Matrix, by: str) -> dict[str, tuple[Cell, float]]:
    """The paper's choices by group, for UniBench's groupings."""
    if matrix.tasks[0].family != "UniBench" or by not in IN_PAPER:
        return {}
    cells = (score for score in scores("UniBench") if score.table == IN_PAPER[by])
    return {cell.name.lower(): (named(cell.subset, 26), cell.value) for cell in cells}
