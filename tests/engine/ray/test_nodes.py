"""Nodes of few CPUs, nodes that join late, and copies that stand still: every item is embedded, on all nodes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from embark.engine.ray import engine as engine_module
from embark.engine.ray.cluster import Cluster
from embark.engine.ray.engine import RayEngine
from embark.store import Store
from ray_functions import MEMORY, SPACE, import_path, lengths, needs_of_texts

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # Ray itself warns in many places
LONGEST = 150  # seconds of a run


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of 100 items."""
    monkeypatch.setitem(engine_module.ITEMS, "text", 100)
    monkeypatch.setattr(engine_module, "SMALLEST", 1)


@contextmanager
def cluster_of(**head: float) -> Iterator[Any]:
    """A cluster of one node with these resources."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", import_path())
        cluster = Nodes(initialize_head=True, head_node_args={**head, **MEMORY})
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


class Running:
    """A run in a thread of its own: how many items it has embedded so far."""

    def __init__(self, cluster: Cluster, items: int, folder: Path, seconds: float, preparing: float = 0.0) -> None:
        self.items = items
        self.folder = folder
        self.done = 0
        self.error: BaseException | None = None
        self._seconds = seconds  # for embedding an item
        self._preparing = preparing  # seconds
        self._thread = threading.Thread(target=self._embed, args=(cluster,), daemon=True)
        self._thread.start()

    def _embed(self, cluster: Cluster) -> None:
        load = partial(lengths, self._seconds, str(self.folder / "embedded"))
        copy = partial(lengths, self._preparing, prepared=str(self.folder / "prepared"))
        try:
            with (
                RayEngine(cluster, load, copy, None, SPACE) as engine,
                Store(self.folder / "store").space("a").writer() as writer,
            ):
                engine.embed(needs_of_texts(self.items), writer, advance=self._advance)
        except BaseException as error:
            self.error = error

    def _advance(self, items: int, left: float | None) -> None:
        self.done += items

    def wait_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + LONGEST
        while not condition() and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.05)

    def assert_complete(self) -> None:
        self._thread.join(LONGEST)
        assert self.error is None
        assert self.done == self.items, f"{self.done} of {self.items} items after {LONGEST} s"
        assert len(Store(self.folder / "store").space("a")) == self.items

    def rows(self, log: str) -> list[list[str]]:
        """(node, process, items) of every batch that was embedded, or of every item that was prepared."""
        with suppress(FileNotFoundError):
            return [line.split() for line in (self.folder / log).read_text().splitlines()]
        return []

    def nodes(self, log: str) -> set[str]:
        return {row[0] for row in self.rows(log)}


def test_one_cpu_is_enough(tmp_path: Path) -> None:
    with cluster_of(num_cpus=1) as nodes:
        Running(Cluster(nodes.address), 515, tmp_path, 0.001).assert_complete()


def test_a_gpu_that_joins_late_is_used(tmp_path: Path) -> None:
    with cluster_of(num_cpus=2, num_gpus=1) as nodes:
        run = Running(Cluster(nodes.address), 15_000, tmp_path, 0.002)
        run.wait_until(lambda: run.done >= 500)
        late = nodes.add_node(num_cpus=1, num_gpus=1, **MEMORY)
        run.assert_complete()  # within 30 s, as it takes no longer if only one copy embeds
        assert run.nodes("embedded") == {nodes.head_node.node_id, late.node_id}


def test_cpus_that_join_late_prepare(tmp_path: Path) -> None:
    with cluster_of(num_cpus=6, num_gpus=1) as nodes:
        run = Running(Cluster(nodes.address), 15_000, tmp_path, 0.003, 0.003)
        run.wait_until(lambda: len({process for _, process, _ in run.rows("prepared")}) >= 4)
        late = nodes.add_node(num_cpus=2, **MEMORY)
        run.assert_complete()  # within 45 s, as only one copy embeds
        assert run.nodes("prepared") == {nodes.head_node.node_id, late.node_id}


def test_cpus_that_join_late_embed_where_there_are_no_gpus(tmp_path: Path) -> None:
    with cluster_of(num_cpus=2) as nodes:
        run = Running(Cluster(nodes.address), 15_000, tmp_path, 0.002)
        run.wait_until(lambda: run.done >= 500)
        late = nodes.add_node(num_cpus=2, **MEMORY)
        run.assert_complete()  # within 30 s, as it takes no longer if only one copy embeds
        assert run.nodes("embedded") == {nodes.head_node.node_id, late.node_id}


def test_a_copy_that_stands_still_and_a_node_that_is_lost_cost_no_item(tmp_path: Path) -> None:
    with cluster_of(num_cpus=2) as nodes:
        for _ in range(2):
            nodes.add_node(num_cpus=2, **MEMORY)
        run = Running(Cluster(nodes.address, copies=3, preparers=2), 8_000, tmp_path, 0.002)
        run.wait_until(lambda: len(run.nodes("embedded")) > 1 and run.done >= 6_000)  # few are left, so that it shows
        head = nodes.head_node.node_id
        lost = next(node for node in nodes.list_all_nodes() if node.node_id in run.nodes("embedded") - {head})
        frozen = next(int(process) for node, process, _ in run.rows("embedded") if node != lost.node_id)
        os.kill(frozen, signal.SIGSTOP)
        try:
            nodes.remove_node(lost, allow_graceful=False)
            run.assert_complete()
        finally:
            with suppress(ProcessLookupError):
                os.kill(frozen, signal.SIGKILL)
