"""Several devices, a worker process each: what one device gives, whatever becomes of the workers."""

from __future__ import annotations

import copy
import gc
import logging
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from cases import slow
from embark.engine.local import embed
from embark.models.encoder import cuda_pixels
from embark.models.loading import Loading, build
from embark.models.parallel import Devices
from embark.planning import Need
from embark.processes import NoWorkers, WorkerLost
from embark.protocol import identity
from embark.store import Space
from embark.types import Content, EmbarkError, Encoded, Item, Text
from worker_functions import COLOURS, LOADER, PICTURED, PIXELS_LOADER, Colours

TEXTS = tuple(f"text {number} {'abc' * (number % 7)}" for number in range(60))


def devices(count: int = 2, **options: Any) -> Devices:
    card = replace(COLOURS, options=options)
    return Devices(LOADER, card, Loading("auto"), [f"cpu:{number}" for number in range(count)])


@pytest.fixture(scope="module")
def two() -> Iterator[Devices]:
    encoder = devices()
    yield encoder
    encoder.workers.close()


def prepared(encoder: embark.Encoder, texts: Sequence[str]) -> list[Any]:
    return [encoder.prepare([Content("text", text)], "") for text in texts]


def alone(texts: Sequence[str]) -> Any:
    encoder = Colours(COLOURS, Loading("cpu"))
    return encoder.embed(prepared(encoder, texts))


def needs(texts: Sequence[str]) -> list[Need]:
    return [Need(text.ljust(32)[:32].encode(), Item((Text(text),)), "query", None, 0, 0) for text in texts]


def test_several_batches_at_once_are_those_of_one_device(two: Devices) -> None:
    batches = [TEXTS[start : start + 7] for start in range(0, 60, 7)]
    with ThreadPoolExecutor(two.capabilities.lanes) as pool:
        vectors = list(pool.map(two.embed, [prepared(two, batch) for batch in batches]))
    np.testing.assert_array_equal(np.concatenate(vectors), alone(TEXTS))
    assert two.capabilities.lanes == 4
    assert two.card.loaded == {"device": two.card.loaded["device"], "devices": "cpu:0,cpu:1"}
    assert identity(two.card) == identity(COLOURS)
    assert two.capabilities.matching is None
    assert two.render(Item((Text("x"),)), "query", None).parts == (Text("x"),)


def test_an_error_of_a_worker_is_the_batchs_error(two: Devices) -> None:
    with pytest.raises(RuntimeError, match="CUDA out of memory"):  # which the engine answers with smaller batches
        two.embed(prepared(two, ["no memory"] * 3))
    assert len(two.embed(prepared(two, ["no memory"] * 2))) == 2


def test_a_batch_that_kills_two_workers_is_an_error(two: Devices) -> None:
    with pytest.raises(WorkerLost, match=r"killed its worker twice \(SIGSEGV\)"):
        two.embed(prepared(two, ["a", "deadly"]))
    np.testing.assert_array_equal(two.embed(prepared(two, ["a"])), alone(["a"]))


def test_a_copy_under_another_name_shares_the_workers(two: Devices) -> None:
    from embark.run.models import renamed

    other = renamed(two, "mine")
    assert other.card.name == "mine"
    np.testing.assert_array_equal(other.embed(prepared(two, ["a"])), alone(["a"]))


def test_the_engine_finds_the_item_that_kills(space: Space) -> None:
    encoder = devices()
    texts = [*TEXTS[:3], "deadly"]
    with space.writer() as writer:
        report = embed(encoder, needs(texts), writer, batch_size=2)
    assert report.embedded == 3
    (reason,) = report.unreadable.values()
    assert reason == "the model cannot embed it: it killed its worker twice (SIGSEGV)"
    assert report.batch_size is None
    assert not report.too_large


def last_line(log: Path, device: str = "") -> list[str]:
    """(device, process id) of the worker that began a batch last; none in an empty log."""
    lines = [line.split() for line in log.read_text().splitlines() if line.startswith(device)]
    return lines[-1] if lines else []


def test_a_killed_worker_costs_nothing(space: Space, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    encoder = devices(log=str(log), seconds=0.02)

    def kill() -> None:
        end = time.monotonic() + 30
        while len(log.read_text().splitlines()) < 6 and time.monotonic() < end:
            time.sleep(0.005)
        os.kill(int(last_line(log)[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with space.writer() as writer:
        report = embed(encoder, needs(TEXTS), writer, batch_size=3)
    killer.join()
    assert encoder.workers.deaths == ["SIGKILL"]
    assert report.embedded == 60
    space.refresh()
    keys = np.frombuffer(b"".join(need.key for need in needs(TEXTS)), "V32")
    np.testing.assert_array_equal(space.read(keys)[np.arange(60)], alone(TEXTS))


def test_a_device_that_is_lost_for_good_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log"
    log.touch()
    encoder = devices(gone=str(tmp_path), lost=["cpu:1"], log=str(log), seconds=0.01)
    killed = False
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(4) as pool:
        end = time.monotonic() + 30
        while "given up" not in caplog.text and time.monotonic() < end:
            for vectors in pool.map(encoder.embed, [prepared(encoder, TEXTS[:5])] * 8):
                np.testing.assert_array_equal(vectors, alone(TEXTS[:5]))
            if not killed and (line := last_line(log, "cpu:1")):
                os.kill(int(line[1]), signal.SIGKILL)
                killed = True
    assert "cpu:1 is given up, the others go on: EmbarkError: test/colours cannot be loaded as 'colours'" in caplog.text
    assert len(encoder.workers.pids) == 1
    encoder.workers.close()


def test_without_any_device_the_error_says_why(tmp_path: Path) -> None:
    encoder = devices(1, gone=str(tmp_path), lost=["cpu:0"])
    os.kill(encoder.workers.pids[0], signal.SIGKILL)
    with pytest.raises(
        NoWorkers, match="can be started: EmbarkError: test/colours cannot be loaded as 'colours': cpu:0"
    ):
        encoder.embed(prepared(encoder, ["a"]))


def test_workers_end_with_the_encoder() -> None:
    encoder = devices(1)
    (pid,) = encoder.workers.pids
    del encoder
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow  # each worker imports torch and transformers
def test_a_real_checkpoint_on_two_devices_has_the_scores_of_one(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from models.test_dual import clip
    from tiny import saved

    torch.manual_seed(7)
    model, *parts = clip()
    for weights in model.parameters():
        weights.data += 0.3 * torch.randn_like(weights)
    folder = str(saved(tmp_path / "clip", model.eval(), *parts))
    tasks = ["PocketFlagZeroShot", "PocketFlagCapital"]
    whole = embark.evaluate(
        embark.get_model(folder, loading=embark.Loading(device="cpu")), tasks, show_progress=False,
        settings=embark.load_settings(tmp_path / "one", tmp_path / "one" / "results"),
    )  # fmt: skip
    encoder = embark.get_model(folder, loading=embark.Loading(device="cpu,cpu"))
    assert isinstance(encoder, Devices)
    assert identity(encoder.card) == identity(embark.get_model(folder, loading=embark.Loading(device="cpu")).card)
    embed_batch = encoder.embed
    batches: list[int] = []

    def embed(batch: Sequence[Any]) -> Any:
        batches.append(len(batch))
        if len(batches) == 12:  # in the middle; those of the self-check come first
            os.kill(encoder.workers.pids[0], signal.SIGKILL)
        return embed_batch(batch)

    encoder.embed = embed  # type: ignore[method-assign]
    both = embark.evaluate(
        encoder, tasks, batch_size=32, show_progress=False,
        settings=embark.load_settings(tmp_path / "two", tmp_path / "two" / "results"),
    )  # fmt: skip
    assert len(batches) > 12
    assert both.embedded == whole.embedded > 0
    assert [result.score for result in both.results] == [result.score for result in whole.results]
    assert len(both.results) >= 2
    assert {record.loaded["devices"] for result in both.results for record in result.records} == {"cpu,cpu"}
    encoder.workers.close()


@pytest.mark.parametrize(
    ("plain", "reason"), [(False, "does more with pictures"), *slow((True, "nvJPEG is not installed"))]
)
def test_devices_without_pixels_from_a_gpu_go_on_as_before(plain: bool, reason: str) -> None:
    card = replace(PICTURED, options={"plain": plain})
    encoder = Devices(PIXELS_LOADER, card, Loading("auto"), ["cpu:0", "cpu:1"])
    with pytest.raises(EmbarkError, match=reason):
        cuda_pixels(encoder)
    picture = np.full((2, 2, 3), 7, np.uint8)
    np.testing.assert_array_equal(encoder.embed([[("image", picture)]]), [[7, 7, 7]])
    encoder.workers.close()


def test_processes_leave_files_to_the_devices(two: Devices) -> None:
    encoder = copy.copy(two)
    encoder.copy = build(PIXELS_LOADER, PICTURED, Loading("cpu"))
    encoder.capabilities = encoder._capabilities(None, frozenset({"image"}))
    file = Encoded(b"a file", (2, 2), (1, 1))
    image = Image.new("RGB", (1, 1), (5, 6, 7))
    preparation = pickle.loads(pickle.dumps(encoder.capabilities.preparation))
    for prepare in (encoder.prepare, preparation):
        (of_file,) = prepare([Content("image", file)], "")
        assert of_file == ("image", file)
        [(_, pixels)] = prepare([Content("image", image)], "")
        assert pixels.tolist() == [[[5, 6, 7]]]
    assert preparation.modalities == {"image"}


def test_devices_that_have_no_memory_to_start_again_are_an_error_not_large_items(space: Space, tmp_path: Path) -> None:
    encoder = devices(1, gone=str(tmp_path), lost=["cpu:0"], reason="CUDA out of memory")
    os.kill(encoder.workers.pids[0], signal.SIGKILL)
    with pytest.raises(NoWorkers, match="out of memory"), space.writer() as writer:
        embed(encoder, needs(TEXTS[:4]), writer, batch_size=2)
