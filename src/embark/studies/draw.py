"""What drawings share: colours that everybody can tell apart, short names, and labels that keep off each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.results.table import short, without_kind
from embark.types import Array

# Okabe and Ito's, which survive every common colour blindness, and two greys for the ninth and tenth group.
COLORS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000", "#999999", "#666699",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE = 0.055  # of a panel's height that one line of small type takes


def color(number: int) -> str:
    """The colour of a group by its number."""
    return COLORS[number % len(COLORS)]


def marker(number: int) -> str:
    """A mark that changes when colours come round again."""
    return MARKERS[number // len(COLORS) % len(MARKERS)]


def brief(task: str, most: int = 22) -> str:
    """A task's name without the word for its kind, which its group tells."""
    return short(without_kind(task), most)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names of a long list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(short(name) for name in names[:most]) + more


def label(axes: Any, xs: Array, ys: Array, names: Sequence[str]) -> None:
    """Names beside points. Where they would cover each other, they are moved up, with a thin line to their points."""
    from matplotlib.patheffects import withStroke

    axes.figure.canvas.draw()  # limits are final now
    low, high = axes.get_ylim()
    to_axes = axes.transData + axes.transAxes.inverted()
    below: list[tuple[float, float, float]] = []  # left, right, height of the labels that stand
    for x, y, name in sorted(zip(xs, ys, names, strict=True), key=lambda point: point[1]):
        at, height = to_axes.transform((x, y))
        width = 0.0105 * len(name)
        after = at + width < 0.98  # else before the point
        left = at + 0.012 if after else at - width - 0.012
        place = height
        for other_left, other_right, other in sorted(below, key=lambda one: one[2]):
            if left < other_right and other_left < left + width and abs(place - other) < LINE:
                place = other + LINE
        below.append((left, left + width, place))
        moved = abs(place - height) > LINE / 2
        axes.annotate(
            name, (x, y), (left if after else at - 0.012, place), textcoords="axes fraction", fontsize=7, va="center",
            ha="left" if after else "right", annotation_clip=False, zorder=5,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#888888"} if moved else None,
        )  # fmt: skip
    axes.set_ylim(low, high)
