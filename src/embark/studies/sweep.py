"""A task scored in several variants: every score with its 95 % interval, and its difference from the first variant.

Differences are taken item by item, so that even a small one can be told from chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from embark.catalogue import group_values
from embark.results.drawing import COLUMN, PAGE
from embark.results.table import Row, Score, Table, footnoted, short
from embark.run.embedded_task import Embedded
from embark.stats.paired import difference
from embark.stats.shared import ItemNumbers, Part, interval
from embark.studies.analysis import Analysis
from embark.studies.plotting import GREY, amount, color, legend_below, legend_entry, panels_across
from embark.types import Array, Scores

LINE_STYLES = ("-", "--", ":", "-.")
POINT_MARKERS = ("o", "s", "^", "D")


@dataclass(frozen=True)
class Variant:
    """One variant of a task: `group` is its line in a drawing, `x` its position there, `bytes` the size of an item."""

    name: str
    task: Embedded
    group: str = ""
    x: float = 0.0
    bytes: float | None = None


@dataclass(frozen=True)
class Point:
    """A variant's score and its difference from the first; None for the first, and where the items are not the same."""

    variant: Variant
    score: Score
    difference: Score | None = None


@dataclass(frozen=True)
class Curve:
    """All variants of one task by one model."""

    task: Embedded
    metric: str
    items: int
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        """The model and the task."""
        return f"{short(self.task.model)} · {self.task.task.name}"

    @property
    def count(self) -> str:
        """How many outcomes the score is made of."""
        parts = len(self.task.parts)
        return f"n = {self.items:,}" + (f" in {parts} parts" if parts > 1 else "")


@dataclass(frozen=True)
class Sweep(Analysis):
    """Curves of one kind. `axis` names what changes; `scale` is how it is drawn, "names" if it is no number.

    `definitions` explain the variants below the table.
    """

    heading: str
    axis: str
    curves: tuple[Curve, ...]
    definitions: tuple[str, ...] = ()
    scale: Literal["log", "linear", "names"] = "log"

    @property
    def title(self) -> str:
        models = {curve.task.model for curve in self.curves}
        return f"{self.heading}, {short(models.pop())}" if len(models) == 1 else self.heading

    @property
    def size(self) -> tuple[float, float]:
        if self.scale == "names":
            most = max(len(curve.points) for curve in self.curves)
            return PAGE, min(1.2 + (0.3 + 0.2 * most) * len(self.curves), 12.0)
        rows, across = self._panels
        return (COLUMN + 0.5, 3.2) if across == 1 else (PAGE, 0.9 + 2.2 * rows)

    def table(self) -> Table:
        """One line per variant, curve by curve."""
        points = [point for curve in self.curves for point in curve.points]
        with_bytes = any(point.variant.bytes is not None for point in points)
        with_difference = any(point.difference is not None for point in points)
        rows = []
        for curve in self.curves:
            section = f"{curve.label}: {curve.metric}, {curve.count}"
            for point in curve.points:
                size = None if point.variant.bytes is None else round(point.variant.bytes)
                cells = (point.variant.name, *[size] * with_bytes, point.score, *[point.difference] * with_difference)
                rows.append(Row(cells, section))
        columns = ("setting", *["bytes an item"] * with_bytes, "score", *["difference"] * with_difference)
        notes = (
            *self.definitions,
            *["Differences are from the first line, in points, over the same items."] * with_difference,
            *(note for curve in self.curves for note in curve.task.notes),
        )
        return footnoted(Table(columns, tuple(rows), tuple(dict.fromkeys(notes)), models="rows"))

    def draw(self, figure: Any) -> None:
        """Lines over a number, or points by name; both with 95 % intervals."""
        if self.scale == "names":
            self._draw_points(figure)
        else:
            self._draw_lines(figure)

    def _draw_lines(self, figure: Any) -> None:
        """Score against a number, a panel a task: a color a model, a style a group; of one model, a color a group."""
        models = list(dict.fromkeys(curve.task.model for curve in self.curves))
        groups = list(dict.fromkeys(point.variant.group for c in self.curves for point in c.points)) or [""]
        groups = [group for group in groups if group] or [""]
        rows, across = self._panels
        panels = figure.subplots(rows, across, squeeze=False).ravel()
        for axes, (task, curves) in zip(panels, self._by_task.items(), strict=False):
            for curve in curves:
                for number, points in enumerate(_lines(curve, groups)):
                    tint = color(number if len(models) == 1 else models.index(curve.task.model))
                    x = [point.variant.x for point in points]
                    value, low, high = _percentages(points)
                    axes.plot(x, value, color=tint, marker=POINT_MARKERS[number % 4], linestyle=LINE_STYLES[number % 4])
                    axes.fill_between(x, low, high, color=tint, alpha=0.12, linewidth=0)
            ticks = sorted({point.variant.x for curve in curves for point in curve.points})
            axes.set_xscale(self.scale)
            axes.set_xticks(ticks, [amount(tick) for tick in ticks], rotation=0 if len(ticks) < 8 else 45)
            axes.minorticks_off()
            axes.set(ylabel=f"{curves[0].metric} (%)", xlabel=self.axis)
            axes.set_title(f"{task}, {curves[0].count}", fontsize=7)
            if (level := curves[0].task.task.chance) and self.axis != "k":
                axes.axhline(100 * level, color=GREY, linewidth=0.8, linestyle=":")
        for axes in panels[len(self._by_task) :]:
            axes.set_axis_off()
        self._draw_legend(figure, models, groups)

    def _draw_legend(self, figure: Any, models: Sequence[str], groups: Sequence[str]) -> None:
        """The colors of the models, the styles of the groups, and the line of chance."""
        several = len(models) > 1
        handles = {short(m, 34): legend_entry(color=color(i), lw=3) for i, m in enumerate(models)}
        for number, group in enumerate(groups if groups != [""] else []):
            look: dict[str, Any] = {"marker": POINT_MARKERS[number % 4], "linestyle": LINE_STYLES[number % 4]}
            handles[group] = legend_entry(color="#444444" if several else color(number), lw=1.2, **look)
        if self.axis != "k" and any(curve.task.task.chance for curve in self.curves):
            handles["chance"] = legend_entry(color=GREY, lw=0.8, ls=":")
        handles["95 % intervals"] = legend_entry(color=GREY, alpha=0.3, lw=6)
        if not several and len(groups) > 1:
            del handles[short(models[0], 34)]  # whose colors are those of the groups
        legend_below(figure, list(handles), list(handles.values()))

    @property
    def _by_task(self) -> dict[str, list[Curve]]:
        return group_values((curve.task.task.name, curve) for curve in self.curves)

    @property
    def _panels(self) -> tuple[int, int]:
        """Rows and columns of panels of lines."""
        count = len(self._by_task)
        return panels_across(count, 2 if count == 4 else 3)

    def _draw_points(self, figure: Any) -> None:
        """Draw a point with its interval for each variant; one panel per curve."""
        ratios = [1 + len(curve.points) for curve in self.curves]
        panels = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
        for number, (axes, curve) in enumerate(zip(panels, self.curves, strict=True)):
            y = np.arange(len(curve.points))[::-1]
            value, low, high = _percentages(curve.points)
            errors = ((value - low).clip(0), (high - value).clip(0))
            axes.errorbar(value, y, xerr=errors, fmt="o", color=color(number), markersize=4, capsize=2)
            axes.axvline(value[0], color=color(number), linewidth=0.6, alpha=0.5)
            axes.set_yticks(y, [point.variant.name for point in curve.points], fontsize=7)
            axes.set_ylim(-0.6, len(y) - 0.4)
            axes.set_title(f"{curve.label}, {curve.metric}, {curve.count}", fontsize=7)
        panels[-1].set_xlabel("score (%), 95 % intervals")


def score_variants(variants: Sequence[Variant], paired: bool = True) -> Curve:
    """Score every variant; differences are from the first, unless the variants measure different things."""
    task = variants[0].task
    first: list[Part] = []
    first_ids: list[list[str]] = []
    first_main = ""
    points = []
    for variant in variants:
        scores = [part.scores() for part in variant.task.parts]
        columns = [part.items(of_part) for part, of_part in zip(variant.task.parts, scores, strict=True)]
        ids = [of_part["id"] for of_part in columns]
        numbers = ItemNumbers()
        parts = [
            Part(of_part.statistic, of_part.main, of_part.outcomes, numbers.observations("", items))
            for of_part, items in zip(scores, columns, strict=True)
        ]
        change = difference(parts, first) if paired and ids == first_ids else None
        apart = None if change is None else Score(change.value, change.low, change.high)
        points.append(Point(variant, _score(scores, parts), apart))
        first_main = first_main or scores[0].main
        first = first or parts
        first_ids = first_ids or ids
    metric = task.task.metric if paired else first_main.rpartition("_at_")[0] or first_main
    return Curve(task, metric, sum(map(len, first_ids)), tuple(points))


def _lines(curve: Curve, groups: Sequence[str]) -> list[list[Point]]:
    """The points of each group by position; those of no group are on every line."""
    on_all = [point for point in curve.points if not point.variant.group]
    of_groups = [[point for point in curve.points if group and point.variant.group == group] for group in groups]
    return [sorted([*on_all, *points], key=lambda point: point.variant.x) for points in of_groups]


def _percentages(points: Sequence[Point]) -> Array:
    """The scores of the points, and both ends of their intervals: three rows."""
    return 100 * np.array([(point.score.value, point.score.low, point.score.high) for point in points]).T


def _score(scores: Sequence[Scores], parts: Sequence[Part]) -> Score:
    """The mean over the parts, with its interval."""
    value = float(np.mean([of_part.value for of_part in scores]))
    warnings = dict.fromkeys(warning for of_part in scores for warning in of_part.warnings)
    return Score(value, *interval(parts), marks=tuple(warnings))
