"""Helpers for drawings: colors, markers, short names, and labels that do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embark.results.table import short, without_kind
from embark.types import Array

# Okabe and Ito's, which survive every common color blindness, and two greys for the ninth and tenth group.
COLORS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000", "#999999", "#666699",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE = 0.055  # height of a line of small type, as a share of the panel's
LETTER = 0.0105  # width of a letter of small type, as a share of the panel's
GAP = 0.012  # between a point and its label


def color(number: int) -> str:
    """The color of a group by its number."""
    return COLORS[number % len(COLORS)]


def marker(number: int) -> str:
    """The marker of a group by its number; it changes when colors are used again."""
    return MARKERS[number // len(COLORS) % len(MARKERS)]


def short_task(name: str, most: int = 22) -> str:
    """A task's name without the word for its kind, cut to `most` characters."""
    return short(without_kind(name), most)


def label_points(axes: Any, xs: Array, ys: Array, names: Sequence[str]) -> None:
    """Write names beside points. A name that would cover another is moved up, with a thin line to its point."""
    from matplotlib.patheffects import withStroke

    axes.figure.canvas.draw()  # from here on, limits are final
    limits = axes.get_ylim()
    to_axes = axes.transData + axes.transAxes.inverted()
    placed: list[tuple[float, float, float]] = []  # left end, right end and height of the labels so far
    for x, y, name in sorted(zip(xs, ys, names, strict=True), key=lambda point: point[1]):
        across, height = to_axes.transform((x, y))
        width = LETTER * len(name)
        right_of_point = across + width < 0.98
        left = across + GAP if right_of_point else across - width - GAP
        label_height = height
        for other_left, other_right, other_height in sorted(placed, key=lambda label: label[2]):
            overlaps = left < other_right and other_left < left + width
            if overlaps and abs(label_height - other_height) < LINE:
                label_height = other_height + LINE
        placed.append((left, left + width, label_height))
        moved = abs(label_height - height) > LINE / 2
        axes.annotate(
            name, (x, y), (left if right_of_point else across - GAP, label_height), textcoords="axes fraction",
            fontsize=7, va="center", ha="left" if right_of_point else "right", annotation_clip=False, zorder=5,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#888888"} if moved else None,
        )  # fmt: skip
    axes.set_ylim(limits)


def label_above(
    axes: Any, xs: Sequence[float], ys: Sequence[float], names: Sequence[str], colors: Sequence[str]
) -> None:
    """Write names above points, in their colors. A name that would cover another is moved up."""
    axes.figure.canvas.draw()  # from here on, limits are final
    to_axes = axes.transData + axes.transAxes.inverted()
    boxes: list[Any] = []
    for x, y, name, tint in sorted(zip(xs, ys, names, colors, strict=True)):
        across, height = to_axes.transform((x, y))
        text = axes.text(
            across, height + 2 * GAP, name, transform=axes.transAxes, fontsize=7, ha="center", va="bottom", color=tint
        )
        while any(text.get_window_extent().overlaps(box) for box in boxes):
            height += LINE / 2
            text.set_y(height + 2 * GAP)
        boxes.append(text.get_window_extent())


def plain_ticks(axes: Any) -> None:
    """Ticks of a logarithmic axis as people write numbers: 512 and 20,000, not powers of ten; a few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_xlim()
    decades = np.log10(high / low)
    steps = (1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 4 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def draw_heat(
    axes: Any,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    blank: float = -np.inf,
    ends: tuple[float | None, float | None] = (None, None),
) -> None:
    """Values as colors with numbers on them, but none below `blank`; what is missing is left white.

    `ends` are the values of the first and last color (default: the least and the largest).
    """
    image = axes.imshow(values, cmap="viridis", aspect="auto", interpolation="nearest", vmin=ends[0], vmax=ends[1])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor", fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value >= blank:
                red, green, blue, _ = image.cmap(image.norm(value))
                dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
                axes.text(
                    column, row, f"{value:.0f}", ha="center", va="center", fontsize=6,
                    color="white" if dark else "black",
                )  # fmt: skip
