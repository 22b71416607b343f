"""A live module scored between two steps of its training: in memory, and without a trace in the module.

Every step is another model, so no vector goes to the store and no score to the results folder.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np

from embark.catalogue import listed
from embark.engine.batching.tuning import Tuning
from embark.engine.report import EmbeddingReport
from embark.models.adapt import encoder_of
from embark.models.encoder import Encoder
from embark.planning import Demand
from embark.run.embedded_task import item_columns
from embark.run.workbench import Workbench, readable_items
from embark.settings import Settings
from embark.stats.intervals import NO_SPREAD, combined_interval, quantile, two_sided, wider
from embark.stats.paired import Difference, difference
from embark.stats.shared import Evidence, ItemNumbers, Observations, Part, interval, interval_of, scale_of
from embark.stats.statistics import pushes
from embark.store import MissingVectors, Space, Writer
from embark.tables import Exact, Interval, Note, Noted, Row, Score, Table, p_value, signed_ends, signed_points
from embark.types import Array, EmbarkError, ModelCard, Scores, Task

MEAN = "mean"  # the name of the mean over tasks, where there are several
LIVE = "live"  # the revision of a model that changes from step to step

Parts = Mapping[str, Sequence[Part]]  # by task
ToEncoder = Encoder | Callable[[Any], Encoder]


@dataclass(frozen=True)
class Point:
    """The score of a task at a step, and its difference to the last step that was scored, on the same items."""

    task: str
    score: float
    low: float
    high: float
    change: Difference | None = None

    @property
    def significant(self) -> bool:
        """Whether the change is more than chance would make."""
        return self.change is not None and not self.change.low <= 0 <= self.change.high


@dataclass(frozen=True)
class Measurement(Noted):
    """The scores of a module at one step of its training: one point a task and, of several, that of their mean."""

    step: int
    points: tuple[Point, ...]
    seconds: float

    @property
    def score(self) -> float:
        """The mean over the tasks."""
        return self.points[-1].score

    def metrics(self, prefix: str = "embark/") -> dict[str, float]:
        """Numbers by name, as loggers take them: scores, the ends of their intervals, changes since the last step."""
        numbers: dict[str, float] = {}
        for point in self.points:
            name = f"{prefix}{point.task}"
            numbers |= {name: point.score, f"{name}/low": point.low, f"{name}/high": point.high}
            if point.change is not None:
                numbers[f"{name}/change"] = point.change.value
        return numbers

    def table(self) -> Table:
        """One row per task: its score, and the change since the last step."""
        return points_table([self])


def points_table(measurements: Sequence[Measurement]) -> Table:
    """One row per step and task."""
    rows = [
        Row((Exact(m.step, str(m.step)), point.task, Score(point.score, point.low, point.high), *_cells(point)))
        for m in measurements
        for point in m.points
    ]
    notes = (
        Note(
            "change: since the last step that was scored, on the same items; p-values are not corrected.",
            column="change",
        ),
    )
    return Table(("step", "task", "score", "change", "95 %", "p"), tuple(rows), notes)


def _cells(point: Point) -> tuple[Exact | None, Interval | None, Exact | None]:
    if point.change is None:
        return None, None, None
    value, low, high, p = point.change
    return signed_points(value), signed_ends(low, high), p_value(p)


class LiveScoring:
    """Fixed tasks, read and hashed once, on which the same module is scored again and again."""

    def __init__(self, tasks: Sequence[Task], encoder: ToEncoder | None, settings: Settings, batch_size: int | None):
        self.tasks = tasks
        self._to_encoder = encoder
        self._bench = _LiveWorkbench(settings, batch_size, show_progress=False)
        self._module: Any = None
        self._encoder: Encoder | None = None
        self._demands: list[Demand] = []
        self._notes: tuple[str, ...] = ()
        self._numbers = ItemNumbers()
        self._observations: dict[tuple[str, str, str, bytes], Observations] = {}
        self._last: Parts = {}  # of the last measurement

    def measure(self, module: Any, step: int) -> Measurement:
        """Score the module as it is now, and leave it as it was."""
        with undisturbed(module):
            encoder = self._prepare(module)
            start = time.perf_counter()
            self._bench.forget()
            report = self._bench.embed(encoder, self._bench.plan(encoder, self._demands))
            parts, warnings = self._score(encoder, report)
        points = _points(parts, self._last)
        self._last = parts
        notes = tuple(dict.fromkeys((*self._notes, *report.warnings, *warnings)))
        return Measurement(step, points, time.perf_counter() - start, notes=notes)

    def _prepare(self, module: Any) -> Encoder:
        """The module's encoder; the tasks are read for it at first."""
        if self._encoder is None or module is not self._module:
            encoder = to_encoder(module, self._to_encoder)
            reasons = {task.name: self._bench.incompatibility(encoder.card, task) for task in self.tasks}
            self._notes = tuple(f"not applicable: {task}: {reason}" for task, reason in reasons.items() if reason)
            if len(self._notes) == len(self.tasks):
                raise EmbarkError(f"The model can do none of these tasks: {listed(self._notes)}.")
            tasks = [task for task in self.tasks if not reasons[task.name]]
            self._demands = [demand for task in tasks for demand in self._bench.demands(task, encoder)]
            self._module = module
            self._encoder = encoder
        return self._encoder

    def _score(self, encoder: Encoder, report: EmbeddingReport) -> tuple[Parts, list[str]]:
        parts: dict[str, list[Part]] = {}
        warnings: list[str] = []
        for demand in self._demands:
            demand = readable_items(demand, report)
            scores = self._bench.score(encoder, demand)
            part = Part(scores.statistic, scores.main, scores.outcomes, self._observed(demand, scores))
            parts.setdefault(demand.task.name, []).append(part)
            warnings += [f"{demand.task.name}: {text}" for text in (*demand.data.skipped, *scores.warnings)]
        return parts, warnings

    def _observed(self, demand: Demand, scores: Scores) -> Observations:
        """The items of the outcomes; hashed once, for every step has the same."""
        rows = (demand.task.name, demand.split, demand.subset, scores.rows.tobytes())
        if rows not in self._observations:
            items = item_columns(demand.data.sides, demand.data.truth, scores)
            self._observations[rows] = self._numbers.observations(demand.task.source.id, items)
        return self._observations[rows]


def to_encoder(module: Any, encoder: ToEncoder | None = None) -> Encoder:
    """The encoder of a module: the one that was made for it, or by it; those of known libraries need none."""
    given_encoder = encoder(module) if callable(encoder) and not hasattr(encoder, "card") else encoder
    own = encoder_of(module if given_encoder is None else given_encoder, LIVE)
    if own is not None:
        return own
    if given_encoder is not None:
        kind = type(given_encoder).__name__
        raise EmbarkError(f"encoder=… gave a {kind}, which is no encoder: return embark.encoder(text=…, image=…).")
    raise EmbarkError(
        f"A {type(module).__name__} embeds nothing by itself. Give the monitor an encoder of it: "
        "encoder=lambda module: embark.encoder(text=…, image=…, revision='live')."
    )


# ── a module as it was ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def undisturbed(module: Any) -> Iterator[None]:
    """A block in which a module is in evaluation mode, without gradients; its training flags and all random states are
    as before after it.
    """
    torch = sys.modules.get("torch")
    modules = list(module.modules()) if torch is not None and isinstance(module, torch.nn.Module) else []
    flags = [child.training for child in modules]
    states = _random_states(torch)
    try:
        if torch is None:
            yield
            return
        with torch.no_grad():  # not inference mode: tensors that a module keeps would be of no use to its training
            if modules:
                module.eval()
            yield
    finally:
        if modules:
            module.train(flags[0])  # by its own method, which may do more than set flags
        for child, flag in zip(modules, flags, strict=True):
            child.training = flag
        for restore, state in states:
            restore(state)


def _random_states(torch: Any) -> list[tuple[Callable[[Any], Any], Any]]:
    """The states of all random generators, each with the function that sets it."""
    states: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),  # noqa: NPY002
    ]
    if torch is not None:
        states.append((torch.set_rng_state, torch.get_rng_state()))
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
        if torch.backends.mps.is_available():
            states.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))
    return states


# ── vectors in memory ────────────────────────────────────────────────────────────────────────────────────────────────


class _LiveWorkbench(Workbench):
    """A workbench whose vectors are in memory, until the next step; it writes nothing."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.tuning = Tuning()

    def forget(self) -> None:
        """Drop all vectors."""
        self._spaces.clear()

    def space(self, card: ModelCard) -> Space:
        """The vectors of a model, in memory."""
        return self._spaces.setdefault(card.name, _MemorySpace())


class _MemorySpace(Space):
    """Vectors by key, as the store would return them."""

    def __init__(self) -> None:
        self.rows: dict[bytes, Array] = {}

    def refresh(self) -> None:
        """There are no other writers."""

    def has(self, keys: Array) -> Array:
        """Which of the keys are here."""
        return np.array([key in self.rows for key in keys.tolist()], bool)

    def read(self, keys: Array) -> Any:
        """The vectors of the keys: a matrix or, with several vectors an item, a list."""
        try:
            rows = [self.rows[key] for key in keys.tolist()]
        except KeyError:
            raise MissingVectors("Some items have no vector.") from None
        return np.stack(rows) if all(row.ndim == 1 for row in rows) else rows

    def discard(self, keys: Array) -> int:
        """Nothing in memory is damaged."""
        return 0

    def writer(self) -> Writer:
        """A writer into memory."""
        return _MemoryWriter(self)


class _MemoryWriter(Writer):
    def __init__(self, space: _MemorySpace) -> None:
        self._rows = space.rows

    def add(self, keys: Array, vectors: Array | Sequence[Array], dtype: Any = None, copy: bool = True) -> None:
        self._rows |= zip(keys.tolist(), vectors, strict=True)

    def commit(self) -> None:
        pass

    def close(self) -> None:
        pass


# ── points ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _points(parts: Parts, last: Parts) -> tuple[Point, ...]:
    points = []
    for task, of_task in parts.items():
        value = fmean(pushes(part.statistic, part.main, part.outcomes).value for part in of_task)
        change = difference(of_task, last[task]) if _same_items(of_task, last.get(task, ())) else None
        points.append(Point(task, value, *interval(of_task), change))
    return (*points, _mean(points, parts, last)) if len(points) > 1 else tuple(points)


def _same_items(parts: Sequence[Part], last: Sequence[Part]) -> bool:
    return len(parts) == len(last) and all(
        np.array_equal(now.observations.first, then.observations.first) for now, then in zip(parts, last, strict=True)
    )


def _mean(points: Sequence[Point], parts: Parts, last: Parts) -> Point:
    """The mean over tasks, and its change; items that several tasks share move them together."""
    evidence = Evidence(2)
    scales = []
    alike: dict[str, bool] = {}  # whether all items of a task have the same outcome now
    for model, by_task in enumerate((parts, last)):
        for task, of_task in by_task.items():
            for part in of_task:
                values = pushes(part.statistic, part.main, part.outcomes)
                evidence.add(task, part.observations, values, 1 / len(parts) / len(of_task), model)
                scales.append(values.scale)
                if model == 0:
                    alike[task] = alike.get(task, True) and values.uniform
    score = fmean(point.score for point in points)
    uncertainty = evidence.of(0)
    ends = combined_interval([point.score for point in points], [(point.low, point.high) for point in points])
    if uncertainty.variance >= NO_SPREAD**2:
        shared = interval_of(score, uncertainty, scale_of(scales))
        ends = wider(ends, shared) if any(alike.values()) else shared
    changes = [point.change for point in points if point.change is not None]
    if len(changes) < len(points):
        return Point(MEAN, score, *ends)
    value = fmean(change.value for change in changes)
    variance, freedom = evidence.between(0, 1)
    if variance < NO_SPREAD**2:
        low, high = combined_interval([c.value for c in changes], [(c.low, c.high) for c in changes])
        return Point(MEAN, score, *ends, Difference(value, low, high, max(change.p for change in changes)))
    error = sqrt(variance)
    half = quantile(freedom) * error
    return Point(MEAN, score, *ends, Difference(value, value - half, value + half, two_sided(value / error, freedom)))
