"""Which Ray cluster a run uses: connecting to it, which actors its nodes have room for, and what its errors say."""

from __future__ import annotations

import importlib
import math
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from embark.engine.activity import Activity
from embark.models.parallel import BATCH_SECONDS
from embark.processes import ITEM_SECONDS
from embark.types import EmbarkError

CONNECT_SECONDS = 10.0  # for an answer at the address of a cluster
ENDING_SECONDS = 2.0  # for processes whose node has ended
LOOK_SECONDS = 1.0  # between looks at the nodes
PREPARERS = 16  # for each copy of the model, at most, where it is not stated
_CONNECTED: dict[Any, bool] = {}  # the module, if our code connected it, and whether that started the cluster


@dataclass(frozen=True)
class Cluster:
    """Which cluster to use, and how much of it.

    `address` is that of Ray ("auto": the cluster that this machine belongs to; None: one is started on this machine
    alone). A copy of the model gets `gpus` (None: what its card says, else one where the cluster has any) and `cpus`;
    there are `copies` of it, or (least, most); None: as many as there is room for. Copies get their CPUs first;
    `preparers` actors read and decode on those that are left, one each, or without one where none is left: so many,
    or (least, most); None: 1 to 16 for each copy. Nodes that join later get actors, too, as long as these numbers
    allow it. `shared`: all nodes see this machine's folders under the same paths. A node with room for a copy is
    waited for `wait` seconds. An actor that takes more than `item_seconds` for one item, or `batch_seconds` for one
    batch, is ended, and others go on.
    """

    address: str | None = None
    copies: int | tuple[int, int] | None = None
    gpus: float | None = None
    cpus: float = 1.0
    preparers: int | tuple[int, int] | None = None
    shared: bool = False
    wait: float = 60.0
    item_seconds: float = ITEM_SECONDS
    batch_seconds: float = BATCH_SECONDS
    options: Mapping[str, Any] = field(default_factory=dict)  # of ray.init


def connect(cluster: Cluster) -> Any:
    """Ray, connected to the cluster."""
    try:
        import ray
    except ImportError as error:
        raise EmbarkError(f"Runs on a cluster need Ray ({error}): pip install 'embark-bench[ray]'.") from error
    if not ray.is_initialized():
        _require_server(cluster.address)
        options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False, **cluster.options}
        try:
            ray.init(address=cluster.address or "local", **options)  # with None, Ray looks for a cluster of anybody
            _CONNECTED[ray] = not cluster.address
        except Exception as error:
            raise EmbarkError(f"There is no Ray cluster at '{cluster.address}': {error_line(error)}.") from error
    return ray


def disconnect() -> None:
    """Leave the cluster that `connect` has connected to, and end the one that it has started."""
    while _CONNECTED:
        ray, started = _CONNECTED.popitem()
        workers = _workers_here() if started else []
        ray.shutdown()
        _kill(workers)


def _workers_here() -> list[Any]:
    """The worker processes of a node that this process has started."""
    psutil = importlib.import_module("psutil")  # comes with Ray
    with suppress(psutil.Error):
        nodes = [child for child in psutil.Process().children() if child.name() == "raylet"]
        return [worker for node in nodes for worker in node.children(recursive=True)]
    return []


def _kill(workers: Sequence[Any]) -> None:
    """End processes that live on without their node: some of Ray's wait for themselves while they end."""
    psutil = importlib.import_module("psutil")
    _, alive = psutil.wait_procs(workers, ENDING_SECONDS)
    for worker in alive:
        with suppress(psutil.Error):
            worker.kill()


def _require_server(address: str | None) -> None:
    """An error where nobody listens at an address: Ray would wait for minutes."""
    place = urlsplit(address if address and "://" in address else f"//{address or ''}")
    if not place.hostname or not place.port:
        return
    try:
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
    except OSError as error:
        raise EmbarkError(f"There is no Ray cluster at '{address}': {error.strerror or error}.") from error


def wait_for_room(cluster: Cluster, nodes: Callable[[], Sequence[Mapping[str, Any]]], activity: Activity) -> Cluster:
    """The cluster with the GPUs of a copy, as soon as a node has room for one."""
    end = time.monotonic() + cluster.wait
    waits = False
    while True:
        present = nodes()
        fitted = with_gpus(cluster, present)
        try:
            require_resources(fitted, present)
        except EmbarkError as error:
            if time.monotonic() > end:
                raise
            if not waits:
                activity.log(f"{error} Such a node is waited for, {cluster.wait:.0f} s at most.")
            waits = True
            time.sleep(LOOK_SECONDS)
        else:
            return fitted


def with_gpus(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> Cluster:
    """The cluster with the GPUs of a copy: one where a node has any, if it is not stated."""
    if cluster.gpus is not None:
        return cluster
    return replace(cluster, gpus=1.0 if any(offer.get("GPU", 0) >= 1 for offer in _offers(nodes)) else 0.0)


Stage = Literal["prepare", "embed"]


class NodePlace(NamedTuple):
    """Where an actor is: its node, what it does there, and how many CPUs it gets."""

    node: str
    stage: Stage
    cpus: float


def allot(cluster: Cluster, nodes: Sequence[Mapping[str, Any]], placed: Mapping[NodePlace, int]) -> Counter[NodePlace]:
    """How many actors belong at each place: copies of the model first, then preparers on the CPUs that these leave.

    Actors that are `placed` stay, but for preparers whose CPU a copy needs. Where no CPU is left for the least number
    of preparers, the missing ones get none of their own: they share those of the copies.
    """
    offers = {str(node["NodeID"]): node.get("Resources", {}) for node in nodes if node.get("Alive")}
    room = {node: _room(cluster, offer) for node, offer in offers.items()}
    cpus = {node: offer.get("CPU", 0.0) for node, offer in offers.items()}

    def now(stage: Stage, share: float) -> dict[str, int]:
        return {node: placed.get(NodePlace(node, stage, share), 0) for node in offers}

    least, most = _range(cluster.copies, 1, math.inf)
    fewest, _ = _range(cluster.preparers, 1, 0)
    if not cluster.gpus and cluster.cpus:  # some CPUs are left for preparers, where there are enough for both
        left = sum(int(cpus[node] - room[node] * cluster.cpus) for node in offers)
        most = min(most, max(least, sum(room.values()) - math.ceil(max(0, fewest - left) / cluster.cpus)))
    copies = _spread(now("embed", cluster.cpus), room, most)

    _, most = _range(cluster.preparers, 1, PREPARERS * sum(copies.values()))
    spare = {node: max(0, int(cpus[node] - copies[node] * cluster.cpus)) for node in offers}
    beside = now("prepare", 0.0)
    preparers = {node: min(count, spare[node]) for node, count in now("prepare", 1.0).items()}
    preparers = _spread(preparers, spare, most - sum(beside.values()))
    beside = _spread(beside, {node: fewest * bool(copies[node]) for node in offers}, fewest - sum(preparers.values()))

    parts: list[tuple[Stage, float, dict[str, int]]]
    parts = [("embed", cluster.cpus, copies), ("prepare", 1.0, preparers), ("prepare", 0.0, beside)]
    return Counter({NodePlace(node, stage, share): counts[node] for stage, share, counts in parts for node in offers})


def _spread(counts: Mapping[str, int], room: Mapping[str, int], wanted: float) -> dict[str, int]:
    """The counts with so many in all, or as many as there is room for: each more is where most room is left."""
    counts = dict(counts)
    while counts and sum(counts.values()) < wanted:
        node = max(counts, key=lambda node: room[node] - counts[node])
        if counts[node] >= room[node]:
            break
        counts[node] += 1
    return counts


def _range(stated: int | tuple[int, int] | None, least: int, most: float) -> tuple[int, float]:
    """(least, most) of a number of actors."""
    return (least, most) if stated is None else (stated, stated) if isinstance(stated, int) else stated


def _room(cluster: Cluster, offer: Mapping[str, float]) -> int:
    """How many copies of the model a node can hold, if nothing else runs there."""
    shares = [("GPU", cluster.gpus), ("CPU", cluster.cpus)]
    return int(min((offer.get(name, 0) / share for name, share in shares if share), default=1))


def _offers(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, float]]:
    return [node.get("Resources", {}) for node in nodes if node.get("Alive")]


def require_resources(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> None:
    """An error where no node of a cluster, as Ray lists them, has room for one copy of the model."""
    wanted = {name: amount for name, amount in (("CPU", cluster.cpus), ("GPU", cluster.gpus)) if amount}
    offers = _offers(nodes)
    if any(all(offer.get(name, 0) >= amount for name, amount in wanted.items()) for offer in offers):
        return
    largest = {name: max((offer.get(name, 0) for offer in offers), default=0) for name in wanted}
    needs = " and ".join(f"{amount:g} {name}" for name, amount in wanted.items())
    has = ", ".join(f"{amount:g} {name}" for name, amount in largest.items())
    raise EmbarkError(
        f"A copy of the model needs {needs} on one node, and no node of the cluster has that (the most: {has}). "
        "Add such a node, or ask for less (gpus, cpus)."
    )


def error_line(error: BaseException) -> str:
    """What an error of Ray says, of which most is where it happened: the last line that names an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b.*: ", line)]
    return ([*lines[-1:], *named[-1:]] or [type(error).__name__])[-1].rstrip(".")


def free_resources() -> str:
    """What the cluster has and what is free, for messages."""
    import ray

    try:
        total, free = ray.cluster_resources(), ray.available_resources()
    except Exception as error:
        return f"It does not answer ({type(error).__name__})."
    counts = [f"{free.get(name, 0):g} of {total.get(name, 0):g} {name}" for name in ("CPU", "GPU") if total.get(name)]
    return f"Free on the cluster: {', '.join(counts) or 'nothing'}."
