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

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, load_matrix
from embark.own.names import tasks_here
from embark.settings import Settings
from embark.stats.intervals import LEVEL
from embark.studies.analysis import Analysis
from embark.studies.plotting import COLORS, label_points, legend_below
from embark.tables import Row, Score, Table, points, rounded, short, signed_points
from embark.tasks import Tasks, get_benchmark
from embark.types import Array, EmbarkError

STRENGTHS = np.logspace(-3, 4, 29)  # of the ridge penalty, on standardized scores
MODELS_TO_LEARN = 12  # models to learn from: with fewer, the bar covers too seldom


def predict(
    tasks: Tasks = None,
    *,
    part: str = "MIEB(lite)",
    include: Include = "all",
    settings: Settings | None = None,
) -> Predictions:
    """Predict the full score of models that have the tasks of a smaller benchmark, `part`, and lack others."""
    names = [task.name for task in tasks_here().match(get_benchmark(part).tasks)]
    return predict_totals(load_matrix(tasks, include=include, settings=settings), names)


@dataclass(frozen=True)
class Prediction:
    """A model's predicted total, half its error bar, and the true total where it is known."""

    model: str
    value: float
    half: float
    truth: float | None = None


@dataclass(frozen=True)
class Predictions(Analysis):
    """Predictions for models without a full score, and of every model with one from all the others."""

    part: int  # number of tasks that it is predicted from
    all: int
    new: tuple[Prediction, ...]
    known: tuple[Prediction, ...]

    @property
    def coverage(self) -> float:
        """Share of held-out models whose total lies within their bar."""
        hits = [abs(prediction.value - (prediction.truth or 0.0)) <= prediction.half for prediction in self.known]
        return float(np.mean(hits))

    @property
    def errors(self) -> Array:
        """Of the held-out models, in points."""
        return 100 * np.array([prediction.value - (prediction.truth or 0.0) for prediction in self.known])

    @property
    def title(self) -> str:
        return f"Full score from {self.part} of {self.all} tasks"

    size = (5.0, 4.4)

    def table(self) -> Table:
        """New models first, then the predictions for the known ones."""
        known = sorted(self.known, key=lambda prediction: -(prediction.truth or 0))
        rows = [_row(prediction, "not yet scored on all tasks") for prediction in self.new]
        rows += [_row(prediction, "held out in turn") for prediction in known]
        count = len(known)
        errors = np.abs(self.errors)
        notes = (
            f"The total over {self.all} tasks, from {self.part} of them: ridge regression over {count} models.",
            f"Held-out models: mean error {rounded(errors.mean(), 2)} points, worst {rounded(errors.max(), 2)}; "
            f"the 95 % bar covers {round(count * self.coverage)} of {count}.",
            "It holds for models like those; a new kind of model may lie further off.",
        )
        return Table(("model", "predicted", "true", "error"), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """Predicted against true totals."""
        axes = figure.subplots()
        known = [(prediction.truth or 0.0, prediction.value, prediction.half) for prediction in self.known]
        true, predicted, half = 100 * np.array(known).T
        ends = [min(true.min(), predicted.min()) - 1, max(true.max(), predicted.max()) + 1]
        axes.plot(ends, ends, color="#888888", lw=0.8)
        axes.errorbar(true, predicted, half, fmt="o", ms=4, color=COLORS[0], ecolor="#9ECAE1", lw=1, label="held out")
        for prediction, color in zip(self.new[:6], COLORS[1:], strict=False):
            low, high = 100 * (prediction.value - prediction.half), 100 * (prediction.value + prediction.half)
            axes.axhspan(low, high, alpha=0.15, color=color)
            axes.axhline(100 * prediction.value, color=color, lw=1, label=f"{short(prediction.model)} (new)")
        axes.set(xlabel="true total (points)", ylabel="predicted total (points)")
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])
        worst = np.argsort(-np.abs(true - predicted))[:3]
        names = [short(self.known[model].model) for model in worst]
        label_points(
            axes,
            true[worst],
            predicted[worst],
            names,
            np.column_stack([true, predicted]),
            np.column_stack([ends, ends]),
        )


def predict_totals(matrix: Matrix, names: Sequence[str]) -> Predictions:
    """Predict the total of models that have these tasks and lack others; measure it on those that lack none."""
    columns = [column for column, name in enumerate(matrix.names) if name in names]
    if not columns or len(columns) == len(matrix.tasks):
        which = f"some of the {len(matrix.tasks)} with scores, not {'all' if columns else 'others'}"
        raise EmbarkError(f"The tasks to predict from must be {which}.")
    complete = matrix.complete_rows
    have_part = np.asarray(~np.isnan(matrix.values[:, columns]).any(axis=1))
    if complete.sum() < MODELS_TO_LEARN:
        raise EmbarkError(
            f"A prediction needs at least {MODELS_TO_LEARN} models with every task; there are {int(complete.sum())}."
        )
    x = matrix.values[complete][:, columns]
    y = matrix.values[complete] @ matrix.weights
    others = ~np.eye(len(y), dtype=bool)
    known = [
        Prediction(model, *_predict_row(x[others[row]], y[others[row]], x[row]), float(y[row]))
        for row, model in enumerate(np.array(matrix.models, object)[complete])
    ]
    new = [
        Prediction(matrix.models[row], *_predict_row(x, y, matrix.values[row, columns]))
        for row in np.flatnonzero(have_part & ~complete)
    ]
    return Predictions(len(columns), len(matrix.tasks), tuple(new), tuple(known), notes=matrix.notes)


def _predict_row(x: Array, y: Array, row: Array) -> tuple[float, float]:
    """The prediction for one more row, and half its error bar."""
    from scipy.stats import t

    mean = x.mean(axis=0)
    scale = x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    level = float(y.mean())
    left, values, right = np.linalg.svd((x - mean) / scale, full_matrices=False)
    errors = [_left_out_errors(left, values, y - level, strength) for strength in STRENGTHS]
    best = int(np.argmin([float((error**2).sum()) for error in errors]))
    weight = right.T @ (values / (values**2 + STRENGTHS[best]) * (left.T @ (y - level)))
    # One more model is as likely to lie at any rank of the errors: hence n + 1.
    off = np.abs(errors[best])
    n = len(y)
    quantile = float(np.quantile(off, min(1.0, np.ceil(LEVEL * (n + 1)) / n), method="higher"))
    normal = float(t.ppf((1 + LEVEL) / 2, n - 1) * np.sqrt((off**2).mean() * (1 + 1 / n)))
    return level + float(((row - mean) / scale) @ weight), max(quantile, normal)


def _left_out_errors(left: Array, values: Array, y: Array, strength: float) -> Array:
    """Each row's error when the ridge regression, intercept included, is fitted without it."""
    shrunk = left * (values**2 / (values**2 + strength))
    fitted = shrunk @ (left.T @ y)
    leverage = (shrunk * left).sum(axis=1) + 1 / len(y)
    return np.asarray((y - fitted) / np.maximum(1 - leverage, 1e-9))


def _row(prediction: Prediction, section: str) -> Row:
    value, half, truth = prediction.value, prediction.half, prediction.truth
    score = Score(value, value - half, value + half)
    if truth is None:
        return Row((prediction.model, score, None, None), section)
    error = value - truth
    return Row((prediction.model, score, points(truth), signed_points(error, 2)), section)
