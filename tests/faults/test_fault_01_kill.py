"""kill -9 in the middle of embedding: at most one commit window is lost, and the scores are the same."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from test_kill import BATCH, FEW, IN_FLIGHT, scores, start

ENOUGH = 10 * BATCH  # items before the kill: more than may be lost


def test_fault_01_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    calm = start(whole, FEW[:1], 0)
    struck = start(killed, FEW[:1], 0.1)
    limit = time.monotonic() + 60
    while struck.poll() is None and embedded(killed) < ENOUGH and time.monotonic() < limit:
        time.sleep(0.01)
    struck.send_signal(signal.SIGKILL)
    assert struck.wait(60) == -signal.SIGKILL
    assert start(killed, FEW[:1], 0).wait(60) == 0
    assert calm.wait(60) == 0
    assert scores(killed) == scores(whole) != {}
    assert embedded(killed) <= embedded(whole) + (IN_FLIGHT + 1) * BATCH  # the self-check has a batch, too


def embedded(folder: Path) -> int:
    """How many items the runs in a folder have embedded."""
    log = folder / "log"
    return sum(map(int, log.read_text().split())) if log.exists() else 0
