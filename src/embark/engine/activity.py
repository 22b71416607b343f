"""What a run is doing: how far each stage is, how busy the device was, and what it waited for.

A run's threads count what they did and mark where they wait; a terminal shows it live, a log gets a line every half
minute:

    with Activity("model 2 of 3, org/model") as activity:
        activity.stage("embed").add(total=480_000)
        with activity.waiting("decode"):
            batch = next(batches)
        with activity.busy():
            vectors = encoder.embed(batch)
        activity.stage("embed").add(done=len(batch), left=120.0)
        activity.log("a score")
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from types import TracebackType
from typing import Literal, TypeAlias, get_args

from embark.engine.progress import DISPLAY, FETCHES, Counter, Stage, log, on_terminal, stderr_is_open
from embark.escape import terminal
from embark.threads import repeating

LINE_SECONDS = 30.0  # between lines where there is no terminal
SHORT = 2.0  # seconds for which a run shows nothing
WORTH_NAMING = 0.05  # share of the time for which the device waits
UNITS = {"fetch": "bytes", "read": "tasks", "embed": "items", "write": "bytes", "score": "tasks"}  # in their order

# Of several waits at once, the first in this order is the one that holds the device back: a thread that waits for
# "reading" waits for a download, if there is one; one that waits for the "device" does so while others decode for it.
Wait: TypeAlias = Literal["prepare", "decode", "disk", "download", "reading", "device"]
WAITS: tuple[Wait, ...] = get_args(Wait)


class Activity(AbstractContextManager["Activity"]):
    """The stages of a run and the use of its device; shown from `with` on, unless `show` is false.

    All methods may be called from any thread, and cost a few microseconds. `title` may be set anew, for the next model.
    """

    def __init__(self, title: str = "", show: bool = True) -> None:
        self.title = title
        self.show = show
        self._stages: dict[str, Stage] = {}
        self._lock = Lock()
        self._start = self._settled = time.monotonic()
        self._lanes = 0  # that are in the encoder now
        self._waiting: Tally[Wait] = Tally()  # how many threads wait now
        self._busy = Counter()  # seconds in which a lane was in the encoder
        self._idle = {reason: Counter() for reason in WAITS}  # seconds in which none was, and what was waited for
        self._delay = ""  # the item that is waited for longer than usual
        self._shown = ExitStack()

    @property
    def title(self) -> str:
        """The heading: which of several models it is."""
        return self._title

    @title.setter
    def title(self, title: str) -> None:
        self._title = terminal(title)

    def stage(self, name: str) -> Stage:
        """A stage, which begins when it is first asked for: fetch, read, embed, write, score."""
        with self._lock:
            return self._stages.setdefault(name, Stage(name, UNITS.get(name, "items")))

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A block in which the device works, for one lane."""
        self._settle(lanes=1)
        try:
            yield
        finally:
            self._settle(lanes=-1)

    @contextmanager
    def waiting(self, reason: Wait) -> Iterator[None]:
        """A block in which a thread does nothing but wait for another stage."""
        self._settle(reason, 1)
        try:
            yield
        finally:
            self._settle(reason, -1)

    def delayed_by(self, item: str) -> None:
        """Show the item that is waited for longer than usual, and for how long; "" for none."""
        self._delay = terminal(item)

    def worked(self, seconds: float) -> None:
        """Count seconds in which the device worked elsewhere: those of copies on other machines, by their number."""
        self._busy.add(seconds)

    def log(self, text: str) -> None:
        """Print a line above the display or into the log, unless the run is silent."""
        if self.show:
            log(text)

    def busy_share(self) -> float:
        """The share of the last half minute in which at least one lane was in the encoder."""
        self._settle()
        return min(1.0, self._busy.rate())

    def idle_shares(self) -> dict[Wait, float]:
        """The shares of the last half minute in which no lane was in the encoder, by what was waited for."""
        self._settle()
        return {reason: min(1.0, clock.rate()) for reason, clock in self._idle.items()}

    def stages(self) -> Sequence[Stage]:
        """The stages that have work, in their order; none in the first seconds."""
        if time.monotonic() - self._start < SHORT:
            return ()
        with self._lock:
            order = sorted(self._stages.values(), key=lambda stage: [*UNITS, stage.name].index(stage.name))
        if (read := self._stages.get("read")) and (embed := self._stages.get("embed")):
            embed.grows = read.done < read.total  # tasks that are not read yet have items, too
        return [stage for stage in order if stage.total or stage.done]

    def status(self) -> str:
        """How busy the device was, and what it waited for most."""
        if not self.stages() or not (self._busy.value or any(clock.value for clock in self._idle.values())):
            return ""
        shares = self.idle_shares()
        reason = max(shares, key=shares.__getitem__)
        waits = f", waiting for: {reason} ({percent(shares[reason])})" if shares[reason] >= WORTH_NAMING else ""
        delay = f", {self._delay}" if self._delay else ""
        return f"device busy {percent(self.busy_share())}{waits}{delay}"

    def line(self) -> str:
        """The whole state in one line, for a log; the embedding comes first."""
        stages = sorted(self.stages(), key=lambda stage: stage.name != "embed")
        texts = [f"{stage.name} {stage.count() if stage.unit == 'tasks' else stage}" for stage in stages]
        title = f"{self.title}: " if self.title else ""
        return f"{title}{' · '.join(filter(None, (*texts, self.status())))}"

    def _settle(self, reason: Wait | None = None, threads: int = 0, lanes: int = 0) -> None:
        """Count the time since the last change for what it was spent on; then change who waits and works."""
        with self._lock:
            now = time.monotonic()
            elapsed = now - self._settled
            self._settled = now
            cause = next((wait for wait in WAITS if self._waiting[wait]), None)
            if self._lanes:
                self._busy.add(elapsed)
            elif cause:
                self._idle[cause].add(elapsed)
            self._lanes += lanes
            if reason:
                self._waiting[reason] += threads

    def __enter__(self) -> Activity:
        if self.show and stderr_is_open():
            fetch = self.stage("fetch")
            FETCHES.append(fetch)
            self._shown.callback(FETCHES.remove, fetch)
            lines = repeating("embark-progress", LINE_SECONDS, self._write_line)
            self._shown.enter_context(DISPLAY.showing(self) if on_terminal() else lines)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def _write_line(self) -> None:
        if self.stages():
            log(self.line())


class _Silent(Activity):
    """For work that nobody watches: it counts nothing."""

    def __init__(self) -> None:
        super().__init__(show=False)
        self._nothing = _SilentStage("")

    def stage(self, name: str) -> Stage:
        return self._nothing

    def delayed_by(self, item: str) -> None:
        pass

    def _settle(self, reason: Wait | None = None, threads: int = 0, lanes: int = 0) -> None:
        pass


class _SilentStage(Stage):
    def add(self, done: int = 0, total: int = 0, left: float | None = None) -> None:
        pass


SILENT: Activity = _Silent()  # the default where an activity is optional


def percent(share: float) -> str:
    """A share as people write it: 71 %."""
    return f"{100 * share:.0f} %"
