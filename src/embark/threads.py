"""Threads that work on what they are given, and that nobody has to wait for when a run is interrupted.

All threads of a process share its interpreter: how they take turns, and how often it looks for garbage, is set here.
"""

from __future__ import annotations

import gc
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

GRACE = 0.3  # seconds for what runs to end after an error
TURN = 0.0001  # seconds; Python's own 5 ms are long for a thread that has a device to keep busy
THRESHOLDS = (100_000, 50, 50)

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
            if threading.current_thread() not in self._threads:
                return

    def leave_behind(self, thread: threading.Thread) -> None:
        """Start another thread in place of one whose work does not end; nobody waits for that one any more, and it ends
        with its work.
        """
        place = self._threads.index(thread)
        self._threads[place] = threading.Thread(target=self._work, name=thread.name, daemon=True)
        self._threads[place].start()

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


def held_in_common(block: Callable[[], AbstractContextManager[None]]) -> Callable[[], AbstractContextManager[None]]:
    """The block, which the first of several threads enters and the last one leaves."""
    lock = threading.Lock()
    stack = ExitStack()
    inside = 0

    @wraps(block)
    @contextmanager
    def common() -> Iterator[None]:
        nonlocal inside
        with lock:
            if not inside:
                stack.enter_context(block())
            inside += 1
        try:
            yield
        finally:
            with lock:
                inside -= 1
                if not inside:
                    stack.close()

    return common


@contextmanager
def repeating(name: str, seconds: float, work: Callable[[], object]) -> Iterator[None]:
    """A block during which a thread of this name does the work every so many seconds."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            work()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@held_in_common
@contextmanager
def short_turns() -> Iterator[None]:
    """A block in which threads that compute give way to others more often than is usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@held_in_common
@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """A block in which objects that are there already are not looked at by the garbage collector, and others seldom:
    libraries have a million of them, and a run makes millions of small ones that need no collector.
    """
    usual = gc.get_threshold()
    freezes = not gc.get_freeze_count()  # what someone else has frozen stays so
    if freezes:
        gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        if freezes:
            gc.unfreeze()
