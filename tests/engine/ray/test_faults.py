"""Actors, nodes and drivers of a Ray cluster that are lost: nothing else is, little is done twice, nothing hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.engine.ray import engine as engine_module
from embark.engine.ray.cluster import Cluster
from embark.engine.ray.engine import RayEngine
from embark.engine.ray.execution import STARTS
from embark.engine.report import EmbeddingReport
from embark.planning import Needs, keys_of
from embark.store import Store
from embark.types import EmbarkError
from ray_functions import MEMORY, SPACE, dying, lengths, needs_of_texts, three_nodes

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # Ray itself warns in many places
ITEMS = 20_000
JOB = 100  # items, in these tests
SECONDS = 0.002  # of an item
LONGEST = 300  # seconds: nodes and actors start slowly on a busy machine


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of three nodes on this machine."""
    with three_nodes() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of few items, so that there are many."""
    monkeypatch.setitem(engine_module.ITEMS, "text", JOB)
    monkeypatch.setattr(engine_module, "SMALLEST", 1)


def embed_and_break(
    cluster: Cluster, needs: Needs, folder: Path, harm: Callable[[], None], before: Callable[[], None] = lambda: None
) -> EmbeddingReport:
    """Embed the needs, in another thread; in this one, do what comes before, and harm after a quarter of them."""
    done = 0

    def advance(items: int, left: float | None) -> None:
        nonlocal done
        done += items

    def embed() -> EmbeddingReport:
        load = partial(lengths, SECONDS, str(folder / "log"))
        copy = partial(lengths, prepared=str(folder / "prepared"))
        with (
            RayEngine(cluster, load, copy, None, SPACE) as engine,
            Store(folder / "store").space("a").writer() as writer,
        ):
            return engine.embed(needs, writer, advance=advance)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(embed)
        before()
        end = time.monotonic() + LONGEST
        while done < len(needs) // 4 and time.monotonic() < end and not future.done():
            time.sleep(0.02)
        harm()
        report = future.result(LONGEST)
    assert done == len(needs)
    return report


def assert_stored(folder: Path, needs: Needs) -> None:
    expected = np.array([len(need.item.parts[0].text) for need in needs])  # type: ignore[union-attr]
    assert np.array_equal(Store(folder / "store").space("a").read(keys_of(needs))[:][:, 0], expected)


def embedded(folder: Path, log: str = "log") -> list[list[str]]:
    """(node, process, items) of every batch."""
    return [line.split() for line in (folder / log).read_text().splitlines()]


def prepared(folder: Path) -> list[list[str]]:
    """(node, process, items) of every item that was prepared."""
    return embedded(folder, "prepared")


def repeated(folder: Path, needs: Needs) -> float:
    """The share of items that were embedded more than once."""
    return sum(int(items) for *_, items in embedded(folder)) / len(needs) - 1


@pytest.mark.parametrize("what", ["copy", "node", "drained node"])
def test_a_loss_in_the_middle_repeats_at_most_five_percent(nodes: Any, tmp_path: Path, what: str) -> None:
    import ray

    needs = needs_of_texts(ITEMS)
    head = nodes.head_node.node_id
    extra = [nodes.add_node(num_cpus=1, resources={"spot": 1}, **MEMORY) for _ in range(2)]
    hit: list[str] = []

    def harm() -> None:
        lines = [line for line in embedded(tmp_path) if line[0] != head]
        node, process, _ = lines[-1]
        hit.append(node)
        if what == "copy":
            os.kill(int(process), signal.SIGKILL)
        elif what == "node":
            [lost] = [other for other in nodes.list_all_nodes() if other.node_id == node]
            nodes.remove_node(lost, allow_graceful=False)
        else:
            from ray._raylet import GcsClient

            drain = GcsClient(address=nodes.address).drain_node
            preempted = 2
            assert drain(node, preempted, "spot", int(1000 * (time.time() + 3)))[0]
            time.sleep(3)
            [lost] = [other for other in nodes.list_all_nodes() if other.node_id == node]
            nodes.remove_node(lost, allow_graceful=False)

    try:
        report = embed_and_break(Cluster(nodes.address, copies=3, preparers=(1, 2)), needs, tmp_path, harm)
    finally:
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        for node in extra:
            if node.node_id in alive:
                nodes.remove_node(node)
        while len(nodes.list_all_nodes()) < 3:
            nodes.add_node(num_cpus=3, **MEMORY)
    assert report.embedded == len(needs)
    assert_stored(tmp_path, needs)
    assert hit
    assert repeated(tmp_path, needs) <= 0.05


@pytest.mark.parametrize(
    ("text", "seconds", "reason"),
    [
        ("stuck", 4, "it does not decode: it took longer than 2 s"),
        ("hang", 4, "the model cannot embed it: it took longer than 4 s"),
        ("kill", 60, "the model cannot embed it: it killed its worker twice"),  # which takes long beside other tests
    ],
)
def test_an_item_that_actors_die_of_is_left_out(
    nodes: Any, tmp_path: Path, text: str, seconds: float, reason: str
) -> None:
    needs = needs_of_texts(4 * JOB, text)
    cluster = Cluster(nodes.address, copies=2, preparers=1, item_seconds=2, batch_seconds=seconds)
    with (
        RayEngine(cluster, lengths, lengths, None, SPACE) as engine,
        Store(tmp_path / "store").space("a").writer() as writer,
    ):
        report = engine.embed(needs, writer)
    assert report.embedded == 4 * JOB
    assert report.unreadable == {needs[4 * JOB].key: reason}
    assert engine.retries >= 2


def test_a_model_that_never_loads_ends_the_run(nodes: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        RayEngine(Cluster(nodes.address, copies=1), partial(dying, str(log)), lengths, None, SPACE) as engine,
        Store(tmp_path / "store").space("a").writer() as writer,
        pytest.raises(EmbarkError, match="No actor starts on the cluster: "),
    ):
        engine.embed(needs_of_texts(10), writer)
    assert len(log.read_text().splitlines()) == STARTS


def test_a_node_that_joins_late_is_used(nodes: Any, tmp_path: Path) -> None:
    needs = needs_of_texts(ITEMS // 2)
    late: list[Any] = []

    def join() -> None:
        time.sleep(1)
        late.append(nodes.add_node(num_cpus=1, num_gpus=1, **MEMORY))  # pretended

    cluster = Cluster(nodes.address, copies=(1, 2), gpus=1, preparers=1)
    try:
        report = embed_and_break(cluster, needs, tmp_path, join, before=join)
        assert report.embedded == len(needs)
        used = {line[0] for line in embedded(tmp_path)}
        assert used == {node.node_id for node in late}  # no others have a GPU
    finally:
        for node in late:
            nodes.remove_node(node)


DRIVER = """
import sys
from functools import partial
from pathlib import Path
from embark.engine.ray import engine as ray
from embark.engine.ray.engine import RayEngine
from embark.engine.ray.cluster import Cluster
from embark.planning import plan
from embark.store import Store
from embark.types import EmbarkError
from ray_functions import SPACE, lengths, needs_of_texts

address, folder = sys.argv[1:]
ray.ITEMS["text"] = 100
ray.SMALLEST = 1
space = Store(Path(folder, "store")).space("a")
needs = plan(needs_of_texts(10_000).demands, space.has).needs
load = partial(lengths, 0.002, folder + "/log")
with RayEngine(Cluster(address, copies=3, preparers=1), load, lengths, None, SPACE) as engine, space.writer() as writer:
    report = engine.embed(needs, writer)
print("embedded", report.embedded)
"""


def test_a_killed_driver_leaves_the_rest_to_the_next(nodes: Any, tmp_path: Path) -> None:
    items = ITEMS // 2
    words = [sys.executable, "-c", DRIVER, nodes.address, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen(words, env=environment, stderr=(tmp_path / "stderr").open("w"))
    end = time.monotonic() + LONGEST
    while len(Store(tmp_path / "store").space("a")) < items // 10 and time.monotonic() < end and first.poll() is None:
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    stored = len(Store(tmp_path / "store").space("a"))
    assert items // 10 <= stored < items
    second = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert second.stdout.split() == ["embedded", str(items - stored)], second.stderr
    assert_stored(tmp_path, needs_of_texts(items))


def test_actors_that_are_all_lost_are_started_anew(nodes: Any, tmp_path: Path) -> None:
    needs = needs_of_texts(ITEMS // 4)

    def harm() -> None:
        for process in {int(process) for _, process, _ in [*embedded(tmp_path), *prepared(tmp_path)]}:
            os.kill(process, signal.SIGKILL)

    report = embed_and_break(Cluster(nodes.address, copies=2, preparers=1), needs, tmp_path, harm)
    assert report.embedded == len(needs)
    assert_stored(tmp_path, needs)


def test_an_address_without_a_cluster_is_an_error_in_time() -> None:
    code = "from embark.engine.ray.cluster import *; connect(Cluster('127.0.0.1:9'))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST)
    assert "There is no Ray cluster at '127.0.0.1:9'" in ran.stderr
