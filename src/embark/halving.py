"""Work on several rows that fails because of some of them: it is tried again by halves of halves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Result = TypeVar("Result")


def by_halves(
    rows: Sequence[int], work: Callable[[Sequence[int]], Iterable[Result]], refusal: type[Exception]
) -> Iterator[Result]:
    """The results of work on rows: of all at once, or, where it raises `refusal`, of halves of halves, in their order.

    The refusal of a single row is raised. What work holds when it refuses is free before the halves are tried.
    """
    try:
        yield from work(rows)
        return
    except refusal:
        if len(rows) == 1:
            raise
    middle = len(rows) // 2
    yield from by_halves(rows[:middle], work, refusal)
    yield from by_halves(rows[middle:], work, refusal)
