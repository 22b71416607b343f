"""A run that is killed at random moments, again and again, ends as if nothing had happened."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embark import get_model
from embark.engine.workers import sink
from embark.protocol import vector_space
from embark.store import Space, Store

FEW = ["PocketFlagZeroShot", "PocketClockReading", "PocketSpokenNameToText"]
MANY = ["PocketNameToImage", *FEW]
BATCH = 8
PAUSE = 0.1  # seconds that a batch takes longer, so that a kill strikes at work
WINDOW = 0.5  # seconds between commits here: more kills in less time
DISK = 2.0  # seconds that a commit may take on a busy machine

RUN = """
import hashlib, pickle, sys, time
import embark
from embark.engine.workers import sink
from embark.settings import load_settings

log, home, results, batch_size, pause, sink.COMMIT_SECONDS = *sys.argv[1:4], *map(float, sys.argv[4:7])
model, log = embark.get_model("embark/pocket"), open(log, "a")
forward = model.embed

def embed(batch):
    vectors = forward(batch)
    time.sleep(pause)
    items = {hashlib.sha256(pickle.dumps(item)).hexdigest()[:16] for item in batch}
    print(time.time(), *items, file=log, flush=True)
    return vectors

model.embed = embed
embark.evaluate(model, sys.argv[7:], settings=load_settings(home, results), batch_size=int(batch_size))
"""


def start(folder: Path, tasks: list[str], pause: float, window: float = WINDOW) -> subprocess.Popen[bytes]:
    """A run that logs when it has embedded which items."""
    folder.mkdir(exist_ok=True)
    words = [folder / "log", folder / "home", folder / "results", BATCH, pause, window, *tasks]
    return subprocess.Popen([sys.executable, "-c", RUN, *map(str, words)])


def scores(folder: Path) -> dict[str, object]:
    """All that results of a folder say about scores."""
    by_name = {}
    for path in sorted((folder / "results").glob("*/*/Pocket*.json")):
        content = json.loads(path.read_text())
        for entry in content["scores"]["test"]:
            entry["embark"] = {key: entry["embark"][key] for key in ("interval", "fingerprint", "encoder")}
        by_name[path.name] = content["scores"]
    return by_name


def batches(folder: Path) -> list[tuple[float, set[str]]]:
    """When each batch in a folder was embedded, and its items; a line that a kill cut does not count."""
    log = folder / "log"
    lines = [line.split() for line in log.read_text().split("\n")[:-1]] if log.exists() else []
    return [(float(when), set(items)) for when, *items in lines]


def stored(folder: Path) -> Space:
    """The vectors that a folder holds."""
    return Store(folder / "home" / "store").space(vector_space(get_model("embark/pocket").card))


def kill(
    process: subprocess.Popen[bytes], folder: Path, begun: float = 0, had: int = 0, window: float = WINDOW
) -> set[str]:
    """Kill a run, and check that what it embedded before the commit window is stored; returns those items.

    It was begun at some time, when the store had so many vectors.
    """
    moment = time.time()
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run was over before it was killed"
    safe = set[str]().union(*(items for when, items in batches(folder) if begun < when < moment - window - DISK))
    assert len(stored(folder)) >= had + len(safe)
    return safe


def kill_often(folder: Path, kills: int, seed: int) -> int:
    """Kill runs at random moments, then have one end; how many kills came after the first commit window."""
    moments = random.Random(seed)
    late = 0
    for _ in range(kills):
        before = len(batches(folder))
        had = len(stored(folder))
        begun = time.time()
        process = start(folder, MANY, PAUSE)
        while process.poll() is None and len(batches(folder)) == before:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, WINDOW + DISK + 1))
        late += bool(kill(process, folder, begun, had))
    assert start(folder, MANY, 0).wait() == 0
    return late


@pytest.mark.slow
def test_twenty_kills_change_nothing_and_lose_at_most_the_commit_window(tmp_path: Path) -> None:
    folders = [tmp_path / "killed", tmp_path / "also killed"]
    with ThreadPoolExecutor() as pool:
        late = list(pool.map(kill_often, folders, (10, 10), (2, 3)))
    assert start(tmp_path / "whole", MANY, 0).wait() == 0
    assert len(scores(tmp_path / "whole")) == len(MANY)
    assert sum(late) >= 5  # after several windows, in which something was committed
    for folder in folders:
        assert scores(folder) == scores(tmp_path / "whole")
        assert stored(folder).verify() == []


@pytest.mark.slow
def test_the_window_is_what_the_sink_says(tmp_path: Path) -> None:
    process = start(tmp_path, MANY, PAUSE, sink.COMMIT_SECONDS)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        (log := batches(tmp_path)) and log[-1][0] - log[0][0] > 2 * sink.COMMIT_SECONDS + DISK
    ):
        time.sleep(0.01)
    embedded = set[str]().union(*(items for _, items in batches(tmp_path)))
    safe = kill(process, tmp_path, window=sink.COMMIT_SECONDS)
    assert 0 < len(safe) <= len(stored(tmp_path)) <= len(embedded) + 2 * BATCH
