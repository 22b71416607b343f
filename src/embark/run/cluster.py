"""A run on a Ray cluster: what its nodes load, read and send."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from embark import evaluators
from embark.catalogue import check_name
from embark.engine.ray.cluster import Cluster, connect
from embark.engine.ray.engine import RayEngine
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.planning import Demand
from embark.protocol import vector_space
from embark.run.fetching import from_hub
from embark.run.models import Model, NamedModel, load_model
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.store import Space
from embark.store.buckets import open_store
from embark.types import Array, Dataset, EmbarkError, ModelCard, Scores, Task, Truth

logger = logging.getLogger("embark")

SCORED_THERE = 100_000  # items of a part that is scored on a node: sending it takes longer than scoring a small one
SCORING_SECONDS = 6 * 3600.0  # for one part
NUMBERS = ("gpus", "cpus", "wait", "item_seconds", "batch_seconds")
RANGES = ("copies", "preparers")


def cluster_of(settings: Settings) -> Cluster | None:
    """The cluster that the settings name; None where models run on this machine.

    The engine is "local" or "ray", with what is to be used of the cluster behind it: "ray:copies=8,gpus=1,shared".
    """
    engine, _, stated = settings.engine.partition(":")
    check_name("engine", engine, ("local", "ray"))
    if engine == "local":
        return None
    options: dict[str, Any] = {}
    for piece in filter(None, stated.split(",")):
        name, _, value = piece.partition("=")
        check_name("option of the engine", name, (*RANGES, *NUMBERS, "shared"))
        options[name] = _option(name, value)
    return Cluster(settings.address, **options)


def _option(name: str, value: str) -> Any:
    """The value of an option of the engine: 1.5, 8, 2-8; of `shared`, none."""
    try:
        if name == "shared":
            return {"": True, "true": True, "false": False}[value]
        if name in NUMBERS:
            return float(value)
        least, _, most = value.partition("-")
        return (int(least), int(most)) if most else int(least)
    except (ValueError, KeyError):
        example = "shared" if name == "shared" else f"{name}=1" if name in NUMBERS else f"{name}=8 or {name}=2-8"
        raise EmbarkError(f"The engine's option '{name}={value}' is not understood; write {example}.") from None


def loading_here(loading: Loading | None) -> Loading:
    """How this process loads a model that runs on a cluster, and actors that prepare: they embed nothing."""
    loading = loading or Loading()
    if loading.pixels == "cuda":
        raise EmbarkError("On a cluster, the CPUs of other actors prepare pictures: leave --pixels out, or pillow.")
    return replace(loading, device="cpu", compile=False, pixels="pillow", weights=False)


def cluster_engine(
    cluster: Cluster, model: Model, loading: Loading | None, bench: Workbench, encoder: Encoder
) -> RayEngine:
    """The engine of a model on a cluster; `encoder` is the model as this process loaded it, see `loading_here`."""
    if encoder.capabilities.billed:
        raise EmbarkError(f"{encoder.card.name} runs behind an API: a cluster does not make it faster.")
    home = bench.settings if cluster.shared else None
    gpus = encoder.card.gpus if cluster.gpus is None else cluster.gpus
    loading = replace(loading or Loading(), settings=None, pixels="pillow")
    if gpus and gpus > 1 and loading.device == "auto":
        loading = replace(loading, device="split")  # one copy on all GPUs that its actor gets
    by_name = isinstance(model.model if isinstance(model, NamedModel) else model, (str, ModelCard))
    load: Callable[[], Encoder] = partial(_load, model, loading, home) if by_name else partial(_same, encoder)
    copy = partial(_load, model, loading_here(loading), home) if by_name else load
    read = partial(_read, home, bench.settings.endpoint, bench.settings.offline)

    def travels(task: Task) -> bool:
        """Whether the items of a task are on this machine alone; those of Pocket come with the package."""
        if type(bench) is not Workbench:  # stages have changed them
            return True
        return not cluster.shared and not from_hub(task) and not task.reader.startswith("pocket")

    return RayEngine(replace(cluster, gpus=gpus), load, copy, read, vector_space(encoder.card), travels)


def remote_scoring(
    cluster: Cluster, settings: Settings
) -> Callable[[ModelCard, Demand, Mapping[str, Any]], Scores | None] | None:
    """What scores large tasks on the nodes, where these reach the stored vectors: in a shared folder, or a bucket.

    None otherwise. What it returns scores here (None) what is small, and whatever fails there, for its error.
    """
    bucket = settings.store if isinstance(settings.store, str) else None
    if not cluster.shared and bucket is None:
        return None

    def score(card: ModelCard, demand: Demand, params: Mapping[str, Any]) -> Scores | None:
        if sum(map(len, demand.keys.values())) < SCORED_THERE:
            return None
        ray = connect(cluster)
        # Without CPUs of its own: all may be the actors', and there are few of these tasks at once.
        task = ray.remote(_score).options(num_cpus=0, scheduling_strategy="SPREAD")
        place = settings if cluster.shared else bucket
        work = task.remote(place, vector_space(card), demand.task.evaluator, demand.data.truth, demand.keys, params)
        try:
            scores: Scores = ray.get(work, timeout=SCORING_SECONDS)
        except Exception as error:
            logger.info("%s is scored on this machine, because a node failed: %s", demand.task.name, error)
            return None
        return scores

    return score


def _score(
    place: Settings | str,
    space: str,
    evaluator: str,
    truth: Truth,
    keys: Mapping[str, Array],
    params: Mapping[str, Any],
) -> Scores:
    """The scores of a part of a task, on a node; `place` are the settings of a shared folder, or a bucket's address."""
    vectors = _node_space(place, space)
    vectors.refresh()
    return evaluators.evaluate(evaluator, truth, {side: vectors.read(rows) for side, rows in keys.items()}, params)


@lru_cache(maxsize=2)
def _node_space(place: Settings | str, space: str) -> Space:
    return open_store(load_settings(store=place) if isinstance(place, str) else place).space(space)


def _load(model: Model, loading: Loading, home: Settings | None) -> Encoder:
    """The model on a node."""
    return load_model(model, loading, home or load_settings())


def _same(encoder: Encoder) -> Encoder:
    return encoder


def _read(home: Settings | None, endpoint: str, offline: bool, task: Task, split: str, subset: str) -> Dataset:
    """A part of a task on a node: from the shared folder, else from the node's own."""
    return _node_bench(home, endpoint, offline).read(task, split, subset)


@lru_cache(maxsize=1)
def _node_bench(home: Settings | None, endpoint: str, offline: bool) -> Workbench:
    return Workbench(home or load_settings(endpoint=endpoint, offline=offline), show_progress=False)
