"""What size buys: scores against the logarithm of a model's parameters or training data, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, grouped
from embark.results.table import Row, Table, short
from embark.studies.correlate import Agreement, agreement
from embark.studies.draw import COLORS, some
from embark.studies.study import Study
from embark.types import Array, EmbarkError, ModelCard

UNITS = {"parameters": 1e6, "data": 1.0}  # what makes a million of each
FEWEST = 3  # models that a line needs
ACROSS = 4  # panels side by side


@dataclass(frozen=True)
class Trend:
    """One group's scores against log10 of the size: points a tenfold with a 95 % interval, and Pearson's r."""

    group: str
    models: tuple[str, ...]
    size: Array
    score: Array
    slope: float
    low: float
    high: float
    level: float
    r: Agreement


@dataclass(frozen=True)
class Scaling:
    """Trends of the groups that have enough models, and how many groups had not."""

    against: str
    by: str
    trends: tuple[Trend, ...]
    left_out: tuple[str, ...]
    unknown: tuple[str, ...]  # models whose size is not known

    def study(self) -> Study:
        """One line a group, steepest first; one panel a group."""
        rows = [
            Row((short(one.group, 30), one.slope, one.low, one.high, one.r.value, one.r.low, one.r.high, one.r.n))
            for one in self.trends
        ]
        notes = [
            f"per ×10: least-squares points of score for ten times the {self.against}, with 95 % bounds.",
            "r: Pearson of score and log size, 95 %, models resampled.",
            "Models differ in more than their size: this is no experiment.",
        ]
        if self.left_out:
            notes.append(f"{len(self.left_out)} groups have fewer than {FEWEST} models of known size: left out.")
        if self.unknown:
            notes.append(f"Size not known, left out: {some(self.unknown, 2)}.")
        columns = (self.by, "per ×10", "low", "high", "r", "r low", "r high", "models")
        down = -(-len(self.trends) // ACROSS)
        title = f"Score against {'training data' if self.against == 'data' else 'parameters'}, by {self.by}"
        return Study(title, Table(columns, tuple(rows), tuple(notes)), self._draw, (8.0, 0.9 + 1.75 * down))

    def _draw(self, figure: Any) -> None:
        down = -(-len(self.trends) // ACROSS)
        panels = figure.subplots(down, min(ACROSS, len(self.trends)), sharex=True, squeeze=False)
        for axes, one in zip(panels.flat, self.trends, strict=False):
            axes.plot(one.size, 100 * one.score, "o", ms=3, color=COLORS[0], alpha=0.7, mew=0)
            ends = np.array([one.size.min(), one.size.max()])
            axes.plot(ends, 100 * one.level + one.slope * np.log10(ends), color=COLORS[3], lw=1.2)
            axes.set_xscale("log")
            axes.set_title(short(one.group, 24), fontsize=8)
            axes.text(
                0.03, 0.97, f"{one.slope:+.1f} per ×10, n={one.r.n}", transform=axes.transAxes, fontsize=7, va="top"
            )
            axes.tick_params(labelsize=7)
            axes.margins(y=0.18)
        for axes in panels.flat[len(self.trends) :]:
            axes.set_axis_off()
        figure.supxlabel(
            "training examples (millions, log scale)" if self.against == "data" else "parameters (millions, log scale)",
            fontsize=9,
        )
        figure.supylabel("score (points)", fontsize=9)


def scaling(
    matrix: Matrix, cards: Mapping[str, ModelCard], against: str = "parameters", by: str = "category"
) -> Scaling:
    """Fit every group over the models whose size is known and that have all of the group's tasks."""
    if against not in UNITS:
        raise EmbarkError(f"Scores can be set against {' or '.join(UNITS)}, not '{against}'.")
    sizes = np.array([_size(cards.get(model), against) for model in matrix.models])
    trends, left_out = [], []
    for group, columns in grouped(matrix.tasks, by).items():
        score = matrix.values[:, columns].mean(axis=1)
        rows = np.flatnonzero(~np.isnan(sizes) & ~np.isnan(score))
        if len(rows) < FEWEST or np.ptp(sizes[rows]) == 0:
            left_out.append(group)
            continue
        models = tuple(matrix.models[row] for row in rows)
        trends.append(_trend(group, models, sizes[rows], score[rows]))
    if not trends:
        raise EmbarkError(
            f"No {by} has {FEWEST} models of known {against} with a score on all of its tasks. Try --by task, another "
            "benchmark, or add results."
        )
    unknown = tuple(model for model, size in zip(matrix.models, sizes, strict=True) if np.isnan(size))
    trends.sort(key=lambda one: -one.slope)
    return Scaling(against, by, tuple(trends), tuple(left_out), unknown)


def _trend(group: str, models: tuple[str, ...], size: Array, score: Array) -> Trend:
    from scipy.stats import linregress, t

    fit = linregress(np.log10(size), score)
    half = t.ppf(0.975, len(size) - 2) * np.nan_to_num(fit.stderr)  # NaN where all scores are equal
    r = agreement(np.log10(size), score, "pearson")
    slope, low, high = (100 * float(value) for value in (fit.slope, fit.slope - half, fit.slope + half))
    return Trend(group, models, size, score, slope, low, high, float(fit.intercept), r)


def _size(card: ModelCard | None, against: str) -> float:
    """In millions; NaN where it is not known."""
    value = getattr(card, against, None)
    return float(value) / UNITS[against] if value else float("nan")
