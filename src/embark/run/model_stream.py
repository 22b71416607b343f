"""The tasks of one model, on their way from the data to a score: fetch ‖ read and hash ‖ plan and embed ‖ score.

Threads read tasks ahead. All tasks that were read by the time that the model takes new batches, a wave, are planned
together and their missing vectors handed to it; a model of several lanes still has the last batches of the wave before.
Threads score the tasks when their vectors are there, and let their data go. An item that an earlier wave embedded, or
is embedding, is not embedded again.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from embark import readers
from embark.catalogue import listed
from embark.engine.batching.self_check import Inconsistent
from embark.engine.local import Embedding
from embark.engine.progress import log
from embark.engine.report import EmbeddingReport
from embark.items import size_of
from embark.items.lazy_items import distinct_numbers
from embark.models.encoder import Encoder
from embark.planning import Count, Demand, Plan, reading_order
from embark.protocol import encoder_fingerprint, fingerprint_of
from embark.readers.local_state import STATES
from embark.registries import EVALUATORS
from embark.results import CannotSave, TaskResult
from embark.run.fetching import download, from_hub
from embark.run.ledger import Ledger
from embark.run.read_ahead import Opened, ReadAhead
from embark.run.score import Scoring, commit_now, score_task
from embark.run.workbench import Workbench
from embark.stats.means import score
from embark.store import DamagedVectors, MissingVectors
from embark.tables import shown
from embark.threads import DaemonThreads
from embark.types import Array, EmbarkError, Task

GIVE_UP = 3  # tasks in a row whose items a model fails to embed
FETCH_AHEAD = 4  # tasks whose data is on the disk before they are scored, where it is short
SCORES_AFTER_SECONDS = 60.0  # seconds after which scores are printed one by one, as they come

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, eq=False)
class Wave:
    """Tasks that are embedded together: the plan of what they lack, and the embedding of it that has begun.

    `awaited` are keys that they lack, too, and that other waves are computing.
    """

    tasks: tuple[Opened, ...]
    plan: Plan
    awaited: Sequence[Array]
    embedding: Embedding | None  # None where the model is not tried any more, or failed at once


class ModelStream:
    """The tasks of one model, on their way from the data to a score; what becomes of them is told to the ledger."""

    def __init__(self, bench: Workbench, encoder: Encoder, ledger: Ledger, rescore: bool = False) -> None:
        self.bench = bench
        self.encoder = encoder
        self.ledger = ledger
        self.activity = bench.tools.activity
        self.rescore = rescore
        self.start = time.monotonic()
        self.space = bench.space(encoder.card)
        self.trials = Trials(1 if encoder.capabilities.billed else GIVE_UP)
        self.again: deque[Opened] = deque()  # tasks whose stored vectors are damaged, to be embedded again
        self.begun: list[Wave] = []  # whose vectors are being computed
        self.lost: set[bytes] = set()  # keys of vectors that were found damaged
        self.keys: list[Array] = []  # of scored tasks, the first 64 bits
        self.errors: list[BaseException] = []  # of finishing and scoring, that end the run
        self.warnings: tuple[str, ...] = ()  # about the model's vectors
        self.batch_size: int | None = None  # what memory sufficed for
        self.running: set[Future[None]] = set()  # waves that are being finished, and tasks that are being scored
        self.finished = 0

    def evaluate(self, tasks: Sequence[Task]) -> None:
        """Score every task that the model can do and that has no score on disk."""
        applicable = reading_order(self._applicable(tasks))
        for task in tasks:
            if task not in applicable:
                self.ledger.done(task)
        self.total = len(applicable)
        self.activity.stage("read").add(total=self.total)
        self.at_once = max(1, min(self.bench.settings.workers, self.total))
        online = any(map(from_hub, applicable)) and not self.bench.settings.offline
        self.reading = ReadAhead(
            applicable,
            self._open,
            limit=self.bench.settings.memory << 19,  # half of it; scoring has its own share of memory
            fetch=self._fetch if online else None,
            waiting=partial(self.activity.waiting, "download"),
            fetch_ahead=FETCH_AHEAD if self.ledger.evict else None,
        )
        try:
            with (
                DaemonThreads(self.at_once, "embark-score") as self.scorers,
                DaemonThreads(1, "embark-finish") as finisher,
                self.bench.worker_processes() as self.bench,
                self.reading,
            ):
                try:
                    unfinished: deque[Future[None]] = deque()
                    while self._embed_next(finisher, unfinished):
                        pass
                except Exception:
                    while self.running:  # what is embedded gets its scores, and nobody writes any after the run
                        self.running -= wait(set(self.running)).done
                    raise
        finally:
            if self.keys:
                self.ledger.run.distinct += len(distinct_numbers(np.concatenate(self.keys)))

    def _applicable(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks that the model can do; the others are reported before anything is embedded."""
        card = self.encoder.card
        applicable = []
        for task in tasks:
            if task.evaluator not in EVALUATORS:
                why = f"there is no evaluator '{task.evaluator}'"
                self.ledger.skip(card.name, task.name, "not available", why)
            elif reason := self.bench.incompatibility(card, task):
                self.ledger.skip(card.name, task.name, "not applicable", reason)
            else:
                applicable.append(task)
        return applicable

    def _embed_next(self, finisher: DaemonThreads, unfinished: deque[Future[None]]) -> bool:
        """Hand the next tasks to the model; False when there are none.

        A function of its own, so that nothing of a wave is held while the next one is read.
        """
        opened = self._next()
        if not opened:
            return False
        wave = self._begin(opened)
        if self.encoder.capabilities.lanes == 1:  # there are no batches left to wait for
            self._conclude(wave)
            return True
        unfinished.append(finisher.submit(self._conclude, wave))
        self.running.add(unfinished[-1])
        del wave
        if len(unfinished) > 1:
            wait([unfinished.popleft()])
        return True

    def _next(self) -> list[Opened]:
        """The next tasks to embed: those whose vectors were found damaged, else those that were read. None at the end.

        Tasks that have a result, or could not be read, are done here.
        """
        while True:
            with self.activity.waiting("reading"):
                opened = [self.again.popleft() for _ in range(len(self.again))] or self.reading.take(self._is_woken)
            if self.errors:
                raise self.errors[0]
            self.running -= {future for future in set(self.running) if future.done() and future.result() is None}
            if not opened and not self.again:
                running = set(self.running)
                if not running and not self.again:
                    return []
                wait(running, return_when=FIRST_COMPLETED)
            for task in opened:
                if isinstance(task.content, Exception):
                    self.ledger.fail(self.encoder.card.name, [task.task.name], task.content)
                if not isinstance(task.content, tuple):
                    self._release(task)
            if opened := [task for task in opened if task.demands]:
                return opened

    def _is_woken(self) -> bool:
        """Whether scoring has left something to do: nothing may be read meanwhile, as memory is held for it."""
        return bool(self.again or self.errors)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fetch(self, task: Task) -> None:
        if from_hub(task) and (self.rescore or not self._result(task)):
            readers.require(task)
            download(task, self.bench.hub)

    def _result(self, task: Task) -> TaskResult | None:
        """The result that is on disk, current or not."""
        return self.bench.result(self.ledger.folder, self.encoder.card, task)

    def _open(self, task: Task) -> Opened:
        """A task's result on disk, if it is current; else its data, and the keys of its items."""
        try:
            result = self._result(task)
            if result:
                _check_folder(task, result)
            if result and not self.rescore and self._is_current(result, task):
                self.ledger.found(result)
                return Opened(task, result)
            demands = tuple(self.bench.demands(task, self.encoder))
            return Opened(task, demands, sum(size_of(demand.data) for demand in demands), result)
        finally:
            self.activity.stage("read").add(done=1)

    def _is_current(self, result: TaskResult, task: Task) -> bool:
        """Whether every part of a result was made by this protocol and this encoder, of the data as it is."""
        card = self.bench.card(self.encoder.card)
        current = {part: (fingerprint_of(task, *part), encoder_fingerprint(card)) for part in task.parts}
        recorded = {(record.split, record.subset): (record.fingerprint, record.encoder) for record in result.records}
        return current == recorded and self._is_of_present_data(result, task)

    def _is_of_present_data(self, result: TaskResult, task: Task) -> bool:
        """Whether a result's data is at the commit that the row's branch has now; so it is if nobody can tell."""
        try:
            return commit_now(task, result.dataset_revision, self.bench.hub) == result.dataset_revision
        except EmbarkError as error:
            source = task.source
            self.ledger.warn(
                f"scores on disk stand, though {source.revision} of {source.id} could not be looked up: {error}"
            )
            return True

    # ── embedding ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, opened: Sequence[Opened], rely: bool = True) -> Wave:
        """Hand what tasks lack to the model. If others may be relied on, vectors that other waves are computing are not
        asked for again.
        """
        self.ledger.folder.check()
        for demand in _demands([task for task in opened if not task.first]):
            for keys in demand.keys.values():
                self.space.discard(keys)
        coming = {key for wave in list(self.begun) for key in wave.plan.needs.keys.tolist()} if rely else set()
        awaited: list[Array] = []

        def has(keys: Array) -> Array:
            stored = self.space.has(keys)
            if coming:
                is_coming = ~stored & np.fromiter((key in coming for key in keys.tolist()), bool, len(keys))
                awaited.append(keys[is_coming])
                stored = stored | is_coming
            return stored

        plan = self.bench.plan(self.encoder, _demands(opened), has)
        self.ledger.reused += plan.total.stored if rely else 0
        counts = {_part(demand): count for demand, count in zip(plan.demands, plan.counts, strict=True)}
        tasks = tuple(task if task.counts else replace(task, counts=_counts(task, counts)) for task in opened)
        begin = partial(self.bench.begin, self.encoder, plan)
        embedding = None if self.trials.given_up else self._attempt(begin, tasks)
        wave = Wave(tasks, plan, awaited, embedding)
        self.begun.append(wave)
        return wave

    def _conclude(self, wave: Wave) -> None:
        """Have the tasks of a wave scored, when their vectors are there; an error ends the run."""
        with self._errors_end_the_run():
            tasks, report = self._finish(wave)
            self.activity.stage("score").add(total=sum(task.first for task in tasks))
            self.running.update([self.scorers.submit(self._score, task, report) for task in tasks])

    def _finish(self, wave: Wave) -> tuple[Sequence[Opened], EmbeddingReport]:
        """Wait for what the tasks of a wave lack; those that can be scored, and what became of the items."""
        try:
            tasks, report = self._embedded(wave)
        finally:
            self.begun.remove(wave)
        if all(self.space.has(keys).all() for keys in wave.awaited):
            return tasks, report
        tasks, more = self._finish(self._begin(tasks, rely=False))  # the other wave failed, or some of its items
        report.add(more)
        return tasks, report

    def _embedded(self, wave: Wave) -> tuple[Sequence[Opened], EmbeddingReport]:
        """Wait for the wave's own embedding. After a failure, the tasks that lack a vector are tried one by one, and
        those that fail are reported.
        """
        tasks: Sequence[Opened] = wave.tasks
        report = self._attempt(wave.embedding.finish, tasks) if wave.embedding else None
        if report is None:
            gc.collect()  # the frames of the error
            tasks, report = self._embed_singly(wave)
        elif report.embedded:
            self.trials.succeed()
        report.warnings = self.warnings = tuple(dict.fromkeys((*self.warnings, *report.warnings)))
        report.batch_size = self.batch_size = min(filter(None, (self.batch_size, report.batch_size)), default=None)
        self.ledger.run.embedded += report.embedded
        again = not all(task.first for task in wave.tasks)
        lost = self.lost.intersection(wave.plan.needs.keys.tolist()) if self.lost else ()
        self.ledger.run.damaged += report.embedded if again else len(lost)
        return tasks, report

    def _embed_singly(self, wave: Wave) -> tuple[Sequence[Opened], EmbeddingReport]:
        """Embed task by task, so that a failure costs only the tasks that need what failed."""
        report = EmbeddingReport()
        tasks = []
        for task in wave.tasks:
            missing = self.bench.plan(self.encoder, task.demands)
            if not missing.needs or self._embed_alone(task, missing, report):
                tasks.append(task)
            else:
                self.ledger.fail(self.encoder.card.name, [task.task.name], self.trials.error)
                self._release(task)
        self.space.refresh()
        report.embedded = int(self.space.has(wave.plan.needs.keys).sum())
        return tasks, report

    def _embed_alone(self, task: Opened, missing: Plan, report: EmbeddingReport) -> bool:
        """Embed what one task lacks; whether that succeeded."""
        if self.trials.given_up:
            return False
        try:
            report.add(self.bench.embed(self.encoder, missing))
        except Exception as error:
            self._remember(error, [task])
        else:
            self.trials.succeed()
            return True
        gc.collect()
        self.space.refresh()
        keys = missing.needs.keys
        self.trials.fail(keys.tolist(), some=bool(self.space.has(keys).any()))
        return False

    def _attempt(self, work: Callable[[], Outcome], tasks: Sequence[Opened]) -> Outcome | None:
        """What the model's work on tasks gives; None where it failed. A model that costs money is not tried again."""
        try:
            return work()
        except Inconsistent:
            raise
        except Exception as error:
            if self.encoder.capabilities.billed:
                self._remember(error, tasks)
                self.trials.fail()
        return None

    def _remember(self, error: Exception, tasks: Sequence[Opened]) -> None:
        """Log an error of the model now, and keep what it says, without its frames: they hold data and devices."""
        names = listed([task.task.name for task in tasks])
        self.trials.error = EmbarkError(self.ledger.log.reason(error, f"{self.encoder.card.name}: {names}"))

    @contextmanager
    def _errors_end_the_run(self) -> Iterator[None]:
        """A block in another thread than the run's own."""
        try:
            yield
        except BaseException as error:
            self.errors.append(error)
            self.reading.wake()
            raise

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _score(self, opened: Opened, report: EmbeddingReport) -> None:
        """Score a task; an error that is not its own ends the run."""
        with self._errors_end_the_run():
            self._score_task(opened, report)

    def _score_task(self, opened: Opened, report: EmbeddingReport) -> None:
        """Score a task, and let its data go. A failure is reported; damaged vectors are embedded again, once."""
        task = opened.task
        outdated = {task.name: opened.outdated} if opened.outdated else {}
        scoring = Scoring(
            self.bench, self.encoder, report, self.ledger.folder, self.ledger.log.id, self.at_once, outdated
        )
        try:
            counted = [(demand, opened.counts[demand.split, demand.subset]) for demand in opened.demands]
            result = score_task(task, counted, scoring)
        except Exception as error:
            if isinstance(error, MissingVectors) and opened.first:
                self.lost.update(error.keys.tolist() if isinstance(error, DamagedVectors) else ())
                self.again.append(replace(opened, first=False))
                self.reading.wake()
                return
            if isinstance(error, CannotSave):
                raise
            if task.limit is not None and type(error) is EmbarkError:
                error = EmbarkError(f"{error} A larger sample (limit) may give a score.")
            self.ledger.fail(self.encoder.card.name, [task.name], error)
            self._release(opened, f"{task.name} failed")
        else:
            self.ledger.computed(result)
            prefixes = [_prefixes(keys) for demand in opened.demands for keys in demand.keys.values()]
            self.keys.append(distinct_numbers(np.concatenate(prefixes)))
            self._release(opened, f"{task.name} {shown(score(result), marks=False)} ({result.metric})")

    def _release(self, opened: Opened, outcome: str = "") -> None:
        """Let the data of a task go that is done, and tell how it ended."""
        with self.ledger.lock:
            self.finished += 1
            number = self.finished
        if outcome:
            self.activity.stage("score").add(done=1)
            if self.bench.show_progress and time.monotonic() - self.start >= SCORES_AFTER_SECONDS:
                log(f"{self.activity.title}, task {number} of {self.total}: {outcome}")
        self.reading.release(opened)
        self.ledger.done(opened.task)


class Trials:
    """How often a model failed in a row to embed the items of a task: after `most` times it is not tried again."""

    def __init__(self, most: int) -> None:
        self.error = EmbarkError("nothing failed")  # the last one
        self._most = most
        self._failures = 0
        self._tried: set[bytes] = set()  # keys of tasks that failed: another that lacks nothing else proves nothing new

    @property
    def given_up(self) -> bool:
        """Whether the model is not tried any more."""
        return self._failures >= self._most

    def succeed(self) -> None:
        """Items were embedded."""
        self._failures = 0

    def fail(self, keys: Sequence[bytes] = (), some: bool = False) -> None:
        """A task lacks vectors of these keys still, of `some` or of all of them."""
        if some:
            self._failures = 0
        elif not keys or not self._tried.issuperset(keys):
            self._failures += 1
        self._tried.update(keys)


def _demands(opened: Sequence[Opened]) -> list[Demand]:
    return [demand for task in opened for demand in task.demands]


def _part(demand: Demand) -> tuple[str, str, str]:
    return demand.task.name, demand.split, demand.subset


def _counts(opened: Opened, counts: dict[tuple[str, str, str], Count]) -> dict[tuple[str, str], Count]:
    """The counts of a task's parts."""
    return {(demand.split, demand.subset): counts[_part(demand)] for demand in opened.demands}


def _prefixes(keys: Array) -> Array:
    """The first 64 bits of each key, which tell distinct ones apart in counts."""
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 4)[:, 0].copy()


def _check_folder(task: Task, result: TaskResult) -> None:
    """Refuse to replace the result of another folder that is still there: two things have one name."""
    other = result.row.source if result.row else task.source
    by_content = all(source.revision.startswith(STATES) for source in (other, task.source))
    if by_content and other.id != task.source.id and other.revision != task.source.revision and Path(other.id).is_dir():
        raise EmbarkError(
            f"The results have {task.name} of another folder, {other.id}. Give this one another name (--name, or "
            "name=… in Python), or keep its results elsewhere (--results)."
        )
