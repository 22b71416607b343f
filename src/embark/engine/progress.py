"""Progress of long work: one live display on a terminal, a line now and then elsewhere; nothing on standard output."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Protocol

from embark.escape import terminal

QUIET_SECONDS = 10.0  # between the lines of one piece of work where there is no terminal
WINDOW = 30.0  # seconds over which rates are taken
STEP = 1.0  # seconds between the samples of a rate
OVERDUE = 5.0  # seconds after the end that was told, from which on nobody knows the end
REFRESHES = 4  # of the display, a second
BAR = 20  # characters
SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


class Advance(Protocol):
    """Tells that `count` more are done, and how many seconds are `left`, if whoever calls it knows better than by the
    mean of what is done.
    """

    def __call__(self, count: int, left: float | None = None) -> None: ...


class Counter:
    """A growing number, and by how much it grew a second during the last half minute."""

    def __init__(self) -> None:
        self.value = 0.0
        self._samples = deque([(time.monotonic(), 0.0)])  # the first is the last one before the window
        self._lock = Lock()

    def add(self, amount: float) -> None:
        """Count so many more, from any thread."""
        now = time.monotonic()
        with self._lock:
            self.value += amount
            if now - self._samples[-1][0] >= STEP:
                self._samples.append((now, self.value))

    def rate(self) -> float:
        """How many more there were a second."""
        now = time.monotonic()
        with self._lock:
            while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW:
                self._samples.popleft()
            start, value = self._samples[0]
            return (self.value - value) / (now - start) if now > start else 0.0


class Stage:
    """Work of one kind: how many items, tasks or bytes are done, of how many (0: nobody knows), and how fast."""

    def __init__(self, name: str, unit: str = "items", total: int = 0) -> None:
        self.name = name
        self.unit = unit
        self.total = total
        self.grows = False  # whether more will be to do than is known
        self._done: Counter | None = None  # from the first call on: what was before does not slow it down
        self._end: float | None = None
        self._lock = Lock()

    def add(self, done: int = 0, total: int = 0, left: float | None = None) -> None:
        """Count more done, and more to do; `left`: the seconds that the others take, where the caller knows."""
        with self._lock:
            self.total += total
            self._end = None if left is None else time.monotonic() + left
            if self._done is None:
                self._done = Counter()
        if done:
            self._done.add(done)

    def advance(self, count: int, left: float | None = None) -> None:
        """Count more done (an `Advance`)."""
        self.add(count, left=left)

    @property
    def done(self) -> int:
        """How many are done."""
        return int(self._done.value) if self._done else 0

    def seconds_left(self) -> float | None:
        """The time for the others: as the caller told, else by the rate; None where nobody knows, as for work that is
        overdue.
        """
        if self._end is not None:
            left = self._end - time.monotonic()
            return None if left < -OVERDUE and self.done < self.total else max(0.0, left)
        rate = self._done.rate() if self._done else 0.0
        return (self.total - self.done) / rate if rate and self.total else None

    def count(self) -> str:
        """What is done: 500 of 2,000 items, 1.5 of 3.0 MB, 9 tasks; 500 of 2,000+ items where there will be more."""
        if self.unit == "bytes":
            size, unit = next((pair for pair in SIZES if max(self.done, self.total) >= pair[0]), SIZES[-1])
            done, total = f"{self.done / size:,.1f}", f"{self.total / size:,.1f}"
        else:
            done, total, unit = f"{self.done:,}", f"{self.total:,}", self.unit
        return f"{done} of {total}{'+' * self.grows} {unit}" if self.total else f"{done} {unit}"

    def speed(self) -> str:
        """The rate: 3,200/s, 45.3 MB/s; empty where there is none."""
        rate = self._done.rate() if self._done else 0.0
        if not rate:
            return ""
        if self.unit == "bytes":
            return f"{rate / 1e6:,.1f} MB/s"
        return f"{rate:,.{0 if rate >= 10 else 1}f}/s"

    def time_left(self) -> str:
        """The time left in words; empty where nobody knows."""
        left = self.seconds_left()
        return "" if left is None else f"{span(left)} left"

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.count(), self.speed(), self.time_left())))


class StagePart(Protocol):
    """What shows something on the live display: a title, a line for each stage, and a last line."""

    @property
    def title(self) -> str: ...

    def stages(self) -> Sequence[Stage]: ...

    def status(self) -> str: ...


class _Bar:
    """One stage alone."""

    title = ""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def stages(self) -> Sequence[Stage]:
        return (self.stage,)

    def status(self) -> str:
        return ""


class _Display:
    """The live display on the terminal, one for the whole process: it starts with the first part and ends with the
    last. Two at once would write over each other.
    """

    def __init__(self) -> None:
        self._parts: list[StagePart] = []
        self._live: Any = None
        self._lock = Lock()

    @contextmanager
    def showing(self, part: StagePart) -> Iterator[None]:
        """A block during which a part is shown."""
        with self._lock:
            self._parts = [*self._parts, part]
            if self._live is None:
                self._live = self._started()
        try:
            yield
        finally:
            with self._lock:
                if len(self._parts) > 1:
                    self._live.refresh()  # its last state is shown once more
                else:
                    self._live.stop()
                    self._live = None
                self._parts = [other for other in self._parts if other is not part]

    def _started(self) -> Any:
        from rich.console import Console
        from rich.live import Live

        # What others print appears above; standard output is left alone where it goes elsewhere.
        live = Live(
            get_renderable=self._render,
            console=Console(stderr=True),
            refresh_per_second=REFRESHES,
            transient=True,
            redirect_stdout=bool(sys.stdout and sys.stdout.isatty()),
        )
        live.start(refresh=True)
        return live

    def _render(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        lines: list[Any] = []
        for part in self._parts:
            stages = part.stages()
            if part.title and stages:
                lines.append(Text(part.title, style="bold", no_wrap=True, overflow="ellipsis"))
            grid = Table.grid(padding=(0, 2, 0, 0))
            for stage in stages:
                bar = ProgressBar(stage.total, min(stage.done, stage.total), BAR) if stage.total else ""
                name = Text(stage.name, no_wrap=True, overflow="ellipsis")
                texts = (Text(stage.count()), Text(stage.speed(), "cyan"), Text(stage.time_left(), "cyan"))
                grid.add_row(name, bar, *texts)
            if stages:
                lines.append(grid)
            if status := part.status():
                lines.append(Text(status, style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)


DISPLAY = _Display()
FETCHES: list[Stage] = []  # of the runs under way: the last one counts what is downloaded


@contextmanager
def progress(title: str, total: int, show: bool = True, what: str = "items") -> Iterator[Advance]:
    """Yields `advance(count)` for work on so many items, tasks or bytes; several may be shown at once.

    During a run (`Activity`), it is a line of the run's display; where there is no terminal, what is downloaded counts
    in the run's own lines.
    """
    title = terminal(title)
    if not show or not total or not stderr_is_open():
        yield lambda count, left=None: None
        return
    stage = Stage(title, what, total)
    fetch = FETCHES[-1] if FETCHES and what == "bytes" else None
    if not on_terminal():
        with _fetching(stage, fetch) if fetch else _lines(stage) as advance:
            yield advance
        return
    with DISPLAY.showing(_Bar(stage)), _fetching(stage, fetch) as advance:
        yield advance


def log(text: str) -> None:
    """Print a line to standard error, above the display; where it is no terminal, with the time."""
    if stderr_is_open():
        stamp = "" if on_terminal() else time.strftime("%Y-%m-%d %H:%M:%S ")
        with suppress(OSError, ValueError):  # nobody reads any more
            print(f"{stamp}{terminal(text)}\n", end="", file=sys.stderr, flush=True)  # one piece: threads print, too


def stderr_is_open() -> bool:
    """Whether there is a standard error to print to: a process may have none, or have closed it."""
    return sys.stderr is not None and not getattr(sys.stderr, "closed", False)


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return stderr_is_open() and sys.stderr.isatty()


@contextmanager
def _fetching(stage: Stage, fetch: Stage | None) -> Iterator[Advance]:
    """Counts in a stage and, if there is a run, in what the run fetches."""

    def advance(count: int, left: float | None = None) -> None:
        stage.add(count, left=left)
        if fetch:
            fetch.add(count)

    if fetch:
        fetch.add(total=stage.total)
    try:
        yield advance
    finally:
        if fetch:  # a download that was cut off is not waited for
            fetch.add(total=stage.done - stage.total)


@contextmanager
def _lines(stage: Stage) -> Iterator[Advance]:
    """Counts in a stage, and prints a line every few seconds."""
    shown = time.monotonic()

    def advance(count: int, left: float | None = None) -> None:
        nonlocal shown
        stage.add(count, left=left)
        now = time.monotonic()
        if now - shown >= QUIET_SECONDS:
            shown = now
            log(f"{stage.name}: {stage}")

    stage.add()
    yield advance


def span(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
