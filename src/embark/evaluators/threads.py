"""Limits that hold for the whole process, shared by the evaluations that run at once.

The matrix library's threads and the warning filters are process-wide: an evaluation that restored them when it ends
would undo the limits of those still running. So the first to enter saves the state, and the last to leave restores it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from threading import Lock

import threadpoolctl
from threadpoolctl import ThreadpoolController

from embark.settings import cores

CORES = cores()
_LOCK = Lock()
_LIMITS: list[int] = []  # of the evaluations now inside `blas_threads`
_RESTORE = ExitStack()


@contextmanager
def blas_threads(limit: int, *ignored: type[Warning]) -> Iterator[None]:
    """Limit matrix products to `limit` threads and hide `ignored` warnings, until the last user of the block leaves."""
    with _LOCK:
        _LIMITS.append(limit)
        _release_control()
        _RESTORE.enter_context(_libraries(len(sys.modules)).limit(limits=min(_LIMITS), user_api="blas"))
        if ignored:
            _RESTORE.enter_context(warnings.catch_warnings())
        for category in ignored:
            warnings.simplefilter("ignore", category)
    try:
        yield
    finally:
        with _LOCK:
            _LIMITS.remove(limit)
            if not _LIMITS:
                _release_control()
                _RESTORE.close()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The matrix libraries of this process: the search for them takes milliseconds, and only imports bring others."""
    return ThreadpoolController()


def _release_control() -> None:
    """Let any thread change OpenBLAS's number of threads.

    threadpoolctl obeys only the thread that set it first, but here the last one to leave restores it.
    """
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)  # newer versions
    if release:
        release(force=True)


def on_all_cores(work: Callable[[int], None], starts: Iterable[int], parallel: bool = True) -> None:
    """Call `work` with each start, in one thread per core with one BLAS thread each.

    Work beside the matrix products, such as comparisons, then runs in parallel too.
    """
    if not parallel:
        for start in starts:
            work(start)
        return
    with blas_threads(1), ThreadPoolExecutor(CORES) as pool:
        list(pool.map(work, starts))
