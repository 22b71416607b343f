"""Score against size: how scores grow with the logarithm of parameters or training data, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix
from embark.catalogue import check_name, listed
from embark.settings import Settings
from embark.studies.analysis import Analysis
from embark.studies.correlate import OVER_MODELS, Agreement, agreement
from embark.studies.model_filter import FEWEST_MODELS, fact, group_means, load_scores
from embark.studies.plotting import (
    COLORS,
    SMALL_POINTS,
    amount,
    color,
    label_points,
    legend_below,
    log_axis,
    marker,
    panels_across,
    subplots,
)
from embark.tables import Row, Table, applicable, rounded, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError, ModelCard

AGAINST = ("parameters", "data")
ACROSS = 3  # panels side by side


def scaling(
    tasks: Tasks = None,
    *,
    against: str = "parameters",
    by: str = "category",
    hold: str | None = None,
    models: Wanted = None,
    where: Sequence[str] = (),
    include: Include = "all",
    settings: Settings | None = None,
) -> Scaling:
    """Fit the scores of each group of tasks against the logarithm of the models' size.

    `against` is parameters or data (training examples); `by` is category, type, capability, domain… or task. `hold`
    compares only models that share a fact: architecture, objective, family, data, parameters. `models` are names or
    patterns, `where` conditions on their cards: "architecture=vit", "data=400..2000" (millions).
    """
    matrix = load_scores(tasks, models, where, include, settings)
    return fit_scaling(matrix, matrix.cards, against, by, hold)


@dataclass(frozen=True)
class Trend:
    """One group's scores against log10 of the size: points per tenfold with a 95 % interval, and Pearson's r."""

    group: str
    models: tuple[str, ...]
    sizes: Array
    scores: Array
    slope: float
    low: float
    high: float
    level: float
    r: Agreement
    strata: Array  # the number of what is held fixed, for each model
    facts: tuple[str, ...] = ()  # its name

    def line(self, sizes: Array) -> tuple[Array, Array]:
        """The fitted points of score at these sizes, and half the width of the line's 95 % band."""
        x = np.log10(self.sizes)
        spread = float(((x - _means(x, self.strata)) ** 2).sum())
        away = (np.log10(sizes) - x.mean()) ** 2
        half = (self.high - self.low) / 2 * np.sqrt(spread / len(x) + away)  # of the slope: t · s / √spread
        return 100 * self.level + self.slope * np.log10(sizes), half


@dataclass(frozen=True)
class Scaling(Analysis):
    """The trends of groups that have enough models, the groups that have not, and the models of unknown size."""

    against: str
    by: str
    trends: tuple[Trend, ...]
    left_out: tuple[str, ...]
    unknown: tuple[str, ...]
    hold: str | None = None

    @property
    def title(self) -> str:
        held = f", {self.hold} held fixed" if self.hold else ""
        return f"Score against {'training data' if self.against == 'data' else 'parameters'}, by {self.by}{held}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 0.9 + 1.7 * self._panels[0]

    def table(self) -> Table:
        """One line per group, steepest first."""
        rows = [
            Row((short(trend.group, 30), trend.slope, trend.low, trend.high, *astuple(trend.r)))
            for trend in self.trends
        ]
        notes = {
            f"per ×10: least-squares points of score for ten times the {self.against}, with 95 % bounds.": True,
            f"r: Pearson of score and log size; {OVER_MODELS}.": True,
            f"Lines within models of the same {self.hold}: one slope, a level of its own for each.": self.hold,
            "Models differ in more than their size: this is no experiment.": True,
            f"{len(self.left_out)} groups have fewer than {FEWEST_MODELS} models of known size: left out.": (
                self.left_out
            ),
            f"Size not known, left out: {listed([*map(short, self.unknown)], 2)}.": self.unknown,
        }
        columns = (self.by, "per ×10", "low", "high", "r", "r low", "r high", "models")
        return Table(columns, tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """One panel per group: models as points, the fitted line with its 95 % band, the models furthest off it."""
        all_sizes = np.concatenate([trend.sizes for trend in self.trends])
        panels = subplots(figure, self._panels, len(self.trends), sharex=True)
        for axes, trend in zip(panels, self.trends, strict=True):
            for number, stratum in enumerate(np.unique(trend.strata)):
                rows = trend.strata == stratum
                held = {"color": color(number), "marker": marker(number)} if self.hold else {"color": COLORS[0]}
                order = np.argsort(trend.sizes[rows])
                look = {"marker": "o", "ms": 3, "alpha": 0.7, "mew": 0, "lw": 0.6 * bool(self.hold)}
                name = trend.facts[int(np.flatnonzero(rows)[0])] if self.hold else ""
                axes.plot(trend.sizes[rows][order], 100 * trend.scores[rows][order], **look | held, label=name)
            x = np.geomspace(trend.sizes.min(), trend.sizes.max(), 50)
            line, half = trend.line(x)
            axes.plot(x, line, color=COLORS[3], lw=1.2)
            axes.fill_between(x, line - half, line + half, color=COLORS[3], alpha=0.15, lw=0)
            log_axis(axes, all_sizes)
            slope, low, high = (rounded(end, sign=True) for end in (trend.slope, trend.low, trend.high))
            slope = f"{slope} [{low}, {high}] per ×10, n = {trend.r.n}"
            axes.set_title(f"{short(trend.group, 26)}\n{slope}", fontsize=SMALL_POINTS)
            axes.margins(x=0.08, y=0.12)
        unit = "training examples" if self.against == "data" else "parameters"
        for axes in panels[-ACROSS:]:  # the lowest of each column
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(f"{unit} (millions)")
        for axes in panels[::ACROSS]:
            axes.set_ylabel("score (points)")
        if self.hold:
            legend_below(figure, *panels[0].get_legend_handles_labels()[::-1])
        figure.draw_without_rendering()
        for axes, trend in zip(panels, self.trends, strict=True):
            points = np.column_stack([trend.sizes, 100 * trend.scores])
            off = points[:, 1] - trend.line(trend.sizes)[0]
            extremes = np.unique([off.argmax(), off.argmin()])
            names = [short(trend.models[row], 16) for row in extremes]
            off_line = points[extremes]
            label_points(axes, off_line[:, 0], off_line[:, 1], names, points, size=SMALL_POINTS, laid_out=True)

    @property
    def _panels(self) -> tuple[int, int]:
        return panels_across(len(self.trends), ACROSS)


def fit_scaling(
    matrix: Matrix,
    cards: Mapping[str, ModelCard],
    against: str = "parameters",
    by: str = "category",
    hold: str | None = None,
) -> Scaling:
    """Fit every group over the models whose size is known and that have all of the group's tasks.

    With `hold`, models count that share the fact with another one of another size.
    """
    check_name("scale of models", against, AGAINST)
    sizes = np.array([fact(cards.get(model), against) or np.nan for model in matrix.models], float)
    trends, left_out = [], []
    for group, scores in group_means(matrix, by).items():
        rows = np.flatnonzero(~np.isnan(sizes) & ~np.isnan(scores))
        strata = _strata([fact(cards.get(matrix.models[row]), hold) if hold else 0 for row in rows])
        rows, strata = _comparable(rows, strata, sizes)
        if len(rows) - len(set(strata.tolist())) < FEWEST_MODELS - 1 or np.ptp(sizes[rows]) == 0:
            left_out.append(group)
            continue
        names = tuple(matrix.models[row] for row in rows)
        trend = _trend(group, names, sizes[rows], scores[rows], strata)
        trends.append(replace(trend, facts=tuple(_fact_name(fact(cards.get(name), hold)) for name in names if hold)))
    if not trends:
        raise EmbarkError(
            f"No {by} has {FEWEST_MODELS} models of known {against} with a score on all of its tasks. Group by task, "
            "choose another benchmark, or add results."
        )
    unknown = tuple(model for model, size in zip(matrix.models, sizes, strict=True) if np.isnan(size))
    trends.sort(key=lambda trend: -trend.slope)
    return Scaling(against, by, tuple(trends), tuple(left_out), unknown, hold, notes=matrix.notes)


def _trend(group: str, models: tuple[str, ...], sizes: Array, scores: Array, strata: Array) -> Trend:
    """A line through all models or, where there are several strata, one slope within them."""
    from scipy.stats import t

    x, y = (values - _means(values, strata) for values in (np.log10(sizes), scores))
    spread = float((x**2).sum())
    slope = float((x * y).sum()) / spread
    freedom = len(sizes) - len(np.unique(strata)) - 1
    error = np.sqrt(max(float(((y - slope * x) ** 2).sum()), 0.0) / freedom / spread)
    half = float(t.ppf(0.975, freedom) * error)
    level = float(scores.mean() - slope * np.log10(sizes).mean())
    r = agreement(x, y, "pearson")
    low, high = 100 * (slope - half), 100 * (slope + half)
    return Trend(group, models, sizes, scores, 100 * slope, low, high, level, r, strata)


def _means(values: Array, strata: Array) -> Array:
    """The mean of each value's stratum."""
    number = np.unique(strata, return_inverse=True)[1]
    return np.asarray((np.bincount(number, values) / np.bincount(number))[number])


def _strata(facts: Sequence[object]) -> Array:
    """The number of each fact, -1 where it is not known."""
    numbers: dict[object, int] = {}
    return np.array([-1 if value is None else numbers.setdefault(value, len(numbers)) for value in facts], int)


def _comparable(rows: Array, strata: Array, sizes: Array) -> tuple[Array, Array]:
    """The rows, and their strata, that share a known stratum with another size."""
    several = [n for n in np.unique(strata) if n >= 0 and np.ptp(sizes[rows[strata == n]]) > 0]
    chosen = np.isin(strata, several)
    return rows[chosen], strata[chosen]


def _fact_name(value: Any) -> str:
    return amount(value) if isinstance(value, (int, float)) else str(value)
