"""How the C library hands out memory, where it is glibc.

By default it gives back to the system what is freed at once, and asking for it again costs a fault a page: in a virtual
machine, a hundred microseconds for a picture of 120 KB, where copying it takes ten. Reading pictures, decoding them and
letting them go is most of what a run does, so it keeps such memory for its next use, up to a limit.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of mallopt's options
KEPT = 64 << 20  # bytes that are free at the end of a heap
LARGE_BYTES = 4 << 20  # bytes of a piece that comes from the system alone, and goes back when it is freed
# The same, for a new process.
ENVIRONMENT = {"MALLOC_TRIM_THRESHOLD_": str(KEPT), "MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES)}


@cache
def keep_freed_memory() -> None:
    """Keep memory that is freed for its next use, from now on."""
    with suppress(OSError, AttributeError, TypeError):  # of other systems
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(TRIM_THRESHOLD, KEPT)
        mallopt(MMAP_THRESHOLD, LARGE_BYTES)


def return_memory() -> None:
    """Give freed memory back to the system: what several threads have done leaves the heap in pieces."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
