"""The pipeline of a run on a Ray cluster: actors read and prepare items, others embed them, and vectors come back here.

The actors last as long as a model is evaluated: jobs of some hundred items are fed to them wave by wave, so that a
model is loaded once however many waves there are. What is lost is begun again. The plan, the keys and the store know
nothing of it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from embark.allocation import return_memory
from embark.catalogue import counted
from embark.engine.activity import SILENT, Activity
from embark.engine.batching.batches import Kind, by_kind, fixed_size, seconds_left
from embark.engine.batching.self_check import checked_places
from embark.engine.ray.actors import ActorJob, ActorLimits, Done, Read
from embark.engine.ray.cluster import Cluster, connect, error_line, free_resources, wait_for_room
from embark.engine.ray.execution import Execution
from embark.engine.report import EmbeddingReport
from embark.engine.workers.preparing import MOST_BYTES
from embark.engine.workers.preparing_processes import sendable
from embark.engine.workers.sink import Sink
from embark.models.encoder import Encoder
from embark.planning import Need, Needs, keys_of, take
from embark.store import Writer
from embark.types import EmbarkError, Item, Task

ITEMS = {"text": 2048, "image": 256, "audio": 64, "video": 16}  # of a job, by its dearest modality
SMALLEST = 16  # of it: the least share that a job has of these items
JOBS = 4  # that are left for each copy of the model, at least, where that does not make them too small
IDLE_SECONDS = 1800.0  # seconds in which no job is done, at least, after which the run ends: some disks are slow
SLOW_START = 60.0  # seconds without a job after which the log says why
TRIMMED = 16  # jobs after which freed memory goes back to the system
TICK = 0.2  # seconds between looks at Ctrl-C

logger = logging.getLogger("embark")


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
        read: Read | None,
        space: str,
        travels: Callable[[Task], bool] = lambda task: True,
    ) -> None:
        self.cluster = cluster
        self.space = space
        self.travels = travels
        self.retries = 0  # jobs that were begun again
        self._load = load
        self._copy = copy
        self._read = read
        self._error: EmbarkError | None = None  # of the cluster, for good: nobody waits for it task by task
        self._execution: Execution | None = None  # from the first job on: a run whose vectors are stored needs none
        self._done = 0  # jobs

    def embed(
        self,
        needs: Sequence[Need],
        writer: Writer,
        *,
        batch_size: int | None = None,
        self_check: bool = False,
        name: Callable[[Need], str] = lambda need: need.key.hex()[:12],
        advance: Callable[[int, float | None], None] = lambda items, left: None,
        activity: Activity = SILENT,
    ) -> EmbeddingReport:
        """Embed every need and commit its vector; the keywords are those of `engine.local.embed`."""
        start = time.perf_counter()
        if self._error is not None:
            raise EmbarkError(str(self._error))
        execution = self._execution = self._execution or self._begin(activity)
        with Sink(writer, activity) as sink:
            wave = _Wave(needs, name, advance, activity, sink)
            try:
                if self_check:
                    for kind in wave.kinds.values():
                        self._feed(self._check(kind, batch_size), execution, wave)
                    self._finish(execution, wave)
                for kind in wave.kinds.values():
                    for job in self._jobs(kind, batch_size, execution):
                        if kind.hopeless:
                            break
                        self._feed(job, execution, wave)
                self._finish(execution, wave)
            except Exception as error:
                raise wave.named(error) from None
            finally:
                execution.forget()  # what was left after an error
        for kind in wave.kinds.values():
            if kind.hopeless:
                kind.give_up(wave.report)
        wave.report.seconds = time.perf_counter() - start
        return wave.report

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check(self, kind: Kind, batch_size: int | None) -> ActorJob:
        """The job that embeds a few items of a kind alone and together; they leave the kind's needs."""
        places = checked_places(len(kind.needs), batch_size)
        needs = take(kind.needs, np.array(places))
        kind.needs = take(kind.needs, np.delete(np.arange(len(kind.needs)), places))
        return replace(self._sent(kind, keys_of(needs), needs, batch_size), check=True)

    def _jobs(self, kind: Kind, batch_size: int | None, execution: Execution) -> Iterator[ActorJob]:
        """The needs of a kind in jobs, each of one side of a task; the last are small: all copies end together."""
        largest = min(ITEMS[modality] for modality in kind.modalities)
        start = 0
        while start < len(kind.needs):
            share = (len(kind.needs) - start) // (JOBS * execution.copies)
            size = max(largest // SMALLEST, min(largest, share))
            size = -(-size // (batch_size or 1)) * (batch_size or 1)
            needs = kind.needs[start : start + size]
            start += size
            if not isinstance(needs, Needs):
                yield self._sent(kind, keys_of(needs), needs, batch_size)
                continue
            for rows, number, side, places in needs.by_side():
                demand = needs.demands[number]
                keys = demand.keys[side][places]
                travels = self.travels(demand.task)
                texts = needs.take(rows).texts() if travels else None
                if travels and texts is None:
                    yield self._sent(kind, keys, needs.take(rows), batch_size)
                else:
                    yield ActorJob(
                        kind.modalities, keys, demand.task, (demand.split, demand.subset), side, places, texts,
                        batch_size=batch_size,
                    )  # fmt: skip

    def _sent(self, kind: Kind, keys: Any, needs: Sequence[Need], batch_size: int | None) -> ActorJob:
        """A job whose items travel with it, where nodes see other files than this machine."""
        items = tuple(need if self.cluster.shared else _with_bytes(need) for need in needs)
        return ActorJob(kind.modalities, keys, needs=items, batch_size=batch_size)

    # ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, activity: Activity) -> Execution:
        """Start the actors."""
        with self._for_good():
            ray = connect(self.cluster)
            cluster = wait_for_room(self.cluster, ray.nodes, activity)
            limits = ActorLimits(cluster.item_seconds, cluster.batch_seconds)
            preparing = (self._copy, self.space, limits, self._read)
            return Execution(cluster, {"prepare": preparing, "embed": (self._load, self.space, limits)}, limits)

    def _feed(self, job: ActorJob, execution: Execution, wave: _Wave) -> None:
        """Hand a job to the cluster; waits while enough of them are there."""
        while execution.jobs >= execution.most_jobs or execution.bytes > MOST_BYTES:
            self._step(execution, wave, TICK)
        execution.put(job)
        self._step(execution, wave, 0.0)

    def _finish(self, execution: Execution, wave: _Wave) -> None:
        """Wait for all jobs."""
        while execution.jobs:
            self._step(execution, wave, TICK)

    def _step(self, execution: Execution, wave: _Wave, seconds: float) -> None:
        """Store what was done; waits so long at most until something is. A run that stands still ends."""
        with self._for_good():
            results = execution.step(seconds)
        self.retries = execution.retries
        for result in results:
            self._done += 1
            if self._done % TRIMMED == 0:
                return_memory()
            wave.add(result)
            wave.activity.worked(sum(facts.seconds for facts in result.facts[-1:]) / execution.copies)
        still = time.monotonic() - wave.latest
        wave.tell_of_start(still)
        # Within its patience, a batch that hangs is begun again.
        if execution.jobs and still > IDLE_SECONDS + 2 * self.cluster.batch_seconds:
            jobs = counted(execution.jobs, "job")
            with self._for_good():
                raise EmbarkError(f"The cluster did none of {jobs} for {still:.0f} s. {free_resources()}")

    @contextmanager
    def _for_good(self) -> Iterator[None]:
        """A block whose errors are the cluster's: from then on it does not work."""
        try:
            yield
        except Exception as error:
            failed = f"The cluster failed: {error_line(error)}. {free_resources()}"
            self._error = error if isinstance(error, EmbarkError) else EmbarkError(failed)
            raise self._error from None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._execution is not None:
            self._execution.close()
            self._execution = None


class _Wave:
    """What `embed` was called with, and what became of it so far."""

    def __init__(
        self,
        needs: Sequence[Need],
        name: Callable[[Need], str],
        advance: Callable[[int, float | None], None],
        activity: Activity,
        sink: Sink,
    ) -> None:
        self.needs = needs
        self.name = name
        self.advance = advance
        self.activity = activity
        self.sink = sink
        self.kinds = {modalities: Kind(group, fixed_size(1), modalities) for modalities, group in by_kind(needs)}
        self.report = EmbeddingReport()
        self.latest = time.monotonic()  # when a job was done
        self._settled = time.perf_counter()
        self._slow_start = False

    def tell_of_start(self, seconds: float) -> None:
        """Say once why nothing is to be seen yet, where that takes long."""
        if seconds > SLOW_START and not self._slow_start and not any(kind.done for kind in self.kinds.values()):
            self._slow_start = True
            self.activity.log(f"No job is done after {seconds:.0f} s: copies may still be starting. {free_resources()}")

    def add(self, result: Done) -> None:
        """Store the vectors of a job, and count it."""
        self.latest = time.monotonic()
        for keys, vectors in result.outcomes:
            self.sink.put(keys, vectors)
        for facts in result.facts:
            for level, text in facts.messages:
                logger.log(level, "%s: %s", facts.node, text)
        if result.error is not None:
            raise result.error
        kind = self.kinds[result.modalities]
        part = result.report
        for reasons in (part.unreadable, part.too_large, part.invalid):
            reasons.update({key: self._text(reason) for key, reason in reasons.items()})
        self.report.add(part)
        items = part.embedded + len(part.unreadable) + len(part.invalid) + len(part.too_large)
        now = time.perf_counter()
        kind.seconds += now - self._settled
        self._settled = now
        kind.done += items
        kind.valid += part.embedded
        kind.invalid += len(part.invalid)
        self.advance(items, seconds_left(list(self.kinds.values())))

    def named(self, error: Exception) -> Exception:
        """The error with the names of items, where it holds their keys."""
        if isinstance(error, EmbarkError) and (text := self._text(str(error))) != str(error):
            return type(error)(text) if type(error).__init__ is EmbarkError.__init__ else EmbarkError(text)
        return error

    def _text(self, text: str) -> str:
        """A message of a node with the names of items in place of their keys, see `actors.placeholder`."""

        def named(match: re.Match[str]) -> str:
            keys = keys_of(self.needs)
            [row] = np.flatnonzero(keys == np.frombuffer(bytes.fromhex(match[1]), keys.dtype))[:1].tolist() or [None]
            return match[0] if row is None else self.name(self.needs[row])

        return re.sub(r"item ([0-9a-f]{64})", named, text)


def _with_bytes(need: Need) -> Need:
    """The need with the bytes of its media, which nodes cannot read; one that cannot be read is left as it is."""
    with suppress(Exception):
        return replace(need, item=Item(tuple(sendable(part, files=False) for part in need.item.parts)))
    return need
