"""The one task of each group that says most about the others: UniBench's Tables 3 and 4, for any grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, grouped
from embark.published import scores
from embark.results.table import Cell, Row, Table, named, short
from embark.studies.correlate import correlations
from embark.studies.distill import Fidelity, fidelity
from embark.studies.draw import COLORS, brief
from embark.studies.study import Study
from embark.types import Array

PRINTED = {"category": "UniBench Table 3", "type": "UniBench Table 3", "capability": "UniBench Table 4"}


@dataclass(frozen=True)
class Group:
    """Tasks of one group, best first, and the mean correlation of each with the others (1 for a task alone)."""

    name: str
    columns: tuple[int, ...]
    r: tuple[float, ...]


@dataclass(frozen=True)
class Representatives:
    """The groups, and how well their first tasks together stand for all."""

    matrix: Matrix
    by: str
    kind: str
    groups: tuple[Group, ...]
    fidelity: Fidelity

    def study(self) -> Study:
        """One line a group, beside the paper's choice where there is one; every task's mean correlation."""
        printed, rows = _printed(self.matrix, self.by), []
        for group in self.groups:
            best, *others = [named(self.matrix.names[at], 26) for at in group.columns[:2]]
            said: tuple[Cell, ...] = printed.get(group.name.lower(), ("", None)) if printed else ()
            rows.append(Row((group.name, len(group.columns), best, group.r[0], *(others or ("",)), *said)))
        columns = (self.by, "tasks", "representative", "mean r", "next best")
        more = ("paper", "r in it") if printed else ()
        notes = (
            f"Mean {self.kind.capitalize()} r with the other tasks of the group, over {len(self.matrix.models)} models "
            "that have every task.",
            *self.fidelity.notes,
        )
        title = f"The most representative task of each {self.by}"
        size = (7.0, 1.4 + 0.34 * len(self.groups))
        return Study(title, Table((*columns, *more), tuple(rows), notes), self._draw, size)

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        for at, group in enumerate(self.groups):
            axes.plot(group.r, [at] * len(group.r), "|", ms=9, color="#999999")
            axes.plot(group.r[0], at, "o", ms=5, color=COLORS[0])
            axes.annotate(
                brief(self.matrix.names[group.columns[0]]), (group.r[0], at), (6, 0), textcoords="offset points",
                fontsize=7.5, va="center",
            )  # fmt: skip
        axes.set_yticks(range(len(self.groups)), [f"{short(g.name, 34)} ({len(g.columns)})" for g in self.groups])
        axes.invert_yaxis()
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick <= 1]
        axes.set_xlim(low, high + 0.36 * (high - low))  # room for names
        axes.set_xticks(ticks)
        axes.set_xlabel(f"mean {self.kind.capitalize()} r with the other tasks of its group (a task alone: 1)")


def representatives(matrix: Matrix, rule: str, by: str = "category", kind: str = "spearman") -> Representatives:
    """Order the tasks of every group by how well they stand for the others."""
    matrix = matrix.complete()
    groups = _groups(matrix, matrix.values, by, kind)
    kept = sorted(group.columns[0] for group in groups)
    without = [
        sorted(group.columns[0] for group in _groups(matrix, np.delete(matrix.values, model, axis=0), by, kind))
        for model in range(len(matrix.models))
    ]
    return Representatives(matrix, by, kind, groups, fidelity(matrix, rule, kept, without))


def _groups(matrix: Matrix, values: Array, by: str, kind: str) -> tuple[Group, ...]:
    r, found = correlations(values, kind), []
    for name, columns in grouped(matrix.tasks, by).items():
        within = r[np.ix_(columns, columns)]
        mean = (within.sum(axis=1) - 1) / (len(columns) - 1) if len(columns) > 1 else np.ones(1)
        order = np.argsort(-mean, kind="stable")
        found.append(Group(name, tuple(columns[at] for at in order), tuple(float(mean[at]) for at in order)))
    return tuple(found)


def _printed(matrix: Matrix, by: str) -> dict[str, tuple[Cell, float]]:
    """The paper's choices by group, for UniBench's groupings."""
    if matrix.tasks[0].family != "UniBench" or by not in PRINTED:
        return {}
    cells = (score for score in scores("UniBench") if score.table == PRINTED[by])
    return {cell.name.lower(): (named(cell.subset, 26), cell.value) for cell in cells}
