"""What runs on the nodes of a cluster: actors that prepare items, and actors that embed them.

An item or a batch that does not end takes its actor with it, for nothing else ends a call that hangs in a library.
"""

from __future__ import annotations

import faulthandler
import logging
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embark.engine.batching.batches import Ready, Window, fixed_size
from embark.engine.batching.forward import Turns, forward
from embark.engine.batching.self_check import embed_twice
from embark.engine.batching.tuning import Tuning
from embark.engine.ray.cluster import Stage
from embark.engine.report import EmbeddingReport
from embark.engine.workers.preparing import MOST_BYTES, byte_sizes, prepare_named, prepare_texts
from embark.items import take as take_items
from embark.items.decoding import UnreadableMedia
from embark.models.encoder import Encoder
from embark.planning import Need, item_keys, keys_of
from embark.protocol import vector_space
from embark.types import Array, Dataset, EmbarkError, Item, Modality, Task, Text, role_of

Read = Callable[[Task, str, str], Dataset]


@dataclass(frozen=True)
class ActorLimits:
    """Seconds for preparing one item, and for one batch, after which an actor is ended."""

    item: float
    batch: float


@dataclass(frozen=True)
class ActorJob:
    """Items to embed: rows of a side of a task, which are read where they are prepared, or the items themselves.

    These are `texts` of that side, which travel lighter, or whatever else as `needs`. `check` embeds them alone and
    together, and compares; `batch_size` is that of the user, if there is one.
    """

    modalities: tuple[Modality, ...]
    keys: Array
    task: Task | None = None
    part: tuple[str, str] = ("", "")  # split and subset
    side: str = ""
    rows: Array | None = None
    texts: list[str] | None = None
    needs: tuple[Need, ...] = ()
    check: bool = False
    batch_size: int | None = None

    def without_items(self) -> ActorJob:
        """What the model needs to know of it."""
        return ActorJob(self.modalities, self.keys[:0], side=self.side, check=self.check, batch_size=self.batch_size)

    def of_row(self, row: int) -> ActorJob:
        """The job of one of its items."""
        one = slice(row, row + 1)
        return replace(
            self, keys=self.keys[one], rows=None if self.rows is None else self.rows[one],
            texts=None if self.texts is None else self.texts[one], needs=self.needs[one], check=False,
        )  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """A job on its way to the model: keys and values of its readable items, the others' reasons, or an error."""

    job: ActorJob
    keys: Array
    values: list[Any] = field(default_factory=list)
    unreadable: dict[bytes, str] = field(default_factory=dict)
    error: EmbarkError | None = None


@dataclass(frozen=True)
class ActorFacts:
    """What the log and the display of the run say about a job: where it was done, its messages, and how long it took.

    `bytes` is the size of what was prepared.
    """

    node: str
    seconds: float = 0.0
    bytes: int = 0
    messages: list[tuple[int, str]] = field(default_factory=list)  # level and text


@dataclass(frozen=True)
class Done:
    """What became of a job: keys with vectors, counts, or an error."""

    modalities: tuple[Modality, ...]
    outcomes: list[tuple[Array, Any]]
    report: EmbeddingReport
    error: EmbarkError | None = None
    facts: tuple[ActorFacts, ...] = ()


class _Actor:
    """What both kinds of actors share: the model or its copy, the log, and Ray's metrics."""

    stage: Stage

    def __init__(self, load: Callable[[], Encoder], space: str, limits: ActorLimits) -> None:
        import ray
        from ray.util.metrics import Counter as Metric

        self.load = load
        self.space = space
        self.limits = limits
        self.node = ray.util.get_node_ip_address()
        self.messages = _Messages()
        logging.getLogger("embark").addHandler(self.messages)
        self.metrics = {
            name: Metric(f"embark_{name}", description, ("stage",)) for name, description in METRICS.items()
        }

    def start(self) -> EmbarkError | None:
        """Load the model; returns what is wrong with it."""
        try:
            self.encoder = self.load()
        except Exception as error:
            return _portable(error)
        if vector_space(self.encoder.card) != self.space:
            name = self.encoder.card.name
            return EmbarkError(f"{name} on a node is not the model of the run: another revision or precision.")
        return None

    def pulse(self) -> None:
        """An answer, in a thread of its own, that shows that this process works."""

    def count(self, **amounts: float) -> None:
        """Add to Ray's metrics."""
        for name, amount in amounts.items():
            if amount > 0:
                self.metrics[name].inc(amount, {"stage": self.stage})


class Preparing(_Actor):
    """An actor that reads the items of jobs and prepares them."""

    stage = "prepare"

    def __init__(self, load: Callable[[], Encoder], space: str, limits: ActorLimits, read: Read | None) -> None:
        super().__init__(load, space, limits)
        self.read = read
        self.latest: tuple[Task, tuple[str, str], Dataset] | None = None  # many jobs are of one part, whatever its size

    def work(self, data: bytes) -> tuple[ActorFacts, bytes]:
        """What `Embedding.work` makes a `Done` of, and facts about it."""
        start = time.perf_counter()
        prepared = pickle.dumps(self.prepare(pickle.loads(data)), 5)
        return ActorFacts(self.node, time.perf_counter() - start, len(prepared), self.messages.take()), prepared

    def prepare(self, job: ActorJob) -> Prepared:
        """The values of a job's items."""
        start = time.perf_counter()
        try:
            needs = job.needs or self._read(job)
            values = self._values(job, needs)
        except Exception as error:
            return Prepared(job.without_items(), job.keys, error=_portable(error))
        readable = np.array([not isinstance(value, UnreadableMedia) for value in values])
        pairs = zip(needs, values, strict=True)
        reasons = {need.key: str(value) for need, value in pairs if isinstance(value, UnreadableMedia)}
        values = [value for value in values if not isinstance(value, UnreadableMedia)]
        self.count(items=len(values), bytes=int(byte_sizes(values).sum()), busy_seconds=time.perf_counter() - start)
        return Prepared(job.without_items(), job.keys[readable], values, reasons)

    def _read(self, job: ActorJob) -> list[Need]:
        """The items of a job, which must be those that were planned."""
        assert job.task is not None
        if job.texts is not None:
            items: Sequence[Item] = [Item((Text(text),)) for text in job.texts]
        else:
            assert job.rows is not None
            items = take_items(self._data(job.task, job.part).sides[job.side].items, job.rows)
            if not np.array_equal(item_keys(job.task, job.part[1], job.side, items, self.encoder), job.keys):
                name = job.task.name
                raise EmbarkError(f"The data of {name} on this node are not those that the run was planned with.")
        instruction = job.task.instruction(role_of(job.side), job.part[1])
        return [
            Need(key, item, job.side, instruction, 0, row, job.task.style)
            for row, (key, item) in enumerate(zip(job.keys.tolist(), items, strict=True))
        ]

    def _data(self, task: Task, part: tuple[str, str]) -> Dataset:
        """A part of a task; the latest is kept."""
        if self.latest is None or self.latest[:2] != (task, part):
            assert self.read is not None
            self.latest = None  # two may be too large for the memory
            self.latest = task, part, self.read(task, *part)
        return self.latest[2]

    def _values(self, job: ActorJob, needs: Sequence[Need]) -> list[Any]:
        """The prepared values of needs, or errors that they are unreadable."""
        if job.modalities == ("text",):
            try:
                with time_limit(self.limits.item):
                    return list(prepare_texts(self.encoder, needs))
            except Exception:  # again one by one, where the error names its item
                pass
        values: list[Any] = []
        for need in needs:
            with time_limit(self.limits.item):
                values.append(prepare_named(self.encoder, need, placeholder))
        return values


class Embedding(_Actor):
    """An actor with a copy of the model."""

    stage = "embed"

    def __init__(self, load: Callable[[], Encoder], space: str, limits: ActorLimits) -> None:
        super().__init__(load, space, limits)
        self.turns = Turns()
        self.tuning = Tuning()

    def work(self, data: bytes) -> bytes:
        """What became of a job, as a `Done`; `data` is from `Preparing.work`."""
        return pickle.dumps(self.embed(pickle.loads(data)), 5)

    def embed(self, prepared: Prepared) -> Done:
        """The vectors of a job."""
        start = time.perf_counter()
        report = EmbeddingReport(unreadable=prepared.unreadable)
        outcomes: list[tuple[Array, Any]] = []
        error = prepared.error
        if error is None and prepared.values:
            try:
                for needs, vectors in self._vectors(prepared, report):
                    outcomes.append((keys_of(needs), vectors))
                    report.embedded += len(needs)
            except Exception as of_model:
                error = _portable(of_model, f"{self.encoder.card.name}: ")
        seconds = time.perf_counter() - start
        sizes = [np.asarray(part).nbytes for _, vectors in outcomes for part in vectors]
        self.count(items=report.embedded, bytes=sum(sizes), busy_seconds=seconds)
        facts = ActorFacts(self.node, seconds, messages=self.messages.take())
        return Done(prepared.job.modalities, outcomes, report, error, (facts,))

    def _vectors(
        self, prepared: Prepared, report: EmbeddingReport
    ) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
        """Needs with their vectors; these needs have no items, as the values are made of them."""
        job = prepared.job
        values = prepared.values
        needs: Sequence[Need] = [
            Need(key, Item(()), job.side, None, 0, row) for row, key in enumerate(prepared.keys.tolist())
        ]
        if job.check:
            with time_limit(self.limits.batch):
                checked = embed_twice(self.encoder, needs, values, placeholder)
            if checked is not None:
                vectors, warning = checked
                report.warnings += (warning,) if warning else ()
                yield needs, vectors
                return
        fixed = job.batch_size or self.encoder.capabilities.batch_size
        size = fixed_size(fixed) if fixed else self.tuning.size(self.encoder.card, job.modalities)
        ready = Ready(np.arange(len(values)), values, byte_sizes(values))
        window = Window(needs, iter([ready]), size, MOST_BYTES)
        while (batch := window.next_batch()) is not None:
            with time_limit(self.limits.batch):
                done = list(forward(self.encoder, batch, size, report, placeholder, self.turns, True))
            yield from done


METRICS = {
    "items": "Items that were prepared or embedded.",
    "bytes": "Bytes of prepared items, and of vectors.",
    "busy_seconds": "Seconds in which actors worked: by the time, how busy they are.",
}


class _Messages(logging.Handler):
    """Keeps the messages of an actor for the log of the run."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.levelno, record.getMessage()))

    def take(self) -> list[tuple[int, str]]:
        """The messages since the last call."""
        records, self.records = self.records, []
        return records


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """A block that ends this process if it takes longer, also where a library holds Python's lock."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def placeholder(need: Need) -> str:
    """What stands for the name of an item on its way to where names are known, see `with_names`."""
    return f"item {need.key.hex()}"


def _portable(error: Exception, prefix: str = "") -> EmbarkError:
    """The error in a form that can be sent."""
    if isinstance(error, EmbarkError):
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # its class takes other arguments than it keeps
            return EmbarkError(str(error))
        return error
    return EmbarkError(" ".join([f"{prefix}{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]))
