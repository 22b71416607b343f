"""How well a subset of the tasks represents all of them: totals of models by both, and errors for models held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embark.boards.matrix import Matrix, weights
from embark.catalogue import counted
from embark.studies.correlate import Agreement, agreement
from embark.types import Array


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

    @property
    def sentences(self) -> tuple[str, ...]:
        """The numbers as notes of a table."""
        return (
            f"{counted(self.tasks, 'task')} against all, over {self.spearman.n} models: "
            f"Spearman {_with_interval(self.spearman)}, Pearson {_with_interval(self.pearson)},",
            f"Kendall {self.kendall:.3f}. Totals of models held out: mean error {self.error:.2f} points, "
            f"worst {self.worst:.2f}, Spearman {self.held_out:.3f}.",
        )


def fidelity(matrix: Matrix, columns: Sequence[int], without: Sequence[Sequence[int]]) -> Fidelity:
    """How well the tasks of some columns stand for all; `without[i]` are the columns chosen with model i held out."""
    from scipy.stats import kendalltau

    full = totals(matrix, range(len(matrix.tasks)))
    part = totals(matrix, columns)
    predicted = np.empty(len(full))
    totals_of = {chosen: totals(matrix, chosen) for chosen in set(map(tuple, without))}
    for model, chosen in enumerate(without):
        others = np.arange(len(full)) != model
        x = totals_of[tuple(chosen)]
        slope, level = _line(x[others], full[others])
        predicted[model] = level + slope * x[model]
    errors = 100 * np.abs(predicted - full)
    kendall = float(np.nan_to_num(kendalltau(part, full).statistic))  # NaN where all totals are equal
    return Fidelity(
        len(columns), agreement(part, full), agreement(part, full, "pearson"), kendall,
        float(errors.mean()), float(errors.max()), agreement(predicted, full).value,
    )  # fmt: skip


def totals(matrix: Matrix, columns: Sequence[int]) -> Array:
    """The total of every model by the matrix's rule, over the tasks of some columns."""
    chosen = list(columns)
    return np.asarray(matrix.values[:, chosen] @ weights([matrix.tasks[column] for column in chosen], matrix.rule))


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and level of the least-squares line; a constant x predicts the mean."""
    centered = x - x.mean()
    spread = float(centered @ centered)
    slope = float(centered @ y) / spread if spread > 1e-18 else 0.0
    return slope, float(y.mean()) - slope * float(x.mean())


def _with_interval(r: Agreement) -> str:
    return f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]"
