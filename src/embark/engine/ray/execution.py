"""One streaming execution of Ray Data, feed → prepare → embed, and the thread that takes what comes of it."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from embark.engine.ray.actors import ANSWER_SECONDS, Dispatcher, Done, Embedding, Preparing
from embark.engine.ray.cluster import Cluster, error_line, free_resources
from embark.types import EmbarkError, Modality

LOSSES = ("ObjectLostError", "NodeDiedError", "WorkerCrashedError", "ActorUnavailableError", "ActorDiedError")
CREATION = "creation task"  # in the error of an actor that could not be built: it would fail again


class Execution:
    """One streaming execution: feed → prepare → embed, and the thread that takes what comes of it."""

    def __init__(
        self,
        cluster: Cluster,
        of_preparing: Callable[[Any], tuple[Any, ...]],
        of_embedding: Callable[[Any], tuple[Any, ...]],
        take: Callable[[Done], None],
        end: Callable[[Execution, EmbarkError, bool], None],
    ) -> None:
        import ray

        here = {"ray.io/node-id": _this_node(ray)}  # jobs are lost with this process anyway
        self._ray = ray
        self._start = time.monotonic()
        self._first: float | None = None  # seconds until a job was done
        self._longest: dict[tuple[Modality, ...], float] = {}  # seconds of a job, by kind of items
        self.closed = False
        assert cluster.copies is not None
        self.copies = cluster.copies if isinstance(cluster.copies, int) else cluster.copies[0]
        actor = ray.remote(Dispatcher).options(num_cpus=0, label_selector=here, max_concurrency=1000)
        self._dispatcher = actor.remote()
        dataset = _pipeline(
            cluster, self._dispatcher, here, of_preparing(self._dispatcher), of_embedding(self._dispatcher)
        )
        self._thread = threading.Thread(target=self._collect, args=(dataset, take, end), name="embark-ray", daemon=True)
        self._thread.start()

    def usual_seconds(self, modalities: tuple[Modality, ...]) -> float:
        """Seconds after which a job should be done, even if a copy starts again; before the first, nobody knows."""
        if self._first is None or modalities not in self._longest:
            return np.inf
        return 2 * self._first + 8 * self._longest[modalities]

    def put(self, job: bytes) -> None:
        """Feed a job."""
        self._ray.get(self._dispatcher.put.remote(job), timeout=ANSWER_SECONDS)

    def _collect(
        self, dataset: Any, take: Callable[[Done], None], end: Callable[[Execution, EmbarkError, bool], None]
    ) -> None:
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
                for data in batch["result"]:
                    if data:
                        self._pass_on(pickle.loads(data), take)
        except Exception as error:
            end(self, EmbarkError(f"The cluster failed: {error_line(error)}. {free_resources()}"), _is_loss(error))
        else:
            end(self, EmbarkError("The work on the cluster has ended."), False)

    def _pass_on(self, result: Done, take: Callable[[Done], None]) -> None:
        if self._first is None:
            self._first = time.monotonic() - self._start
        seconds = sum(facts.seconds for facts in result.facts)
        self._longest[result.modalities] = max(seconds, self._longest.get(result.modalities, 0.0))
        self._dispatcher.forget.remote(result.number)
        take(result)

    def close(self, seconds: float) -> None:
        """End the actors, within so many seconds if they are idle."""
        self.closed = True
        with suppress(Exception):
            self._dispatcher.put.remote(None)
        self._thread.join(seconds)
        with suppress(Exception):
            self._ray.kill(self._dispatcher)


def _this_node(ray: Any) -> str:
    """The node of this process; the head, where it is none (ray://)."""
    with suppress(Exception):
        return str(ray.get_runtime_context().get_node_id())
    heads = [node for node in ray.nodes() if "node:__internal_head__" in node.get("Resources", {})]
    return str(heads[0]["NodeID"])


def _pipeline(
    cluster: Cluster,
    dispatcher: Any,
    here: dict[str, str],
    of_preparing: tuple[Any, ...],
    of_embedding: tuple[Any, ...],
) -> Any:
    """The streaming execution; Ray's dashboard shows its stages as Feed, Preparing and Embedding."""
    from ray.data import DataContext, read_datasource

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = context.target_min_block_size = 1  # every job is a block, which goes on at once
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it tells of every execution; errors are raised here
    fed = read_datasource(_feed(dispatcher), override_num_blocks=1, num_cpus=0, label_selector=here)
    prepared = fed.map_batches(
        Preparing, fn_constructor_args=of_preparing, batch_size=1, num_cpus=1, concurrency=cluster.preparers
    )
    return prepared.map_batches(
        Embedding,
        fn_constructor_args=of_embedding,
        batch_size=1,  # a job; with GPUs, Ray wants it stated
        num_cpus=cluster.cpus,
        num_gpus=cluster.gpus or None,
        compute=_pool(cluster.copies),
    )


def _pool(copies: int | tuple[int, int] | None) -> Any:
    """So many actors, each with a job and the next one: others would wait there, while another actor is idle."""
    from ray.data import ActorPoolStrategy

    assert copies is not None
    least, most = (copies, copies) if isinstance(copies, int) else copies
    return ActorPoolStrategy(min_size=least, max_size=most, max_tasks_in_flight_per_actor=2)


def _feed(dispatcher: Any) -> Any:
    """The source of jobs: whatever comes from the dispatcher, until None does."""
    import pyarrow as pa
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    class Feed(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[Any]:
            def read() -> Iterator[Any]:
                import ray

                for place in count():
                    job = ray.get(dispatcher.get.remote(place))
                    if job is None:
                        return
                    yield pa.table({"job": pa.array([job], pa.large_binary())})

            return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=1, input_files=None, exec_stats=None))]

    return Feed()


def _is_loss(error: BaseException) -> bool:
    """Whether an error says that a node or a process was lost, and not that the work is wrong.

    By its text: Ray wraps errors in others, and cannot rebuild all of them here.
    """
    text = str(error)
    return any(name in text for name in LOSSES) and CREATION not in text
