"""Maps of OmniSET's diagnosis: candidates by modality, and where an instruction moves queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from embark.run.embedded_task import sample
from embark.stats.intervals import NO_SPREAD
from embark.studies.maps import METHODS, plane
from embark.studies.omni.analyses import COLOR, MARKER, OmniAnalysis
from embark.studies.omni.directions import Direction
from embark.studies.plotting import COLORS, legend_below
from embark.tables import Note, Row, Table
from embark.tables.drawing import COLUMN
from embark.tasks.omni import KINDS
from embark.types import Array, Modality

MAPPED = 250  # items of a modality on the map
SHIFTED = 40  # queries of a direction on the maps of shifts


@dataclass(frozen=True)
class Layout:
    """Points on the plane in named groups, by a method."""

    method: str
    points: Mapping[str, Array]


@dataclass(frozen=True)
class ModalityMap(OmniAnalysis):
    """Candidates on the plane by modality (Figs. 4c and 12)."""

    layout: Layout

    title = "Candidates by modality"

    @property
    def what(self) -> str:
        counts = ", ".join(f"{len(self.layout.points[kind])} {kind}" for kind in self.kinds)
        return f"{METHODS[self.layout.method]} of unit vectors of candidates: {counts}."

    def table(self) -> Table:
        """A row for each pair of modalities: how far their centers are apart."""
        centers = {kind: _of_kind(self.directions, kind).mean(axis=0) for kind in self.kinds}
        rows = [
            Row((f"{a}–{b}", float(np.linalg.norm(centers[a] - centers[b])))) for a, b in combinations(self.kinds, 2)
        ]
        return Table(("modalities", "distance of centers"), tuple(rows), ("Of unit vectors: the modality gap.",))

    def draw(self, figure: Any) -> None:
        """A color and a marker for each modality."""
        axes = figure.subplots()
        for kind in self.kinds:
            look = {"color": COLOR[kind], "marker": MARKER[kind], "label": kind}
            axes.scatter(*self.layout.points[kind].T, **look, s=7, alpha=0.7, linewidths=0)
        axes.set(xticks=[], yticks=[])
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])


@dataclass(frozen=True)
class ShiftMaps(OmniAnalysis):
    """Queries without and with their instruction, and their targets, on one plane (Figs. 4b and 11)."""

    layout: Layout

    title = "Where the instruction moves queries"

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 1.2 + 0.95 * len({direction.query for direction in self.directions})

    @property
    def what(self) -> str:
        count = max(len(self.layout.points[f"{direction.name} raw"]) for direction in self.directions)
        return (
            f"{METHODS[self.layout.method]} of unit vectors, one plane for all panels; {count} queries of each "
            "direction with their targets. A line joins a query without and with its instruction."
        )

    def table(self) -> Table:
        """How far queries move on the way to their targets, by direction."""
        rows = []
        for direction in self.directions:
            gap = direction.targets - direction.raw
            step = direction.instructed - direction.raw
            lengths = np.linalg.norm(step, axis=1) * np.linalg.norm(gap, axis=1)
            moving = lengths > NO_SPREAD
            along = (step * gap).sum(axis=1)[moving] / lengths[moving]
            rows.append(Row((direction.name, int(moving.sum()), float(along.mean()) if moving.any() else None)))
        notes = (
            Note(
                "cosine: of the step that the instruction makes and the way from the raw query to its target.",
                column="cosine",
            ),
        )
        return Table(("direction", "queries that move", "cosine"), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """A line of panels for each modality of queries."""
        lines = [[d for d in self.directions if d.query == kind] for kind in self.kinds]
        lines = [line for line in lines if line]
        panels = figure.subplots(len(lines), max(map(len, lines)), squeeze=False)
        still = [points for name, points in self.layout.points.items() if not name.endswith("instructed")]
        background = np.unique(np.concatenate(still), axis=0)
        for axes in panels.ravel():
            axes.set_axis_off()
        for line, directions in zip(panels, lines, strict=True):
            for axes, direction in zip(line, directions, strict=False):
                raw, instructed, targets = (
                    self.layout.points[f"{direction.name} {group}"] for group in ("raw", "instructed", "target")
                )
                axes.set_axis_on()
                axes.scatter(*background.T, s=1.5, color="#dddddd", linewidths=0, rasterized=True)
                # One line with gaps: a file of many lines is large.
                pieces = np.stack([raw, instructed, np.full_like(raw, np.nan)], axis=1).reshape(-1, 2)
                axes.plot(*pieces.T, color="#777777", lw=0.4)
                look = {"linewidths": 0.5, "s": 6}
                axes.scatter(*targets.T, color=COLORS[2], marker="x", label="target", **look)
                axes.scatter(*raw.T, facecolors="none", edgecolors=COLORS[0], label="raw query", **look)
                axes.scatter(*instructed.T, color=COLORS[3], s=3.5, linewidths=0, label="instructed query")
                axes.set(xticks=[], yticks=[])
                axes.set_title(direction.name, fontsize=7, pad=2)
        legend_below(figure, *panels[0, 0].get_legend_handles_labels()[::-1])


def item_layout(directions: Sequence[Direction], method: str) -> Layout:
    """Candidates of each modality on the plane."""
    groups = {kind: _of_kind(directions, kind) for kind in KINDS}
    chosen = {str(kind): rows[sample(len(rows), MAPPED)] for kind, rows in groups.items() if len(rows)}
    return Layout(method, _laid_out(chosen, method))


def shift_layout(directions: Sequence[Direction], method: str) -> Layout:
    """Raw and instructed queries and targets of every direction on one plane."""
    groups = {}
    for direction in directions:
        rows = sample(len(direction), SHIFTED)
        groups[f"{direction.name} raw"] = direction.raw[rows]
        groups[f"{direction.name} instructed"] = direction.instructed[rows]
        groups[f"{direction.name} target"] = direction.targets[rows]
    return Layout(method, _laid_out(groups, method))


def _laid_out(groups: Mapping[str, Array], method: str) -> dict[str, Array]:
    """Groups of unit vectors on one plane; equal vectors are one point."""
    distinct, place = np.unique(np.concatenate(list(groups.values())), axis=0, return_inverse=True)
    points = plane(distinct, method)[place.ravel()]
    ends = np.cumsum([len(rows) for rows in groups.values()])[:-1]
    return dict(zip(groups, np.split(points, ends), strict=True))


def _of_kind(directions: Sequence[Direction], kind: Modality) -> Array:
    """The unit vectors of the candidates of a modality, each once; those of the first direction that has any."""
    number = KINDS.index(kind)
    for direction in directions:
        rows = direction.documents[direction.document_kinds == number]
        if len(rows):
            return np.asarray(rows)
    return np.zeros((0, 1), np.float32)
