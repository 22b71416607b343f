"""Progress of long work: a bar with rate and time left on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from embark.escape import terminal

QUIET_SECONDS = 10.0  # between lines where there is no terminal
MEGABYTE = 1_000_000


class Advance(Protocol):
    """Tells that `count` more are done, and how many seconds are `left`, if whoever calls it knows better than by the
    mean of what is done.
    """

    def __call__(self, count: int, left: float | None = None) -> None: ...


@contextmanager
def progress(title: str, total: int, show: bool = True, what: str = "items") -> Iterator[Advance]:
    """Yields `advance(count)` for work on so many items, tasks or bytes; several may be shown at once."""
    title = terminal(title)
    if not show or not total or sys.stderr is None:  # a process may have none
        yield lambda count, left=None: None
    elif sys.stderr.isatty():
        with _bar(title, total, what) as advance:
            yield advance
    else:
        yield _lines(title, total, what)


def log(text: str) -> None:
    """Print a line to standard error, above the bars; where it is no terminal, with the time."""
    if sys.stderr is not None:  # a process may have none
        stamp = "" if sys.stderr.isatty() else time.strftime("%Y-%m-%d %H:%M:%S ")
        with suppress(OSError):  # nobody reads any more
            print(f"{stamp}{terminal(text)}", file=sys.stderr, flush=True)


@contextmanager
def _bar(title: str, total: int, what: str) -> Iterator[Advance]:
    from rich import progress as bars
    from rich.console import Console
    from rich.text import Text

    class Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")

    class Left(bars.TimeRemainingColumn):
        def render(self, task: bars.Task) -> Text:
            left = task.fields["left"]
            return super().render(task) if left is None else Text(span(left), style="progress.remaining")

    in_bytes = what == "bytes"
    with bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.DownloadColumn() if in_bytes else bars.MofNCompleteColumn(),
        bars.TransferSpeedColumn() if in_bytes else Rate(),
        Left(),
        console=Console(stderr=True),
        transient=True,
    ) as display:
        task = display.add_task(title, total=total, left=None)
        yield lambda count, left=None: display.update(task, advance=count, left=left)


def _lines(title: str, total: int, what: str) -> Advance:
    size, unit = (MEGABYTE, "MB") if what == "bytes" else (1, what)
    start = shown = time.monotonic()
    done = 0

    def advance(count: int, left: float | None = None) -> None:
        nonlocal done, shown
        done += count
        now = time.monotonic()
        if now - shown >= QUIET_SECONDS:
            shown = now
            rate = max(done, 1) / (now - start)
            left = (total - done) / rate if left is None else left
            speed = f"{rate / size:,.{0 if rate / size > 10 else 1}f}/s, {span(left)} left"
            log(f"{title}: {done // size:,} of {total // size:,} {unit}, {speed}")

    return advance


def span(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
