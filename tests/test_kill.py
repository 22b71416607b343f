"""A run that is killed at random moments, again and again, ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from embark import get_model
from embark.models.encoder import fingerprint
from embark.store import Store

KILLS, BATCH = 20, 32
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
tasks = ["PocketNameToImage", "PocketFlagZeroShot", "PocketClockReading", "PocketSpokenNameToText"]
embark.evaluate(model, tasks, settings=load_settings(sys.argv[2], sys.argv[3]), batch_size=int(sys.argv[4]))
"""


def start(folder: Path, pause: float) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    words = [folder / "log", folder / "home", folder / "results", BATCH, pause]
    return subprocess.Popen([sys.executable, "-c", RUN, *map(str, words)])


def scores(folder: Path) -> dict[str, object]:
    found = {}
    for path in sorted((folder / "results").glob("*/*/Pocket*.json")):
        content = json.loads(path.read_text())
        for entry in content["scores"]["test"]:
            entry["embark"] = {key: entry["embark"][key] for key in ("interval", "protocol", "encoder")}
        found[path.name] = content["scores"]
    return found


def test_twenty_kills_change_nothing_and_lose_only_what_was_in_flight(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    calm = start(whole, 0)
    assert calm.wait() == 0
    moments = random.Random(2)
    struck = 0
    for _ in range(KILLS):
        process = start(killed, 0.1)
        time.sleep(moments.uniform(0.3, 1.5))
        process.send_signal(signal.SIGKILL)
        struck += process.wait() == -signal.SIGKILL
    last = start(killed, 0)
    assert last.wait() == 0

    assert struck == KILLS, "the runs were over before they were killed"
    assert scores(killed) == scores(whole)
    assert len(scores(whole)) == 4
    for folder in (whole, killed):
        space = Store(folder / "home" / "store").space(fingerprint(get_model("embark/pocket").card))
        assert space.verify() == []
    computed = {folder: sum(map(int, (folder / "log").read_text().split())) for folder in (whole, killed)}
    assert computed[killed] <= computed[whole] + struck * IN_FLIGHT * BATCH
