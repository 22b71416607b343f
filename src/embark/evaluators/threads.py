"""Limits that hold for the whole process, shared by the evaluations that run at once.

The matrix library's threads and the warning filters belong to everybody: whoever restores what it found undoes the
others' limits, or leaves its own behind. So the first to come keeps what was there, and the last to go restores it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Lock

import threadpoolctl
from threadpoolctl import threadpool_limits

from embark.settings import cores

CORES = cores()
_LOCK = Lock()
_HELD: list[int] = []
_UNDO = ExitStack()


@contextmanager
def blas_threads(limit: int, *ignored: type[Warning]) -> Iterator[None]:
    """At most so many threads a matrix product, and none of these warnings, until the last of those inside leaves."""
    with _LOCK:
        _HELD.append(limit)
        _take_over()
        _UNDO.enter_context(threadpool_limits(min(_HELD), user_api="blas"))
        if ignored:
            _UNDO.enter_context(warnings.catch_warnings())
        for category in ignored:
            warnings.simplefilter("ignore", category)
    try:
        yield
    finally:
        with _LOCK:
            _HELD.remove(limit)
            if not _HELD:
                _take_over()
                _UNDO.close()


def _take_over() -> None:
    """threadpoolctl heeds only the first thread that sets OpenBLAS's threads; who comes last here must be able to."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)  # newer versions
    if release:
        release(force=True)


def each(work: Callable[[int], None], turns: Iterable[int], parallel: bool = True) -> None:
    """Do the turns on all cores: a thread a core, and one BLAS thread each, so that comparing is parallel too."""
    if not parallel:
        for turn in turns:
            work(turn)
        return
    with blas_threads(1), ThreadPoolExecutor(CORES) as pool:
        list(pool.map(work, turns))
