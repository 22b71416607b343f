"""The pipeline of a run on a Ray cluster: actors read and prepare items, others embed them, and vectors come back here.

One streaming execution of Ray Data lasts as long as a model is evaluated: jobs of some hundred items are fed to it wave
by wave, so that a model is loaded once however many waves there are. Ray starts what dies again, and repeats what was
lost; a vector that was computed twice is stored once. The plan, the keys and the store know nothing of it.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from embark.data.items import take as take_items
from embark.data.media import UnreadableMedia
from embark.engine.activity import SILENT, Activity
from embark.engine.batches import Batch, by_kind, costs_and_shapes, fixed_size
from embark.engine.forward import Turns, forward
from embark.engine.preparing import prepare_named, prepare_texts
from embark.engine.report import Report
from embark.engine.sink import Sink
from embark.models.encoder import Encoder, fingerprint
from embark.planning import Need, Needs, item_keys, keys_of
from embark.store import Writer
from embark.types import Array, Dataset, EmbarkError, Item, Task, role_of

ITEMS = {"text": 2048, "image": 256, "audio": 64, "video": 16}  # of a job, by its dearest modality
AHEAD = 4  # jobs for each copy of the model that are fed before the first of them is done
PATIENCE = 1800.0  # seconds in which no job is done, after which the run ends: a large model may come from a slow disk
ENDING = 10.0  # seconds for the end of the actors
TICK = 0.2  # seconds between looks at Ctrl-C

Read = Callable[[Task, str, str], Dataset]


@dataclass(frozen=True)
class Cluster:
    """Which cluster to use, and how much of it.

    `address` is that of Ray ("auto": the cluster that this machine belongs to; None: one is started on this machine
    alone). A copy of the model gets `gpus` and `cpus`; there are `copies` of it, or (least, most); `preparers` actors
    with a CPU each read and decode. `shared`: all nodes see this machine's folders under the same paths.
    """

    address: str | None = None
    copies: int | tuple[int, int] = 1
    gpus: float = 0.0
    cpus: float = 1.0
    preparers: int | tuple[int, int] = (1, 4)
    shared: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  # of ray.init


@dataclass(frozen=True)
class Job:
    """Items to embed: rows of a side of a task, which are read where they are prepared, or the needs themselves."""

    number: int
    keys: Array
    task: Task | None = None
    part: tuple[str, str] = ("", "")  # split and subset
    side: str = ""
    rows: Array | None = None
    needs: tuple[Need, ...] = ()


class RayEngine(AbstractContextManager["RayEngine"]):
    """A model on a cluster, for one run; see `Cluster`.

    `load` loads the model on a node, `copy` what prepares its items there, without weights where that is possible;
    both must be the model of `space`. `read` reads a part of a task on a node. All of them must pickle. `travels` says
    whether the items of a task are sent, because other nodes cannot read them.
    """

    def __init__(
        self,
        cluster: Cluster,
        load: Callable[[], Encoder],
        copy: Callable[[], Encoder],
        read: Read,
        space: str,
        travels: Callable[[Task], bool] = lambda task: True,
    ) -> None:
        self.cluster = cluster
        self.space = space
        self.travels = travels
        self._changed = threading.Condition()
        self._sink: Sink | None = None
        self._reports: dict[int, Report] = {}  # of jobs that are done
        self._missing: set[int] = set()  # numbers of jobs
        self._numbers = count(1)
        self._error: EmbarkError | None = None  # of the cluster
        self._problem = ""  # of a job
        self._last = time.monotonic()  # when a job was done
        self._of_preparing = (copy, space, read)
        self._of_embedding = (load, space)
        self._queue: Any = None  # while actors live

    def _start(self) -> None:
        """Start the actors, at the first job: a run whose vectors are stored needs none."""
        ray = _ray(self.cluster)
        require_resources(self.cluster, ray.nodes())
        from ray.util.queue import Queue

        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}  # jobs are lost with this process anyway
        queue = Queue(actor_options={"num_cpus": 0, "label_selector": here})
        dataset = _pipeline(self.cluster, queue, here, self._of_preparing, self._of_embedding)
        self._queue = queue
        self._thread = threading.Thread(target=self._collect, args=(dataset,), name="embark-ray", daemon=True)
        self._thread.start()

    def embed(
        self,
        needs: Sequence[Need],
        writer: Writer,
        *,
        advance: Callable[[int, float | None], None] = lambda items, left: None,
        activity: Activity = SILENT,
    ) -> Report:
        """Embed every need and commit its vector."""
        if self._queue is None:
            self._start()
        report = Report()
        start = time.perf_counter()
        copies = self.cluster.copies if isinstance(self.cluster.copies, int) else self.cluster.copies[1]
        with Sink(writer, activity) as sink:
            self._sink = sink
            self._last = time.monotonic()
            try:
                for job in self._jobs(needs):
                    self._wait_for(lambda: len(self._missing) < AHEAD * copies, activity)
                    with self._changed:
                        self._missing.add(job.number)
                    self._queue.put(pickle.dumps(job, 5))
                    self._settle(report, advance)
                while self._missing or self._reports:
                    self._wait_for(lambda: bool(self._reports), activity)
                    self._settle(report, advance)
            finally:
                with self._changed:
                    self._sink = None
                    self._missing.clear()  # what comes of them after an error is dropped
                    self._reports.clear()
        report.seconds = time.perf_counter() - start
        return report

    def _jobs(self, needs: Sequence[Need]) -> Iterator[Job]:
        """The needs in jobs, each of one kind of items and of one side of a task."""
        for modalities, group in by_kind(needs):
            size = min(ITEMS[modality] for modality in modalities)
            for start in range(0, len(group), size):
                yield from self._job_of(group[start : start + size])

    def _job_of(self, needs: Sequence[Need]) -> Iterator[Job]:
        if not isinstance(needs, Needs):
            yield Job(next(self._numbers), keys_of(needs), needs=tuple(needs))
            return
        for rows, number, side, places in needs.by_side():
            demand = needs.demands[number]
            keys = demand.keys[side][places]
            if self.travels(demand.task):
                yield Job(next(self._numbers), keys, needs=tuple(needs.take(rows)))
            else:
                yield Job(next(self._numbers), keys, demand.task, (demand.split, demand.subset), side, places)

    def _settle(self, report: Report, advance: Callable[[int, float | None], None]) -> None:
        """Count the jobs that are done."""
        with self._changed:
            done, self._reports = self._reports, {}
        for part in done.values():
            report.add(part)
            advance(part.embedded + len(part.unreadable) + len(part.invalid) + len(part.too_large), None)

    def _wait_for(self, condition: Callable[[], bool], activity: Activity) -> None:
        """Wait for jobs; an error of the cluster is raised here, and a run that stands still ends."""
        with self._changed, activity.waiting("device"):
            while self._error is None and not self._problem and not condition():
                self._changed.wait(TICK)
                if time.monotonic() - self._last > PATIENCE:
                    raise EmbarkError(f"No job was done on the cluster for {PATIENCE:.0f} s. {_state()}")
            if self._error is not None:
                raise self._error
            if problem := self._problem:
                self._problem = ""
                raise EmbarkError(problem)

    def _collect(self, dataset: Any) -> None:
        """The thread that takes vectors from the cluster to the writer."""
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
                for result in batch["result"]:
                    self._take(*pickle.loads(result))
        except Exception as error:
            self._fail(_explained(error))
        else:
            self._fail(EmbarkError("The work on the cluster has ended."))

    def _fail(self, error: EmbarkError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _take(self, number: int, outcomes: list[tuple[Array, Any]], report: Report, problem: str) -> None:
        with self._changed:
            if number not in self._missing:  # of a wave that was given up, or computed twice
                return
            sink = self._sink
        for keys, vectors in outcomes if sink else ():
            assert sink is not None
            sink.put(keys, vectors)
        with self._changed:
            self._missing.discard(number)
            self._reports[number] = report
            self._last = time.monotonic()
            self._problem = self._problem or problem
            self._changed.notify_all()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._queue is None:
            return
        self._queue.put(None)
        self._thread.join(ENDING if error is None else 0.5)
        self._queue.shutdown(force=True)


def _ray(cluster: Cluster) -> Any:
    """Ray, connected to the cluster."""
    try:
        import ray
    except ImportError as error:
        raise EmbarkError(f"Runs on a cluster need Ray ({error}): pip install 'embark[ray]'.") from error
    if not ray.is_initialized():
        options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False, **cluster.options}
        try:
            ray.init(address=cluster.address, **options)
        except Exception as error:
            raise EmbarkError(f"There is no Ray cluster at '{cluster.address}': {error}") from error
    return ray


def require_resources(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> None:
    """An error where no node of a cluster, as Ray lists them, has room for one copy of the model."""
    wanted = {name: amount for name, amount in (("CPU", cluster.cpus), ("GPU", cluster.gpus)) if amount}
    offers = [node.get("Resources", {}) for node in nodes if node.get("Alive")]
    if any(all(offer.get(name, 0) >= amount for name, amount in wanted.items()) for offer in offers):
        return
    largest = {name: max((offer.get(name, 0) for offer in offers), default=0) for name in wanted}
    needs = " and ".join(f"{amount:g} {name}" for name, amount in wanted.items())
    has = ", ".join(f"{amount:g} {name}" for name, amount in largest.items())
    raise EmbarkError(
        f"A copy of the model needs {needs} on one node, and no node of the cluster has that (the most: {has}). "
        "Add such a node, or ask for less (gpus, cpus)."
    )


def _pipeline(
    cluster: Cluster, queue: Any, here: dict[str, str], of_preparing: tuple[Any, ...], of_embedding: tuple[Any, ...]
) -> Any:
    """The streaming execution: feed → prepare → embed."""
    from ray.data import DataContext, read_datasource

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = context.target_min_block_size = 1  # every job is a block, which goes on at once
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of every execution
    fed = read_datasource(_feed(queue), override_num_blocks=1, num_cpus=0, label_selector=here)
    prepared = fed.map_batches(
        Preparing, fn_constructor_args=of_preparing, batch_size=None, num_cpus=1, concurrency=cluster.preparers
    )
    return prepared.map_batches(
        Embedding,
        fn_constructor_args=of_embedding,
        batch_size=None,
        num_cpus=cluster.cpus,
        num_gpus=cluster.gpus or None,
        concurrency=cluster.copies,
    )


def _feed(queue: Any) -> Any:
    """The source of jobs: whatever comes from the queue, until None does."""
    import pyarrow as pa
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    class Feed(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[Any]:
            def read() -> Iterator[Any]:
                while (job := queue.get()) is not None:
                    yield pa.table({"job": pa.array([job], pa.large_binary())})

            return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=1, input_files=None, exec_stats=None))]

    return Feed()


class Preparing:
    """An actor that reads the items of jobs and prepares them."""

    def __init__(self, copy: Callable[[], Encoder], space: str, read: Read) -> None:
        self.encoder = _the_same(copy(), space)
        self.read = read

    def __call__(self, batch: dict[str, Array]) -> dict[str, list[bytes]]:
        return {"prepared": [pickle.dumps(self.prepare(pickle.loads(job)), 5) for job in batch["job"]]}

    def prepare(self, job: Job) -> tuple[int, Array, list[Any], dict[bytes, str], str]:
        """The number of a job, the keys and values of its readable items, the others' reasons, and an error."""
        try:
            needs = list(job.needs) or self._read(job)
            values = self._values(needs)
        except Exception as error:
            return job.number, job.keys, [], {}, f"{type(error).__name__}: {error}"
        readable = [not isinstance(value, UnreadableMedia) for value in values]
        pairs = list(zip(needs, values, strict=True))
        reasons = {need.key: str(value) for need, value in pairs if isinstance(value, UnreadableMedia)}
        return job.number, job.keys[readable], [value for need, value in pairs if need.key not in reasons], reasons, ""

    def _read(self, job: Job) -> list[Need]:
        """The items of a job, which must be those that were planned."""
        assert job.task is not None
        assert job.rows is not None
        data = self.read(job.task, *job.part)
        items = take_items(data.sides[job.side].items, job.rows)
        if not np.array_equal(item_keys(job.task, job.part[1], job.side, items, self.encoder), job.keys):
            raise EmbarkError(f"The data of {job.task.name} on this node are not those that the run was planned with.")
        instruction = job.task.instruction(role_of(job.side), job.part[1])
        return [
            Need(key, item, job.side, instruction, 0, row, job.task.style)
            for key, item, row in zip(job.keys.tolist(), items, job.rows.tolist(), strict=True)
        ]

    def _values(self, needs: Sequence[Need]) -> list[Any]:
        if all(need.item.modalities == ("text",) for need in needs):
            return list(prepare_texts(self.encoder, needs))
        return [prepare_named(self.encoder, need, lambda need: f"{need.side} {need.row}") for need in needs]


class Embedding:
    """An actor with a copy of the model."""

    def __init__(self, load: Callable[[], Encoder], space: str) -> None:
        self.encoder = _the_same(load(), space)
        self.turns = Turns()

    def __call__(self, batch: dict[str, Array]) -> dict[str, list[bytes]]:
        return {"result": [pickle.dumps(self.embed(*pickle.loads(job)), 5) for job in batch["prepared"]]}

    def embed(
        self, number: int, keys: Array, values: list[Any], unreadable: dict[bytes, str], problem: str
    ) -> tuple[int, list[tuple[Array, Any]], Report, str]:
        """The number of a job, keys with vectors, what became of the items, and an error."""
        report = Report(unreadable=unreadable)
        outcomes: list[tuple[Array, Any]] = []
        if not problem and values:
            needs = [Need(key, Item(()), "", None, 0, row) for row, key in enumerate(keys.tolist())]
            batch = Batch(needs, values, costs_and_shapes(values)[0])
            size = fixed_size(len(values))
            try:
                for done, vectors in forward(self.encoder, batch, size, report, _name, self.turns, True):
                    outcomes.append((keys_of(done), vectors))
                    report.embedded += len(done)
            except Exception as error:
                problem = f"{self.encoder.card.name}: {type(error).__name__}: {error}"
        return number, outcomes, report, problem


def _name(need: Need) -> str:
    return need.key.hex()[:12]


def _the_same(encoder: Encoder, space: str) -> Encoder:
    """The model of a node, if its vectors are those of the run's."""
    if fingerprint(encoder.card) != space:
        raise EmbarkError(f"{encoder.card.name} on a node is not the model of the run: another revision or precision.")
    return encoder


def _explained(error: BaseException) -> EmbarkError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return EmbarkError(f"The cluster failed: {lines[-1] if lines else type(error).__name__}. {_state()}")


def _state() -> str:
    """What the cluster has and what is free, for messages."""
    import ray

    try:
        total, free = ray.cluster_resources(), ray.available_resources()
    except Exception as error:
        return f"It does not answer ({type(error).__name__})."
    counts = [f"{free.get(name, 0):g} of {total.get(name, 0):g} {name}" for name in ("CPU", "GPU") if total.get(name)]
    return f"Free on the cluster: {', '.join(counts) or 'nothing'}."
