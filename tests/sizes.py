"""How many rows the tables of sample datasets have: a few, or a hundredth of what a task's row states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from embark.types import Task

Size = Callable[[int | None, int], int]  # of the count that a row states, if it does, and that of the smallest sample
LARGEST = 400
UNSTATED = 3000  # rows of a table whose size nobody states


def few(stated: int | None, least: int) -> int:
    """The smallest sample that shows the shape."""
    return least


def hundredth(stated: int | None, least: int = 0) -> int:
    """The real table, cut down 1:100."""
    return max(3, min(LARGEST, round((UNSTATED if stated is None else stated) / 100)))


def cut_down(task: Task) -> Task:
    """A task's row as it states tables that are cut down 1:100."""
    return replace(task, rows={name: hundredth(count) for name, count in task.rows.items()})


def pooled(task: Task, side: str) -> int | None:
    """The items of one side that a task's row states."""
    counts = {pool.id: pool.items for pool in task.pools if pool.side == side}
    return sum(counts.values()) if counts else None
