"""A writer thread: writes and commits vectors while the encoder works on the next batch."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager

from embark.engine.activity import SILENT, Activity
from embark.store import Writer
from embark.types import Array

WAITING = 1  # batches that may wait for the disk: one keeps it busy, and a kill loses no more than that


class Sink(AbstractContextManager["Sink"]):
    """Writes batches of keys and vectors in a thread; batches that wait are committed together.

    A writer's error is raised by the next `put`, or on leaving the `with` block.
    """

    def __init__(self, writer: Writer, activity: Activity = SILENT) -> None:
        self._writer = writer
        self._activity = activity
        self._queue: queue.Queue[tuple[Array, Array | Sequence[Array]] | None] = queue.Queue(WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="embark-writer", daemon=True)
        self._thread.start()

    def put(self, keys: Array, vectors: Array | Sequence[Array]) -> None:
        """Hand a batch over; returns at once unless the disk is far behind."""
        self._raise_error()
        with self._activity.waiting("disk"):
            self._queue.put((keys, vectors))

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        """The thread's loop; None in the queue ends it."""
        ended = False
        while not ended:
            batches = [self._queue.get()]
            while not self._queue.empty():
                batches.append(self._queue.get())
            ended = None in batches
            if self._error is not None:
                continue  # go on emptying the queue, or `put` would block for good
            try:
                for batch in batches:
                    if batch is not None:
                        self._writer.add(*batch)
                        self._activity.stage("write").add(done=sum(vector.nbytes for vector in batch[1]))
                self._writer.commit()
            except BaseException as error:
                self._error = error

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._activity.waiting("disk"):
            self._queue.put(None)
            self._thread.join()
        if error is None:
            self._raise_error()
