"""The actors of a run on a Ray cluster, and the jobs that they work on: waiting → prepare → embed.

Actors are started node by node, copies of the model first, and looked after: when nodes join or are lost, when an actor
dies, or when it no longer answers, others are started where there is room, and its jobs are begun again. A job that two
actors died of is begun again item by item, so that the item that they die of is found, and left out like one that a
worker process of the local engine dies of.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from embark.catalogue import counted
from embark.engine.ray.actors import ActorFacts, ActorJob, ActorLimits, Done, Embedding, Preparing
from embark.engine.ray.cluster import Cluster, NodePlace, Stage, allot, error_line, free_resources
from embark.engine.report import EmbeddingReport
from embark.processes import STALLED, START_SECONDS, TRIES, loss_reason, next_try
from embark.types import EmbarkError

AHEAD = 4  # jobs for each copy of the model that are under way
AT_ONCE = 2  # jobs of an actor: one that it works on, and the next
WHOLE = 2  # actors that may die of a job before it is begun item by item
FAILURES = 8  # of a job for other reasons, after which the run ends
STARTS = 3  # that may fail of each actor of a place, in a row, before no more are started there
LOOK_SECONDS = 2.0  # between looks at nodes and actors
SILENCE = 30.0  # seconds without an answer after which an actor is taken for frozen
STORE_SHARE = 0.25  # of the memory for objects, that prepared jobs may wait in
PULSE = "pulse"  # the thread in which actors answer
LEFT_OUT: dict[Stage, str] = {"prepare": "it does not decode", "embed": "the model cannot embed it"}

logger = logging.getLogger("embark")


@dataclass(eq=False)
class _Work:
    """A job that is not done; `alone`: it is one item of a job that actors died of."""

    job: ActorJob
    data: bytes
    alone: bool = False
    lost: int = 0  # actors that died of it
    silences: int = 0  # actors that did not answer while they had it
    failed: int = 0  # other failures
    node: str = ""  # where it was prepared
    prepared: Any = None  # a reference to that
    facts: tuple[ActorFacts, ...] = ()


@dataclass(eq=False)
class _Worker:
    """An actor: what it works on, and when it answered."""

    place: NodePlace
    handle: Any
    starting: Any  # a reference to the end of its start, until then
    asked: float = field(default_factory=time.monotonic)  # when an answer was asked for that is missing
    pulse: Any = None  # a reference to that answer
    works: dict[Any, _Work] = field(default_factory=dict)  # by reference to what becomes of them; the first is at hand
    since: float = 0.0  # when that one was begun

    def references(self) -> list[Any]:
        return [*filter(None, (self.starting, self.pulse)), *self.works]


class Execution:
    """The actors of a run, and the jobs that they work on.

    `arguments` are those of the actors of each stage: how they load the model, and others.
    """

    def __init__(self, cluster: Cluster, arguments: Mapping[Stage, tuple[Any, ...]], limits: ActorLimits) -> None:
        import ray
        from ray.util.metrics import Counter as Metric

        self._ray = ray
        self._cluster = cluster
        self._limits: dict[Stage, float] = {"prepare": limits.item, "embed": limits.batch}
        self._classes = {kind.stage: ray.remote(concurrency_groups={PULSE: 1})(kind) for kind in (Preparing, Embedding)}
        self._arguments = {stage: (ray.put(load), *others) for stage, (load, *others) in arguments.items()}
        self._works: set[_Work] = set()
        self._waiting: deque[_Work] = deque()
        self._prepared: deque[_Work] = deque()
        self._workers: list[_Worker] = []
        self._wanted: Counter[NodePlace] = Counter()  # actors
        self._failed: Counter[NodePlace] = Counter()  # starts of them, in a row
        self._results: list[Done] = []
        self._retried = Metric("embark_retries", "Jobs that were begun again, after an actor or a node was lost.")
        self.retries = 0
        self._look()

    @property
    def jobs(self) -> int:
        """Jobs that are not done."""
        return len(self._works)

    @property
    def bytes(self) -> int:
        """Bytes of these jobs."""
        return sum(len(work.data) for work in self._works)

    @property
    def copies(self) -> int:
        """Copies of the model, those that still start among them; at least one."""
        return max(1, sum(worker.place.stage == "embed" for worker in self._workers))

    @property
    def most_jobs(self) -> int:
        """Jobs that keep all actors busy."""
        return AHEAD * self.copies + sum(worker.place.stage == "prepare" for worker in self._workers)

    def put(self, job: ActorJob) -> None:
        """Add a job."""
        self._add(_Work(job, pickle.dumps(job, 5)))

    def _add(self, work: _Work) -> None:
        self._works.add(work)
        self._waiting.append(work)

    def step(self, seconds: float) -> list[Done]:
        """What was done since the last step; waits so long at most until something happens."""
        self._hand_out()
        owners = {reference: worker for worker in self._workers for reference in worker.references()}
        if not owners:
            time.sleep(seconds)
        else:
            self._ray.wait(list(owners), num_returns=1, timeout=seconds)
            done, _ = self._ray.wait(list(owners), num_returns=len(owners), timeout=0)
            lost: dict[_Worker, str] = {}
            for reference in done:
                worker = owners[reference]
                try:
                    self._arrive(worker, reference, self._ray.get(reference))
                except self._ray.exceptions.RayError as error:
                    if reference in worker.works and not isinstance(error, self._ray.exceptions.RayActorError):
                        self._fail(worker, reference, error_line(error))
                    else:
                        lost.setdefault(worker, error_line(error))
            for worker, reason in lost.items():
                self._lose(worker, reason)
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        self._hand_out()
        results, self._results = self._results, []
        return results

    def forget(self) -> None:
        """Forget all jobs; what becomes of those that actors work on is dropped."""
        for jobs in (self._works, self._waiting, self._prepared, self._results):
            jobs.clear()

    def close(self) -> None:
        """End the actors."""
        for worker in self._workers:
            with suppress(Exception):
                self._ray.kill(worker.handle)

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _hand_out(self) -> None:
        """Give jobs to actors that have time; prepared ones to copies on the same node, if there are any."""
        at_once = 1 if any(work.alone for work in self._works) else AT_ONCE  # then it is known what an actor dies of
        while self._prepared and (worker := self._free("embed", at_once)):
            near = (work for work in self._prepared if work.node == worker.place.node)
            work = next(near, self._prepared[0])
            self._prepared.remove(work)
            self._begin(worker, work, worker.handle.work.remote(work.prepared))
        while self._waiting and self._has_room() and (worker := self._free("prepare", at_once)):
            work = self._waiting.popleft()
            facts, work.prepared = worker.handle.work.options(num_returns=2).remote(work.data)
            work.node = worker.place.node
            self._begin(worker, work, facts)

    def _has_room(self) -> bool:
        """Whether more jobs may be prepared."""
        size = sum(facts.bytes for work in self._prepared for facts in work.facts)
        return len(self._prepared) < AHEAD * self.copies and (not size or size < self._room)

    def _free(self, stage: Stage, at_once: int) -> _Worker | None:
        """The actor that has time, if any: of those with the fewest jobs, the one that waits longest."""
        free = [
            worker
            for worker in self._workers
            if worker.place.stage == stage and not worker.starting and len(worker.works) < at_once
        ]
        return min(free, key=lambda worker: (len(worker.works), worker.since), default=None)

    def _begin(self, worker: _Worker, work: _Work, reference: Any) -> None:
        if not worker.works:
            worker.since = time.monotonic()
        worker.works[reference] = work

    def _arrive(self, worker: _Worker, reference: Any, value: Any) -> None:
        """Take what an actor has returned."""
        if reference == worker.pulse:
            worker.pulse = None
        elif reference == worker.starting:
            if value is not None:
                raise value
            worker.starting = None
            self._failed[worker.place] = 0
        elif (work := self._take(worker, reference)) in self._works:
            if worker.place.stage == "prepare":
                work.facts = (value,)
                self._prepared.append(work)
            else:
                done: Done = pickle.loads(value)
                self._finish(work, replace(done, facts=work.facts + done.facts))

    def _take(self, worker: _Worker, reference: Any) -> _Work:
        """Take a job from an actor, which begins with its next one."""
        worker.since = time.monotonic()
        return worker.works.pop(reference)

    def _finish(self, work: _Work, result: Done) -> None:
        self._works.discard(work)
        self._results.append(result)

    # ── losses ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fail(self, worker: _Worker, reference: Any, reason: str) -> None:
        """Begin a job again that failed for no fault of its actor: what was prepared is lost, as a rule."""
        work = self._take(worker, reference)
        work.failed += 1
        if work.failed >= FAILURES and work in self._works:
            raise EmbarkError(f"A job on the cluster failed {FAILURES} times: {reason}. {free_resources()}")
        self._again(work)

    def _lose(self, worker: _Worker, reason: str, guilty: bool = True) -> None:
        """Begin the jobs of an actor again that died, or has to go; `guilty`: it may have died of the one at hand."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.handle)
        if worker.starting and guilty:
            self._count_failed_start(worker.place, reason)
        at_hand = next(iter(worker.works.values()), None)
        works = [work for work in worker.works.values() if work in self._works]
        if works:
            again = counted(len(works), "job")
            logger.info("An actor on node %s is lost (%s): %s begun again.", worker.place.node[:12], reason, again)
        for work in works:
            if guilty and work is at_hand:
                self._blame(work, worker.place.stage, time.monotonic() - worker.since)
            else:
                self._again(work)

    def _count_failed_start(self, place: NodePlace, reason: str) -> None:
        """Count an actor that died while it started; where all do, no more are started, and others do the work."""
        self._failed[place] += 1
        if self._is_given_up(place):
            if not any(worker.place.stage == place.stage for worker in self._workers):
                raise EmbarkError(f"No actor starts on the cluster: {reason}. {free_resources()}")
            logger.warning("Actors do not start on node %s; other nodes do their work: %s", place.node[:12], reason)

    def _is_given_up(self, place: NodePlace) -> bool:
        return self._failed[place] >= STARTS * self._wanted[place]

    def _blame(self, work: _Work, stage: Stage, seconds: float) -> None:
        """Begin a job again that an actor may have died of: item by item, or never, if that has happened before."""
        work.lost += 1
        limit = self._limits[stage]
        if work.alone and seconds > limit:
            self._leave_out(work, stage, f"{STALLED} {limit:g} s")
            return
        attempt = next_try(work.alone, work.lost, WHOLE, WHOLE + TRIES)
        if attempt == "singly":
            self._works.discard(work)
            self._retry(len(work.job.keys))
            for row in range(len(work.job.keys)):
                job = work.job.of_row(row)
                self._add(_Work(job, pickle.dumps(job, 5), alone=True, lost=work.lost, silences=work.silences))
        elif attempt == "none":
            self._leave_out(work, stage)
        else:
            self._again(work)

    def _leave_out(self, work: _Work, stage: Stage, cause: str = "") -> None:
        """End a job whose item actors die of."""
        reason = f"{LEFT_OUT[stage]}: it {loss_reason(cause)}"
        self._finish(
            work, Done(work.job.modalities, [], EmbeddingReport(unreadable={work.job.keys.tolist()[0]: reason}))
        )

    def _again(self, work: _Work) -> None:
        """Begin a job anew, before others."""
        if work in self._works:
            self._retry(1)
            work.facts, work.prepared = (), None
            self._waiting.appendleft(work)

    def _retry(self, jobs: int) -> None:
        self.retries += jobs
        self._retried.inc(jobs)

    # ── actors ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> None:
        """Start actors where there is room for them, and end those that are in the way, lost or frozen."""
        self._looked = now = time.monotonic()
        nodes = self._ray.nodes()
        alive = {node["NodeID"]: node.get("Resources", {}) for node in nodes if node["Alive"]}
        self._room = STORE_SHARE * sum(resources.get("object_store_memory", 0) for resources in alive.values())
        for worker in list(self._workers):
            if worker.place.node not in alive:
                self._lose(worker, "its node is lost", guilty=False)
            elif (worker.starting or worker.pulse) and now - worker.asked > self._patience(worker):
                for work in worker.works.values():
                    work.silences += 1
                self._lose(worker, f"it did not answer for {now - worker.asked:.0f} s", guilty=False)
            elif not worker.starting and worker.pulse is None:
                worker.asked = now
                worker.pulse = worker.handle.pulse.options(concurrency_group=PULSE).remote()
        self._wanted = allot(self._cluster, nodes, Counter(worker.place for worker in self._workers))
        for place, count in self._wanted.items():
            present = [worker for worker in self._workers if worker.place == place]
            present.sort(key=lambda worker: len(worker.works))
            for worker in present[: max(0, len(present) - count)]:
                self._lose(worker, "a copy of the model needs its CPU", guilty=False)
            if not self._is_given_up(place):
                self._workers += [self._start(place) for _ in range(count - len(present))]

    def _patience(self, worker: _Worker) -> float:
        """Seconds without an answer after which an actor is ended.

        They grow with the actors that a job was taken from for that: some libraries let no other thread answer while
        they work on an item. When the time for an item is over, such an actor ends itself.
        """
        if worker.starting:
            return START_SECONDS
        silences = max((work.silences for work in worker.works.values()), default=0)
        return min(SILENCE * 4.0**silences, max(SILENCE, 2 * self._limits[worker.place.stage]))

    def _start(self, place: NodePlace) -> _Worker:
        gpus = (self._cluster.gpus or 0) if place.stage == "embed" else 0
        handle = (
            self._classes[place.stage]
            .options(num_cpus=place.cpus, num_gpus=gpus, label_selector={"ray.io/node-id": place.node})
            .remote(*self._arguments[place.stage])
        )
        return _Worker(place, handle, handle.start.remote())
