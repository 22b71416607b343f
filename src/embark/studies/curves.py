"""A task scored in several settings: every score with its 95 % interval, and its difference from the first setting.

Differences are taken item by item, so that even a small one can be told from chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from embark.results.table import Cell, Row, Score, Table, footnoted, short
from embark.run.embedded_task import Embedded
from embark.stats.compare import mean_difference
from embark.stats.intervals import percentiles
from embark.stats.statistics import interval, replicates, task_interval
from embark.studies.draw import color
from embark.studies.study import Study
from embark.types import Array, Scores


@dataclass(frozen=True)
class Setting:
    """The task in one state: `group` is the line it belongs to, `x` its place there, `bytes` what an item takes."""

    name: str
    task: Embedded
    group: str = ""
    x: float = 0.0
    bytes: float | None = None


@dataclass(frozen=True)
class Point:
    """A setting's score and its difference from the first; None for that one, and where no item is the same."""

    setting: Setting
    score: Score
    difference: Score | None = None


@dataclass(frozen=True)
class Curve:
    """All settings of one task and model."""

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
class Sweep:
    """Curves of one kind. `axis` names what changes; `scale` is how it is drawn, "names" if it is no number."""

    title: str
    axis: str
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    scale: Literal["log", "linear", "names"] = "log"

    def study(self) -> Study:
        """The table and the plot."""
        lines = len({(curve.label, point.setting.group) for curve in self.curves for point in curve.points})
        most = max(len(curve.points) for curve in self.curves)
        height = 1.6 + 0.24 * most * len(self.curves) if self.scale == "names" else 4.2 + 0.1 * lines
        draw = _dots if self.scale == "names" else _lines
        return Study(self.title, self._table(), partial(draw, sweep=self), (7.0, min(height, 12.0)))

    def _table(self) -> Table:
        sized = any(point.setting.bytes is not None for curve in self.curves for point in curve.points)
        paired = any(point.difference is not None for curve in self.curves for point in curve.points)
        rows = []
        for curve in self.curves:
            section = f"{curve.label}: {curve.metric}, {curve.count}"
            for point in curve.points:
                size = point.setting.bytes
                cells: list[Cell] = [point.setting.name, *([None if size is None else round(size)] if sized else [])]
                rows.append(Row((*cells, point.score, *([point.difference] if paired else [])), section))
        columns = ("setting", *(["bytes an item"] if sized else []), "score", *(["difference"] if paired else []))
        first = ("Differences are from the first line, in points, over the same items.",) if paired else ()
        notes = dict.fromkeys([*self.notes, *first, *(said for curve in self.curves for said in curve.task.notes)])
        return footnoted(Table(columns, tuple(rows), tuple(notes), models="rows"))


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def curve(settings: Sequence[Setting], paired: bool = True) -> Curve:
    """Score every setting; differences are from the first, unless the settings measure different things."""
    task, points = settings[0].task, list[Point]()
    base, known = list[Scores](), list[list[str]]()
    for setting in settings:
        found = [part.scores() for part in setting.task.parts]
        ids = [_ids(setting.task, at, scores) for at, scores in enumerate(found)]
        difference = _difference(found, base, ids) if paired and ids == known else None
        points.append(Point(setting, _score(found, ids), difference))
        base, known = base or found, known or ids
    metric = task.task.metric if paired else base[0].main.rpartition("_at_")[0] or base[0].main
    return Curve(task, metric, sum(len(scores.rows) for scores in base), tuple(points))


def _ids(task: Embedded, part: int, scores: Scores) -> list[str]:
    names = task.parts[part].ids[scores.unit]
    return [names[row] for row in scores.rows]


def _score(found: Sequence[Scores], ids: Sequence[Sequence[str]]) -> Score:
    value = float(np.mean([scores.value for scores in found]))
    marks = dict.fromkeys(said for scores in found for said in scores.warnings)
    around = [interval(scores.statistic, scores.main, scores.outcomes) for scores in found]
    return Score(value, *task_interval(found, ids, around), marks=tuple(marks))


def _difference(found: Sequence[Scores], base: Sequence[Scores], ids: Sequence[Sequence[str]]) -> Score:
    """Of two means over parts: the same items on both sides."""
    value = float(np.mean([one.value - other.value for one, other in zip(found, base, strict=True)]))
    pairs = list(zip(found, base, strict=True))
    if all(one.statistic == "mean" for one in found):
        apart = [one.outcomes[one.main] - other.outcomes[other.main] for one, other in pairs]
        part = np.repeat(np.arange(len(apart)), [len(values) for values in apart])
        low, high, _ = mean_difference(
            np.concatenate(apart), np.concatenate([np.asarray(i, np.str_) for i in ids]), part
        )
        return Score(value, low, high)
    drawn = np.mean([_drawn(one) - _drawn(other) for one, other in pairs], axis=0)
    return Score(value, *percentiles(drawn))


def _drawn(scores: Scores) -> Array:
    return replicates(scores.statistic, scores.main, scores.outcomes)  # one seed: both sides draw the same items


# ── drawings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

STYLES = ("-", "--", ":", "-.")
SIGNS = ("o", "s", "^", "D")


def _lines(figure: Any, sweep: Sweep) -> None:
    """Score against a number: a colour a curve and a style a group, or a colour a group where there is one curve."""
    axes, alone = figure.subplots(), len(sweep.curves) == 1
    for at, each in enumerate(sweep.curves):
        shared = [point for point in each.points if not point.setting.group]  # they belong to every line
        groups = [name for name in dict.fromkeys(point.setting.group for point in each.points) if name]
        for number, group in enumerate(groups or [""]):
            own = [point for point in each.points if group and point.setting.group == group]
            points = sorted([*shared, *own], key=lambda point: point.setting.x)
            x, scores = [point.setting.x for point in points], [point.score for point in points]
            tint, words = color(number if alone else at), ["" if alone else each.label, group]
            look = {"color": tint, "marker": SIGNS[number % 4], "linestyle": STYLES[number % 4], "markersize": 4}
            axes.plot(x, [100 * score.value for score in scores], **look, label=", ".join(filter(None, words)) or None)
            low, high = [100 * score.low for score in scores], [100 * score.high for score in scores]
            axes.fill_between(x, low, high, color=tint, alpha=0.12, linewidth=0)
    places = sorted({point.setting.x for each in sweep.curves for point in each.points})
    if sweep.scale == "log":
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places], rotation=0 if len(places) < 10 else 45)
    axes.minorticks_off()
    metric = "/".join(dict.fromkeys(each.metric for each in sweep.curves))
    name = f"{sweep.curves[0].label}, " if alone else ""
    axes.set_xlabel(sweep.axis)
    axes.set_ylabel(f"{metric} (%)")
    axes.set_title(f"{name}95 % intervals", fontsize=8, color="#555555")
    _chance(axes, sweep)
    if labels := axes.get_legend_handles_labels()[1]:
        columns = max(1, min(4, 110 // (max(map(len, labels)) + 8)))
        figure.legend(loc="outside lower center", ncols=columns, fontsize=7)


def _dots(figure: Any, sweep: Sweep) -> None:
    """A dot with its interval a setting; one panel a curve."""
    ratios = [1 + len(each.points) for each in sweep.curves]
    panels = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for at, (axes, each) in enumerate(zip(panels, sweep.curves, strict=True)):
        y = np.arange(len(each.points))[::-1]
        value = np.array([100 * point.score.value for point in each.points])
        low = value - [100 * point.score.low for point in each.points]
        high = [100 * point.score.high for point in each.points] - value
        axes.errorbar(value, y, xerr=(low.clip(0), high.clip(0)), fmt="o", color=color(at), markersize=4, capsize=2)
        axes.axvline(value[0], color=color(at), linewidth=0.6, alpha=0.5)
        axes.set_yticks(y, [point.setting.name for point in each.points], fontsize=7)
        axes.set_ylim(-0.6, len(y) - 0.4)
        axes.set_title(f"{each.label}, {each.metric}, {each.count}", fontsize=8, color="#555555")
    panels[-1].set_xlabel("score (%), 95 % intervals")


def _chance(axes: Any, sweep: Sweep) -> None:
    """Where guessing stands, if it is the same for all curves."""
    levels = {each.task.task.chance for each in sweep.curves}
    if len(levels) == 1 and (level := levels.pop()) and sweep.axis != "k":
        axes.axhline(100 * level, color="#888888", linewidth=0.8, linestyle=":", label="chance")
