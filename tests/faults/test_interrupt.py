"""Ctrl-C: one ends a run within two seconds in whatever stage, with what was committed kept, and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cases import slow
from embark.interrupts import INTERRUPTED
from embark.store import Store
from embark.threads import DaemonThreads

SOON = 4.0  # seconds; two on a machine with nothing else to do
BEGINS = 60.0
MESSAGE = "interrupted; kept"

# A run of which one stage does not end. What hangs is a call of C, which Python cannot interrupt.
RUN = """
import hashlib, os, signal, sys, time
signal.alarm(90)  # whatever becomes of the test
from pathlib import Path
import numpy as np
import embark, worker_functions
from embark import evaluators
from embark import readers
from embark.engine.workers import preparing_processes
from embark.interrupts import end_soon
from embark.models.encoder import Tower, Towers, image_towers

stage, folder = sys.argv[1:]

def hang(*args, **options):
    os.write(1, b"hangs\\n")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

class Slow(Towers):
    def embed(self, batch):
        self.calls = getattr(self, "calls", 0) + 1
        if stage == "embedding" and self.calls > 5:  # those of one kind are with the writer
            while not any(Path(folder, "home").rglob("*.vectors")):
                time.sleep(0.01)
            hang()
        return super().embed(batch)

def means(rows):
    return np.stack([row.reshape(-1, 3).mean(0) for row in rows]).astype(np.float32) + 1

def words(texts):
    return np.array([[len(text), 1, 2] for text in texts], np.float32)

if stage == "reading":
    readers.read = hang
if stage == "scoring":
    evaluators.evaluate = hang
if stage == "processes":
    preparing_processes.ENOUGH_ITEMS["image"] = 1
pixels = hang if stage == "threads" else worker_functions.pixels
card = embark.types.ModelCard("test/slow", "1", "functions", ("text", "image", "video"), dim=3, stored="float32")
encoder = Slow(card, {"text": Tower(words), **image_towers(means, pixels)})
with end_soon("interrupted; kept"):
    tasks = embark.folder_task(Path(folder, "pictures"), kinds=["retrieval", "zeroshot"])
    embark.evaluate(encoder, tasks, batch_size=4, show_progress=False,
                    settings=embark.load_settings(Path(folder, "home"), Path(folder, "results"), workers=2))
"""


def session(pid: int) -> list[int]:
    """The processes that live in the session of a process."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(number) == pid and state != "Z":
            members.append(int(path.parent.name))
    return members


@contextmanager
def begin(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, which ends with the block."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            running.kill()


def interrupt(running: subprocess.Popen[str], message: str = MESSAGE) -> None:
    """Press Ctrl-C once; the process ends soon, says what it has to, and leaves nothing behind."""
    start = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=BEGINS)
    assert time.monotonic() - start < SOON
    assert running.returncode == INTERRUPTED, errors
    assert errors.splitlines()[-1] == message
    assert "Traceback" not in errors
    assert wait_for(lambda: not session(running.pid))


def wait_for(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + BEGINS
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


def stored(home: Path) -> int:
    """How many vectors are committed."""
    store = Store(home / "store")
    return sum(len(store.space(path.name)) for path in store.root.iterdir()) if store.root.is_dir() else 0


@pytest.mark.parametrize("stage", ["embedding", *slow("processes", "reading", "threads", "scoring")])
def test_one_interrupt_ends_a_run_in_every_stage(stage: str, tmp_path: Path, pictures: Callable[..., Path]) -> None:
    from PIL import Image

    from worker_functions import STALLS

    folder = pictures()
    folder.rename(tmp_path / "pictures")
    if stage == "processes":
        for name in ("red", "green"):
            Image.new("RGB", (4, 4), STALLS).save(tmp_path / "pictures" / f"{name}.png")
    with begin("-c", RUN, stage, str(tmp_path)) as running:
        assert running.stdout is not None
        if stage == "processes":
            assert wait_for(lambda: len(session(running.pid)) >= 3)
            time.sleep(0.5)
        else:
            assert running.stdout.readline() == "hangs\n"
        if stage in ("embedding", "scoring"):
            assert wait_for(lambda: stored(tmp_path / "home"))
        before = stored(tmp_path / "home")
        interrupt(running)
        assert stored(tmp_path / "home") >= before


@pytest.mark.slow  # test_an_interrupted_run_says_so_and_keeps_what_it_did, of the command line, is the quick form
def test_the_command_line_ends_too(elsewhere: Path) -> None:
    with begin("-m", "embark", "run", "-m", "embark/pocket", "-b", "Pocket") as running:
        assert wait_for(lambda: any((elsewhere / "home").rglob("*")) or running.poll() is not None)
        interrupt(running, "interrupted; what was embedded is kept, run the same command to go on")


def test_threads_that_hang_are_not_waited_for() -> None:
    code = (
        "import hashlib, signal, sys\nfrom embark.threads import DaemonThreads\nsignal.alarm(90)\n"
        "def hang(): print('hangs', flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n"
        "try:\n    with DaemonThreads(2) as pool: pool.submit(hang).result()\n"
        "except KeyboardInterrupt: sys.exit('interrupted')\n"
    )
    with begin("-c", code) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "hangs\n"
        time.sleep(0.5)  # until it waits: Python misses a signal that comes just before
        start = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=BEGINS)
    assert time.monotonic() - start < SOON
    assert errors == "interrupted\n"


def test_what_waits_for_a_thread_is_dropped_after_an_error() -> None:
    with DaemonThreads(3) as pool:
        assert [pool.submit(pow, base, 2).result() for base in range(20)] == [base**2 for base in range(20)]
        assert isinstance(pool.submit(int, "x").exception(), ValueError)
    abandoned = DaemonThreads(1)
    running, waiting = abandoned.submit(time.sleep, 0.2), abandoned.submit(time.sleep, 60)
    assert wait_for(running.running)
    abandoned.__exit__(ValueError, ValueError(), None)
    assert waiting.cancelled()
    assert running.result() is None
