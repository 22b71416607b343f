"""A writer thread with group commit: vectors become durable together, while the encoder works on the next batches."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from embark.engine.activity import SILENT, Activity
from embark.store import Writer
from embark.types import Array

COMMIT_SECONDS = 2.0  # that a batch waits for others: few fsyncs for any disk, and what a kill loses is soon embedded
BYTES = 64 << 20  # of batches that wait no longer: in a larger write, an fsync would hardly cost less per vector
WAITING = 2 * BYTES  # bytes that may be in memory: while so many are written, as many gather; then `put` waits


class Sink(AbstractContextManager["Sink"]):
    """Writes batches of keys and vectors in a thread, and commits all that wait after `SECONDS` or `BYTES`.

    A kill loses what was put within that window, and what the disk was still writing. With `every_batch`, for vectors
    that cost money, `put` returns when its batch is durable. An error of the writer is raised by the next `put` or
    `flush`, or on leaving the `with` block, which commits what is left. Several threads may put.
    """

    def __init__(self, writer: Writer, activity: Activity = SILENT, every_batch: bool = False) -> None:
        self._writer = writer
        self._activity = activity
        self._every_batch = every_batch
        self._changed = threading.Condition()  # guards all that follows
        self._queue: list[tuple[Array, Array | Sequence[Array]]] = []
        self._queued = 0  # bytes
        self._oldest = math.inf  # when the first batch of the queue was put
        self._writing = 0  # bytes that are just being committed
        self._put = 0  # batches so far
        self._durable = 0  # batches so far
        self._urgent = 0  # batches so far that somebody waits for
        self._ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="embark-writer", daemon=True)
        self._thread.start()

    def put(self, keys: Array, vectors: Array | Sequence[Array]) -> None:
        """Hand a batch over; nobody may change its arrays after that. Returns at once unless the disk is far behind."""
        with self._changed:
            self._wait_for(lambda: self._queued + self._writing < WAITING)
            self._queue.append((keys, vectors))
            self._queued += keys.nbytes + sum(part.nbytes for part in _parts(vectors))
            self._oldest = min(self._oldest, time.monotonic())
            self._put += 1
            if len(self._queue) == 1 or self._queued >= BYTES:  # otherwise the thread knows when it is due
                self._changed.notify_all()
        if self._every_batch:
            self.flush()

    def flush(self) -> None:
        """Return as soon as everything that was put so far is durable."""
        with self._changed:
            put = self._urgent = self._put
            self._changed.notify_all()
            self._wait_for(lambda: self._durable >= put)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait for the thread; its error is raised here."""
        with self._activity.waiting("disk"):
            self._changed.wait_for(lambda: self._error is not None or condition())
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        """The thread: commits whenever it is due, until the sink is closed or the writer fails."""
        try:
            while self._commit_when_due():
                pass
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _commit_when_due(self) -> bool:
        """Wait until a commit is due, and make the batches of the queue durable; whether the sink is still open.

        A function of its own, so that the batches' memory is free before the next ones gather.
        """
        with self._changed:
            while (seconds := self._seconds_left()) > 0:
                self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
            batches, self._queue = self._queue, []
            self._writing, self._queued = self._queued, 0
            self._oldest = math.inf
            put = self._put
            ended = self._ended
        for keys, vectors in batches:
            self._writer.add(keys, vectors, copy=False)
        self._writer.commit()
        self._activity.stage("write").add(done=self._writing)
        with self._changed:
            self._writing = 0
            self._durable = put
            self._changed.notify_all()
        return not ended

    def _seconds_left(self) -> float:
        """Until the next commit is due."""
        if self._ended or self._urgent > self._durable or self._queued >= BYTES:
            return 0.0
        return self._oldest + COMMIT_SECONDS - time.monotonic()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()
        if error is None and self._error is not None:
            raise self._error


def _parts(vectors: Array | Sequence[Array]) -> Sequence[Array]:
    """The arrays of a batch: one matrix, or one an item."""
    return [vectors] if isinstance(vectors, np.ndarray) else vectors
