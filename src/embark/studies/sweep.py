"""A task scored in several variants: every score with its 95 % interval, and its difference from the first variant.

Differences are taken item by item, so that even a small one can be told from chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from embark.catalogue import group_values
from embark.run.embedded_task import Embedded
from embark.stats.paired import difference
from embark.stats.shared import ItemNumbers, Part, interval
from embark.studies.analysis import Analysis
from embark.studies.plotting import GREY, amount, color, legend_below, legend_entry, panels_across, subplots
from embark.tables import Row, Score, Table, applicable, footnoted, short
from embark.tables.drawing import COLUMN, PAGE
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
class SweepPoint:
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
    points: tuple[SweepPoint, ...]

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
        shown = {"setting": True, "bytes an item": with_bytes, "score": True, "difference": with_difference}
        columns = applicable(shown)
        rows = []
        for curve in self.curves:
            section = f"{curve.label}: {curve.metric}, {curve.count}"
            for point in curve.points:
                size = None if point.variant.bytes is None else round(point.variant.bytes)
                cells = zip((point.variant.name, size, point.score, point.difference), shown.values(), strict=True)
                rows.append(Row(tuple(cell for cell, condition in cells if condition), section))
        notes = dict.fromkeys(self.definitions, True)
        notes |= {"Differences are from the first line, in points, over the same items.": with_difference}
        notes |= dict.fromkeys((note for curve in self.curves for note in curve.task.notes), True)
        return footnoted(Table(columns, tuple(rows), applicable(notes), models="rows"))

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
        panels = subplots(figure, self._panels, len(self._by_task))
        for axes, (task, curves) in zip(panels, self._by_task.items(), strict=True):
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
    first = score_parts(task)
    points = [SweepPoint(variants[0], first.score)]
    for variant in variants[1:]:
        scored = score_parts(variant.task)
        same_items = paired and scored.ids == first.ids
        change = Score(*difference(scored.parts, first.parts)[:3]) if same_items else None
        points.append(SweepPoint(variant, scored.score, change))
    main = first.parts[0].main
    metric = task.task.metric if paired else main.rpartition("_at_")[0] or main
    return Curve(task, metric, sum(map(len, first.ids)), tuple(points))


class ScoredParts(NamedTuple):
    """The score of a task; by part, the outcomes of its items and their ids."""

    score: Score
    parts: list[Part]
    ids: list[list[str]]


def score_parts(task: Embedded, scores: Sequence[Scores] | None = None) -> ScoredParts:
    """The mean of a task's parts with its interval, from their scores, or by scoring their vectors."""
    scores = [part.scores() for part in task.parts] if scores is None else scores
    numbers = ItemNumbers()
    parts = []
    ids = []
    for part, result in zip(task.parts, scores, strict=True):
        items = part.items(result)
        parts.append(Part(result.statistic, result.main, result.outcomes, numbers.observations("", items)))
        ids.append(items["id"])
    value = float(np.mean([result.value for result in scores]))
    warnings = dict.fromkeys(warning for result in scores for warning in result.warnings)
    return ScoredParts(Score(value, *interval(parts), marks=tuple(warnings)), parts, ids)


def _lines(curve: Curve, groups: Sequence[str]) -> list[list[SweepPoint]]:
    """The points of each group by position; those of no group are on every line."""
    points = sorted(curve.points, key=lambda point: (point.variant.x, bool(point.variant.group)))
    return [[point for point in points if point.variant.group in ("", group)] for group in groups]


def _percentages(points: Sequence[SweepPoint]) -> Array:
    """The scores of the points, and both ends of their intervals: three rows."""
    return 100 * np.array([(point.score.value, point.score.low, point.score.high) for point in points]).T
