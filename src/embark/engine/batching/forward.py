"""The forward pass over a batch: halved where memory does not suffice, its vectors checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from embark.engine.activity import SILENT, Activity
from embark.engine.batching.batches import Batch, BatchSize
from embark.engine.batching.check import InvalidVectors, check_vectors
from embark.engine.report import EmbeddingReport
from embark.halving import by_halves
from embark.models.device import free_device_memory
from embark.models.encoder import Encoder, Interrupted, UnreadableRows
from embark.planning import Need, keys_of, take
from embark.processes import NoWorkers, WorkerLost
from embark.types import Array

NO_MEMORY = ("out of memory", "allocate memory", "alloc_failed", "bad_alloc", "bad allocation")  # of torch, onnx…


class Turns:
    """Lets up to `most` passes run at once; one that must have the device's memory for itself runs alone."""

    def __init__(self, most: int = 1) -> None:
        self._most = most
        self._running = 0
        self._alone = 0  # passes that run alone, or wait for that
        self._changed = Condition()

    @contextmanager
    def turn(self, alone: bool) -> Iterator[None]:
        """A block that waits for its turn."""
        with self._changed:
            self._alone += alone
            self._changed.wait_for(
                lambda: not self._running if alone else self._running < self._most and not self._alone
            )
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._alone -= alone
                self._changed.notify_all()


_turns: WeakKeyDictionary[Encoder, Turns] = WeakKeyDictionary()
_turns_lock = Lock()


def turns_of(encoder: Encoder) -> Turns:
    """The turns of an encoder, which all who hand it batches share: two waves at once take no more of its memory."""
    most = encoder.capabilities.lanes
    with _turns_lock:
        try:
            return _turns.setdefault(encoder, Turns(most))
        except TypeError:  # an encoder of others that has no hash, or no weak references
            return Turns(most)


def forward(
    encoder: Encoder,
    batch: Batch,
    size: BatchSize,
    report: EmbeddingReport,
    name: Callable[[Need], str],
    turns: Turns,
    alone: bool,
    activity: Activity = SILENT,
) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
    """(needs, vectors) of the batch: all at once, or by halves of halves where memory does not suffice.

    Halves, and all if `alone`, are embedded while nothing else is. An item that does not fit even so is reported, and
    the others go on; so is one that no worker process survives.
    """

    def embed(rows: Sequence[int]) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
        whole = len(rows) == len(batch)
        part = batch if whole else batch.part(rows)
        return _embed(encoder, part, size, report, name, turns, alone or not whole, activity)

    if len(batch):
        yield from by_halves(range(len(batch)), embed, _Failed)


class _Failed(Exception):
    """Memory does not suffice for the items of a batch together, or their worker died."""


def _embed(
    encoder: Encoder,
    batch: Batch,
    size: BatchSize,
    report: EmbeddingReport,
    name: Callable[[Need], str],
    turns: Turns,
    alone: bool,
    activity: Activity,
) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
    """(needs, vectors) of the batch, all at once."""
    start = time.perf_counter()
    lost = ""
    try:
        with turns.turn(alone), activity.busy():
            vectors = encoder.embed(batch.values[:])  # of its own, to do with as it likes
    except Interrupted as cut:
        if cut.done:  # a provider has charged for them, so they are stored
            rows = sorted(cut.done)
            done = np.stack([cut.done[row] for row in rows])
            yield from _valid(encoder, take(batch.needs, np.array(rows)), done, report, name)
        raise
    except UnreadableRows as error:
        report.unreadable |= {batch.needs[row].key: reason for row, reason in error.rows.items()}
        rest = batch.part([row for row in range(len(batch)) if row not in error.rows])
        yield from forward(encoder, rest, size, report, name, turns, alone, activity)
        return
    except WorkerLost as error:
        lost = str(error)
    except NoWorkers:  # whatever kept them from starting, be it memory: smaller batches do not help
        raise
    except Exception as error:
        if not out_of_memory(error):
            raise
    else:
        size.record_time(size.cost(batch), time.perf_counter() - start)
        report.cost += int(batch.costs.sum())
        report.padded += batch.padded
        yield from _valid(encoder, batch.needs, vectors, report, name)
        return
    # Outside the handler, because the error holds all that the failed pass had put on the device.
    free_device_memory()
    if len(batch) == 1 and not alone and not lost:
        yield from _embed(encoder, batch, size, report, name, turns, True, activity)
    elif len(batch) == 1:
        need = batch.needs[0]
        if lost:
            report.unreadable[need.key] = f"the model cannot embed it: it {lost}"
        else:
            report.too_large[need.key] = f"{encoder.card.name} has not enough memory for one item: {name(need)}"
    else:
        if not lost:
            size.record_out_of_memory(size.cost(batch))
            report.batch_size = min(size.now, report.batch_size or size.now)
        raise _Failed


def _valid(
    encoder: Encoder, needs: Sequence[Need], vectors: Any, report: EmbeddingReport, name: Callable[[Need], str]
) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
    """Needs with their checked vectors, without the items that got an invalid one: these are reported."""
    try:
        stored = check_vectors(vectors, encoder.card, needs, name)
    except InvalidVectors as error:
        report.invalid |= dict.fromkeys(keys_of(take(needs, np.array(error.rows))).tolist(), error.problem)
        if valid := sorted(set(range(len(needs))) - set(error.rows)):
            valid_vectors = vectors[valid] if hasattr(vectors, "shape") else [vectors[row] for row in valid]
            yield from _valid(encoder, take(needs, np.array(valid)), valid_vectors, report, name)
        return
    yield needs, stored


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory did not suffice, of whatever library."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY)
