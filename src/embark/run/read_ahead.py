"""Reading ahead: while some tasks are embedded and scored, threads download and read the next ones.

Downloads go ahead of reading, reading ahead of embedding. Tasks that were read and are not released yet hold a bounded
number of bytes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from embark.planning import Count, Demand
from embark.results import TaskResult
from embark.threads import DaemonThreads
from embark.types import Task

READERS = 2  # tasks read at once: much of it is Python, of which one thread runs at a time
WAIT_SECONDS = 0.5  # seconds to wait for the next task where later ones are ready: in order, runs are alike
WAVE = 250_000  # items of tasks that are taken together: the next scores come soon, and batches are full


@dataclass(frozen=True, eq=False)
class Opened:
    """A task that was read: its demands, or the result on disk that stands, or the error that it met.

    `counts` of its parts (split and subset) come with its first plan. `first` is false where stored vectors were found
    damaged, and it is embedded once more.
    """

    task: Task
    content: tuple[Demand, ...] | TaskResult | Exception
    bytes: int = 0
    outdated: TaskResult | None = None  # a result on disk that does not stand
    counts: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    first: bool = True

    @property
    def demands(self) -> tuple[Demand, ...]:
        """What it lacks and has of vectors, by part; nothing where there is nothing to score."""
        return self.content if isinstance(self.content, tuple) else ()

    @property
    def items(self) -> int:
        """The number of its items to have vectors of."""
        return sum(len(keys) for demand in self.demands for keys in demand.keys.values())


class ReadAhead(AbstractContextManager["ReadAhead"]):
    """The tasks, read in their order by threads.

    `read` opens a task. `fetch` downloads its data beforehand, of at most `fetch_ahead` tasks that are not released
    (None: as fast as it can); `waiting` is a block in which reading waits for it. `limit` is the number of bytes of
    tasks that were read and not released; one task may exceed it.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        read: Callable[[Task], Opened],
        limit: int,
        fetch: Callable[[Task], Any] | None = None,
        fetch_ahead: int | None = None,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._waiting = waiting
        self._read = read
        self._limit = limit
        self._fetch = fetch
        self._fetch_ahead = fetch_ahead
        self._tasks = tasks
        numbers = range(len(tasks))
        self._unread = deque(numbers)
        self._unfetched = deque(numbers if fetch else ())
        self._fetched: dict[int, Future[Any]] = {number: Future() for number in self._unfetched}
        self._order = list(numbers)  # tasks that were not taken
        self._ready: dict[int, Opened] = {}
        self._held = 0  # bytes
        self._unreleased = 0  # tasks whose data was downloaded, or is now
        self._closed = False
        self._error: BaseException | None = None  # that ends the run, as an exit does
        self._changed = threading.Condition()
        self._threads = DaemonThreads(READERS + bool(fetch), "embark-read")

    def __enter__(self) -> ReadAhead:
        for loop in [self._read_all] * READERS + [self._fetch_all] * bool(self._fetch):
            self._threads.submit(loop)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._threads.__exit__(kind, error or StopIteration(), trace)  # a download may take long: nobody waits for it

    def take(self, until: Callable[[], bool] = lambda: False) -> list[Opened]:
        """The tasks that were read by now, at least one of them, and no more than a wave; none when all were taken, or
        when there is something else to do first (`until`, which is looked at after `wake`).
        """
        with self._changed:
            self._wait_for(lambda: bool(self._ready) or until())
            self._wait_for(lambda: self._order[0] in self._ready or until(), WAIT_SECONDS)
            taken: list[Opened] = []
            if until():
                return taken
            for number in list(self._order):
                if opened := self._ready.get(number):
                    if taken and sum(other.items for other in (*taken, opened)) > WAVE:
                        break
                    taken.append(self._ready.pop(number))
                    self._order.remove(number)
                elif taken:
                    break
            return taken

    def wake(self) -> None:
        """Have `take` look at its condition."""
        with self._changed:
            self._changed.notify_all()

    def _wait_for(self, condition: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait until the condition holds, or all tasks were taken."""
        self._changed.wait_for(lambda: self._error is not None or not self._order or condition(), seconds)
        if self._error is not None:
            raise self._error

    def release(self, opened: Opened) -> None:
        """The data of a task is not needed any more: others may be read in its place."""
        with self._changed:
            self._unreleased -= 1
            self._held -= opened.bytes
            self._changed.notify_all()

    def _next(self) -> int | None:
        """The next task to read, when there is room for it; None when there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._unread or self._may_read())
            if self._closed or not self._unread:
                return None
            return self._unread.popleft()

    def _read_all(self) -> None:
        while (number := self._next()) is not None:
            task = self._tasks[number]
            try:
                if future := self._fetched.get(number):
                    with self._waiting():
                        future.exception()  # if there is one, reading tells better what is wrong
                opened = self._read(task)
            except Exception as error:
                opened = Opened(task, error)
            except BaseException as error:  # nobody would ever take this task
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                raise
            with self._changed:
                self._held += opened.bytes
                self._ready[number] = opened
                self._changed.notify_all()
            del opened  # a waiting thread holds nothing of what it read

    def _fetch_all(self) -> None:
        assert self._fetch is not None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or not self._unfetched or self._may_fetch())
                if self._closed or not self._unfetched:
                    return
                number = self._unfetched.popleft()
                self._unreleased += 1
            try:
                self._fetched[number].set_result(self._fetch(self._tasks[number]))
            except BaseException as error:  # reading waits for it, whatever it was
                self._fetched[number].set_exception(error)

    def _may_read(self) -> bool:
        alone = len(self._order) == len(self._unread)  # nothing that was read, or is read now, waits to be taken
        return self._held < self._limit or (alone and not self._held)

    def _may_fetch(self) -> bool:
        return self._fetch_ahead is None or self._unreleased < self._fetch_ahead
