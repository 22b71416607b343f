"""The cost of retrieval in production: score, bytes, build time and speed of search indexes over stored vectors.

Times are of this machine, with nothing else running on it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from embark.catalogue import check_name, group_values
from embark.engine.progress import Advance, progress
from embark.evaluators.retrieval import evaluate_lists
from embark.evaluators.similarity import as_float32
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.models import Models
from embark.settings import cores
from embark.stats.paired import difference
from embark.stats.shared import Part
from embark.studies.analysis import Analysis
from embark.studies.pareto import on_front
from embark.studies.plotting import SMALL_POINTS, color, legend_below, log_axis
from embark.studies.search_indexes import BUILD_EXPANSION, CONNECTIVITY, METHODS, Built, IndexCorpus, Method, Search
from embark.studies.stored_tasks import SharedArguments, one_stored_task
from embark.studies.sweep import score_parts
from embark.tables import Exact, Interval, Row, Score, Table, footnoted, points, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, EmbarkError, Qrels, Scores

FEWEST_DOCUMENTS = 10  # documents that a search returns at least, whatever the measure looks at
RISE = 3  # points between an interval and the name above it
SHORTEST = 0.02  # seconds that a measurement takes at least; quick searches are repeated
POINT_MARKERS = ("o", "s", "^", "D", "v")
REBUILD_SECONDS = 5.0  # seconds of building, after which an index is not built again to time it


class Timing(NamedTuple):
    """The median of several measurements, the least and the largest."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class IndexPoint:
    """One way to search: its score, the difference from exact search, the share of the exact results that it finds,
    the bytes of a document, the seconds that building took, and the queries in a second.
    """

    kind: str
    setting: str
    name: str
    score: Score
    difference: Score | None
    overlap: float
    bytes: float
    build: Timing
    speed: Timing


@dataclass(frozen=True)
class IndexCurve:
    """All ways to search one task's documents by one model's vectors."""

    task: Embedded
    queries: int
    documents: int
    points: tuple[IndexPoint, ...]

    @property
    def label(self) -> str:
        """The model, the task and their sizes."""
        sizes = f"{self.queries:,} queries, {self.documents:,} documents of {self.task.dim} dimensions"
        return f"{short(self.task.model)} · {self.task.task.name}: {self.task.task.metric}, {sizes}"


@dataclass(frozen=True)
class SearchCosts(Analysis):
    """The costs of search indexes, and the scores that they lose."""

    curves: tuple[IndexCurve, ...]
    threads: int
    repeats: int
    depth: int  # documents that a search returns

    @property
    def title(self) -> str:
        return "What a search costs, and what it finds"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 0.7 + 3.3 * len(self.curves)

    def table(self) -> Table:
        """One line per way to search."""
        rows = []
        for curve in self.curves:
            for point in curve.points:
                build, speed = point.build, point.speed
                cells = (
                    point.name,
                    round(point.bytes),
                    point.score,
                    point.difference,
                    points(point.overlap),
                    Exact(build.middle, "<0.001" if build.middle < 0.001 else f"{build.middle:,.3f}"),
                    Exact(speed.middle, f"{speed.middle:,.0f}"),
                    Interval(speed.low, speed.high, f"{speed.low:,.0f} to {speed.high:,.0f}"),
                )
                rows.append(Row(cells, curve.label))
        columns = (
            "index", "bytes a vector", "score", "difference", "of exact (%)", "build (s)", "queries a second", "range",
        )  # fmt: skip
        notes = (
            f"All queries at once, {self.depth} documents each, on {self.threads} threads of this machine; the median "
            f"and range of {self.repeats} repeats. Score and difference have 95 % intervals over queries.",
            f"of exact: how many of the {self.depth} that exact search returns are among those returned.",
            "int8: a scale a dimension; binary: signs, by Hamming distance; re-scored: the best of them by full "
            "vectors, which have to be kept, too, in memory or on disk (not in the bytes).",
            f"graph: HNSW of usearch, {CONNECTIVITY} neighbors, built with {BUILD_EXPANSION} candidates, searched with "
            "as many as the name says; its bytes are those of the index as it is saved, with its vectors.",
        )
        task_notes = dict.fromkeys(note for curve in self.curves for note in curve.task.notes)
        return footnoted(Table(columns, tuple(rows), (*notes, *task_notes), models="rows"))

    def draw(self, figure: Any) -> None:
        """Score against speed and against size, with intervals; a stair joins what nothing else beats in both."""
        panels = figure.subplots(len(self.curves), 2, sharey="row", squeeze=False)
        for (by_speed, by_size), curve in zip(panels, self.curves, strict=True):
            speed, slowest, fastest = np.array([point.speed for point in curve.points]).T
            size = np.array([point.bytes for point in curve.points])
            spread = np.array([speed - slowest, fastest - speed])
            _draw_panel(by_speed, curve.points, speed, spread, -speed)
            _draw_panel(by_size, curve.points, size, None, size)
            bottom, top = by_size.get_ylim()
            by_size.set_ylim(bottom, top + 0.2 * (top - bottom))  # room for names
            _name_settings(by_speed, curve.points, speed)
            _name_settings(by_size, curve.points, size)
            by_speed.set(ylabel=f"{curve.task.task.metric} (%), 95 % intervals")
            by_speed.set_xlabel(f"queries a second ({self.threads} threads,\nrange of {self.repeats} repeats)")
            by_size.set_xlabel("bytes a vector")
            by_speed.set_title(curve.label, fontsize=7, color="#555555", loc="left")
        handles, labels = panels[0][0].get_legend_handles_labels()
        legend_below(figure, labels, handles)


def index(
    model: Models, tasks: Tasks, *, repeats: int = 5, threads: int | None = None, **shared: Unpack[SharedArguments]
) -> SearchCosts:
    """Measure search indexes over one retrieval task's stored vectors: score, bytes, build time and queries a second.

    `repeats` are measurements of each time, `threads` those that build and search (default: all cores). `shared`:
    protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    if repeats < 1:
        raise EmbarkError(f"A time is measured at least once, not {repeats} times.")
    if threads is not None and threads < 1:
        raise EmbarkError(f"At least one thread builds and searches, not {threads}.")
    return indexed(one_stored_task(model, tasks, **shared), repeats, threads, shared.get("show_progress", True))


def indexed(
    tasks: Sequence[Embedded], repeats: int = 5, threads: int | None = None, show_progress: bool = False
) -> SearchCosts:
    """The costs of searching tasks with their vectors."""
    threads = threads or cores()
    depth = max(map(_depth, tasks))
    with progress("indexes", len(METHODS) * len(tasks), show_progress, "kinds") as advance:
        curves = tuple(_curve(task, depth, repeats, threads, advance) for task in tasks)
    return SearchCosts(curves, threads, repeats, depth)


def _depth(task: Embedded) -> int:
    """The documents that a search has to return for the main measure; two more where some are removed."""
    if task.task.evaluator != "retrieval" or task.parts[0].params.get("judged_only"):
        raise EmbarkError(
            f"{task.task.name} does not search a corpus ('{task.task.evaluator}'): name a retrieval task."
        )
    similarity = str(task.parts[0].params.get("similarity", "cosine"))
    check_name("similarity that an index can have", similarity, ("cosine", "dot"))
    cutoff = task.task.metric.rpartition("_at_")[2]
    return max(FEWEST_DOCUMENTS, int(cutoff) if cutoff.isdigit() else FEWEST_DOCUMENTS) + 2 * bool(
        task.parts[0].params.get("skip_first") or task.parts[0].params.get("ignore_identical_ids")
    )


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _curve(task: Embedded, depth: int, repeats: int, threads: int, advance: Advance) -> IndexCurve:
    """Every index over the vectors of a task."""
    queries, documents = _vectors(task)
    exact: list[Array] = []
    exact_parts: list[Part] = []
    points: list[IndexPoint] = []
    count = sum(len(corpus.vectors) for corpus in documents)
    for method in METHODS:
        built, seconds = _timed_build(method, documents, threads, repeats)
        for setting in built[0].searches:
            searches = [index.searches[setting] for index in built]
            ranked = [search(vectors, depth) for search, vectors in zip(searches, queries, strict=True)]
            scored = score_parts(task, _scores(task, ranked))
            change = Score(*difference(scored.parts, exact_parts)[:3]) if exact_parts else None
            exact = exact or ranked
            exact_parts = exact_parts or scored.parts
            name = f"{method.name}, {setting}{method.unit}" if setting else method.name
            bytes = sum(index.bytes for index in built) / count
            speed = _speed(searches, queries, depth, repeats)
            measures = (replace(scored.score, marks=()), change, _overlap(ranked, exact), bytes, seconds, speed)
            points.append(IndexPoint(method.name, setting, name, *measures))
        advance(1)
    return IndexCurve(task, sum(map(len, queries)), count, tuple(points))


def _vectors(task: Embedded) -> tuple[list[Array], list[IndexCorpus]]:
    """By part, the queries and the documents in memory, of length one where they are compared by cosine."""
    cosine = task.parts[0].params.get("similarity", "cosine") == "cosine"

    def rows(part: EmbeddedPart, side: str) -> Array:
        vectors = as_float32(part.vectors[side][:])
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(length > 0, length, 1) if cosine else vectors

    queries = [rows(part, "query") for part in task.parts]
    return queries, [IndexCorpus(rows(part, "document"), _qrels(part).document_ids) for part in task.parts]


def _qrels(part: EmbeddedPart) -> Qrels:
    assert isinstance(part.truth, Qrels)
    return part.truth


def _scores(task: Embedded, ranked: Sequence[Array]) -> list[Scores]:
    """The scores of ranked lists, one for each part of a task."""
    return [
        evaluate_lists(_qrels(part), lists, len(part.vectors["document"]), part.params)
        for part, lists in zip(task.parts, ranked, strict=True)
    ]


def _overlap(ranked: Sequence[Array], exact: Sequence[Array]) -> float:
    """The share of the documents of exact search that are among those returned."""
    hits = 0
    for own, other in zip(ranked, exact, strict=True):
        row = np.arange(len(own))[:, None] * (1 + max(int(own.max()), int(other.max())))  # numbers apart by query
        hits += int(np.isin((other + row)[other >= 0], (own + row)[own >= 0]).sum())
    return hits / sum(int((other >= 0).sum()) for other in exact)


def _timed_build(
    method: Method, documents: Sequence[IndexCorpus], threads: int, repeats: int
) -> tuple[list[Built], Timing]:
    """An index for each part, and the seconds that they took together; slow ones are built once."""
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < REBUILD_SECONDS:
        start = time.perf_counter()
        built = [method.build(corpus, threads) for corpus in documents]
        seconds.append(time.perf_counter() - start)
    return built, _timing(seconds)


def _speed(searches: Sequence[Search], queries: Sequence[Array], depth: int, repeats: int) -> Timing:
    """Queries a second, in repeated measurements; quick searches are repeated within one."""
    rates: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        rounds = 0
        while not rounds or time.perf_counter() - start < SHORTEST:
            for search, vectors in zip(searches, queries, strict=True):
                search(vectors, depth)
            rounds += 1
        rates.append(rounds * sum(map(len, queries)) / (time.perf_counter() - start))
    return _timing(rates)


def _timing(values: Sequence[float]) -> Timing:
    return Timing(float(np.median(values)), min(values), max(values))


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_panel(axes: Any, points: Sequence[IndexPoint], x: Array, spread: Array | None, cost: Array) -> None:
    """Score against a number; a stair joins the points that none beats in both."""
    score, low, high = 100 * np.array([(point.score.value, point.score.low, point.score.high) for point in points]).T
    for number, method in enumerate(METHODS):
        rows = [row for row, point in enumerate(points) if point.kind == method.name]
        axes.errorbar(
            x[rows], score[rows], yerr=((score - low)[rows].clip(0), (high - score)[rows].clip(0)),
            xerr=None if spread is None else spread[:, rows].clip(0), fmt=POINT_MARKERS[number], ms=5,
            color=color(number), lw=0.7, capsize=1.5, label=f"{method.name} ({method.about})".removesuffix(" ()"),
        )  # fmt: skip
    log_axis(axes, x)
    front = np.flatnonzero(on_front(cost, score))
    front = front[np.argsort(x[front])]
    falls = cost[front[-1]] < cost[front[0]]
    axes.step(
        x[front], score[front], where="pre" if falls else "post", color="#888888", lw=0.8, zorder=0,
        label="none is better in both",
    )  # fmt: skip
    axes.margins(x=0.08, y=0.06)


def _name_settings(axes: Any, points: Sequence[IndexPoint], x: Array) -> None:
    """Settings above the intervals of their points, in their colors; those at one place together.

    One that would cover another, or an interval, is moved up.
    """
    from matplotlib.transforms import Bbox

    tints = {method.name: color(number) for number, method in enumerate(METHODS)}
    settings = group_values(((point.kind, x[row]), row) for row, point in enumerate(points) if point.setting)
    axes.figure.draw_without_rendering()  # from here on, limits are final
    ends = [[(x[row], 100 * end) for end in (p.score.low, p.score.high)] for row, p in enumerate(points)]
    taken = [Bbox(axes.transData.transform(bar)).padded(RISE) for bar in ends]
    for (kind, place), rows in sorted(settings.items(), key=lambda group: group[0][1]):
        text = axes.annotate(
            ", ".join(points[row].setting for row in rows),
            (place, 100 * max(points[row].score.high for row in rows)), (0, RISE), textcoords="offset points",
            fontsize=SMALL_POINTS, ha="center", va="bottom", color=tints[kind],
        )  # fmt: skip
        while any(text.get_window_extent().overlaps(box) for box in taken):
            text.xyann = (0, text.xyann[1] + RISE)
        taken.append(text.get_window_extent().padded(RISE))
