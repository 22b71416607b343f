"""What runs on the nodes of a cluster: actors that prepare items, actors that embed them, and one that hands out jobs.

An item or a batch that does not end takes its actor with it, for nothing else ends a call that hangs in a library; Ray
starts the actor again and repeats the job. The dispatcher knows how often a job was begun, and at which item, so that
an item that actors die of is found, and left out like one that a worker process of the local engine dies of.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from embark.engine.batching.batches import Ready, Window, fixed_size
from embark.engine.batching.forward import Turns, forward
from embark.engine.batching.self_check import embed_twice
from embark.engine.batching.tuning import Tuning
from embark.engine.report import Report
from embark.engine.workers.preparing import MOST_BYTES, byte_sizes, prepare_named, prepare_texts
from embark.items import take as take_items
from embark.items.decoding import UnreadableMedia
from embark.models.encoder import Encoder
from embark.planning import Need, item_keys, keys_of, take
from embark.protocol import vector_space
from embark.types import Array, Dataset, EmbarkError, Item, Modality, Task, Text, role_of

ANSWER_SECONDS = 120.0  # for an answer of the dispatcher
TRIES = 2  # of an item that its actor dies of

Read = Callable[[Task, str, str], Dataset]
Stage = Literal["prepare", "embed"]
ONE_BY_ONE: dict[Stage, int] = {"prepare": 2, "embed": 3}  # the attempt at a job from which items are taken one by one


@dataclass(frozen=True)
class Limits:
    """Seconds for preparing one item, and for one batch, after which an actor is ended."""

    item: float
    batch: float


@dataclass(frozen=True)
class Job:
    """Items to embed: rows of a side of a task, which are read where they are prepared, or the items themselves.

    These are `texts` of that side, which travel lighter, or whatever else as `needs`. `check` embeds them alone and
    together, and compares; `batch_size` is that of the user, if there is one.
    """

    number: int
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

    def without_items(self) -> Job:
        """What the model needs to know of it."""
        empty = self.keys[:0]
        return Job(self.number, self.modalities, empty, side=self.side, check=self.check, batch_size=self.batch_size)


@dataclass(frozen=True)
class Prepared:
    """A job on its way to the model: keys and values of its readable items, the others' reasons, or an error."""

    job: Job
    keys: Array
    values: list[Any] = field(default_factory=list)
    unreadable: dict[bytes, str] = field(default_factory=dict)
    error: EmbarkError | None = None
    facts: Facts | None = None


@dataclass
class Facts:
    """What the log and the display of the run say about a job: where it was done, its messages, and how long it took.

    `retries` counts how often it was begun again, after an actor or a node was lost.
    """

    node: str
    seconds: float = 0.0
    retries: int = 0
    messages: list[tuple[int, str]] = field(default_factory=list)  # level and text


@dataclass(frozen=True)
class Done:
    """What became of a job: keys with vectors, counts, or an error."""

    number: int
    modalities: tuple[Modality, ...]
    outcomes: list[tuple[Array, Any]]
    report: Report
    error: EmbarkError | None
    facts: tuple[Facts, ...]


class Dispatcher:
    """Hands jobs out, and counts how often each was begun; it lives beside the process that runs the evaluation."""

    def __init__(self) -> None:
        self.jobs: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.fed = 0
        self.begun: Counter[tuple[Stage, int]] = Counter()
        self.current: dict[tuple[Stage, int], tuple[bytes, float]] = {}  # the item of the latest attempt, since when
        self.deaths: Counter[bytes] = Counter()  # of actors, by the key of the item that they worked on
        self.lost: dict[tuple[Stage, int], dict[bytes, str]] = {}  # reasons by key

    async def put(self, job: bytes | None) -> None:
        """Add a job; None ends the feed."""
        await self.jobs.put(job)

    async def get(self, place: int) -> bytes | None:
        """The job at a place of the feed. Those of a feed that Ray repeats are blank: they are fed anew."""
        if place < self.fed:
            return b""
        job = await self.jobs.get()
        self.fed += 1
        return job

    async def begin(self, stage: Stage, number: int, limit: float) -> tuple[int, dict[bytes, str]]:
        """Begin a job: which attempt it is, and the items that actors died of, with the reasons."""
        place = stage, number
        self.begun[place] += 1
        if place in self.current:
            key, since = self.current.pop(place)
            self.deaths[key] += 1
            if time.monotonic() - since > limit:
                self.lost.setdefault(place, {})[key] = f"took longer than {limit:g} s"
            elif self.deaths[key] >= TRIES:
                self.lost.setdefault(place, {})[key] = f"killed its worker {self.deaths[key]} times"
        return self.begun[place], self.lost.get(place, {})

    async def work_on(self, stage: Stage, number: int, key: bytes) -> None:
        """Remember the item that an actor begins."""
        self.current[stage, number] = key, time.monotonic()

    async def end(self, stage: Stage, number: int) -> None:
        """Forget the items of a stage that is done with a job."""
        self.current.pop((stage, number), None)

    async def forget(self, number: int) -> None:
        """Forget a job that is done."""
        for stage in ONE_BY_ONE:
            self.begun.pop((stage, number), None)
            self.current.pop((stage, number), None)
            self.lost.pop((stage, number), None)


class _Actor:
    """What both kinds of actors share: the model or its copy, the dispatcher, the log, and Ray's metrics."""

    stage: Stage

    def __init__(self, load: Callable[[], Encoder], space: str, dispatcher: Any, limits: Limits) -> None:
        import ray
        from ray.util.metrics import Counter as Metric

        self.encoder = load()
        if vector_space(self.encoder.card) != space:
            name = self.encoder.card.name
            raise EmbarkError(f"{name} on a node is not the model of the run: another revision or precision.")
        self.dispatcher = dispatcher
        self.limits = limits
        self.node = ray.util.get_node_ip_address()
        self.messages = _Messages()
        logging.getLogger("embark").addHandler(self.messages)
        self.metrics = {
            name: Metric(f"embark_{name}", description, ("stage",)) for name, description in METRICS.items()
        }

    def ask(self, method: str, *args: Any) -> Any:
        """The dispatcher's answer."""
        import ray

        return ray.get(getattr(self.dispatcher, method).remote(self.stage, *args), timeout=ANSWER_SECONDS)

    def count(self, **amounts: float) -> None:
        """Add to Ray's metrics."""
        for name, amount in amounts.items():
            if amount > 0:
                self.metrics[name].inc(amount, {"stage": self.stage})


class Preparing(_Actor):
    """An actor that reads the items of jobs and prepares them."""

    stage = "prepare"

    def __init__(
        self, load: Callable[[], Encoder], space: str, dispatcher: Any, limits: Limits, read: Read | None
    ) -> None:
        super().__init__(load, space, dispatcher, limits)
        self.read = read
        self.latest: tuple[Task, tuple[str, str], Dataset] | None = None  # many jobs are of one part, whatever its size

    def __call__(self, batch: dict[str, Array]) -> dict[str, list[bytes]]:
        return {"prepared": [pickle.dumps(self.prepare(pickle.loads(job)), 5) if job else job for job in batch["job"]]}

    def prepare(self, job: Job) -> Prepared:
        """The values of a job's items."""
        start = time.perf_counter()
        attempt, lost = self.ask("begin", job.number, self.limits.item)
        try:
            needs = job.needs or self._read(job)
            values = self._values(job, needs, attempt, lost)
        except Exception as error:
            return Prepared(job.without_items(), job.keys, error=_portable(error), facts=self._facts(start, attempt))
        readable = np.array([not isinstance(value, UnreadableMedia) for value in values])
        pairs = zip(needs, values, strict=True)
        reasons = {need.key: str(value) for need, value in pairs if isinstance(value, UnreadableMedia)}
        values = [value for value in values if not isinstance(value, UnreadableMedia)]
        seconds = time.perf_counter() - start
        self.count(items=len(values), bytes=int(byte_sizes(values).sum()), busy_seconds=seconds, retries=attempt - 1)
        return Prepared(job.without_items(), job.keys[readable], values, reasons, facts=self._facts(start, attempt))

    def _facts(self, start: float, attempt: int) -> Facts:
        return Facts(self.node, time.perf_counter() - start, attempt - 1, self.messages.take())

    def _read(self, job: Job) -> list[Need]:
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

    def _values(self, job: Job, needs: Sequence[Need], attempt: int, lost: Mapping[bytes, str]) -> list[Any]:
        """The prepared values of needs, or errors that they are unreadable."""
        one_by_one = attempt >= ONE_BY_ONE[self.stage]
        if job.modalities == ("text",) and not one_by_one:
            try:
                with time_limit(self.limits.item):
                    return list(prepare_texts(self.encoder, needs))
            except Exception:  # again one by one, where the error names its item
                pass
        values: list[Any] = []
        for need in needs:
            if need.key in lost:
                values.append(UnreadableMedia(f"it does not decode: it {lost[need.key]}"))
                continue
            if one_by_one:
                self.ask("work_on", job.number, need.key)
            with time_limit(self.limits.item):
                values.append(prepare_named(self.encoder, need, placeholder))
        if one_by_one:
            self.ask("end", job.number)
        return values


class Embedding(_Actor):
    """An actor with a copy of the model."""

    stage = "embed"

    def __init__(self, load: Callable[[], Encoder], space: str, dispatcher: Any, limits: Limits) -> None:
        super().__init__(load, space, dispatcher, limits)
        self.turns = Turns()
        self.tuning = Tuning()

    def __call__(self, batch: dict[str, Array]) -> dict[str, list[bytes]]:
        return {"result": [pickle.dumps(self.embed(pickle.loads(job)), 5) if job else job for job in batch["prepared"]]}

    def embed(self, prepared: Prepared) -> Done:
        """The vectors of a job."""
        start = time.perf_counter()
        job = prepared.job
        attempt, lost = self.ask("begin", job.number, self.limits.batch)
        report = Report(unreadable=prepared.unreadable)
        outcomes: list[tuple[Array, Any]] = []
        error = prepared.error
        if error is None and prepared.values:
            try:
                for needs, vectors in self._vectors(prepared, report, attempt, lost):
                    outcomes.append((keys_of(needs), vectors))
                    report.embedded += len(needs)
            except Exception as of_model:
                error = _portable(of_model, f"{self.encoder.card.name}: ")
        seconds = time.perf_counter() - start
        sizes = [np.asarray(part).nbytes for _, vectors in outcomes for part in vectors]
        self.count(items=report.embedded, bytes=sum(sizes), busy_seconds=seconds, retries=attempt - 1)
        facts = Facts(self.node, seconds, attempt - 1, self.messages.take())
        return Done(job.number, job.modalities, outcomes, report, error, tuple(filter(None, (prepared.facts, facts))))

    def _vectors(
        self, prepared: Prepared, report: Report, attempt: int, lost: Mapping[bytes, str]
    ) -> Iterator[tuple[Sequence[Need], Array | list[Array]]]:
        """Needs with their vectors; these needs have no items, as the values are made of them."""
        job = prepared.job
        values = prepared.values
        needs: Sequence[Need] = [
            Need(key, Item(()), job.side, None, 0, row) for row, key in enumerate(prepared.keys.tolist())
        ]
        if job.check and attempt == 1:
            with time_limit(self.limits.batch):
                checked = embed_twice(self.encoder, needs, values, placeholder)
            if checked is not None:
                vectors, warning = checked
                report.warnings += (warning,) if warning else ()
                yield needs, vectors
                return
        one_by_one = attempt >= ONE_BY_ONE[self.stage]
        fixed = 1 if one_by_one else job.batch_size or self.encoder.capabilities.batch_size
        size = fixed_size(fixed) if fixed else self.tuning.size(self.encoder.card, job.modalities)
        for key, reason in lost.items():
            report.unreadable[key] = f"the model cannot embed it: it {reason}"
        rows = np.array([row for row, need in enumerate(needs) if need.key not in lost], np.int64)
        values = [values[row] for row in rows.tolist()]
        needs = take(needs, rows)
        ready = Ready(np.arange(len(values)), values, byte_sizes(values))
        window = Window(needs, iter([ready]), size, MOST_BYTES)
        while (batch := window.next_batch()) is not None:
            if one_by_one:
                self.ask("work_on", job.number, batch.needs[0].key)
            with time_limit(self.limits.batch):
                done = list(forward(self.encoder, batch, size, report, placeholder, self.turns, True))
            yield from done
        if one_by_one:
            self.ask("end", job.number)


METRICS = {
    "items": "Items that were prepared or embedded.",
    "bytes": "Bytes of prepared items, and of vectors.",
    "busy_seconds": "Seconds in which actors worked: by the time, how busy they are.",
    "retries": "Jobs that were begun again, after an actor or a node was lost.",
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
