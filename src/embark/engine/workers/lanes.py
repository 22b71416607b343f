"""Lanes: threads that each work on a batch, so that one moves data while another computes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Condition, Thread
from typing import Generic, TypeVar

Job = TypeVar("Job")

AHEAD = 1  # jobs that wait for a free lane
TICK = 0.2  # seconds between looks at Ctrl-C where waiting for a lock cannot be interrupted
GRACE = 1.0  # seconds for lanes to end after an error; the model's pass itself cannot be stopped


class Lanes(AbstractContextManager["Lanes[Job]"], Generic[Job]):
    """So many threads that do `work` on the jobs handed over; with one, whoever hands a job over does it.

    An error in a lane stops the others before their next job, and is raised by the next call or at the end of the
    `with` block. `surroundings` is the context in which a thread works.
    """

    def __init__(
        self, count: int, work: Callable[[Job], None], surroundings: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.count = count
        self.left = False  # whether threads may be at work that nobody waits for
        self._work = work
        self._surroundings = surroundings
        self._jobs: deque[Job] = deque()
        self._unfinished = 0
        self._stopped = False
        self._error: BaseException | None = None
        self._changed = Condition()
        # Daemons: a model that hangs does not keep the process from ending.
        self._threads = [Thread(target=self._run, name=f"embark-lane-{n}", daemon=True) for n in range(count)]
        for thread in self._threads if count > 1 else ():
            thread.start()

    @property
    def jobs_at_once(self) -> int:
        """How many jobs may be in memory: in the lanes, before them, and in the hands of whoever puts the next one."""
        return 1 if self.count == 1 else self.count + AHEAD + 1

    def put(self, job: Job, alone: bool = False) -> None:
        """Hand over a job; waits while the lanes are busy, and if `alone`, for all jobs before it and for itself."""
        if self.count == 1:
            self._work(job)
            return
        if alone:
            self.wait()
        with self._changed:
            self._wait_for(lambda: len(self._jobs) < AHEAD)
            self._jobs.append(job)
            self._unfinished += 1
            self._changed.notify_all()
        del job  # its memory is free when it is done
        if alone:
            self.wait()

    def wait(self) -> None:
        """Wait until all jobs are done."""
        with self._changed:
            self._wait_for(lambda: not self._unfinished)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        while self._error is None and not condition():
            self._changed.wait(TICK)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with self._surroundings():
                while self._take():
                    pass
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
                self._stopped = True
                self._changed.notify_all()

    def _take(self) -> bool:
        """Do the next job; False when there are none any more."""
        with self._changed:
            while not self._jobs and not self._stopped:
                self._changed.wait()
            if self._stopped:
                return False
            job = self._jobs.popleft()
            self._changed.notify_all()
        self._work(job)
        del job
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()
        return True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self.wait()
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            end = time.monotonic() + GRACE
            for thread in self._threads if self.count > 1 else ():
                thread.join(max(0.0, end - time.monotonic()))
            self.left = True
            self._work = lambda job: None  # it knows these lanes and all items: together they would stay
