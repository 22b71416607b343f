"""Fewer tasks that tell the same: a lite set by removing what others repeat, and how well it stands for the whole.

In the manner of MIEB-lite: of the two tasks of one group that correlate most, the one that says less about the whole
group goes, until no pair correlates above a threshold or few enough are left. A group always keeps its last task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from embark.boards.matrix import Matrix, grouped, weights
from embark.results.table import Row, Table, named
from embark.studies.correlate import Agreement, agreement, correlations
from embark.studies.draw import COLORS
from embark.studies.study import Study
from embark.types import Array, EmbarkError

THRESHOLD = 0.9
MARKED = (0.95, 0.9, 0.8, 0.7)  # thresholds that the drawing shows


class Removal(NamedTuple):
    """A task that was left out when its correlation with another of its group was the highest left."""

    column: int
    r: float


@dataclass(frozen=True)
class Fidelity:
    """How a set of tasks ranks models, beside all tasks; errors are of held-out models, in points."""

    tasks: int
    spearman: Agreement
    pearson: Agreement
    kendall: float
    error: float
    worst: float
    held_out: float  # Spearman of predicted and true totals

    @property
    def notes(self) -> tuple[str, ...]:
        """As sentences."""
        tasks = "1 task" if self.tasks == 1 else f"{self.tasks} tasks"
        return (
            f"{tasks} against all, over {self.spearman.n} models: Spearman {_said(self.spearman)}, "
            f"Pearson {_said(self.pearson)},",
            f"Kendall {self.kendall:.3f}. Totals of models held out: mean error {self.error:.2f} points, "
            f"worst {self.worst:.2f}, Spearman {self.held_out:.3f}.",
        )


@dataclass(frozen=True)
class Distilled:
    """A lite set: columns of the matrix that stay, and the removals in order, down to one task a group."""

    matrix: Matrix
    rule: str
    by: str
    kept: tuple[int, ...]
    path: tuple[Removal, ...]
    fidelity: Fidelity
    kind: str = "spearman"
    reference: tuple[str, tuple[int, ...]] | None = None  # another set to stand beside it
    said: tuple[str, ...] = field(default=())  # further notes

    @cached_property
    def curve(self) -> list[tuple[int, float, float]]:
        """Tasks left, Spearman and Pearson of their total with that of all, along the path."""
        left, found = list(range(len(self.matrix.tasks))), []
        for removal in (None, *self.path):
            if removal is not None:
                left.remove(removal.column)
            found.append((len(left), *_agreements(self.matrix, left, self.rule)))
        return found

    def study(self) -> Study:
        """Every task: kept, or the kept one that it is nearest to; agreement with the full total by size."""
        near = correlations(self.matrix.values, self.kind)
        rows = []
        for group, columns in grouped(self.matrix.tasks, self.by).items():
            stay = [column for column in columns if column in self.kept]
            for column in sorted(columns, key=lambda at: at not in self.kept):
                name = named(self.matrix.names[column], 40)
                if column in stay:
                    rows.append(Row((name, "kept", "", None), group))
                    continue
                other = max(stay, key=lambda at: near[column, at], default=None)
                told = ("", None) if other is None else (named(self.matrix.names[other], 40), near[column, other])
                rows.append(Row((name, "left out", *told), group))
        table = Table(("task", "lite set", "nearest kept", "r"), tuple(rows), (*self.fidelity.notes, *self.said))
        return Study(f"{len(self.kept)} tasks in place of {len(self.matrix.tasks)}", table, self._draw)

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        sizes, spearman, pearson = zip(*self.curve, strict=True)
        axes.plot(sizes, spearman, color=COLORS[0], label="Spearman")
        axes.plot(sizes, pearson, color=COLORS[1], ls="--", label="Pearson")
        axes.axvline(len(self.kept), color="#888888", lw=0.8, ls=":")
        top = axes.get_xaxis_transform()
        axes.text(len(self.kept), 0.02, f" {len(self.kept)} kept", transform=top, fontsize=8, color="#444444")
        if self.reference is not None:
            name, columns = self.reference
            for at, value in enumerate(_agreements(self.matrix, columns, self.rule)):
                axes.plot(len(columns), value, "*", ms=11, color=COLORS[at], mec="black", mew=0.5)
            axes.plot([], [], "*", ms=9, color="white", mec="black", mew=0.5, label=name)
        ticks = [(sizes[self._removed(mark)], f"{mark:g}") for mark in MARKED]
        above = axes.secondary_xaxis("top")
        shown = [(at, word) for (at, word), (after, _) in zip(ticks, [*ticks[1:], (-9, "")], strict=True) if at > after]
        above.set_xticks([at for at, _ in shown], [word for _, word in shown], fontsize=8)
        above.set_xlabel("no pair of a group correlates above", fontsize=8)
        axes.set_xlabel(f"tasks kept (of {len(self.matrix.tasks)}; at least one a {self.by})")
        axes.set_ylabel("correlation with the full total, over models")
        axes.legend(loc="lower right")

    def _removed(self, threshold: float) -> int:
        return sum(removal.r > threshold for removal in self.path)


def distill(
    matrix: Matrix,
    rule: str,
    by: str = "category",
    size: int | None = None,
    threshold: float = THRESHOLD,
    kind: str = "spearman",
) -> Distilled:
    """Choose a lite set of `size` tasks, or as many as correlate with no other of their group above the threshold."""
    matrix = matrix.complete()
    groups = _numbers(matrix, by)
    fewest = len(set(groups.tolist()))
    if size is not None and not fewest <= size <= len(matrix.tasks):
        raise EmbarkError(f"A lite set has between {fewest} tasks (one a {by}) and {len(matrix.tasks)}, not {size}.")

    def choose(values: Array) -> list[int]:
        return _kept(removals(values, groups, kind), len(matrix.tasks), size, threshold)

    path = removals(matrix.values, groups, kind)
    kept = _kept(path, len(matrix.tasks), size, threshold)
    without = [choose(np.delete(matrix.values, model, axis=0)) for model in range(len(matrix.models))]
    return Distilled(matrix, rule, by, tuple(kept), tuple(path), fidelity(matrix, rule, kept, without), kind)


def judged(matrix: Matrix, rule: str, names: Sequence[str], by: str = "category", kind: str = "spearman") -> Distilled:
    """A set that somebody else chose, judged in the same way."""
    matrix = matrix.complete()
    kept = tuple(column for column, name in enumerate(matrix.names) if name in names)
    if not kept:
        raise EmbarkError("None of the tasks to judge is among those with scores.")
    path = removals(matrix.values, _numbers(matrix, by), kind)
    found = fidelity(matrix, rule, kept, [list(kept)] * len(matrix.models))
    return Distilled(matrix, rule, by, kept, tuple(path), found, kind)


def beside(made: Distilled, name: str, tasks: Sequence[str]) -> Distilled:
    """The same lite set with another one drawn beside it."""
    columns = tuple(column for column, task in enumerate(made.matrix.names) if task in tasks)
    return replace(made, reference=(name, columns)) if columns else made


def noted(made: Distilled, note: str) -> Distilled:
    """The same with one more note below its table."""
    return replace(made, said=(*made.said, note))


def removals(values: Array, groups: Array, kind: str = "spearman") -> list[Removal]:
    """In which order tasks are left out, until each group has one; ties fall on the later task."""
    r = np.where(groups[:, None] == groups, correlations(values, kind), np.nan)
    np.fill_diagonal(r, np.nan)
    telling, path = np.nansum(r, axis=1), []
    while not np.isnan(r).all():
        first, second = sorted(np.unravel_index(np.nanargmax(r), r.shape))
        out = int(second if telling[second] <= telling[first] + 1e-12 else first)
        path.append(Removal(out, float(r[first, second])))
        r[out], r[:, out] = np.nan, np.nan
    return path


def fidelity(matrix: Matrix, rule: str, kept: Sequence[int], without: Sequence[Sequence[int]]) -> Fidelity:
    """How well `kept` stands for all; `without[i]` is the set chosen with model i held out."""
    from scipy.stats import kendalltau

    full, part = _total(matrix, range(len(matrix.tasks)), rule), _total(matrix, kept, rule)
    guessed = np.empty(len(full))
    totals = {chosen: _total(matrix, chosen, rule) for chosen in set(map(tuple, without))}
    for model, chosen in enumerate(without):
        others, x = np.arange(len(full)) != model, totals[tuple(chosen)]
        slope, level = _line(x[others], full[others])
        guessed[model] = level + slope * x[model]
    off = 100 * np.abs(guessed - full)
    return Fidelity(
        len(kept), agreement(part, full), agreement(part, full, "pearson"),
        float(np.nan_to_num(kendalltau(part, full).statistic)),  # NaN where all totals are equal, 0 like the others
        float(off.mean()), float(off.max()), agreement(guessed, full).value,
    )  # fmt: skip


def _kept(path: Sequence[Removal], count: int, size: int | None, threshold: float) -> list[int]:
    gone = [removal.column for removal in path if size is not None or removal.r > threshold]
    out = set(gone if size is None else gone[: count - size])
    return [column for column in range(count) if column not in out]


def _numbers(matrix: Matrix, by: str) -> Array:
    """The number of each task's group."""
    found = np.empty(len(matrix.tasks), int)
    for number, columns in enumerate(grouped(matrix.tasks, by).values()):
        found[columns] = number
    return found


def _total(matrix: Matrix, columns: Sequence[int], rule: str) -> Array:
    """What the rule makes of some tasks alone, model by model."""
    chosen = list(columns)
    return np.asarray(matrix.values[:, chosen] @ weights([matrix.tasks[at] for at in chosen], rule))


def _agreements(matrix: Matrix, columns: Sequence[int], rule: str) -> tuple[float, float]:
    full, part = _total(matrix, range(len(matrix.tasks)), rule), _total(matrix, columns, rule)
    pair = np.stack([part, full], axis=1)
    return float(correlations(pair)[0, 1]), float(correlations(pair, "pearson")[0, 1])


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and level of the least-squares line; a constant x predicts the mean."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread if spread > 1e-18 else 0.0
    return slope, float(y.mean()) - slope * float(x.mean())


def _said(found: Agreement) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
