"""Progress of long work: a bar with rate and time left on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 10.0  # between lines where there is no terminal


@contextmanager
def progress(title: str, total: int, show: bool = True, what: str = "items") -> Iterator[Callable[[int], None]]:
    """Yields `advance(count)` for work on `total` items; `what` names them."""
    if not show or not total:
        yield lambda items: None
    elif sys.stderr.isatty():
        with _bar(title, total) as advance:
            yield advance
    else:
        yield _lines(title, total, what)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda items: bar.advance(task, items)


def _lines(title: str, total: int, what: str) -> Callable[[int], None]:
    start = printed = time.monotonic()
    done = 0

    def advance(items: int) -> None:
        nonlocal done, printed
        done += items
        now = time.monotonic()
        if now - printed >= QUIET_SECONDS:
            printed = now
            rate = done / (now - start)
            pace = f"{rate:,.{0 if rate > 10 else 1}f}/s, {span((total - done) / rate)} left"
            print(f"{title}: {done:,} of {total:,} {what}, {pace}", file=sys.stderr, flush=True)

    return advance


def span(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
