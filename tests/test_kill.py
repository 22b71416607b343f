"""A run that is killed at random moments, again and again, ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embark import get_model
from embark.models.encoder import fingerprint
from embark.store import Store

FEW = ["PocketFlagZeroShot", "PocketClockReading", "PocketSpokenNameToText"]
MANY = ["PocketNameToImage", *FEW]
BATCH = 32
IN_FLIGHT = 3  # batches: one being written, one waiting, one just computed

RUN = """
import sys, time
import embark
from embark.settings import load_settings

model, log = embark.get_model("embark/pocket"), open(sys.argv[1], "a")
forward = model.embed

def embed(batch):
    vectors = forward(batch)
    print(len(batch), file=log, flush=True)
    time.sleep(float(sys.argv[5]))  # a slower model, so that a kill strikes at work
    return vectors

model.embed = embed
embark.evaluate(model, sys.argv[6:], settings=load_settings(sys.argv[2], sys.argv[3]), batch_size=int(sys.argv[4]))
"""


def start(folder: Path, tasks: list[str], pause: float) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    words = [folder / "log", folder / "home", folder / "results", BATCH, pause, *tasks]
    return subprocess.Popen([sys.executable, "-c", RUN, *map(str, words)])


def scores(folder: Path) -> dict[str, object]:
    found = {}
    for path in sorted((folder / "results").glob("*/*/Pocket*.json")):
        content = json.loads(path.read_text())
        for entry in content["scores"]["test"]:
            entry["embark"] = {key: entry["embark"][key] for key in ("interval", "protocol", "encoder")}
        found[path.name] = content["scores"]
    return found


def batches(folder: Path) -> int:
    """How many batches the runs in a folder have computed."""
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize(("tasks", "kills"), [(FEW, 3), pytest.param(MANY, 20, marks=pytest.mark.slow)])
def test_kills_change_nothing_and_lose_only_what_was_in_flight(tmp_path: Path, tasks: list[str], kills: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    calm = start(whole, tasks, 0)
    assert calm.wait() == 0
    moments = random.Random(2)
    struck = 0
    for _ in range(kills):
        enough = batches(killed) + moments.randrange(4)
        process = start(killed, tasks, 0.1)
        while process.poll() is None and batches(killed) < enough:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        struck += process.wait() == -signal.SIGKILL
    last = start(killed, tasks, 0)
    assert last.wait() == 0

    assert struck == kills, "the runs were over before they were killed"
    assert scores(killed) == scores(whole)
    assert len(scores(whole)) == len(tasks)
    for folder in (whole, killed):
        space = Store(folder / "home" / "store").space(fingerprint(get_model("embark/pocket").card))
        assert space.verify() == []
    computed = {folder: sum(map(int, (folder / "log").read_text().split())) for folder in (whole, killed)}
    assert computed[killed] <= computed[whole] + struck * IN_FLIGHT * BATCH
