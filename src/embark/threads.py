"""Threads that work on what they are given, and that nobody has to wait for when a run is interrupted."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

GRACE = 0.3  # seconds for what runs to end after an error

Result = TypeVar("Result")


class DaemonThreads(AbstractContextManager["DaemonThreads"]):
    """A pool like `ThreadPoolExecutor`, but leaving its block by an error waits for nothing: what is queued is dropped,
    and what does not end soon is left behind, so that Ctrl-C ends a run at once.
    """

    def __init__(self, count: int, name: str = "embark") -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[..., Result], *args: Any) -> Future[Result]:
        """Have a thread call `work`; the future has what it returns or raises."""
        future: Future[Result] = Future()
        self._queue.put((future, partial(work, *args)))
        return future

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            future, work = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del job, future, work  # a waiting thread holds nothing of what it did

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        while error is not None:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                job[0].cancel()
        for _ in self._threads:
            self._queue.put(None)
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(None if error is None else max(0.0, end - time.monotonic()))
