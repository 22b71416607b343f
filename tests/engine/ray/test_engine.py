"""Runs on a Ray cluster: the same vectors and scores as on this machine. What dies is tested in tests/faults."""

from __future__ import annotations

import errno
import importlib
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import embark
from conftest import POCKET_TASKS
from embark.engine.activity import SILENT, Activity
from embark.engine.batching.self_check import Inconsistent
from embark.engine.ray import cluster as ray_cluster
from embark.engine.ray import engine as ray_engine
from embark.engine.ray.cluster import Cluster, NodePlace, allot, require_resources, wait_for_room, with_gpus
from embark.engine.ray.engine import RayEngine
from embark.run import cluster as cluster_module
from embark.run.workbench import Workbench
from embark.store import Store, Writer
from embark.types import EmbarkError
from folders import two_tasks
from ray_functions import SPACE, import_path, lengths, needs_of_texts, three_nodes
from tiny_mllm import built

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray itself, in many places


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of three nodes on this machine."""
    with three_nodes() as cluster:
        yield cluster


def settings(folder: Path, **more: Any) -> embark.Settings:
    return embark.load_settings(home=folder / "home", results=folder / "results", **more)


def node(name: str = "a", alive: bool = True, **resources: float) -> dict[str, Any]:
    """A node as Ray lists it."""
    return {"NodeID": name, "Alive": alive, "Resources": resources}


def allotted(cluster: Cluster, nodes: list[dict[str, Any]], placed: Counter[NodePlace] | None = None) -> dict[Any, int]:
    """The places that get actors, and how many."""
    return dict(+allot(with_gpus(cluster, nodes), nodes, placed or Counter()))


def test_what_no_node_can_hold_is_an_error() -> None:
    nodes = [node(CPU=8, GPU=1), node("b", alive=False, CPU=8, GPU=4)]
    require_resources(Cluster(gpus=1), nodes)
    with pytest.raises(EmbarkError, match=r"needs 1 CPU and 2 GPU on one node, .* \(the most: 8 CPU, 1 GPU\)"):
        require_resources(Cluster(gpus=2), nodes)
    with pytest.raises(EmbarkError, match="ask for less"):
        require_resources(Cluster(), [])


def test_a_node_with_room_is_waited_for() -> None:
    looks = iter([[], [node(CPU=2)], [node(CPU=2), node("b", CPU=8, GPU=2)]])
    assert wait_for_room(Cluster(gpus=2, wait=60), lambda: next(looks), SILENT).gpus == 2
    assert next(looks, None) is None
    with pytest.raises(EmbarkError, match="needs 1 CPU and 2 GPU on one node"):
        wait_for_room(Cluster(gpus=2, wait=0), lambda: [node(CPU=2)], SILENT)


def test_a_cluster_without_room_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    class Ray:
        @staticmethod
        def nodes() -> list[dict[str, Any]]:
            looks.append(time.monotonic())
            return [node(CPU=1)]

    monkeypatch.setattr(ray_engine, "connect", lambda cluster: Ray)
    with (
        RayEngine(Cluster(gpus=1, wait=0), lengths, lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        for _ in range(2):  # as a run tries tasks one by one, after a failure
            with pytest.raises(EmbarkError, match="needs 1 CPU and 1 GPU on one node"):
                engine.embed(needs_of_texts(3), writer)
    assert len(looks) == 1


def test_copies_are_as_many_as_there_is_room_for() -> None:
    cpus = [node("a", CPU=4), node("b", CPU=3)]
    assert allotted(Cluster(), cpus) == {("a", "embed", 1): 4, ("b", "embed", 1): 2, ("b", "prepare", 1): 1}
    assert allotted(Cluster(cpus=2), cpus) == {("a", "embed", 2): 2, ("b", "embed", 2): 1, ("b", "prepare", 1): 1}
    gpus = [node("a", CPU=16), node("b", CPU=16, GPU=4), node("c", CPU=1, GPU=4)]
    assert with_gpus(Cluster(), gpus).gpus == 1
    assert allotted(Cluster(), gpus) == {
        ("b", "embed", 1): 4, ("c", "embed", 1): 1, ("a", "prepare", 1): 16, ("b", "prepare", 1): 12,
    }  # fmt: skip
    stated = allotted(Cluster(gpus=2, copies=7, preparers=2), gpus)  # as many of them as there is room for
    assert stated == {("b", "embed", 1): 2, ("c", "embed", 1): 1, ("a", "prepare", 1): 2}
    assert allotted(Cluster(gpus=0.5, preparers=1), [node(CPU=16, GPU=1)])["a", "embed", 1] == 2


def test_preparers_take_no_cpu_that_a_copy_needs() -> None:
    assert allotted(Cluster(), [node(CPU=1)]) == {("a", "embed", 1): 1, ("a", "prepare", 0): 1}
    assert allotted(Cluster(preparers=2), [node(CPU=1, GPU=1)]) == {("a", "embed", 1): 1, ("a", "prepare", 0): 2}
    assert allotted(Cluster(copies=2, preparers=3), [node(CPU=4)]) == {
        ("a", "embed", 1): 2, ("a", "prepare", 1): 2, ("a", "prepare", 0): 1,
    }  # fmt: skip
    held = Counter({NodePlace("a", "prepare", 1.0): 2})
    assert allotted(Cluster(copies=1), [node(CPU=2)], held) == {("a", "embed", 1): 1, ("a", "prepare", 1): 1}


def test_a_node_that_joins_gets_actors_and_the_others_keep_theirs() -> None:
    gpus = [node("a", CPU=2, GPU=1)]
    first = Counter(allotted(Cluster(gpus=1), gpus))
    assert first == {("a", "embed", 1): 1, ("a", "prepare", 1): 1}
    assert allotted(Cluster(gpus=1), [*gpus, node("b", CPU=3, GPU=1)], first) == {
        **first, ("b", "embed", 1): 1, ("b", "prepare", 1): 2,
    }  # fmt: skip
    assert allotted(Cluster(gpus=1), [*gpus, node("b", CPU=3)], first) == {**first, ("b", "prepare", 1): 3}
    alone = Counter(allotted(Cluster(), [node("a", CPU=1)]))
    assert allotted(Cluster(), [node("a", CPU=1), node("b", CPU=2)], alone) == {
        **alone,
        ("b", "embed", 1): 1,
        ("b", "prepare", 1): 1,
    }
    assert allotted(Cluster(copies=2), [node("b", CPU=1)], first) == {("b", "embed", 1): 1, ("b", "prepare", 0): 1}


@pytest.mark.slow
def test_a_run_on_a_cluster_of_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setenv("PYTHONPATH", import_path())
    model = lengths()
    cluster = Cluster(copies=1, preparers=1, options={"num_cpus": 3, "object_store_memory": 100 << 20})
    there = embark.evaluate(
        model, "PocketNameSTS", settings=settings(tmp_path / "there"), cluster=cluster, show_progress=False
    )
    assert not ray.is_initialized()
    here = embark.evaluate(model, "PocketNameSTS", settings=settings(tmp_path / "here"), show_progress=False)
    assert there.results[0].score == here.results[0].score
    assert there.embedded == here.embedded > 0


@pytest.mark.slow  # it imports Ray, which brings psutil along
def test_no_process_outlives_the_cluster_that_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("ray")
    (tmp_path / "raylet").symlink_to("/bin/sh")
    command = [tmp_path / "raylet", "-c", "sleep 60 & echo $!; wait"]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    other = subprocess.Popen(["sleep", "60"])  # of nobody's cluster
    assert node.stdout is not None
    worker = Path("/proc", node.stdout.readline().strip(), "stat")
    assert worker.exists()

    class Ray:
        shutdown = node.kill

    monkeypatch.setattr(ray_cluster, "_CONNECTED", {Ray: True})
    monkeypatch.setattr(ray_cluster, "ENDING_SECONDS", 0.1)
    ray_cluster.disconnect()
    deadline = time.monotonic() + 10
    while worker.exists() and worker.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the worker lives"
        time.sleep(0.05)
    assert other.poll() is None
    other.kill()
    for process in (node, other):
        process.communicate(timeout=10)


@pytest.mark.slow
def test_scores_are_those_of_this_machine(nodes: Any, tmp_path: Path) -> None:
    tasks = ["PocketNameToImage", "PocketNegation", "PocketNameSTS"]
    here = embark.evaluate("embark/handmade", tasks, settings=settings(tmp_path / "here"), show_progress=False)
    there = settings(tmp_path / "there", engine="ray:copies=2,preparers=2", address=nodes.address)
    evaluate = partial(embark.evaluate, "embark/handmade", tasks, settings=there, show_progress=False)
    remote = evaluate()
    assert [(result.score, result.interval) for result in here.results] == [
        (result.score, result.interval) for result in remote.results
    ]
    assert remote.embedded == here.embedded
    assert evaluate(rescore=True).embedded == 0


@pytest.mark.slow
def test_a_model_whose_weights_only_copies_have_scores_as_here(nodes: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    evaluate = partial(embark.evaluate, str(built("qwen2_5_vl", folder)), "PocketFlagZeroShot", show_progress=False)
    here = evaluate(settings=settings(tmp_path / "here"))
    cluster = Cluster(nodes.address, copies=1, preparers=1)
    there = evaluate(settings=settings(tmp_path / "there"), cluster=cluster)
    assert there.embedded == here.embedded > 0
    assert [result.score for result in there.results] == [result.score for result in here.results]


@pytest.mark.slow
def test_items_of_a_folder_travel(nodes: Any, tmp_path: Path, pictures: Any, tiny: embark.Encoder) -> None:
    tasks = two_tasks(pictures())
    here = embark.evaluate(tiny, tasks, settings=settings(tmp_path / "here"), show_progress=False)
    there = embark.evaluate(
        tiny, tasks, settings=settings(tmp_path / "there"), show_progress=False,
        cluster=Cluster(nodes.address, copies=1, preparers=1),
    )  # fmt: skip
    assert [result.score for result in there.results] == [result.score for result in here.results]
    assert there.embedded == here.embedded > 0


@pytest.mark.slow
def test_batches_have_the_size_that_the_user_gave(nodes: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        RayEngine(Cluster(nodes.address, copies=1), partial(lengths, log=str(log)), lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        report = engine.embed(needs_of_texts(300), writer, batch_size=17, self_check=True)
    assert report.embedded == 300
    sizes = [int(line.split()[-1]) for line in log.read_text().splitlines()]
    assert max(sizes) == 17
    assert sizes.count(17) == 296 // 17  # without those of the self-check


@pytest.mark.slow
def test_a_model_that_mixes_items_up_is_not_evaluated(nodes: Any, tmp_path: Path) -> None:
    with (
        RayEngine(Cluster(nodes.address, copies=1), partial(lengths, reverses=True), lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
        pytest.raises(Inconsistent, match="a batch returns rows in another order"),
    ):
        engine.embed(needs_of_texts(300), writer, self_check=True)


@pytest.mark.slow
def test_messages_name_items(nodes: Any, tmp_path: Path) -> None:
    needs = needs_of_texts(50, "large")
    with (
        RayEngine(Cluster(nodes.address, copies=1), lengths, lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        report = engine.embed(needs, writer, name=lambda need: f"Items row {need.row}")
    assert report.embedded == 50
    [reason] = report.too_large.values()
    assert reason == "test/lengths has not enough memory for one item: Items row 50"


@pytest.mark.slow
def test_one_log_and_one_display_tell_of_all_nodes(
    nodes: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    activity = Activity(show=False)
    with (
        RayEngine(Cluster(nodes.address, copies=1), partial(lengths, 0.001), lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        engine.embed(needs_of_texts(1000, "odd"), writer, activity=activity)
    assert re.search(r"^\d+\.\d+\.\d+\.\d+: an odd text$", "\n".join(caplog.messages), re.MULTILINE)
    assert 0 < activity.busy_share() <= 1
    assert activity.stage("write").done > 0


@pytest.mark.slow
def test_errors_of_a_model_cost_their_wave(nodes: Any, tmp_path: Path) -> None:
    with (
        RayEngine(Cluster(nodes.address, copies=1), partial(lengths, fails=True), lengths, None, SPACE) as engine,
        Store(tmp_path).space("a").writer() as writer,
    ):
        for _ in range(2):  # the actors live on
            with pytest.raises(EmbarkError, match="ValueError: a broken model"):
                engine.embed(needs_of_texts(3000), writer)


@pytest.mark.slow
def test_another_model_on_the_nodes_is_an_error(nodes: Any, tmp_path: Path) -> None:
    with (
        RayEngine(Cluster(nodes.address, copies=1), lengths, lengths, None, "other") as engine,
        Store(tmp_path).space("a").writer() as writer,
        pytest.raises(EmbarkError, match="is not the model of the run"),
    ):
        engine.embed(needs_of_texts(10), writer)


class FullDisk(Writer):
    """A writer whose disk is full."""

    def __init__(self) -> None:
        pass

    def add(self, *args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def commit(self) -> None:
        pass


@pytest.mark.slow
def test_an_error_of_the_disk_is_not_the_clusters(nodes: Any) -> None:
    with RayEngine(Cluster(nodes.address, copies=1), lengths, lengths, None, SPACE) as engine:
        for _ in range(2):  # the cluster is as it was
            with pytest.raises(OSError, match="No space left on device"):
                engine.embed(needs_of_texts(3000), FullDisk())


@pytest.mark.slow
def test_a_copy_on_several_gpus_is_placed_where_they_are(nodes: Any, tmp_path: Path) -> None:
    model = embark.encoder(text=lambda texts: [[len(text), 1.0] for text in texts], name="test/large", gpus=2)
    cluster = Cluster(nodes.address, copies=1, preparers=1, wait=1)
    evaluate = partial(embark.evaluate, model, "PocketNameSTS", cluster=cluster, show_progress=False)
    with pytest.raises(EmbarkError, match=r"needs 1 CPU and 2 GPU on one node, .* \(the most: 3 CPU, 0 GPU\)"):
        evaluate(settings=settings(tmp_path))
    several = nodes.add_node(num_cpus=2, num_gpus=2, object_store_memory=100 << 20)  # pretended
    try:
        assert evaluate(settings=settings(tmp_path)).results
    finally:
        nodes.remove_node(several)


@pytest.mark.slow
def test_scores_from_nodes_are_those_from_here(nodes: Any, pocket_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "SCORED_THERE", 1)
    here = settings(pocket_home.parent)
    bench = Workbench(here, show_progress=False)
    model = embark.get_model("embark/random")
    assert cluster_module.remote_scoring(Cluster(nodes.address), here) is None  # vectors are on this machine
    score = cluster_module.remote_scoring(Cluster(nodes.address, shared=True), here)
    assert score is not None
    compared = 0
    for task in embark.get_tasks(POCKET_TASKS):
        for demand in bench.demands(task, model) if not bench.incompatibility(model.card, task) else ():
            remote = score(model.card, demand, bench.params(task, model.card))
            local = bench.score(model, demand)
            assert remote is not None
            assert (remote.metrics, remote.main) == (local.metrics, local.main)
            assert {name: values.tobytes() for name, values in remote.outcomes.items()} == {
                name: values.tobytes() for name, values in local.outcomes.items()
            }
            compared += 1
    assert compared > 5
