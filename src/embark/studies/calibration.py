"""How far a zero-shot classifier knows when it is right: confidence, entropy and calibration of its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.catalogue import group_values
from embark.results import TaskResult
from embark.settings import Settings
from embark.stats.intervals import mean_interval
from embark.studies.analysis import Analysis
from embark.studies.outcomes import columns_of, read_outcomes
from embark.studies.plotting import GREY, color, legend_below, legend_entry, marker, panels_across, subplots
from embark.tables import Row, Score, Table, short
from embark.tables.drawing import COLUMN, PAGE
from embark.tasks import Tasks, Wanted
from embark.types import Array

BINS = 15  # of equal width, as is usual
DRAWS = 300
ACROSS = 3  # panels side by side


def calibration(
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    settings: Settings | None = None,
) -> Calibration:
    """Compare how sure models are of their zero-shot predictions with how often they are right, on your own runs.

    Probabilities are a softmax over the classes at the model's own scale of similarities (100 where it states none).
    `models` are names or patterns. Published scores have no outcomes.
    """
    parts, notes = read_outcomes(confidence_of, "probabilities", "zero-shot", tasks, models, settings)
    return Calibration(parts, notes=notes)


@dataclass(frozen=True)
class Confidence:
    """A model's predictions on a task: for each item whether it is right, its probability, entropy and margin."""

    model: str
    task: str
    right: Array
    probability: Array
    entropy: Array
    margin: Array

    @property
    def error(self) -> Score:
        """The expected calibration error, with a 95 % interval over items."""
        rng = np.random.default_rng(0)
        items = len(self.right)
        drawn = [calibration_error(self.right[r], self.probability[r]) for r in rng.integers(0, items, (DRAWS, items))]
        value = calibration_error(self.right, self.probability)
        # Drawing again adds noise of its own to an error that is never below 0: the interval is reflected.
        low, high = 2 * value - np.quantile(drawn, (0.975, 0.025))
        return Score(value, max(0.0, min(float(low), value)), max(float(high), value))

    @property
    def separation(self) -> float | None:
        """How often a right item is surer than a wrong one (the area under the ROC curve); None where all are alike."""
        from scipy.stats import rankdata

        right = int(self.right.sum())
        wrong = len(self.right) - right
        if not right or not wrong:
            return None
        ranks = float(rankdata(self.probability)[self.right > 0].sum())
        return (ranks - right * (right + 1) / 2) / (right * wrong)

    def reliability(self) -> tuple[Array, Array]:
        """Mean probability and accuracy in each bin that has items."""
        number = _bins(self.probability)
        filled = np.unique(number)
        return (
            np.array([self.probability[number == bin].mean() for bin in filled]),
            np.array([self.right[number == bin].mean() for bin in filled]),
        )


@dataclass(frozen=True)
class Calibration(Analysis):
    """Tasks by model, each with its predictions."""

    parts: tuple[Confidence, ...]
    title = "Accuracy against confidence of zero-shot predictions"

    @property
    def size(self) -> tuple[float, float]:
        rows, across = self._panels
        return (COLUMN + 0.5, 3.8) if across == 1 else (PAGE, 0.8 + 2.4 * rows)

    def table(self) -> Table:
        """One line per model and task."""
        rows = []
        for part in self.parts:
            right = Score(float(part.right.mean()), *mean_interval(part.right))
            sure = Score(float(part.probability.mean()), *mean_interval(part.probability))
            measures = (part.separation, float(part.entropy.mean()), float(part.margin.mean()), len(part.right))
            rows.append(Row((part.model, right, sure, part.error, *measures), part.task))
        notes = (
            f"confidence: mean probability of the predicted class. ECE: mean |accuracy − confidence| over {BINS} bins.",
            "AUROC: how often a right prediction is surer than a wrong one. entropy in nats; margin in similarity.",
        )
        columns = ("model", "accuracy", "confidence", "ECE", "AUROC", "entropy", "margin", "items")
        return Table(columns, tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """A panel per task: accuracy against confidence, bin by bin; below the diagonal, a model is too sure."""
        models = list(dict.fromkeys(part.model for part in self.parts))
        by_task = group_values((part.task, part) for part in self.parts)
        panels = subplots(figure, self._panels, len(by_task), sharex=True, sharey=True)
        for axes, (task, parts) in zip(panels, by_task.items(), strict=True):
            axes.plot([0, 100], [0, 100], color=GREY, lw=0.8, ls=":")
            for part in parts:
                number = models.index(part.model)
                sure, right = part.reliability()
                axes.plot(100 * sure, 100 * right, color=color(number), marker=marker(8 * number), ms=3.5)
            axes.set_title(f"{short(task, 30)}, n = {len(parts[0].right):,}", fontsize=7)
            axes.set(xlim=(0, 102), ylim=(0, 102), aspect="equal", xlabel="confidence (%)", ylabel="accuracy (%)")
            axes.label_outer()
        looks = [legend_entry(color=color(number), marker=marker(8 * number), lw=1.2) for number in range(len(models))]
        legend_below(figure, [short(model, 34) for model in models], looks)

    @property
    def _panels(self) -> tuple[int, int]:
        """Rows and columns of panels."""
        return panels_across(len({part.task for part in self.parts}), ACROSS)


def calibration_error(right: Array, probability: Array) -> float:
    """The expected calibration error: |accuracy − mean probability| of each bin, weighted by its items."""
    number = _bins(probability)
    gaps = np.bincount(number, right - probability, minlength=BINS)
    return float(np.abs(gaps).sum() / len(right))


def confidence_of(result: TaskResult) -> Confidence | None:
    """The predictions that a result's outcomes hold; None where they have no probabilities."""
    columns = columns_of(result)
    names = ("accuracy", "probability", "entropy", "margin")
    if not set(names) <= set(columns):
        return None
    return Confidence(result.model, result.task, *(columns[name].astype(np.float64) for name in names))


def _bins(probability: Array) -> Array:
    return np.asarray(np.minimum((probability * BINS).astype(int), BINS - 1))
