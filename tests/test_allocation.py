"""Freed memory that a process keeps."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from embark.allocation import ENVIRONMENT

CHURN = """
import resource
from embark.allocation import keep_freed_memory
if {keep}:
    keep_freed_memory()
def churn():
    pieces = [bytes(120_000) for _ in range(64)]
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep: bool, **environment: str) -> int:
    """Page faults of a process that takes and frees the memory of 64 pictures, 20 times."""
    code = CHURN.format(keep=keep)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these options")
def test_memory_that_is_freed_is_kept() -> None:
    usual = faults(keep=False)
    assert usual > 10_000
    assert faults(keep=True) < usual / 20
    assert faults(keep=False, **ENVIRONMENT) < usual / 20


RETURN = """
from embark.allocation import keep_freed_memory, return_memory
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
keep_freed_memory()
pieces = [bytes(120_000) for _ in range(400)]
last = bytes(120_000)
del pieces
before = resident()
return_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these options")
def test_memory_goes_back_when_all_is_done() -> None:
    done = subprocess.run([sys.executable, "-c", RETURN], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 10_000  # KB, of 47,000 that were freed
