"""A writer thread: vectors go to disk and are committed while the encoder works on the next batch."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from types import TracebackType

from embark.store import Writer
from embark.types import Array

WAITING = 1  # batches that may wait for the disk: a kill loses them, and one keeps it busy


class Sink:
    """Takes (keys, vectors); whatever waits is committed together. The writer's errors come out of `put`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._queue: queue.Queue[tuple[Array, Array | Sequence[Array]] | None] = queue.Queue(WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="embark-writer", daemon=True)
        self._thread.start()

    def put(self, keys: Array, vectors: Array | Sequence[Array]) -> None:
        """Hand a batch over; returns at once unless the disk is far behind."""
        self._raise()
        self._queue.put((keys, vectors))

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        open_ = True
        while open_:
            batches = [self._queue.get()]
            while not self._queue.empty():
                batches.append(self._queue.get())
            open_ = None not in batches
            if self._error is not None:
                continue  # keep emptying the queue, so that nobody waits for a dead disk
            try:
                for batch in batches:
                    if batch is not None:
                        self._writer.add(*batch)
                self._writer.commit()
            except BaseException as error:
                self._error = error

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join()
        if error is None:
            self._raise()
