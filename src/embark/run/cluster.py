"""A run on a Ray cluster: what its nodes load, read and send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from embark.engine.ray import Cluster, RayEngine
from embark.models import Loading
from embark.models.encoder import Billed, Encoder, fingerprint
from embark.run.fetching import from_hub
from embark.run.models import Model, load_model
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.types import Dataset, EmbarkError, ModelCard, Task


def cluster_engine(
    cluster: Cluster, model: Model, loading: Loading | None, bench: Workbench, encoder: Encoder
) -> RayEngine:
    """The engine of a model on a cluster; `encoder` is the model as this process loaded it."""
    if isinstance(encoder, Billed):
        raise EmbarkError(f"{encoder.card.name} is asked over the network: a cluster does not make it faster.")
    home = bench.settings if cluster.shared else None
    loading = replace(loading or Loading(), settings=None)
    by_name = isinstance(model, (str, ModelCard))
    load: Callable[[], Encoder] = partial(_load, model, loading, home) if by_name else partial(_same, encoder)
    copy = partial(_load, model, replace(loading, device="cpu", compile=False), home) if by_name else load
    read = partial(_read, home, bench.settings.endpoint, bench.settings.offline)

    def travels(task: Task) -> bool:
        """Whether the items of a task are on this machine alone; those of Pocket come with the package."""
        return not cluster.shared and not from_hub(task) and not task.reader.startswith("pocket")

    return RayEngine(cluster, load, copy, read, fingerprint(encoder.card), travels)


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
