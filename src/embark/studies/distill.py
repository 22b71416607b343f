"""Lite sets: fewer tasks that rank models as all of them do.

Three methods, all of which keep at least one task of each group:

totals    the tasks whose mean follows the mean of their group most closely, one after the other
repeats   of the two tasks of one group that correlate most, the one that correlates less with the rest of the group
          goes, until no pair correlates above a threshold or few enough are left
average   as the paper of MIEB-lite says: tasks go whose average correlation with the others of their group exceeds 0.5,
          then, among those left, 0.45

Many sets of tasks rank models as all do, so every set stands beside random ones with the same counts by group. On
MIEB's published scores `totals` beats them, also on models that were held out of the choice; the other two do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import MIEB, Matrix, group_of, grouped, load_matrix
from embark.boards.rederive import LITE_IN_PAPER
from embark.catalogue import check_name
from embark.own.names import tasks_here
from embark.settings import Settings
from embark.studies.analysis import Analysis
from embark.studies.correlate import correlations
from embark.studies.fidelity import Fidelity, fidelity, totals
from embark.studies.plotting import COLORS
from embark.studies.representatives import Representatives, find_representatives
from embark.tables import Cell, Row, Table, named
from embark.tasks import Tasks, chosen_benchmark, get_benchmark
from embark.types import Array, EmbarkError

METHODS = ("totals", "repeats", "average")
THRESHOLD = 0.9
AVERAGES = (0.5, 0.45)  # thresholds of the method `average`, one after the other
MARKED = (0.95, 0.9, 0.8, 0.7)  # thresholds that the drawing shows
MIEB_LITE = "MIEB(lite)"


def distill(
    tasks: Tasks = None,
    *,
    size: int | None = None,
    threshold: float = THRESHOLD,
    method: str | None = None,
    by: str = "category",
    correlation: str = "spearman",
    representatives: bool = False,
    check: str | None = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> LiteSet | Representatives:
    """Choose a lite set of tasks, and measure how well it stands for all of them.

    It has `size` tasks, or as many as correlate with no other of their group (`by` category, type, capability…) above
    `threshold`. The `method` is "totals" where a size is given, else "repeats"; or "average". `representatives` chooses
    the most representative task of each group instead; `check` names a benchmark to judge as a lite set of this one.
    """
    matrix = load_matrix(tasks, include=include, settings=settings)
    if representatives:
        return find_representatives(matrix, by, correlation)
    if check is None:
        return choose_lite_set(matrix, by, size, threshold, correlation, method or ("totals" if size else "repeats"))
    names = [task.name for task in tasks_here().match(get_benchmark(check).tasks)]
    judged = replace(judge_lite_set(matrix, names, by, correlation), reference=check)
    benchmark = chosen_benchmark(MIEB if tasks is None else tasks)
    if benchmark is None or (benchmark.name, check) != (MIEB, MIEB_LITE):
        return judged
    in_paper = "The paper says Spearman {spearman} and Pearson {pearson} (section 6.3).".format(**LITE_IN_PAPER)
    return replace(judged, remarks=(in_paper,))


class Removal(NamedTuple):
    """A task that was left out because its correlation with another of its group was the highest left."""

    column: int
    r: float


@dataclass(frozen=True)
class LiteSet(Analysis):
    """The columns of the matrix that make up the lite set, and all removals in order, down to one task per group.

    `sets` are what its method chooses of each size, for the drawing; without them, it is the removals.
    """

    matrix: Matrix
    by: str
    columns: tuple[int, ...]
    removals: tuple[Removal, ...]
    fidelity: Fidelity
    correlation: str = "spearman"
    reference: str = "this set"  # its name in the drawing, where it is not what the lines are made of
    remarks: tuple[str, ...] = ()  # further notes of the table
    sets: tuple[tuple[int, ...], ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks in the lite set."""
        return tuple(self.matrix.names[column] for column in self.columns)

    @property
    def title(self) -> str:
        return f"{len(self.columns)} tasks in place of {len(self.matrix.tasks)}"

    def table(self) -> Table:
        """Every task: kept, or left out and the kept task of its group that it correlates most with."""
        r = correlations(self.matrix.values, self.correlation)
        names = [named(name, 40) for name in self.matrix.names]
        rows: list[Row] = []
        for group, columns in grouped(self.matrix.tasks, self.by).items():
            chosen = [column for column in columns if column in self.columns]
            rows += [Row((names[column], "kept", "", None), group) for column in chosen]
            for column in columns:
                if column not in chosen:
                    other = max(chosen, key=r[column].__getitem__, default=None)
                    nearest: tuple[Cell, Cell] = ("", None) if other is None else (names[other], r[column, other])
                    rows.append(Row((names[column], "left out", *nearest), group))
        notes = (*self.fidelity.sentences, *self.remarks)
        return Table(("task", "lite set", "nearest kept", "r"), tuple(rows), notes)

    @cached_property
    def agreement_by_size(self) -> list[tuple[int, float, float]]:
        """By the number of tasks, Spearman and Pearson of their total with that of all; most tasks first."""
        if self.sets:
            return [(len(columns), *self._agreements(columns)) for columns in self.sets]
        left = list(range(len(self.matrix.tasks)))
        points = [(len(left), *self._agreements(left))]
        for removal in self.removals:
            left.remove(removal.column)
            points.append((len(left), *self._agreements(left)))
        return points

    def draw(self, figure: Any) -> None:
        """Correlation with the full total by the number of tasks: of the sets that the method chooses, or of what is
        left after each removal. A set that is not among these is a mark of its own.
        """
        axes = figure.subplots()
        sizes, spearman, pearson = zip(*self.agreement_by_size, strict=True)
        axes.plot(sizes, spearman, color=COLORS[0], label="Spearman")
        axes.plot(sizes, pearson, color=COLORS[1], ls="--", label="Pearson")
        size = len(self.columns)
        axes.axvline(size, color="#888888", lw=0.8, ls=":")
        axes.text(size, 0.02, f" {size} kept", transform=axes.get_xaxis_transform(), fontsize=8, color="#444444")
        removed = {removal.column for removal in self.removals[: len(self.matrix.tasks) - size]}
        if not self.sets and {*self.columns} & removed:  # judged, or chosen by another method
            for number, value in enumerate(self._agreements(self.columns)):
                axes.plot(size, value, "*", ms=11, color=COLORS[number], mec="black", mew=0.5)
            axes.plot([], [], "*", ms=9, color="white", mec="black", mew=0.5, label=self.reference)
        if not self.sets:
            ticks = {sizes[sum(removal.r > threshold for removal in self.removals)]: threshold for threshold in MARKED}
            above = axes.secondary_xaxis("top")
            above.set_xticks(list(ticks), [f"{threshold:g}" for threshold in ticks.values()], fontsize=8)
            above.set_xlabel("lines: repeats are removed until no pair of a group correlates above", fontsize=8)
        axes.set(
            xlabel=f"tasks kept (of {len(self.matrix.tasks)}; at least one a {self.by})",
            ylabel="correlation with the full total, over models",
        )
        axes.legend(loc="lower right")

    def _agreements(self, columns: Sequence[int]) -> tuple[float, float]:
        """Spearman and Pearson of the total over some columns with that over all."""
        pair = np.stack([totals(self.matrix, columns), totals(self.matrix, range(len(self.matrix.tasks)))], axis=1)
        return float(correlations(pair)[0, 1]), float(correlations(pair, "pearson")[0, 1])


def choose_lite_set(
    matrix: Matrix,
    by: str = "category",
    size: int | None = None,
    threshold: float = THRESHOLD,
    correlation: str = "spearman",
    method: str = "repeats",
) -> LiteSet:
    """A lite set of `size` tasks, or of as many as correlate with no other of their group above the threshold."""
    check_name("method", method, METHODS)
    matrix = matrix.complete()
    groups = _group_names(matrix, by)
    fewest = len(set(groups.tolist()))
    if size is not None and not fewest <= size <= len(matrix.tasks):
        raise EmbarkError(f"A lite set has between {fewest} tasks (one a {by}) and {len(matrix.tasks)}, not {size}.")
    if method == "totals" and size is None:
        raise EmbarkError("The method 'totals' needs a size (--size): more tasks always follow the total more closely.")
    if method == "average" and size is not None:
        raise EmbarkError("The method 'average' has its own thresholds and takes no size.")

    def chosen(values: Array) -> list[int]:
        if method == "totals":
            assert size is not None
            return follow_totals(values, groups, matrix.weights, size)
        if method == "average":
            return drop_averages(values, groups, correlation)
        removals = remove_tasks(values, groups, correlation)
        if size is None:
            removed = {removal.column for removal in removals if removal.r > threshold}
        else:
            removed = {removal.column for removal in removals[: len(matrix.tasks) - size]}
        return [column for column in range(len(matrix.tasks)) if column not in removed]

    removals = remove_tasks(matrix.values, groups, correlation)
    without = [chosen(np.delete(matrix.values, model, axis=0)) for model in range(len(matrix.models))]
    columns = chosen(matrix.values)
    measured = fidelity(matrix, columns, without, groups.tolist(), by)
    by_totals = partial(follow_totals, matrix.values, groups, matrix.weights)
    sizes = range(len(matrix.tasks), fewest - 1, -1) if method == "totals" else ()
    sets = tuple(tuple(by_totals(count)) for count in sizes)
    return LiteSet(matrix, by, tuple(columns), tuple(removals), measured, correlation, sets=sets, notes=matrix.notes)


def judge_lite_set(
    matrix: Matrix, names: Sequence[str], by: str = "category", correlation: str = "spearman"
) -> LiteSet:
    """A lite set of these tasks, measured in the same way."""
    matrix = matrix.complete()
    columns = tuple(column for column, name in enumerate(matrix.names) if name in names)
    if not columns:
        raise EmbarkError("None of the tasks to judge is among those with scores.")
    removals = remove_tasks(matrix.values, _group_names(matrix, by), correlation)
    measured = fidelity(matrix, columns, [list(columns)] * len(matrix.models), _group_names(matrix, by).tolist(), by)
    return LiteSet(matrix, by, columns, tuple(removals), measured, correlation, notes=matrix.notes)


def remove_tasks(values: Array, groups: Array, correlation: str = "spearman") -> list[Removal]:
    """The order in which tasks are left out, until each group has one; of equal tasks the later goes."""
    r = np.where(groups[:, None] == groups, correlations(values, correlation), np.nan)
    np.fill_diagonal(r, np.nan)
    with_group = np.nansum(r, axis=1)
    removals = []
    while not np.isnan(r).all():
        first, second = sorted(np.unravel_index(np.nanargmax(r), r.shape))
        column = int(second if with_group[second] <= with_group[first] + 1e-12 else first)
        removals.append(Removal(column, float(r[first, second])))
        r[column] = np.nan
        r[:, column] = np.nan
    return removals


def follow_totals(values: Array, groups: Array, weights: Array, size: int) -> list[int]:
    """As many columns as `size`: in each group, one after the other, those whose mean follows that of the group most
    closely over the models. The next goes to the group where it brings the total nearest.
    """
    orders: dict[str, list[int]] = {}
    errors: dict[str, list[float]] = {}  # of the group's share of the total, after each of its tasks
    for group in dict.fromkeys(groups.tolist()):
        columns = np.flatnonzero(groups == group)
        centered = values[:, columns] - values[:, columns].mean(axis=0)
        target = centered.mean(axis=1)
        total = np.zeros(len(values))
        left = list(range(len(columns)))
        orders[group], errors[group] = [], []
        while left:
            means = (total[:, None] + centered[:, left]) / (len(orders[group]) + 1)
            squares = ((means - target[:, None]) ** 2).sum(axis=0)
            best = int(squares.argmin())
            orders[group].append(int(columns[left[best]]))
            errors[group].append(float(squares[best]) * float(weights[columns].sum()) ** 2)
            total += centered[:, left.pop(best)]
    counts = dict.fromkeys(orders, 1)
    while sum(counts.values()) < size:
        open_groups = [group for group, count in counts.items() if count < len(orders[group])]
        counts[max(open_groups, key=lambda group: _gain(errors[group], counts[group]))] += 1
    return sorted(column for group, count in counts.items() for column in orders[group][:count])


def _gain(errors: Sequence[float], count: int) -> float:
    """How much the best of the further counts lowers the error, for each task that it adds: one more may be worse."""
    return max((errors[count - 1] - errors[more]) / (more - count + 1) for more in range(count, len(errors)))


def drop_averages(values: Array, groups: Array, correlation: str = "spearman") -> list[int]:
    """The columns that are left when tasks go whose average correlation with the others of their group is too high."""
    r = np.where(groups[:, None] == groups, correlations(values, correlation), np.nan)
    np.fill_diagonal(r, np.nan)
    left = np.arange(len(groups))
    for threshold in AVERAGES:
        within = r[np.ix_(left, left)]
        others = np.maximum((~np.isnan(within)).sum(axis=1), 1)
        mean = np.nansum(within, axis=1) / others
        stays = mean <= threshold
        for group in set(groups[left].tolist()):  # of a group that would go as a whole, the least like the others stays
            members = np.flatnonzero(groups[left] == group)
            if not stays[members].any():
                stays[members[mean[members].argmin()]] = True
        left = left[stays]
    return [int(column) for column in left]


def _group_names(matrix: Matrix, by: str) -> Array:
    """The name of each task's group."""
    return np.array([group_of(task, by) for task in matrix.tasks])
