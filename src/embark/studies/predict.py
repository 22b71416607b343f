"""A model's full score from a part of the tasks, with an error bar that was checked on models held out.

Ridge regression of the total on the scores of the part; its strength is chosen, and its errors are measured, by leaving
one model out (in closed form). The bar is the 95 % quantile of those errors, and no narrower than a t-interval, since
few errors seldom hold the worst; whether it covers what it promises is tested by leaving out a second model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, weights
from embark.results.table import Exact, Row, Score, Table, short
from embark.stats.intervals import LEVEL
from embark.studies.draw import COLORS, label
from embark.studies.study import Study
from embark.types import Array, EmbarkError

STRENGTHS = np.logspace(-3, 4, 29)  # of the ridge, on standardised scores
FEWEST = 12  # models to learn from: with fewer, the bar covers too seldom


@dataclass(frozen=True)
class Guess:
    """A model's predicted total with its error bar, and the true one where it is known."""

    model: str
    value: float
    half: float
    truth: float | None = None


@dataclass(frozen=True)
class Predicted:
    """Predictions for models without a full score, and of every model with one from all the others."""

    tasks: int
    of: int
    new: tuple[Guess, ...]
    known: tuple[Guess, ...]

    @property
    def coverage(self) -> float:
        """Share of held-out models whose total lies within their bar."""
        return float(np.mean([abs(one.value - (one.truth or 0.0)) <= one.half for one in self.known]))

    @property
    def errors(self) -> Array:
        """Of the held-out models, in points."""
        return 100 * np.array([one.value - (one.truth or 0.0) for one in self.known])

    def study(self) -> Study:
        """New models first, then how the method did on the known ones; predicted against true totals."""
        rows = [_row(one, "not yet scored on all tasks") for one in self.new]
        rows += [_row(one, "held out in turn") for one in sorted(self.known, key=lambda one: -(one.truth or 0))]
        count, off = len(self.known), self.errors
        notes = (
            f"The total over {self.of} tasks, from {self.tasks} of them: ridge regression over {count} models.",
            f"Held-out models: mean error {np.abs(off).mean():.2f} points, worst {np.abs(off).max():.2f}; the 95 % bar "
            f"covers {round(count * self.coverage)} of {count}.",
            "It holds for models like those; a new kind of model may lie further off.",
        )
        table = Table(("model", "predicted", "true", "error"), tuple(rows), notes)
        return Study(f"Full score from {self.tasks} of {self.of} tasks", table, self._draw, (7.0, 5.5))

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        true, guessed, half = (
            100 * np.array([float(getattr(one, name)) for one in self.known]) for name in ("truth", "value", "half")
        )
        ends = [min(true.min(), guessed.min()) - 1, max(true.max(), guessed.max()) + 1]
        axes.plot(ends, ends, color="#888888", lw=0.8)
        axes.errorbar(true, guessed, half, fmt="o", ms=4, color=COLORS[0], ecolor="#9ECAE1", lw=1, label="held out")
        for at, one in enumerate(self.new[:6]):
            axes.axhspan(100 * (one.value - one.half), 100 * (one.value + one.half), alpha=0.15, color=COLORS[at + 1])
            axes.axhline(100 * one.value, color=COLORS[at + 1], lw=1, label=f"{short(one.model)} (new)")
        worst = np.argsort(-np.abs(true - guessed))[:3]
        label(axes, true[worst], guessed[worst], [short(self.known[at].model) for at in worst])
        axes.set_xlabel("true total (points)")
        axes.set_ylabel("predicted total (points)")
        figure.legend(loc="outside lower center", ncols=3, fontsize=7.5)


def predict(matrix: Matrix, names: Sequence[str], rule: str) -> Predicted:
    """Predict the total of models that have these tasks and lack others; measure it on those that lack none."""
    columns = [column for column, name in enumerate(matrix.names) if name in names]
    if not columns or len(columns) == len(matrix.tasks):
        raise EmbarkError(f"The tasks to predict from must be some of the {len(matrix.tasks)} with scores, not all.")
    whole = np.asarray(~np.isnan(matrix.values).any(axis=1))
    ready = np.asarray(~np.isnan(matrix.values[:, columns]).any(axis=1))
    if whole.sum() < FEWEST:
        raise EmbarkError(f"A prediction needs at least {FEWEST} models with every task; there are {int(whole.sum())}.")
    x, y = matrix.values[whole][:, columns], matrix.values[whole] @ weights(matrix.tasks, rule)
    known = []
    for at, model in enumerate(name for name, full in zip(matrix.models, whole, strict=True) if full):
        others = np.arange(len(y)) != at
        value, half = _guess(x[others], y[others], x[at])
        known.append(Guess(model, value, half, float(y[at])))
    new = [
        Guess(matrix.models[row], *_guess(x, y, matrix.values[row, columns])) for row in np.flatnonzero(ready & ~whole)
    ]
    return Predicted(len(columns), len(matrix.tasks), tuple(new), tuple(known))


def _guess(x: Array, y: Array, at: Array) -> tuple[float, float]:
    """The prediction for one more row, and half its error bar."""
    from scipy.stats import t

    middle, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    z, level = (x - middle) / scale, float(y.mean())
    left, values, right = np.linalg.svd(z, full_matrices=False)
    errors = [_left_out(left, values, y - level, strength) for strength in STRENGTHS]
    best = int(np.argmin([float((error**2).sum()) for error in errors]))
    weight = right.T @ (values / (values**2 + STRENGTHS[best]) * (left.T @ (y - level)))
    # One more model is as likely to lie at any rank of the errors: hence n + 1.
    off, n = np.abs(errors[best]), len(y)
    ranked = float(np.quantile(off, min(1.0, np.ceil(LEVEL * (n + 1)) / n), method="higher"))
    normal = float(t.ppf((1 + LEVEL) / 2, n - 1) * np.sqrt((off**2).mean() * (1 + 1 / n)))
    return level + float(((at - middle) / scale) @ weight), max(ranked, normal)


def _left_out(left: Array, values: Array, y: Array, strength: float) -> Array:
    """Each row's error when the ridge is fitted without it; the level is fitted along."""
    shrunk = left * (values**2 / (values**2 + strength))
    fitted, leverage = shrunk @ (left.T @ y), (shrunk * left).sum(axis=1) + 1 / len(y)
    return np.asarray((y - fitted) / np.maximum(1 - leverage, 1e-9))


def _row(one: Guess, section: str) -> Row:
    score = Score(one.value, one.value - one.half, one.value + one.half)
    if one.truth is None:
        return Row((one.model, score, None, None), section)
    error = one.value - one.truth
    return Row(
        (one.model, score, Exact(one.truth, f"{100 * one.truth:.1f}"), Exact(error, f"{100 * error:+.2f}")), section
    )
