"""The most memory that a process had, for the code of processes that tests start."""

from __future__ import annotations

import sys

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell or limit a process's memory so")

# Not `ru_maxrss`, which begins with that of the process that started this one, and hides what is below it.
PEAK = r'''
import re

def peak():
    """Megabytes."""
    return int(re.search(r"VmHWM:\s*(\d+) kB", open("/proc/self/status").read())[1]) >> 10
'''
