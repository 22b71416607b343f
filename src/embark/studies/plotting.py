"""Helpers for drawings: colors, markers, short names, axes of sizes, and labels that cover nothing.

The style sheet is `embark.tables.drawing.STYLE`; widths of a column and a page are `COLUMN` and `PAGE` there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from embark.tables import Score, rounded, short, without_kind
from embark.types import Array

# Okabe and Ito's, which survive every common color blindness, two greys, and those of Tol's muted ones that differ.
COLORS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000", "#999999", "#666699",
    "#882255", "#999933", "#332288", "#DDCC77", "#117733", "#CC6677", "#44AA99", "#AA4499", "#661100", "#BBBBBB",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SAFE = 8  # colors of Okabe and Ito; further ones come with other markers
GREY = "#888888"
SMALL_POINTS = 6.5  # points: the smallest type
ROOM = 1.5  # points of white round a label
DISTANCES = (5.5, 9.0, 16.0, 26.0, 38.0)  # points between a point and the places that its label may take
COVERED = 50.0  # the cost of a label over another, or out of the frame; that of one over a point is 1
TICKS = 7  # values of a logarithmic axis that are all named


def color(number: int) -> str:
    """The color of a group by its number."""
    return COLORS[number % len(COLORS)]


def marker(number: int) -> str:
    """The marker of a group by its number; it changes with every eight colors."""
    return MARKERS[number // SAFE % len(MARKERS)]


def short_task(name: str, most: int = 22) -> str:
    """A task's name without the word for its kind, cut to `most` characters."""
    return short(without_kind(name), most)


def draw_scores(
    axes: Any, heights: Sequence[float] | Array, scores: Sequence[Score], tint: str, marker: str = "o", **look: Any
) -> None:
    """Scores in percent with their intervals, each at a height."""
    axes.hlines(
        heights, [100 * score.low for score in scores], [100 * score.high for score in scores], color=tint, lw=1
    )
    axes.plot([100 * score.value for score in scores], heights, **{"color": tint, "marker": marker, "lw": 0, **look})


def draw_series(axes: Any, series: Mapping[str, Mapping[float, Score]]) -> list[tuple[float, Score]]:
    """The scores of each series (a model, a route), by the height of their row; all points with their own heights.

    Series are shifted against each other by parts of a row, the first at the top.
    """
    points: list[tuple[float, Score]] = []
    for number, (name, scores) in enumerate(series.items()):
        shift = 0.7 * (number - (len(series) - 1) / 2) / len(series)
        heights = [row - shift for row in scores]
        tint = color(number)
        draw_scores(axes, heights, [*scores.values()], tint, MARKERS[number % len(MARKERS)], label=name)
        points += zip(heights, scores.values(), strict=True)
    return points


def panels_across(count: int, most: int) -> tuple[int, int]:
    """The rows and columns of so many panels, with at most so many side by side."""
    columns = min(count, most)
    return -(-count // columns), columns


def subplots(figure: Any, shape: tuple[int, int], count: int, **shared: bool | str) -> Any:
    """So many panels of a grid of rows and columns, row by row; the others stay empty."""
    panels = figure.subplots(*shape, squeeze=False, **shared).ravel()
    for unused in panels[count:]:
        unused.set_axis_off()
    return panels[:count]


def amount(value: float) -> str:
    """A number as a tick says it: 512, 2,048, 0.05."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def log_axis(axes: Any, values: Sequence[float] | Array, which: str = "x") -> None:
    """A logarithmic axis with plain numbers at its ticks: its values where they are few, powers of two where all are
    multiples of 64 (dimensions), else 1, 2, 5, 10…
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    known = np.unique(np.asarray(values, float))
    apart = len(known) < 2 or float(np.diff(np.log(known)).min() / np.log(known[-1] / known[0])) > 0.08
    if len(known) <= TICKS and apart:
        axis.set_major_locator(FixedLocator(known.tolist()))
        axis.set_minor_locator(NullLocator())
    elif (known % 64 == 0).all():
        powers = 2.0 ** np.arange(np.floor(np.log2(known[0])), np.ceil(np.log2(known[-1])) + 1)
        axis.set_major_locator(FixedLocator(powers.tolist()))
        axis.set_minor_locator(NullLocator())
    else:
        tens = np.log10(known[-1] / known[0])
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if tens < 1.5 else (1, 3) if tens < 2.5 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: amount(value)))
    axis.set_minor_formatter(NullFormatter())


def label_points(
    axes: Any,
    xs: Array,
    ys: Array,
    names: Sequence[str],
    others: Array | None = None,
    line: Array | None = None,
    size: float = 7,
    drop: bool = False,
    laid_out: bool = False,
) -> None:
    """Write names beside points, where they cover neither each other nor a point nor a line nor the frame.

    `others` are further points, `line` the corners of a line, both (n, 2). A name that stands off its point gets a thin
    line to it; with `drop`, one that would cover another name is left out. `laid_out` says that the figure has been
    laid out (`figure.draw_without_rendering()`), which takes a while and is done here otherwise.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    figure = axes.figure.figure if hasattr(axes.figure, "figure") else axes.figure
    if not laid_out:
        figure.draw_without_rendering()  # from here on, limits and places are final
    points_per_pixel = 72 / figure.dpi
    limits = (axes.get_xlim(), axes.get_ylim())
    corner, opposite = (axes.transAxes.transform(point) * points_per_pixel for point in ((0, 0), (1, 1)))
    labelled = axes.transData.transform(np.column_stack([xs, ys])) * points_per_pixel
    covered = labelled
    for more in (others, _along(axes, line)):
        if more is not None and len(more):
            covered = np.concatenate([covered, axes.transData.transform(more) * points_per_pixel])
    boxes: list[Array] = []  # left, bottom, right, top of the labels so far
    font = FontProperties(size=size)
    for row in sorted(range(len(names)), key=lambda row: -float(labelled[row][0])):
        width = float(TextPath((0, 0), names[row], prop=font).get_extents().width) + ROOM
        place, box, cost = _place(labelled[row], width, size, boxes, covered, np.array([*corner, *opposite]))
        if drop and cost >= COVERED:
            continue
        boxes.append(box)
        far = max(abs(place)) > DISTANCES[1]
        text = axes.annotate(
            names[row], (xs[row], ys[row]), tuple(place), textcoords="offset points", fontsize=size, va="center",
            ha="left" if place[0] > 0 else "right" if place[0] < 0 else "center", annotation_clip=False, zorder=5,
            bbox={"fc": "white", "alpha": 0.6, "lw": 0, "pad": 0.5},
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 0, "shrinkB": 2} if far else None,
        )  # fmt: skip
        text.set_in_layout(False)
    axes.set(xlim=limits[0], ylim=limits[1])


def draw_heat(
    axes: Any,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    blank: float = -np.inf,
    ends: tuple[float | None, float | None] = (None, None),
    colored: Array | None = None,
    cmap: str = "viridis",
    text: Callable[[float], str] = lambda value: rounded(value, 0),
) -> Any:
    """An image of values as colors, NaN as white, with the `text` of each value that is not below `blank`.

    `colored` tells which values have a color (default: all); the others are numbers alone. `ends` are the values of
    the first and last color (default: the least and the largest).
    """
    colored = np.ones(values.shape, bool) if colored is None else colored
    shades = np.where(colored, values, np.nan)
    image = axes.imshow(shades, cmap=cmap, aspect="auto", interpolation="nearest", vmin=ends[0], vmax=ends[1])
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
                dark = colored[row, column] and 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
                axes.text(
                    column, row, text(value).replace("-", "−"), ha="center", va="center", fontsize=SMALL_POINTS,
                    color="white" if dark else "black",
                )  # fmt: skip
    return image


def legend_entry(**look: Any) -> Any:
    """A legend's entry: a marker, unless the look has a width of line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"lw": 0, **look})


def legend_below(figure: Any, labels: Sequence[str], handles: Sequence[Any], fontsize: float = 7) -> None:
    """A legend below all panels, in as few lines as the figure's width allows, of about equal length."""
    letters = figure.get_size_inches()[0] * 72 / (0.55 * fontsize)
    most = max(1, min(len(labels), int(letters // (max(map(len, labels)) + 7))))
    lines = -(-len(labels) // most)
    figure.legend(handles, labels, loc="outside lower center", ncols=-(-len(labels) // lines), fontsize=fontsize)


def _along(axes: Any, line: Array | None) -> Array | None:
    """Points along a line of straight pieces, close enough that no label fits between them; data coordinates."""
    if line is None or len(line) < 2:
        return None
    corners = axes.transData.transform(line)
    pieces = [np.linspace(start, end, max(2, int(np.abs(end - start).max() / 4))) for start, end in pairwise(corners)]
    return np.asarray(axes.transData.inverted().transform(np.concatenate(pieces)))


def _place(
    point: Array, width: float, height: float, boxes: Sequence[Array], covered: Array, frame: Array
) -> tuple[Array, Array, float]:
    """The best offset of a label from its point, the box that it takes, and how much that covers; all in points."""
    best: tuple[float, Array, Array] | None = None
    for number, distance in enumerate(DISTANCES):
        for across, up in ((1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1)):
            lift = distance if across == 0 else distance * 0.8
            place = np.array([across * distance, up * (lift + (height / 2 if across == 0 else 0))])
            x, y = point + place
            left = x if across > 0 else x - width if across < 0 else x - width / 2
            box = np.array([left - ROOM, y - height / 2 - ROOM, left + width + ROOM, y + height / 2 + ROOM])
            overlaps = sum(bool((box[:2] < other[2:]).all() and (other[:2] < box[2:]).all()) for other in boxes)
            inside = ((covered > box[:2]) & (covered < box[2:])).all(axis=1)
            outside = bool((box[:2] < frame[:2]).any() or (box[2:] > frame[2:]).any())
            hidden = COVERED * (overlaps + outside) + float(inside.sum())
            cost = hidden + 0.1 * number + 0.01 * (across < 0) + 0.02 * abs(up)
            if best is None or cost < best[0]:
                best = (cost, place, box)
    assert best is not None
    return best[1], best[2], best[0]
