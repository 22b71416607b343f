"""How well a subset of the tasks represents all of them: totals of models by both, and errors for models held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from embark.boards.matrix import Matrix, weights
from embark.catalogue import counted
from embark.studies.correlate import Agreement, agreement, correlations
from embark.tables import rounded
from embark.types import Array

DRAWS = 200  # random sets beside a chosen one


@dataclass(frozen=True)
class Fidelity:
    """How a set of tasks ranks models, compared with all tasks; errors are of held-out models, in points."""

    tasks: int
    spearman: Agreement
    pearson: Agreement
    kendall: float
    error: float
    worst: float
    held_out: float  # Spearman of predicted and true totals
    chance: Chance | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The numbers as notes of a table."""
        return (
            f"{counted(self.tasks, 'task')} against all, over {self.spearman.n} models: "
            f"Spearman {_with_interval(self.spearman)}, Pearson {_with_interval(self.pearson)},",
            f"Kendall {self.kendall:.3f}. Totals of models held out: mean error {rounded(self.error, 2)} points, "
            f"worst {rounded(self.worst, 2)}, Spearman {self.held_out:.3f}.",
            *(() if self.chance is None else self.chance.sentences),
        )


@dataclass(frozen=True)
class Chance:
    """How random sets with as many tasks of each group do: Spearman with all tasks, and the error for models held out.

    `rest` is the Spearman of the chosen tasks' total with that of the tasks left out, which share none with it.
    """

    by: str
    draws: int
    spearman: float
    low: float  # 90 % of the draws lie between
    high: float
    better: float  # share of draws with a higher Spearman than the chosen set
    error: float
    smaller: float  # share of draws with a smaller error
    rest: float | None
    random_rest: float | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The numbers as notes of a table."""
        lines = [
            f"{self.draws} random sets with the same counts by {self.by}: Spearman {self.spearman:.3f} on average "
            f"(90 %: {self.low:.3f} to {self.high:.3f}), mean error {rounded(self.error, 2)};",
            f"{self.better:.0%} of them have a higher Spearman than this set, and {self.smaller:.0%} a smaller error: "
            f"{self.verdict}.",
        ]
        if self.rest is not None:
            lines.append(
                f"Against the tasks that are left out alone: Spearman {self.rest:.3f}, random sets "
                f"{self.random_rest:.3f}."
            )
        return tuple(lines)

    @property
    def verdict(self) -> str:
        """Whether the set is better than drawing lots, by the error for models that were held out of the choice."""
        if self.smaller <= 0.05:
            return "the choice beats drawing lots"
        return "drawing lots does better" if self.smaller > 0.5 else "drawing lots does about as well"


def fidelity(
    matrix: Matrix,
    columns: Sequence[int],
    without: Sequence[Sequence[int]],
    groups: Sequence[str] | None = None,
    by: str = "category",
) -> Fidelity:
    """How well the tasks of some columns stand for all; `without[i]` are the columns chosen with model i held out.

    With the group of each task, random sets with the same counts by group stand beside it.
    """
    from scipy.stats import kendalltau

    full = totals(matrix, range(len(matrix.tasks)))
    part = totals(matrix, columns)
    totals_of = {chosen: totals(matrix, chosen) for chosen in set(map(tuple, without))}
    predicted = np.array([_held_out(totals_of[tuple(chosen)], full)[model] for model, chosen in enumerate(without)])
    errors = 100 * np.abs(predicted - full)
    kendall = float(np.nan_to_num(kendalltau(part, full).statistic))  # NaN where all totals are equal
    measured = Fidelity(
        len(columns), agreement(part, full), agreement(part, full, "pearson"), kendall,
        float(errors.mean()), float(errors.max()), agreement(predicted, full).value,
    )  # fmt: skip
    if groups is None or len(columns) == len(full):
        return measured
    return replace(measured, chance=_chance(matrix, columns, groups, by, measured))


def _chance(matrix: Matrix, columns: Sequence[int], groups: Sequence[str], by: str, measured: Fidelity) -> Chance:
    """Random sets with as many tasks of each group."""
    rng = np.random.default_rng(0)
    full = totals(matrix, range(len(matrix.tasks)))
    members = {group: [n for n, other in enumerate(groups) if other == group] for group in dict.fromkeys(groups)}
    counts = {group: sum(groups[column] == group for column in columns) for group in members}
    spearman, error, rest = [], [], []
    for _ in range(DRAWS):
        chosen = sorted(n for group, tasks in members.items() for n in rng.permutation(tasks)[: counts[group]].tolist())
        part = totals(matrix, chosen)
        spearman.append(correlation_of_ranks(part, full))
        error.append(100 * float(np.abs(_held_out(part, full) - full).mean()))
        rest.append(_with_rest(matrix, chosen))
    low, high = np.quantile(spearman, [0.05, 0.95])
    own = _with_rest(matrix, columns)
    return Chance(
        by, DRAWS, float(np.mean(spearman)), float(low), float(high),
        float(np.mean(np.array(spearman) > measured.spearman.value)), float(np.mean(error)),
        float(np.mean(np.array(error) < measured.error)),
        own, None if own is None else float(np.mean([value for value in rest if value is not None])),
    )  # fmt: skip


def _with_rest(matrix: Matrix, columns: Sequence[int]) -> float | None:
    """Spearman of the total over some tasks with that over the others."""
    others = sorted(set(range(len(matrix.tasks))) - set(columns))
    return correlation_of_ranks(totals(matrix, columns), totals(matrix, others)) if others else None


def correlation_of_ranks(x: Array, y: Array) -> float:
    """Spearman's correlation."""
    return float(correlations(np.stack([x, y], axis=1))[0, 1])


def totals(matrix: Matrix, columns: Sequence[int]) -> Array:
    """The total of every model by the matrix's rule, over the tasks of some columns."""
    chosen = list(columns)
    return np.asarray(matrix.values[:, chosen] @ weights([matrix.tasks[column] for column in chosen], matrix.rule))


def _held_out(x: Array, y: Array) -> Array:
    """For each model, y as the least-squares line through the others predicts it from x; a constant x predicts their
    mean.
    """
    n = len(x)
    predicted = np.empty(n)
    for model in range(n):
        others = np.arange(n) != model
        centered = x[others] - x[others].mean()
        spread = float(centered @ centered)
        slope = float(centered @ y[others]) / spread if spread > 1e-18 else 0.0
        predicted[model] = y[others].mean() + slope * (x[model] - x[others].mean())
    return predicted


def _with_interval(r: Agreement) -> str:
    return f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]"
