"""OmniSET's diagnosis for any model: does it find the modality that it is told to find, and what does telling it do?

The analyses are those of the paper (arXiv 2604.23321, sections 5 and A.4), over OmniSET itself, the pocket's small set
offline, or a set that `build_omni` made. There is one sign convention: a shift is the distance to the target with the
instruction minus that without it, so negative is closer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from embark.catalogue import check_name, counted, listed
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results import Results
from embark.results.drawing import FORMATS
from embark.results.table import Cell, Exact, Interval, Row, Score, Table
from embark.results.task_rows import known_tasks
from embark.run.embedded_task import sample
from embark.settings import Settings, load_settings
from embark.stats.intervals import NO_SPREAD, quantile
from embark.stats.paired import Difference, difference
from embark.stats.shared import Observations, Part, interval
from embark.studies.diagnosis import CaptionedStudy, Diagnosis
from embark.studies.maps import METHODS, plane
from embark.studies.omni_directions import TOP, Direction, MixedLists, stored_directions
from embark.studies.plotting import COLORS, MARKERS
from embark.tasks import Tasks, choose_tasks
from embark.tasks.omni import KINDS
from embark.types import Array, Modality

DEFAULT = "PocketOmni"
COLUMN = 3.5  # inches: the width of a column of a paper
MAPPED = 250  # items of a modality on the map
SHIFTED = 40  # queries of a direction on the maps of shifts
COLOR: Mapping[Modality, str] = dict(zip(KINDS, COLORS, strict=False))
MARKER: Mapping[Modality, str] = dict(zip(KINDS, MARKERS, strict=False))
SIGN = "negative: the instruction brings the query closer to its target"


def diagnose_omni(
    model: str | Encoder,
    tasks: Tasks = DEFAULT,
    *,
    out: Path | str | None = None,
    figures: str = "svg",
    method: str = "tsne",
    protocol: str | None = None,
    embed: bool = True,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> Diagnosis:
    """Why a model finds, or does not find, an item of the modality that it is told to find.

    `tasks` are the directions of one set: "OmniSET", the pocket's "PocketOmni", or the tasks of `build_omni`. Queries
    are embedded with and without their instruction; what is stored is not embedded again, and unless `embed`, what is
    not stored is an error. Modalities that the model does not take are left out of the lists.

    `out` is a folder for report.md, tables (CSV) and `figures` (svg, pdf or png); `method` lays out the maps (tsne,
    umap or pca).
    """
    check_name("format of figures", f".{figures}", FORMATS)
    check_name("method for maps", method, METHODS)
    settings = settings or load_settings()
    rows = choose_tasks(tasks, protocol, known_tasks(Results(settings.results).all()))
    stored = MixedLists(model, settings, embedding=embed, loading=loading, show_progress=show_progress)
    directions = stored_directions(stored, rows)
    card = stored.encoder.card
    data = rows[0].name if len(rows) == 1 else rows[0].name.rpartition("/")[0] or rows[0].name
    diagnosis = examine(card.name, data, directions, method)
    if out is not None:
        diagnosis.write(out, figures)
    return diagnosis


def examine(model: str, data: str, directions: Sequence[Direction], method: str = "tsne") -> Diagnosis:
    """The diagnosis of directions that were embedded."""
    facts = (model, data, tuple(directions))
    asymmetry = Asymmetry(*facts)
    studies: dict[str, OmniStudy] = {
        "retrieval": Retrieval(*facts),
        "modalities": Modalities(*facts),
        "sensitivity": Sensitivity(*facts),
        "shift": Shift(*facts),
        "shift-maps": ShiftMaps(*facts, _shift_layout(directions, method)),
        "map": ModalityMap(*facts, _item_layout(directions, method)),
        "asymmetry": asymmetry,
        "distribution": Distribution(*facts),
    }
    kinds = {kind for direction in directions for kind in (direction.query, direction.target)}
    missing = [kind for kind in KINDS if kind not in kinds]
    notes = (f"left out, as {model} does not take it: {listed(missing)}",) if missing else ()
    return Diagnosis(f"{model} on {data}", _findings(directions, asymmetry), studies, notes=notes)


# ── studies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class OmniStudy(CaptionedStudy):
    """A study of directions of a data set, as a model embedded them."""

    model: str
    data: str
    directions: tuple[Direction, ...]

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 3.2

    @property
    def caption(self) -> str:
        return f"{self.what} {self.model} on {self.data}, {_sizes(self.directions)}.".replace("95 %", "95\u00a0%")

    @property
    @abstractmethod
    def what(self) -> str:
        """What the figure shows, in one sentence."""

    @property
    def kinds(self) -> list[Modality]:
        """The modalities of the candidates."""
        present = sum(direction.pool.sum(axis=0) for direction in self.directions)
        return [kind for number, kind in enumerate(KINDS) if present[number]]


@dataclass(frozen=True)
class Retrieval(OmniStudy):
    """Hit@1, MRR and the dominant modality of the first ten, by direction (the paper's Table 4)."""

    title = "Retrieval by direction"
    what = "Targets that are first, and the mean of their reciprocal ranks, with 95 % intervals over queries."

    def table(self) -> Table:
        """A row for each direction, and their mean."""
        rows = []
        for direction in self.directions:
            kind, share = dominant(direction.top)
            itself = _share(float(direction.itself.mean()))
            cells = (direction.name, len(direction), *_scores([direction]), kind, _share(share))
            rows.append(Row((*cells, _whose(direction, kind), itself)))
        queries = sum(map(len, self.directions))
        kind, share = dominant(np.concatenate([direction.top for direction in self.directions]))
        every = (*_scores(self.directions), kind, _share(share), "")
        itself = _share(float(np.mean([direction.itself.mean() for direction in self.directions])))
        rows.append(Row(("mean", queries, *every, itself), total=True))
        notes = (
            f"dominant: the modality that most of the first {TOP} results of all queries have; share: how many do.",
            "of: whether that is the modality of the query, of the target, or another.",
            "query first: queries whose first result is the query itself, which is among its candidates.",
        )
        columns = ("direction", "queries", "Hit@1", "MRR", "dominant", "share", "of", "query first")
        return Table(columns, tuple(rows), notes)

    def draw_panels(self, figure: Any) -> None:
        """Two panels of points with intervals."""
        panels = _below_legend(figure, _query_handles(self.directions)).subplots(1, 2, sharey=True)
        for axes, name, values in zip(panels, ("Hit@1 (%)", "MRR (%)"), ("hit", "reciprocal"), strict=True):
            scores = [_score([direction], values) for direction in self.directions]
            _draw_points(axes, self.directions, [(100 * s.value, 100 * s.low, 100 * s.high) for s in scores])
            axes.set(xlabel=name, xlim=(-4, 104))


@dataclass(frozen=True)
class Modalities(OmniStudy):
    """Which modalities are retrieved, against those that are asked for and those of the query."""

    title = "Modalities of what is retrieved"

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 3.9

    @property
    def what(self) -> str:
        return (
            f"Share of each modality (columns, %) among the first {TOP} results and at the first place, by the "
            "modality of the target and of the query; means over directions."
        )

    def table(self) -> Table:
        """A row for each direction, then for each target and each query modality."""
        rows = []
        for depth, name in ((TOP, f"first {TOP} results"), (1, "first result")):
            shares = [_retrieved(direction, depth) for direction in self.directions]
            for direction, of_direction in zip(self.directions, shares, strict=True):
                rows.append(Row((direction.name, *self._cells(of_direction)), name))
            for side in ("target", "query"):
                kinds, matrix = self.matrix(side, depth)
                for kind, line in zip(kinds, matrix, strict=True):
                    rows.append(Row((f"{side}: {kind}", *self._cells(line)), name))
        share = np.mean([_pool(direction) for direction in self.directions], axis=0)
        rows.append(Row(("all candidates", *self._cells(share)), "the lists themselves"))
        return Table(("direction", *self.kinds), tuple(rows))

    def matrix(self, side: str, depth: int = TOP) -> tuple[list[Modality], Array]:
        """The modalities that targets (or queries) have, and for each the shares of KINDS among the first results."""
        kinds = [kind for kind in KINDS if any(getattr(direction, side) == kind for direction in self.directions)]
        shares = [
            np.mean([_retrieved(d, depth) for d in self.directions if getattr(d, side) == kind], axis=0)
            for kind in kinds
        ]
        return kinds, np.array(shares)

    def draw_panels(self, figure: Any) -> None:
        """Four matrices: first ten and first, by target and by query."""
        panels = figure.subplots(2, 2, sharey=True)
        columns = [KINDS.index(kind) for kind in self.kinds]
        for line, depth in zip(panels, (TOP, 1), strict=True):
            for axes, side in zip(line, ("target", "query"), strict=True):
                kinds, matrix = self.matrix(side, depth)
                _draw_matrix(axes, 100 * matrix[:, columns], kinds, self.kinds, "Blues", (0, 100), "{:.0f}")
                place = f"first {depth} results" if depth > 1 else "first result"
                axes.set_title(f"{place}, by {side}", fontsize=7)

    def _cells(self, shares: Array) -> list[Cell]:
        return [_share(float(shares[KINDS.index(kind)])) for kind in self.kinds]


@dataclass(frozen=True)
class Sensitivity(OmniStudy):
    """How far an instruction moves a query (Fig. 3)."""

    title = "Sensitivity to the instruction"
    what = "Cosine distance of a query without and with its instruction: mean and 95 % interval over queries."

    def table(self) -> Table:
        """A row for each direction."""
        return _distances(self.directions, "moved", "1 − cos(raw, instructed)")

    def draw_panels(self, figure: Any) -> None:
        """Points with intervals."""
        axes = _below_legend(figure, _query_handles(self.directions)).subplots()
        _draw_points(axes, self.directions, [_mean(direction.moved) for direction in self.directions])
        axes.set(xlabel="1 − cos(raw query, instructed query)")
        right = max(axes.get_xlim()[1], 0.01)  # never a picture of rounding alone
        axes.set_xlim(-0.03 * right, right)


@dataclass(frozen=True)
class Shift(OmniStudy):
    """Whether the instruction moves queries toward their targets (Figs. 4a and 10)."""

    title = "Does the instruction lead to the target?"
    what = f"Δ distance = d(instructed query, target) − d(raw query, target), cosine; {SIGN}. Means over queries."

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 3.0

    def table(self) -> Table:
        """A row for each direction: the mean, and how many queries come closer."""
        table = _distances(self.directions, "shift", "Δ distance")
        rows = tuple(
            Row((*row.cells, _share(float((direction.shift < 0).mean()))))
            for row, direction in zip(table.rows, self.directions, strict=True)
        )
        notes = (f"Δ distance = d(instructed query, target) − d(raw query, target), cosine; {SIGN}.",)
        return Table((*table.columns, "closer"), rows, notes)

    def draw_panels(self, figure: Any) -> None:
        """Queries down, targets across."""
        axes = figure.subplots()
        means = np.full((len(KINDS), len(KINDS)), np.nan)
        for direction in self.directions:
            means[KINDS.index(direction.query), KINDS.index(direction.target)] = direction.shift.mean()
        shown = [number for number, kind in enumerate(KINDS) if kind in self.kinds]
        means = means[np.ix_(shown, shown)]
        reach = max(float(np.nanmax(np.abs(means))), 0.005)
        image = _draw_matrix(axes, means, self.kinds, self.kinds, "PuOr", (-reach, reach), "{:+.3f}")
        axes.set_ylabel("query", fontsize=8)
        axes.set_title("target", fontsize=8)
        bar = figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label("Δ distance (− closer, + farther)", fontsize=7)
        bar.ax.tick_params(labelsize=6)
        bar.outline.set_visible(False)


@dataclass(frozen=True)
class Asymmetry(OmniStudy):
    """X→Y against Y→X on the same tuples."""

    title = "Asymmetry of directions"
    what = "Difference of X→Y and Y→X on the same tuples, with paired 95 % intervals; points right of 0: X→Y is better."

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 2.3

    def pairs(self) -> list[tuple[Direction, Direction]]:
        """Both directions between two modalities, their queries of the same tuples, in one order."""
        by_kinds = {(direction.query, direction.target): direction for direction in self.directions}
        both = [
            _same_tuples(by_kinds[a, b], by_kinds[b, a])
            for a, b in combinations(KINDS, 2)
            if (a, b) in by_kinds and (b, a) in by_kinds
        ]
        return [pair for pair in both if len(pair[0])]

    def differences(self, measure: str) -> list[Difference]:
        """Of each pair: forth minus back."""
        return [difference([_part(forth, measure)], [_part(back, measure)]) for forth, back in self.pairs()]

    def table(self) -> Table:
        """A row for each pair of modalities."""
        rows = []
        for (forth, back), *tests in zip(
            self.pairs(), self.differences("hit"), self.differences("reciprocal"), strict=True
        ):
            cells: list[Cell] = [f"{forth.name} − {back.name}", len(forth)]
            for test, measure in zip(tests, ("hit", "reciprocal"), strict=True):
                scores = [_score([direction], measure).value for direction in (forth, back)]
                cells += [*map(_share, scores), Score(test.value, test.low, test.high)]
            rows.append(Row((*cells, tests[1].p)))
        columns = ("pair", "tuples", "Hit@1 →", "Hit@1 ←", "Δ Hit@1", "MRR →", "MRR ←", "Δ MRR", "p")
        notes = ("Δ is X→Y − Y→X in points, with its paired 95 % interval; p is that of the MRR.",)
        return Table(columns, tuple(rows), notes)

    def draw_panels(self, figure: Any) -> None:
        """A panel of differences for either measure."""
        names = [f"{forth.name} − {back.name}" for forth, back in self.pairs()]
        places = -np.arange(len(names))
        for axes, (name, measure) in zip(
            figure.subplots(1, 2, sharey=True), (("Hit@1", "hit"), ("MRR", "reciprocal")), strict=True
        ):
            values = 100 * np.array([test[:3] for test in self.differences(measure)]).reshape(-1, 3)
            axes.axvline(0, color="#888888", lw=0.8)
            errors = np.abs(values[:, 1:].T - values[:, 0])
            axes.errorbar(values[:, 0], places, xerr=errors, fmt="o", ms=3.5, lw=1, color=COLORS[0])
            axes.set_yticks(places, names, fontsize=7)
            axes.tick_params(axis="x", labelsize=7)
            axes.set_xlabel(f"{name} (points)", fontsize=7)


@dataclass(frozen=True)
class Distribution(OmniStudy):
    """What the data hold: queries by modality and instruction, candidates by modality (Fig. 2)."""

    title = "What the data hold"
    what = "Left: queries by modality and by the modality that their instruction names. Right: candidates in the lists."

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 2.4

    def table(self) -> Table:
        """A row for each direction."""
        rows = []
        for direction in self.directions:
            sizes = direction.pool.sum(axis=1)
            means = [float(direction.pool[:, KINDS.index(kind)].mean()) for kind in self.kinds]
            cells = [Exact(mean, f"{mean:.1f}") for mean in means]
            length = f"{sizes.min()}" if np.ptp(sizes) == 0 else f"{sizes.min()}–{sizes.max()}"
            instruction = direction.instruction or "none"
            rows.append(Row((direction.name, len(direction), length, *cells, instruction.strip())))
        columns = ("direction", "queries", "candidates", *self.kinds, "instruction")
        return Table(columns, tuple(rows), ("Candidates of each modality are means over queries.",))

    def draw_panels(self, figure: Any) -> None:
        """Queries by modality and target, stacked; candidates by modality."""
        handles = [_handle(f"to {kind}", color=COLOR[kind], marker="s", ms=5) for kind in self.kinds]
        queries, candidates = _below_legend(figure, handles).subplots(1, 2, sharey=True)
        left = np.zeros(len(self.kinds))
        for target in self.kinds:
            counts = np.array([
                sum(len(d) for d in self.directions if (d.query, d.target) == (kind, target)) for kind in self.kinds
            ])  # fmt: skip
            queries.barh(self.kinds, counts, left=left, color=COLOR[target], height=0.7)
            left += counts
        queries.invert_yaxis()
        queries.set_xlabel("queries", fontsize=7)
        total = sum(direction.pool.sum(axis=0) for direction in self.directions)
        shares = [100 * total[KINDS.index(kind)] / total.sum() for kind in self.kinds]
        candidates.barh(self.kinds, shares, color="#888888", height=0.7)
        candidates.set_xlabel("candidates (%)", fontsize=7)
        for axes in (queries, candidates):
            axes.tick_params(labelsize=7)
            axes.grid(axis="y", visible=False)


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Layout:
    """Points on the plane in named groups, by a method."""

    method: str
    points: Mapping[str, Array]


@dataclass(frozen=True)
class ModalityMap(OmniStudy):
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

    def draw_panels(self, figure: Any) -> None:
        """A color and a marker for each modality."""
        handles = [_handle(kind, color=COLOR[kind], marker=MARKER[kind]) for kind in self.kinds]
        axes = _below_legend(figure, handles).subplots()
        for kind in self.kinds:
            look = {"color": COLOR[kind], "marker": MARKER[kind]}
            axes.scatter(*self.layout.points[kind].T, **look, s=7, alpha=0.7, linewidths=0)
        axes.set(xticks=[], yticks=[])


@dataclass(frozen=True)
class ShiftMaps(OmniStudy):
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
        notes = ("cosine: of the step that the instruction makes and the way from the raw query to its target.",)
        return Table(("direction", "queries that move", "cosine"), tuple(rows), notes)

    def draw_panels(self, figure: Any) -> None:
        """A line of panels for each modality of queries."""
        lines = [[d for d in self.directions if d.query == kind] for kind in self.kinds]
        lines = [line for line in lines if line]
        handles = [
            _handle("raw query", marker="o", mfc="none", mec=COLORS[0]),
            _handle("instructed query", marker="o", color=COLORS[3]),
            _handle("target", marker="x", color=COLORS[2]),
        ]
        panels = _below_legend(figure, handles).subplots(len(lines), max(map(len, lines)), squeeze=False)
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
                axes.scatter(*background.T, s=1.5, color="#dddddd", linewidths=0)
                axes.plot(*np.stack([raw, instructed]).transpose(2, 0, 1), color="#777777", lw=0.4)
                look = {"linewidths": 0.5, "s": 6}
                axes.scatter(*targets.T, color=COLORS[2], marker="x", **look)
                axes.scatter(*raw.T, facecolors="none", edgecolors=COLORS[0], **look)
                axes.scatter(*instructed.T, color=COLORS[3], s=3.5, linewidths=0)
                axes.set(xticks=[], yticks=[])
                axes.set_title(direction.name, fontsize=7, pad=2)


def _item_layout(directions: Sequence[Direction], method: str) -> Layout:
    """Candidates of each modality on the plane."""
    groups = {kind: _of_kind(directions, kind) for kind in KINDS}
    chosen = {str(kind): rows[sample(len(rows), MAPPED)] for kind, rows in groups.items() if len(rows)}
    return Layout(method, _laid_out(chosen, method))


def _shift_layout(directions: Sequence[Direction], method: str) -> Layout:
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


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def dominant(counts: Array) -> tuple[Modality, float]:
    """The modality that most results have, (queries, modalities), and its share of all; of equal ones, the first."""
    total = counts.sum(axis=0)
    return KINDS[int(total.argmax())], float(total.max() / total.sum())


def _retrieved(direction: Direction, depth: int) -> Array:
    """The share of each of KINDS among the first results, pooled over queries."""
    if depth == 1:
        return np.bincount(direction.first, minlength=len(KINDS)) / len(direction)
    return np.asarray(direction.top.sum(axis=0) / direction.top.sum())


def _pool(direction: Direction) -> Array:
    return np.asarray(direction.pool.sum(axis=0) / direction.pool.sum())


def _part(direction: Direction, measure: str) -> Part:
    return Part("mean", measure, {measure: getattr(direction, measure)}, direction.observations)


def _score(directions: Sequence[Direction], measure: str) -> Score:
    """The mean of a measure over directions; items that they share move them together."""
    value = float(np.mean([getattr(direction, measure).mean() for direction in directions]))
    return Score(value, *interval([_part(direction, measure) for direction in directions]))


def _scores(directions: Sequence[Direction]) -> tuple[Score, Score]:
    return _score(directions, "hit"), _score(directions, "reciprocal")


def _mean(values: Array) -> tuple[float, float, float]:
    """A mean of distances with Student's interval."""
    value = float(values.mean())
    half = quantile(len(values) - 1) * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else np.nan
    return value, value - half, value + half


def _distances(directions: Sequence[Direction], measure: str, column: str) -> Table:
    """The mean of a distance by direction, with its interval."""
    rows = []
    for direction in directions:
        value, low, high = _mean(getattr(direction, measure))
        value, low, high = (round(number, 12) + 0.0 for number in (value, low, high))  # no -0.000
        rows.append(Row((direction.name, len(direction), value, Interval(low, high, f"[{low:.3f}, {high:.3f}]"))))
    return Table(("direction", "queries", column, "95 %"), tuple(rows))


def _same_tuples(forth: Direction, back: Direction) -> tuple[Direction, Direction]:
    """Two opposite directions with only the queries of tuples that both have, in one order."""
    rows = {(target, query): row for row, (query, target) in enumerate(back.contents.tolist())}
    pairs = [
        (row, rows[query, target])
        for row, (query, target) in enumerate(forth.contents.tolist())
        if (query, target) in rows
    ]
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    return _taken(forth, first), _taken(back, second)


def _taken(direction: Direction, rows: Array) -> Direction:
    numbers = direction.observations
    chosen = Observations(numbers.first[rows], numbers.second[rows])
    return replace(direction, rank=direction.rank[rows], contents=direction.contents[rows], observations=chosen)


def _whose(direction: Direction, kind: Modality) -> str:
    """Whether a modality is that of the query, of the target, or another."""
    return {direction.query: "query's", direction.target: "target's"}.get(kind, "another")


def _share(value: float) -> Score:
    return Score(value, np.nan, np.nan)


def _sizes(directions: Sequence[Direction]) -> str:
    """How many queries a direction has, and how many candidates a query."""
    queries = sorted({len(direction) for direction in directions})
    candidates = np.concatenate([direction.pool.sum(axis=1) for direction in directions])
    of_query = f"{candidates.min()}" if np.ptp(candidates) == 0 else f"{candidates.min()}–{candidates.max()}"
    count = f"{queries[0]}" if len(queries) == 1 else f"{queries[0]}–{queries[-1]}"
    return f"n\u00a0=\u00a0{count} queries a direction, {of_query} candidates each"


def _findings(directions: Sequence[Direction], asymmetry: Asymmetry) -> tuple[str, ...]:
    """What the studies come down to."""
    count = len(directions)
    hit, reciprocal = _scores(directions)
    own = sum(_whose(d, dominant(d.top)[0]) == "query's" for d in directions)
    asked = sum(_whose(d, dominant(d.top)[0]) == "target's" for d in directions)
    itself = float(np.mean([d.itself.mean() for d in directions]))
    moved = float(np.mean([d.moved.mean() for d in directions]))
    closer = sum(_mean(d.shift)[2] < 0 for d in directions)
    farther = sum(_mean(d.shift)[1] > 0 for d in directions)
    names = [
        f"{forth.name} ({100 * test.value:+.1f})"
        for (forth, _), test in zip(asymmetry.pairs(), asymmetry.differences("reciprocal"), strict=True)
        if test.low > 0 or test.high < 0
    ]
    obeyed = f"Instructions move queries by a cosine distance of {moved:.3f} on average: nearer to their targets in "
    obeyed += f"{closer} of {count} directions, farther from them in {farther}."
    ignored = "Queries have the same vectors with and without their instruction: the model does not read it."
    return (
        f"Hit@1 {100 * hit.value:.1f} %, MRR {100 * reciprocal.value:.1f} % (means of {counted(count, 'direction')}); "
        f"{100 * itself:.0f} % of queries find themselves first.",
        f"The first {TOP} results are mostly of the query's own modality in {own} of {count} directions, "
        f"of the one that is asked for in {asked}.",
        obeyed if moved > NO_SPREAD else ignored,
        f"Directions that differ from their reverse in MRR: {listed(names, len(names)) or 'none'}.",
    )


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_points(axes: Any, directions: Sequence[Direction], values: Sequence[tuple[float, float, float]]) -> None:
    """A line of the figure for each direction: a point and its interval, in the color of the query's modality."""
    for row, (direction, (value, low, high)) in enumerate(zip(directions, values, strict=True)):
        kind = direction.query
        axes.plot([low, high], [-row, -row], color=COLOR[kind], lw=1.2)
        axes.plot([value], [-row], MARKER[kind], color=COLOR[kind], ms=4, mew=0)
    axes.set_yticks(-np.arange(len(directions)), [direction.name for direction in directions], fontsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.xaxis.label.set_size(7)


def _query_handles(directions: Sequence[Direction]) -> list[Any]:
    """A legend's entries for the modalities of queries."""
    kinds = dict.fromkeys(direction.query for direction in directions)
    return [_handle(f"{kind} query", color=COLOR[kind], marker=MARKER[kind], lw=1.2) for kind in kinds]


def _handle(label: str, **look: Any) -> Any:
    """A legend's entry: a marker in its look."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"ms": 4, "lw": 0, "label": label, **look})


def _below_legend(figure: Any, handles: Sequence[Any]) -> Any:
    """The part of a figure below a line of legend, which covers neither the title nor the panels."""
    height = figure.get_size_inches()[1]
    top, rest = figure.subfigures(2, 1, height_ratios=[0.2, height - 0.2])
    top.legend(
        handles=handles, loc="center", ncols=len(handles), fontsize=6.5, handlelength=1.2, handletextpad=0.4,
        columnspacing=1.2,
    )  # fmt: skip
    return rest


def _draw_matrix(
    axes: Any,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    cmap: str,
    ends: tuple[float, float],
    text: str,
) -> Any:
    """A matrix of colors with its numbers; what is missing is left white."""
    image = axes.imshow(values, cmap=cmap, aspect="auto", interpolation="nearest", vmin=ends[0], vmax=ends[1])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(range(len(columns)), columns, fontsize=6.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            number = text.format(value).replace("-", "−") if abs(value) >= 0.0005 else text.format(0).strip("+")
            axes.text(column, row, number, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    return image
