"""The pipeline of a run on a Ray cluster: actors read and prepare items, others embed them, and vectors come back here.

One streaming execution of Ray Data lasts as long as a model is evaluated: jobs of some hundred items are fed to it wave
by wave, so that a model is loaded once however many waves there are. Ray starts what dies again, and repeats what was
lost; what it cannot repeat is fed anew, and a vector that was computed twice is stored once. The plan, the keys and the
store know nothing of it.
"""

from __future__ import annotations

import logging
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from embark.allocation import return_memory
from embark.catalogue import counted
from embark.engine.activity import SILENT, Activity
from embark.engine.batching.batches import Kind, by_kind, fixed_size, seconds_left
from embark.engine.batching.self_check import checked_places
from embark.engine.ray.actors import Done, Job, Limits, Read
from embark.engine.ray.cluster import Cluster, connect, error_line, free_resources, wait_for_room
from embark.engine.ray.execution import Execution
from embark.engine.report import Report
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
AHEAD = 4  # jobs for each copy of the model that are fed before the first of them is done
PATIENCE = 1800.0  # seconds in which no job is done, at least, after which the run ends: some disks are slow
STALL = 60.0  # seconds in which no job is done, at least, after which jobs are fed anew
RESTARTS = 3  # of the whole execution, where jobs that were fed anew are not done either
ENDING = 10.0  # seconds for the end of the actors
TRIMMED = 16  # jobs after which freed memory goes back to the system
TICK = 0.2  # seconds between looks at Ctrl-C

logger = logging.getLogger("embark")


@dataclass
class _Sent:
    """A job that is not done: its kind, its bytes, and how many jobs that were fed later are done."""

    job: Job
    kind: Kind
    data: bytes
    passed: int = 0


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
        self.retries = 0  # jobs that were begun or fed again
        self._load = load
        self._copy = copy
        self._read = read
        self._changed = threading.Condition()
        self._sink: Sink | None = None
        self._done: list[tuple[Kind, Done]] = []
        self._missing: dict[int, _Sent] = {}
        self._numbers = count(1)
        self._error: EmbarkError | None = None  # of the cluster, for good: nobody waits for it task by task
        self._problem: Exception | None = None  # of a job, or of the store
        self._broken = ""  # why the execution must be started again
        self._execution: Execution | None = None  # from the first job on: a run whose vectors are stored needs none
        self._restarts = 0

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
    ) -> Report:
        """Embed every need and commit its vector; the keywords are those of `engine.local.embed`."""
        start = time.perf_counter()
        wave = _Wave(needs, name, advance, activity)
        if self._error is not None:
            raise EmbarkError(str(self._error))
        if self._execution is None:
            self._begin(activity)
        self._restarts = 0
        with Sink(writer, activity) as sink:
            self._sink = sink
            self._last = time.monotonic()
            try:
                if self_check:
                    for kind in wave.kinds:
                        self._feed(self._check(kind, batch_size), kind, wave)
                    self._finish(wave)
                for kind in wave.kinds:
                    for job in self._jobs(kind, batch_size):
                        if kind.hopeless:
                            break
                        self._feed(job, kind, wave)
                self._finish(wave)
            except Exception as error:
                raise wave.named(error) from None
            finally:
                with self._changed:
                    self._sink = None
                    self._missing.clear()  # what comes of them after an error is dropped
                    self._done.clear()
                    self._problem = None
        for kind in wave.kinds:
            if kind.hopeless:
                kind.give_up(wave.report)
        wave.report.seconds = time.perf_counter() - start
        return wave.report

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check(self, kind: Kind, batch_size: int | None) -> Job:
        """The job that embeds a few items of a kind alone and together; they leave the kind's needs."""
        places = checked_places(len(kind.needs), batch_size)
        needs = take(kind.needs, np.array(places))
        kind.needs = take(kind.needs, np.delete(np.arange(len(kind.needs)), places))
        return replace(self._sent(kind, keys_of(needs), needs, batch_size), check=True)

    def _jobs(self, kind: Kind, batch_size: int | None) -> Iterator[Job]:
        """The needs of a kind in jobs, each of one side of a task; the last are small: all copies end together."""
        assert self._execution is not None
        largest = min(ITEMS[modality] for modality in kind.modalities)
        start = 0
        while start < len(kind.needs):
            share = (len(kind.needs) - start) // (JOBS * self._execution.copies)
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
                    yield Job(
                        next(self._numbers), kind.modalities, keys, demand.task, (demand.split, demand.subset), side,
                        places, texts, batch_size=batch_size,
                    )  # fmt: skip

    def _sent(self, kind: Kind, keys: Any, needs: Sequence[Need], batch_size: int | None) -> Job:
        """A job whose items travel with it, where nodes see other files than this machine."""
        items = tuple(need if self.cluster.shared else _with_bytes(need) for need in needs)
        return Job(next(self._numbers), kind.modalities, keys, needs=items, batch_size=batch_size)

    def _feed(self, job: Job, kind: Kind, wave: _Wave) -> None:
        """Hand a job to the cluster; waits while enough of them are there."""
        data = pickle.dumps(job, 5)
        assert self._execution is not None
        most = AHEAD * self._execution.copies

        def has_room() -> bool:
            size = sum(len(sent.data) for sent in self._missing.values())
            return not self._missing or (len(self._missing) < most and size + len(data) < MOST_BYTES)

        self._wait_for(has_room, wave)
        with self._changed:
            self._missing[job.number] = _Sent(job, kind, data)
        self._put(data)
        self._settle(wave)

    def _finish(self, wave: _Wave) -> None:
        """Wait for all jobs."""
        while self._missing or self._done:
            self._wait_for(lambda: bool(self._done), wave)
            self._settle(wave)

    def _settle(self, wave: _Wave) -> None:
        """Count the jobs that are done."""
        with self._changed:
            done, self._done = self._done, []
        for kind, result in done:
            if result.number % TRIMMED == 0:
                return_memory()
            wave.add(kind, result)
            for facts in result.facts:
                self.retries += facts.retries
                if facts.retries:
                    logger.info("A job was begun again on %s, after an actor or a node was lost.", facts.node)
                for level, text in facts.messages:
                    logger.log(level, "%s: %s", facts.node, text)
            if self._execution is not None:
                wave.activity.worked(result.facts[-1].seconds / self._execution.copies)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wait_for(self, condition: Callable[[], bool], wave: _Wave) -> None:
        """Wait for jobs; an error of the cluster is raised here, and a run that stands still ends."""
        fed_anew = self._last
        while True:
            with self._changed:
                while self._error is None and self._problem is None and not self._broken and not condition():
                    self._changed.wait(TICK)
                    wave.tell_of_start(time.monotonic() - self._last)
                    if self._is_stalled(max(fed_anew, self._last)):
                        break
                if self._error is not None:
                    raise self._error
                if self._problem is not None:
                    raise self._problem
                if not self._broken and condition():
                    return
            still = time.monotonic() - self._last
            if still > self._patience:
                jobs = counted(len(self._missing), "job")
                raise self._given_up(f"The cluster did none of {jobs} for {still:.0f} s. {free_resources()}")
            if self._broken or (self._is_stalled(self._last) and fed_anew > self._last):
                self._restart(self._broken or f"no job was done for {still:.0f} s", wave)
            else:
                self._feed_anew(list(self._missing.values()))
            fed_anew = time.monotonic()

    def _is_stalled(self, since: float) -> bool:
        """Whether no job was done for much longer than others of their kinds took, or the start of the copies."""
        assert self._execution is not None
        usual = [self._execution.usual_seconds(sent.job.modalities) for sent in self._missing.values()]
        limit = max(STALL, 4 * self.cluster.item_seconds, *usual, 0)
        return time.monotonic() - since > min(limit, self._patience)

    @property
    def _patience(self) -> float:
        """Seconds after which a run ends that stands still; within them, a batch that hangs is begun again."""
        return PATIENCE + 2 * self.cluster.batch_seconds

    def _feed_anew(self, sent: Sequence[_Sent]) -> None:
        """Feed jobs again whose blocks were lost with a node."""
        logger.info("%s of the cluster are fed anew.", counted(len(sent), "job"))
        for job in sent:
            job.passed = 0
            self.retries += 1
            self._put(job.data)

    def _put(self, data: bytes) -> None:
        """Feed a job; where that fails, it is missing when all is started anew."""
        assert self._execution is not None
        try:
            self._execution.put(data)
        except Exception as error:
            with self._changed:
                self._broken = self._broken or f"the cluster takes no more jobs ({error_line(error)})"
                self._changed.notify_all()

    # ── the execution ────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, activity: Activity) -> None:
        try:
            ray = connect(self.cluster)
            cluster = wait_for_room(self.cluster, ray.nodes, activity)
        except EmbarkError as error:
            raise self._given_up(str(error)) from None
        limits = Limits(cluster.item_seconds, cluster.batch_seconds)
        self._execution = Execution(
            cluster,
            lambda dispatcher: (self._copy, self.space, dispatcher, limits, self._read),
            lambda dispatcher: (self._load, self.space, dispatcher, limits),
            self._take,
            self._end,
        )

    def _restart(self, reason: str, wave: _Wave) -> None:
        """Start all actors anew, and feed the jobs that are missing."""
        self._restarts += 1
        if self._restarts > RESTARTS:
            raise self._given_up(f"The cluster was given up after {RESTARTS} new starts: {reason}. {free_resources()}")
        wave.activity.log(f"The work on the cluster is started anew: {reason}.")
        assert self._execution is not None
        self._execution.close(0.5)
        with self._changed:
            self._broken = ""
        self._begin(wave.activity)
        self._last = time.monotonic()
        self._feed_anew(list(self._missing.values()))

    def _given_up(self, reason: str) -> EmbarkError:
        """The error of a cluster that does not work, from now on."""
        self._error = EmbarkError(reason)
        return self._error

    def _take(self, result: Done) -> None:
        """Hand the vectors of a job to the writer; an error of the store is not the cluster's."""
        with self._changed:
            sent = self._missing.get(result.number)
            sink = self._sink
        if sent is None or sink is None:  # of a wave that was given up, or computed twice
            return
        try:
            for keys, vectors in result.outcomes:
                sink.put(keys, vectors)
        except Exception as error:
            with self._changed:
                self._problem = self._problem or error
                self._changed.notify_all()
            return
        late = []
        with self._changed:
            if self._missing.pop(result.number, None) is None:
                return
            for other in self._missing.values():
                other.passed += other.job.number < result.number
            assert self._execution is not None
            late = [other for other in self._missing.values() if other.passed > 2 * AHEAD * self._execution.copies + 8]
            self._done.append((sent.kind, replace(result, outcomes=[])))
            self._last = time.monotonic()
            self._problem = self._problem or result.error
            self._changed.notify_all()
        if late:
            self._feed_anew(late)

    def _end(self, execution: Execution, error: EmbarkError, again: bool) -> None:
        """The execution has ended with an error."""
        with self._changed:
            if execution.closed:
                return
            if again:
                self._broken = str(error)
            else:
                self._error = error
            self._changed.notify_all()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._execution is not None:
            execution, self._execution = self._execution, None
            execution.close(ENDING if error is None else 0.5)


class _Wave:
    """What `embed` was called with, and what became of it so far."""

    def __init__(
        self,
        needs: Sequence[Need],
        name: Callable[[Need], str],
        advance: Callable[[int, float | None], None],
        activity: Activity,
    ) -> None:
        self.needs = needs
        self.name = name
        self.advance = advance
        self.activity = activity
        self.kinds = [Kind(group, fixed_size(1), modalities) for modalities, group in by_kind(needs)]
        self.report = Report()
        self._settled = time.perf_counter()
        self._slow_start = False

    def tell_of_start(self, seconds: float) -> None:
        """Say once why nothing is to be seen yet, where that takes long."""
        if seconds > STALL and not self._slow_start and not any(kind.done for kind in self.kinds):
            self._slow_start = True
            self.activity.log(f"No job is done after {STALL:.0f} s: copies may still be starting. {free_resources()}")

    def add(self, kind: Kind, result: Done) -> None:
        """Count a job."""
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
        self.advance(items, seconds_left(self.kinds))

    def named(self, error: Exception) -> Exception:
        """The error with the names of items, where it holds their keys."""
        if isinstance(error, EmbarkError) and (text := self._text(str(error))) != str(error):
            return type(error)(text) if type(error).__init__ is EmbarkError.__init__ else EmbarkError(text)
        return error

    def _text(self, text: str) -> str:
        """A message of a node with the names of items in place of their keys, see `ray_actors.placeholder`."""

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
