"""Runs on a Ray cluster: the same vectors and scores, whatever dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.engine.ray import Cluster, RayEngine, require_resources
from embark.models.encoder import Encoder, fingerprint
from embark.planning import keys_of
from embark.store import Store
from embark.types import EmbarkError
from ray_functions import lengths, needs_of_texts

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray itself, in many places
SPACE = fingerprint(lengths().card)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of three nodes on this machine."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    small = {"object_store_memory": 150 << 20}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # actors import what tests import
        cluster = Nodes(initialize_head=True, head_node_args={"num_cpus": 2, **small})
        for _ in range(2):
            cluster.add_node(num_cpus=3, **small)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def settings(folder: Path) -> embark.Settings:
    return embark.load_settings(home=folder / "home", results=folder / "results")


def test_what_no_node_can_hold_is_an_error() -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 8, "GPU": 1}}, {"Alive": False, "Resources": {"CPU": 8, "GPU": 4}}]
    require_resources(Cluster(gpus=1), nodes)
    with pytest.raises(EmbarkError, match=r"needs 1 CPU and 2 GPU on one node, .* \(the most: 8 CPU, 1 GPU\)"):
        require_resources(Cluster(gpus=2), nodes)
    with pytest.raises(EmbarkError, match="ask for less"):
        require_resources(Cluster(), [])


def test_a_run_on_a_cluster_of_one_node(tmp_path: Path) -> None:
    import ray

    model = lengths()
    cluster = Cluster(preparers=1, options={"num_cpus": 3, "object_store_memory": 100 << 20})
    try:
        there = embark.evaluate(
            model, "PocketNameSTS", settings=settings(tmp_path / "there"), cluster=cluster, show_progress=False
        )
    finally:
        ray.shutdown()
    here = embark.evaluate(model, "PocketNameSTS", settings=settings(tmp_path / "here"), show_progress=False)
    assert there.results[0].score == here.results[0].score
    assert there.embedded == here.embedded > 0


@pytest.mark.slow
def test_scores_are_those_of_this_machine(nodes: Any, tmp_path: Path) -> None:
    tasks = ["PocketNameToImage", "PocketNegation", "PocketNameSTS"]
    here = embark.evaluate("embark/handmade", tasks, settings=settings(tmp_path / "here"), show_progress=False)
    cluster = Cluster(nodes.address, copies=2, preparers=2)
    evaluate = partial(embark.evaluate, "embark/handmade", tasks, cluster=cluster, show_progress=False)
    there = evaluate(settings=settings(tmp_path / "there"))
    assert [(result.score, result.interval) for result in here.results] == [
        (result.score, result.interval) for result in there.results
    ]
    assert there.embedded == here.embedded
    again = evaluate(settings=settings(tmp_path / "there"), rescore=True)
    assert again.embedded == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["node", "copy"])
def test_a_kill_in_the_middle_loses_nothing(nodes: Any, tmp_path: Path, what: str) -> None:
    load = partial(lengths, 0.0005, str(tmp_path / "log"))
    needs = needs_of_texts(40_000)
    extra = nodes.add_node(num_cpus=2, object_store_memory=150 << 20)
    done = 0

    def advance(items: int, left: float | None) -> None:
        nonlocal done
        done += items

    def kill() -> None:
        while done < len(needs) // 4:
            time.sleep(0.05)
        if what == "node":
            nodes.remove_node(extra, allow_graceful=False)
        else:
            os.kill(int((tmp_path / "log").read_text().split()[-2]), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    store = Store(tmp_path / "store")
    cluster = Cluster(nodes.address, copies=3, preparers=1)
    with RayEngine(cluster, load, lengths, None, SPACE) as engine, store.space("a").writer() as writer:
        killer.start()
        report = engine.embed(needs, writer, advance=advance)
    killer.join(30)
    assert report.embedded == done == len(needs)
    expected = np.array([len(need.item.parts[0].text) for need in needs])
    assert np.array_equal(store.space("a").read(keys_of(needs))[:][:, 0], expected)
    computed = sum(int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines())
    assert computed <= 1.05 * len(needs) + 2048  # little was computed twice


@pytest.mark.slow
def test_errors_of_a_model_cost_their_wave(nodes: Any, tmp_path: Path) -> None:
    def broken() -> Encoder:
        return lengths(fails=True)

    needs = needs_of_texts(3000)
    with (
        RayEngine(Cluster(nodes.address, copies=1, preparers=1), broken, lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        for _ in range(2):  # the actors live on
            with pytest.raises(EmbarkError, match="ValueError: a broken model"):
                engine.embed(needs, writer)


@pytest.mark.slow
def test_another_model_on_the_nodes_is_an_error(nodes: Any, tmp_path: Path) -> None:
    with (
        RayEngine(Cluster(nodes.address), lengths, lengths, None, "other") as engine,
        Store(tmp_path).space("a").writer() as writer,
        pytest.raises(EmbarkError, match="is not the model of the run"),
    ):
        engine.embed(needs_of_texts(10), writer)
