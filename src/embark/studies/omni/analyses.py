"""The analyses of OmniSET's diagnosis: what is retrieved, and what an instruction does to a query.

There is one sign convention: a shift is the distance to the target with the instruction minus that without it, so
negative is closer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from embark.stats.intervals import quantile
from embark.stats.paired import Difference, difference
from embark.stats.shared import Observations, Part, interval
from embark.studies.analysis import Analysis
from embark.studies.omni.directions import TOP, Direction
from embark.studies.plotting import COLORS, MARKERS, SMALL_POINTS, draw_heat, legend_below, legend_entry
from embark.tables import Cell, Exact, Interval, Row, Score, Table, rounded
from embark.tables.drawing import COLUMN
from embark.tasks.omni import KINDS
from embark.types import Array, Modality

COLOR: Mapping[Modality, str] = dict(zip(KINDS, COLORS, strict=False))
MARKER: Mapping[Modality, str] = dict(zip(KINDS, MARKERS, strict=False))
SIGN = "negative: the instruction brings the query closer to its target"


@dataclass(frozen=True)
class OmniAnalysis(Analysis):
    """An analysis of directions of a data set, as a model embedded them."""

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
        """The content of the figure, in one sentence."""

    @property
    def kinds(self) -> list[Modality]:
        """The modalities of the candidates."""
        present = sum(direction.pool.sum(axis=0) for direction in self.directions)
        return [kind for number, kind in enumerate(KINDS) if present[number]]


@dataclass(frozen=True)
class Retrieval(OmniAnalysis):
    """Hit@1, MRR and the dominant modality of the first ten, by direction (the paper's Table 4)."""

    title = "Retrieval by direction"
    what = "Targets that are first, and the mean of their reciprocal ranks, with 95 % intervals over queries."

    def table(self) -> Table:
        """A row for each direction, and their mean."""
        rows = []
        for direction in self.directions:
            kind, share = dominant(direction.top)
            itself = _share(float(direction.itself.mean()))
            cells = (direction.name, len(direction), *mean_scores([direction]), kind, _share(share))
            rows.append(Row((*cells, whose(direction, kind), itself)))
        queries = sum(map(len, self.directions))
        kind, share = dominant(np.concatenate([direction.top for direction in self.directions]))
        every = (*mean_scores(self.directions), kind, _share(share), "")
        itself = _share(float(np.mean([direction.itself.mean() for direction in self.directions])))
        rows.append(Row(("mean", queries, *every, itself), total=True))
        notes = (
            f"dominant: the modality that most of the first {TOP} results of all queries have; share: how many do.",
            "of: whether that is the modality of the query, of the target, or another.",
            "query first: queries whose first result is the query itself, which is among its candidates.",
        )
        columns = ("direction", "queries", "Hit@1", "MRR", "dominant", "share", "of", "query first")
        return Table(columns, tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """Two panels of points with intervals."""
        panels = figure.subplots(1, 2, sharey=True)
        for axes, name, values in zip(panels, ("Hit@1 (%)", "MRR (%)"), ("hit", "reciprocal"), strict=True):
            scores = [_score([direction], values) for direction in self.directions]
            _draw_points(axes, self.directions, [(100 * s.value, 100 * s.low, 100 * s.high) for s in scores])
            axes.set(xlabel=name, xlim=(-4, 104))
        _name_queries(figure, self.directions)


@dataclass(frozen=True)
class Modalities(OmniAnalysis):
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
            lines = [(direction.name, line) for direction, line in zip(self.directions, shares, strict=True)]
            for side in ("target", "query"):
                lines += [(f"{side}: {kind}", line) for kind, line in zip(*self.matrix(side, depth), strict=True)]
            rows += [Row((label, *self._cells(line)), name) for label, line in lines]
        pools = [direction.pool.sum(axis=0) / direction.pool.sum() for direction in self.directions]
        share = np.mean(pools, axis=0)
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

    def draw(self, figure: Any) -> None:
        """Four matrices: first ten and first, by target and by query."""
        panels = figure.subplots(2, 2, sharey=True)
        columns = [KINDS.index(kind) for kind in self.kinds]
        for line, depth in zip(panels, (TOP, 1), strict=True):
            for axes, side in zip(line, ("target", "query"), strict=True):
                kinds, matrix = self.matrix(side, depth)
                draw_heat(axes, 100 * matrix[:, columns], kinds, self.kinds, ends=(0, 100), cmap="Blues")
                place = f"first {depth} results" if depth > 1 else "first result"
                axes.set_title(f"{place}, by {side}", fontsize=7)

    def _cells(self, shares: Array) -> list[Cell]:
        return [_share(float(shares[KINDS.index(kind)])) for kind in self.kinds]


@dataclass(frozen=True)
class Sensitivity(OmniAnalysis):
    """How far an instruction moves a query (Fig. 3)."""

    title = "Sensitivity to the instruction"
    what = "Cosine distance of a query without and with its instruction: mean and 95 % interval over queries."

    def table(self) -> Table:
        """A row for each direction."""
        return _distances(self.directions, "moved", "1 − cos(raw, instructed)")

    def draw(self, figure: Any) -> None:
        """Points with intervals."""
        axes = figure.subplots()
        _draw_points(axes, self.directions, [mean_distance(direction.moved) for direction in self.directions])
        axes.set(xlabel="1 − cos(raw query, instructed query)")
        right = max(axes.get_xlim()[1], 0.01)  # never a picture of rounding alone
        axes.set_xlim(-0.03 * right, right)
        _name_queries(figure, self.directions)


@dataclass(frozen=True)
class Shift(OmniAnalysis):
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

    def draw(self, figure: Any) -> None:
        """Queries down, targets across."""
        axes = figure.subplots()
        means = np.full((len(KINDS), len(KINDS)), np.nan)
        for direction in self.directions:
            means[KINDS.index(direction.query), KINDS.index(direction.target)] = direction.shift.mean()
        shown = [number for number, kind in enumerate(KINDS) if kind in self.kinds]
        means = means[np.ix_(shown, shown)]
        reach = max(float(np.nanmax(np.abs(means))), 0.005)
        signed = partial(rounded, digits=3, sign=True)
        image = draw_heat(axes, means, self.kinds, self.kinds, ends=(-reach, reach), cmap="PuOr", text=signed)
        axes.set_ylabel("query", fontsize=8)
        axes.set_title("target", fontsize=8)
        bar = figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label("Δ distance (− closer, + farther)", fontsize=7)
        bar.ax.tick_params(labelsize=SMALL_POINTS)
        bar.outline.set_visible(False)


@dataclass(frozen=True)
class Asymmetry(OmniAnalysis):
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
        for forth, back in self.pairs():
            cells: list[Cell] = [f"{forth.name} − {back.name}", len(forth)]
            for measure in ("hit", "reciprocal"):
                scores = [_score([direction], measure).value for direction in (forth, back)]
                test = difference([_part(forth, measure)], [_part(back, measure)])
                cells += [*map(_share, scores), Score(test.value, test.low, test.high)]
            rows.append(Row((*cells, test.p)))
        columns = ("pair", "tuples", "Hit@1 →", "Hit@1 ←", "Δ Hit@1", "MRR →", "MRR ←", "Δ MRR", "p")
        notes = ("Δ is X→Y − Y→X in points, with its paired 95 % interval; p is that of the MRR.",)
        return Table(columns, tuple(rows), notes)

    def draw(self, figure: Any) -> None:
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
class Distribution(OmniAnalysis):
    """The queries by modality and instruction, and the candidates by modality (Fig. 2)."""

    title = "What the data hold"
    what = "Left: queries by modality and by the modality that their instruction names. Right: candidates in the lists."

    @property
    def size(self) -> tuple[float, float]:
        return COLUMN, 2.4

    def table(self) -> Table:
        """A row for each direction."""
        rows = []
        for direction in self.directions:
            means = [float(direction.pool[:, KINDS.index(kind)].mean()) for kind in self.kinds]
            cells = [Exact(mean, rounded(mean)) for mean in means]
            length = _span(direction.pool.sum(axis=1))
            instruction = (direction.instruction or "none").strip()
            rows.append(Row((direction.name, len(direction), length, *cells, instruction)))
        columns = ("direction", "queries", "candidates", *self.kinds, "instruction")
        return Table(columns, tuple(rows), ("Candidates of each modality are means over queries.",))

    def draw(self, figure: Any) -> None:
        """Queries by modality and target, stacked; candidates by modality."""
        queries, candidates = figure.subplots(1, 2, sharey=True)
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
        handles = [legend_entry(color=COLOR[kind], marker="s") for kind in self.kinds]
        legend_below(figure, [f"to {kind}" for kind in self.kinds], handles)


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


def _part(direction: Direction, measure: str) -> Part:
    return Part("mean", measure, {measure: getattr(direction, measure)}, direction.observations)


def _score(directions: Sequence[Direction], measure: str) -> Score:
    """The mean of a measure over directions; items that they share move them together."""
    value = float(np.mean([getattr(direction, measure).mean() for direction in directions]))
    return Score(value, *interval([_part(direction, measure) for direction in directions]))


def mean_scores(directions: Sequence[Direction]) -> tuple[Score, Score]:
    """Hit@1 and MRR, as means over directions."""
    return _score(directions, "hit"), _score(directions, "reciprocal")


def mean_distance(values: Array) -> tuple[float, float, float]:
    """A mean of distances with Student's interval."""
    value = float(values.mean())
    half = quantile(len(values) - 1) * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else np.nan
    return value, value - half, value + half


def _distances(directions: Sequence[Direction], measure: str, column: str) -> Table:
    """The mean of a distance by direction, with its interval."""
    rows = []
    for direction in directions:
        value, low, high = mean_distance(getattr(direction, measure))
        ends = Interval(low, high, f"[{rounded(low, 3)}, {rounded(high, 3)}]")
        rows.append(Row((direction.name, len(direction), Exact(value, rounded(value, 3)), ends)))
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


def whose(direction: Direction, kind: Modality) -> str:
    """Whether a modality is that of the query, of the target, or another."""
    return {direction.query: "query's", direction.target: "target's"}.get(kind, "another")


def _share(value: float) -> Score:
    return Score(value, np.nan, np.nan)


def _sizes(directions: Sequence[Direction]) -> str:
    """The numbers of queries of a direction, and of candidates of a query."""
    candidates = np.concatenate([direction.pool.sum(axis=1) for direction in directions])
    queries = _span(np.array([len(direction) for direction in directions]))
    return f"n\u00a0=\u00a0{queries} queries a direction, {_span(candidates)} candidates each"


def _span(counts: Array) -> str:
    """The least and the largest of some counts, or the only one: 40–60, 50."""
    return f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()}–{counts.max()}"


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


def _name_queries(figure: Any, directions: Sequence[Direction]) -> None:
    """A legend of the modalities of queries."""
    kinds = dict.fromkeys(direction.query for direction in directions)
    handles = [legend_entry(color=COLOR[kind], marker=MARKER[kind], lw=1.2) for kind in kinds]
    legend_below(figure, [f"{kind} query" for kind in kinds], handles)
