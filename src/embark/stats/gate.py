"""Verdicts on pairs of scores: whether a model is worse than another, as a gate asks, and a drawing of where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embark.stats.intervals import LEVEL
from embark.tables import short, signed_points

COLORS = {"win": "#0072B2", "tie": "#999999", "loss": "#D55E00"}
LABELS = {"win": "better", "tie": "cannot be told apart", "loss": "worse"}


@dataclass(frozen=True)
class ModelPair:
    """Two scores on one task, and their difference with its 95 % interval and p-values (alone, and among all tasks)."""

    task: str
    category: str
    a: float
    b: float
    low: float
    high: float
    p: float
    items: int
    holm: float = 1.0

    @property
    def difference(self) -> float:
        """a − b."""
        return self.a - self.b

    @property
    def verdict(self) -> str:
        """Whether model a wins, ties or loses."""
        return verdict_of(self.difference, self.holm)


@dataclass(frozen=True)
class Tally:
    """Verdicts over several tasks, and the mean of their differences with its 95 % interval and p-value.

    Those are None where a task tells nothing of its own difference.
    """

    wins: int
    ties: int
    losses: int
    difference: float
    low: float | None = None
    high: float | None = None
    p: float | None = None


def verdict_of(difference: float, p: float) -> str:
    """The verdict on a difference with this p-value: win or loss where it is significant, else tie."""
    return "tie" if p >= 1 - LEVEL else "win" if difference > 0 else "loss"


def losses(pairs: Sequence[ModelPair], total: Tally, margin: float = 0.0) -> tuple[str, ...]:
    """Where model a loses by more than chance would make and by more than `margin` points: tasks, then the mean."""
    lines = [
        f"{pair.task}: {signed_points(pair.difference).text} points ({p_value(pair.holm)} after Holm's correction)"
        for pair in pairs
        if pair.verdict == "loss" and 100 * pair.difference < -margin
    ]
    if len(pairs) > 1 and total.p is not None and total.p < 1 - LEVEL and 100 * total.difference < -margin:
        lines.append(f"mean of {len(pairs)} tasks: {signed_points(total.difference).text} points ({p_value(total.p)})")
    return tuple(lines)


def p_value(p: float) -> str:
    """A p-value as people read it."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def draw_differences(figure: Any, pairs: Sequence[ModelPair], total: Tally) -> None:
    """The difference of each task with its interval, in the color of its verdict; below them, their mean."""
    axes = figure.subplots()
    axes.axvline(0, color="black", lw=0.8)
    for verdict in ("win", "tie", "loss"):
        rows = [-row for row, pair in enumerate(pairs) if pair.verdict == verdict]
        own = [pair for pair in pairs if pair.verdict == verdict]
        axes.hlines(
            rows, [100 * pair.low for pair in own], [100 * pair.high for pair in own], color=COLORS[verdict], lw=1.2
        )
        label = f"{LABELS[verdict]} ({len(own)})"
        axes.plot([100 * pair.difference for pair in own], rows, "o", ms=4, color=COLORS[verdict], label=label)
    names = [short(pair.task, 34) for pair in pairs]
    if len(pairs) > 1:
        row = -len(pairs) - 0.5
        if total.low is not None and total.high is not None:
            axes.hlines(row, 100 * total.low, 100 * total.high, color="black", lw=1.2)
        axes.plot(100 * total.difference, row, "D", ms=5, color="black", label="mean")
        names.append("mean of all")
        axes.set_yticks([*range(0, -len(pairs), -1), row], names, fontsize=7)
    else:
        axes.set_yticks([0], names, fontsize=7)
    axes.margins(y=1 / (2 + len(pairs)))
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="difference (points)")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
