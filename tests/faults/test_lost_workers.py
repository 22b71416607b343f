"""Worker processes that die or stall: they are started again, what they died of is named, and nothing else is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import embark
import worker_functions
from cases import slow
from embark.engine.workers import preparing_processes
from embark.models.encoder import Tower, Towers, image_towers
from embark.models.loading import Loading
from embark.models.parallel import Devices
from embark.processes import NoWorkers, Workers
from embark.run import evaluate
from embark.types import Array, Content, ModelCard
from folders import two_tasks
from worker_functions import COLOURS, DEATHS, LOADER, STALLS

Pictures = Callable[..., Path]
SECONDS = 60.0


@pytest.fixture(autouse=True)
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every picture is prepared by a worker process, which has little time for it."""
    monkeypatch.setitem(preparing_processes.ENOUGH_ITEMS, "image", 1)
    monkeypatch.setenv("EMBARK_ITEM_SECONDS", "1")


def means(rows: list[Array]) -> Array:
    return np.stack([row.reshape(-1, 3).mean(0) for row in rows]).astype(np.float32) + 1


def words(texts: list[str]) -> Array:
    return np.array([[len(text), 1, 2] for text in texts], np.float32)


def encoder() -> Towers:
    card = ModelCard("test/pixels", "1", "functions", ("text", "image", "video"), dim=3, stored="float32")
    return Towers(card, {"text": Tower(words), **image_towers(means, worker_functions.pixels)})


def with_picture(folder: Path, color: tuple[int, int, int]) -> Path:
    """The folder, in which a picture is another."""
    Image.new("RGB", (4, 4), color).save(folder / "red.png")
    return folder


@pytest.mark.parametrize("name", ["SIGKILL", *slow("SIGSEGV", "SIGILL")])
def test_a_picture_that_kills_its_process_is_named(name: str, pictures: Pictures) -> None:
    tasks = two_tasks(with_picture(pictures(), DEATHS[name]))
    run = evaluate(encoder(), [replace(task, unreadable="skip") for task in tasks], show_progress=False)
    assert {skip.why for skip in run.skipped} == set()
    skipped = [warning for result in run.results for record in result.records for warning in record.warnings]
    assert any("1 unreadable items" in warning and "'red.png'" in warning for warning in skipped)


def test_a_picture_that_stalls_is_named(pictures: Pictures) -> None:
    tasks = two_tasks(with_picture(pictures(), STALLS))
    start = time.monotonic()
    with pytest.raises(embark.EmbarkError, match=r"1 unreadable items: .*'red\.png'"):
        evaluate(encoder(), tasks, show_progress=False)
    assert time.monotonic() - start < SECONDS / 2


def test_a_device_whose_process_is_killed_loses_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    several = Devices(
        LOADER, replace(COLOURS, options={"log": str(log), "seconds": 0.1}), Loading("auto"), ["cuda:0", "cuda:1"]
    )
    batch = [several.prepare([Content("text", text)], "") for text in ("one", "two", "three")]
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLER, str(log)], env={**os.environ, "PYTHONPATH": ":".join(sys.path)}
    )
    vectors = [several.embed(batch) for _ in range(4)]
    assert killed.wait(SECONDS) == 0
    vectors.append(several.embed(batch))
    one = worker_functions.Colours(COLOURS, Loading("cpu")).embed(batch)
    for of_device in vectors:
        np.testing.assert_array_equal(of_device, one)
    assert several.workers.deaths == ["SIGKILL"]
    several.workers.close()


KILLER = """
import os, signal, sys, time
from pathlib import Path
while len(lines := Path(sys.argv[1]).read_text().split()) < 2: time.sleep(0.005)
os.kill(int(lines[1]), signal.SIGKILL)
"""


def test_workers_that_cannot_start_are_an_error() -> None:
    with Workers([worker_functions.broken]) as pool, pytest.raises(NoWorkers, match="ValueError: no such model"):
        pool.submit([("echo", 1)]).result(SECONDS)


def test_a_killed_run_leaves_no_process() -> None:
    code = (
        "import time, worker_functions\nfrom embark.processes import Workers\n"
        "pool = Workers([worker_functions.items] * 2)\n"
        "def at_work():\n"
        "    jobs = [pool.submit([('sleep', 0.1), ('pid', 0)]) for _ in range(4)]\n"
        "    return {job.result()[1] for job in jobs}\n"
        "while len(at_work()) < 2: pass\n"
        "for _ in range(4): pool.submit([('spin', 10**11)])\n"
        "time.sleep(1); print(*pool.pids, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert parent.stdout is not None
    pids = list(map(int, parent.stdout.readline().split()))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    end = time.monotonic() + 10
    while (left := [pid for pid in pids if lives(pid)]) and time.monotonic() < end:
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(pids) == 2
    assert not left


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
