"""kill -9 in the middle of embedding: at most the commit window is lost, and the scores are the same."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from embark.store import Store
from lengths import Lengths, needs, stored_numbers, text
from test_kill import DISK, FEW, PAUSE, WINDOW, batches, kill, scores, start

PAID = """
import sys, time
from pathlib import Path
from embark.models.encoder import Bill, Capabilities
from embark.store import Store
sys.path.append(sys.argv[2])
from lengths import Lengths, needs, run, text

class Paid(Lengths):
    capabilities = Capabilities(bill=lambda prepared: Bill(1.0, None))

    def embed(self, batch):
        print(*(value.split()[0] for value in batch), flush=True)
        time.sleep(0.02)
        return super().embed(batch)

run(Store(Path(sys.argv[1])), Paid(), needs(Paid(), [text(number) for number in range(1000)]), batch_size=4)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    calm = start(whole, FEW[:1], 0)
    struck = start(killed, FEW[:1], PAUSE)
    limit = time.monotonic() + 60
    while struck.poll() is None and time.monotonic() < limit:
        log = batches(killed)
        if log and log[-1][0] - log[0][0] > WINDOW + DISK + 0.5:
            break
        time.sleep(0.01)
    safe = kill(struck, killed)
    before = len(batches(killed))
    assert start(killed, FEW[:1], 0).wait(60) == 0
    assert calm.wait(60) == 0
    assert scores(killed) == scores(whole) != {}
    again = set[str]().union(*(items for _, items in batches(killed)[before:]))
    assert safe
    assert not safe & again  # what was embedded before the window is not embedded again


def test_a_killed_run_loses_only_the_batch_that_was_being_paid_for(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PAID, str(tmp_path), str(Path(__file__).parents[1])]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(20)]
    process.kill()
    lines += process.communicate()[0].splitlines()
    paid = [int(number) for line in lines[:-1] for number in line.split()]  # the last was in flight
    encoder = Lengths()
    wanted = needs(encoder, [text(number) for number in paid])
    assert len(paid) >= 19 * 4
    assert stored_numbers(Store(tmp_path), encoder, wanted) == list(range(len(paid)))
