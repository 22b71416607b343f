"""A GPU that is lost, a copy that hangs: the others take their work. On a cluster: engine/ray/test_faults.py."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.engine.local import embed
from embark.models import parallel
from embark.models.loading import Loading
from embark.models.parallel import Devices
from embark.planning import Need, keys_of
from embark.store import Space
from embark.types import Content, Item, Text
from worker_functions import COLOURS, LOADER, Colours

TEXTS = [f"text {number} {'abc' * (number % 7)}" for number in range(60)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may take a second and a half."""
    monkeypatch.setattr(parallel, "BATCH_SECONDS", 1.5)


def devices(**options: Any) -> Devices:
    return Devices(LOADER, replace(COLOURS, options=options), Loading("auto"), ["cpu:0", "cpu:1"])


def needs(*texts: str) -> list[Need]:
    return [Need(text.ljust(32)[:32].encode(), Item((Text(text),)), "query", None, 0, 0) for text in texts]


def alone(texts: list[str]) -> Any:
    encoder = Colours(COLOURS, Loading("cpu"))
    return encoder.embed([encoder.prepare([Content("text", text)], "") for text in texts])


def assert_stored(space: Space, texts: list[str]) -> None:
    space.refresh()
    np.testing.assert_array_equal(space.read(keys_of(needs(*texts)))[np.arange(len(texts))], alone(texts))


def test_the_work_of_a_lost_device_is_the_others(
    space: Space, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log"
    log.touch()
    encoder = devices(gone=str(tmp_path), lost=["cpu:1"], log=str(log), seconds=0.02)

    def lose() -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            lines = [line.split() for line in log.read_text().splitlines() if line.startswith("cpu:1")]
            if lines:
                os.kill(int(lines[-1][1]), signal.SIGKILL)
                return
            time.sleep(0.005)

    loser = threading.Thread(target=lose)
    loser.start()
    with caplog.at_level(logging.WARNING), space.writer() as writer:
        report = embed(encoder, needs(*TEXTS), writer, batch_size=3)
    loser.join()
    end = time.monotonic() + 30
    while "cpu:1 is given up, the others go on" not in caplog.text and time.monotonic() < end:
        time.sleep(0.01)
    assert "cpu:1 is given up, the others go on" in caplog.text
    assert report.embedded == len(TEXTS)
    assert_stored(space, TEXTS)
    encoder.workers.close()


def test_a_copy_that_hangs_is_ended_and_its_batch_repeated(space: Space, tmp_path: Path) -> None:
    encoder = devices(hangs=str(tmp_path / "hangs"))
    with space.writer() as writer:
        report = embed(encoder, needs(*TEXTS), writer, batch_size=20)
    assert encoder.workers.deaths == ["took longer than 1.5 s"]
    assert report.embedded == len(TEXTS)
    assert_stored(space, TEXTS)
    encoder.workers.close()


@pytest.mark.slow
def test_an_item_that_every_copy_hangs_at_is_named(space: Space) -> None:
    encoder = devices()
    with space.writer() as writer:
        report = embed(encoder, needs("a", "endless"), writer, batch_size=1)
    [reason] = report.unreadable.values()
    assert reason == "the model cannot embed it: it took longer than 1.5 s"
    assert_stored(space, ["a"])
    encoder.workers.close()
