"""What worker processes of tests do; in a module of its own, because they import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def items() -> Callable[[tuple[str, Any]], Any]:
    """Works on items as they say: ("kill", signal), ("sleep", seconds), ("array", size)…"""
    return work


def work(item: tuple[str, Any]) -> Any:
    kind, value = item
    if kind == "kill":
        os.kill(os.getpid(), value)
        time.sleep(60)
    if kind == "exit":
        os._exit(value)
    if kind == "once":  # kills its first worker only
        if not Path(value).exists():
            Path(value).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value
    if kind == "sleep":
        time.sleep(value)
    if kind == "spin":  # holds the interpreter and its signals
        sum(range(value))
    if kind == "array":
        return np.arange(value, dtype=np.int64)
    if kind == "sum":
        return int(value.sum())
    if kind == "raise":
        raise value
    if kind == "pid":
        return os.getpid()
    if kind == "modules":
        import sys

        return sorted(sys.modules)
    return value


def broken() -> Any:
    raise ValueError("no such model")


def deadly() -> Any:
    os._exit(7)


def dies_again(path: str) -> Any:
    """Starts once; whoever starts it again finds it broken."""
    if Path(path).exists():
        raise ValueError("the device is gone")
    Path(path).touch()
    return work
