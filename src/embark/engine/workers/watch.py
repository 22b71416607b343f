"""Threads that prepare items, watched: an item whose preparation does not end is named, and its thread left behind.

A thread cannot be killed as a process can. Its item counts as unreadable, as that of a process that stalls, and another
thread does the rest of its work. Decoding is waited for, however long a film is, and named while it takes long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from math import inf
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from embark.engine.activity import SILENT, Activity
from embark.items.decoding import UnreadableMedia
from embark.planning import Need
from embark.settings import item_limits
from embark.threads import DaemonThreads
from embark.types import EmbarkError

TICK = 0.25  # seconds between looks at the threads while a result is waited for
NAMED_AFTER_SECONDS = 10.0  # seconds of one item after which the progress names it
MOST_STALLED = 8  # items that stall: each leaves a thread behind, which may keep a core busy, and hold memory

Stage: TypeAlias = Literal["decode", "prepare"]
Value = TypeVar("Value")
_of_thread = threading.local()  # `attempt`: what this thread does


class Stalled(EmbarkError):
    """The preparation of an encoder does not end, whatever the item."""


class Attempt:
    """What a thread does for a job: the items that it has in hand, since when, and in which stage.

    `left`: nobody waits for it any more. `bytes` are those of its prepared items, for whoever counts them.
    """

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.needs: Sequence[Need] = ()
        self.stage: Stage = "decode"
        self.since = inf
        self.left = False
        self.bytes = 0

    def begin(self, needs: Sequence[Need]) -> None:
        """Take items in hand, to decode them; none while it waits."""
        self.since = time.monotonic() if needs else inf  # first, so that no item has the time of the one before it
        self.stage = "decode"
        self.needs = needs

    def seconds(self) -> float:
        """How long these items have been in their stage."""
        return time.monotonic() - self.since


def begin_stage(stage: Stage) -> None:
    """Note that this thread comes to another stage of what it has in hand; nothing where nobody watches it."""
    attempt: Attempt | None = getattr(_of_thread, "attempt", None)
    if attempt is not None:
        attempt.stage = stage
        attempt.since = time.monotonic()


class Job(Generic[Value]):
    """Work on items that a thread does; `drop` is called with an attempt that is left behind."""

    def __init__(
        self, work: Callable[[Attempt], Value], drop: Callable[[Attempt], None] = lambda attempt: None
    ) -> None:
        self.work = work
        self.drop = drop
        self.attempt = Attempt()
        self.future: Future[Value] = Future()
        self.named = False  # whether the log says that its decoding takes long

    def run(self, attempt: Attempt) -> Value:
        """Do the work, in a thread."""
        attempt.thread = threading.current_thread()
        _of_thread.attempt = attempt
        try:
            return self.work(attempt)
        finally:
            del _of_thread.attempt
            attempt.begin(())


class Watch:
    """What is known of the items that stall, for all threads that prepare items of one call of the engine.

    `model` and `name` name the encoder and an item; `seconds` is the limit for the preparation of one.
    """

    def __init__(
        self, model: str, name: Callable[[Need], str], activity: Activity = SILENT, seconds: float | None = None
    ) -> None:
        self.model = model
        self.name = name
        self.activity = activity
        self.seconds = seconds or float(item_limits()["item_seconds"])
        self.stalled: dict[bytes, UnreadableMedia] = {}  # by key: items that are not tried again
        self.singly = False  # whether items are prepared one by one from now on: several together stalled
        self.finished = 0  # items prepared so far

    def threads(self, count: int) -> WatchedThreads:
        """So many threads."""
        return WatchedThreads(count, self)

    def prepare(self, prepare: Callable[[Need], Any], need: Need) -> Any:
        """The prepared value of one need, by a thread of its own, or the error that it stalls."""

        def work(attempt: Attempt) -> Any:
            if need.key in self.stalled:
                return self.stalled[need.key]
            attempt.begin([need])
            value = prepare(need)
            self.finished += 1
            return value

        with self.threads(1) as threads:
            return threads.result(threads.start(work))

    def words(self, needs: Sequence[Need]) -> str:
        """Items in words."""
        first = self.name(needs[0])
        return first if len(needs) == 1 else f"{len(needs):,} items ({first} and others)"

    def stall(self, needs: Sequence[Need], threads: int) -> None:
        """Note items whose preparation did not end; an error where that is no fault of the items."""
        stalls, limit = f"{self.model} stalls in prepare", f"took longer than {self.seconds:g} s"
        what = f"{stalls}: {self.words(needs)} {limit}"
        if len(needs) > 1:
            self.singly = True
            self.activity.log(f"{what}. They are prepared one by one from now on.")
            return
        advice = "EMBARK_ITEM_SECONDS raises the limit"
        self.stalled[needs[0].key] = UnreadableMedia(f"{stalls}: it {limit}; {advice}")
        self.activity.log(f"{what}. It counts as unreadable; {advice}.")
        count = len(self.stalled)
        if count >= MOST_STALLED or (not self.finished and count >= max(2, threads)):
            others = f", as did {count - 1} others" if count > 1 else ""
            raise Stalled(f"{what}{others}. Examine the model's prepare; {advice}.")


class WatchedThreads(DaemonThreads):
    """Daemon threads that do jobs, and leave behind what stalls."""

    def __init__(self, count: int, watch: Watch) -> None:
        super().__init__(count, "embark-prepare")
        self._count = count
        self._watch = watch
        self._jobs: set[Job[Any]] = set()  # whose results nobody has taken

    def __enter__(self) -> WatchedThreads:
        return self

    def start(
        self, work: Callable[[Attempt], Value], drop: Callable[[Attempt], None] = lambda attempt: None
    ) -> Job[Value]:
        """Have a thread do a job; `result` has what comes of it."""
        job = Job(work, drop)
        job.future = self.submit(job.run, job.attempt)
        self._jobs.add(job)
        return job

    def result(self, job: Job[Value]) -> Value:
        """The result of a job, when it is there; items that stall meanwhile are left out, and named."""
        activity = self._watch.activity
        try:
            while not job.future.done():
                with activity.waiting(job.attempt.stage):
                    wait([job.future], TICK)
                self._look(job)
        finally:
            activity.delayed_by("")
        self._jobs.discard(job)
        return job.future.result()

    def _look(self, awaited: Job[Any]) -> None:
        """Look at all threads: name what the awaited job waits for, and leave behind those that stall."""
        watch = self._watch
        for job in list(self._jobs):
            attempt = job.attempt
            needs = attempt.needs
            seconds = attempt.seconds()
            if job.future.done() or not needs or seconds < min(NAMED_AFTER_SECONDS, watch.seconds):
                continue
            if job is awaited:
                watch.activity.delayed_by(f"{attempt.stage} of {watch.words(needs)} has taken {seconds:.0f} s")
            if seconds < watch.seconds:
                continue
            if attempt.stage == "prepare":
                self._leave(job, attempt, needs)
            elif not job.named:
                job.named = True
                watch.activity.log(f"Decoding {watch.words(needs)} has taken {seconds:.0f} s; it is waited for.")

    def _leave(self, job: Job[Any], attempt: Attempt, needs: Sequence[Need]) -> None:
        """Leave a thread behind, and have another one do its job without the item that it stalls with."""
        assert attempt.thread is not None
        attempt.left = True
        job.drop(attempt)
        self.leave_behind(attempt.thread)
        self._watch.stall(needs, self._count)
        job.attempt = Attempt()
        job.future = self.submit(job.run, job.attempt)
