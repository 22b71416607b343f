"""The tasks of one model, on their way from the data to a score: fetch ‖ read and hash ‖ plan and embed ‖ score.

Threads read tasks ahead. All tasks that were read by the time that the model takes new batches, a wave, are planned
together and their missing vectors handed to it; a model of several lanes still has the last batches of the wave before.
Threads score the tasks when their vectors are there, and let their data go. An item that an earlier wave embedded, or
is embedding, is not embedded again.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from embark import readers
from embark.catalogue import listed
from embark.engine.activity import Activity
from embark.engine.batching.self_check import Inconsistent
from embark.engine.local import Embedding
from embark.engine.report import Report
from embark.items import size_of
from embark.items.lazy_items import distinct_numbers
from embark.models.encoder import Encoder
from embark.planning import Count, Demand, Plan, reading_order
from embark.protocol import encoder_fingerprint, fingerprint_of
from embark.readers.local_state import STATES
from embark.results import CannotSave, TaskResult
from embark.results.table import shown
from embark.run.fetching import download, from_hub
from embark.run.read_ahead import Opened, ReadAhead
from embark.run.score import Scoring, commit_now, score_task
from embark.stats.means import score
from embark.store import DamagedVectors, MissingVectors
from embark.threads import DaemonThreads
from embark.types import Array, EmbarkError, Task

if TYPE_CHECKING:
    from embark.run.evaluation import Evaluation

GIVE_UP = 3  # tasks in a row whose items a model fails to embed
FETCH_AHEAD = 4  # tasks whose data is on the disk before they are scored, where it is short

Outcome = TypeVar("Outcome")


class ModelStream:
    """The tasks of one model, on their way from the data to a score."""

    def __init__(
        self,
        evaluation: Evaluation,
        encoder: Encoder,
        activity: Activity,
        on_disk: dict[str, TaskResult],
        scored: dict[str, TaskResult],
    ) -> None:
        self.evaluation = evaluation
        self.activity = activity
        self.bench = evaluation.bench
        self.encoder = encoder
        self.on_disk = on_disk
        self.scored = scored
        self.outdated: dict[str, TaskResult] = {}
        self.counts: dict[int, Count] = {}  # by id of the demand
        self.damaged: deque[Opened] = deque()  # tasks whose stored vectors are damaged, to be embedded again
        self.repeated: set[str] = set()  # tasks that were embedded again
        self.lost: set[bytes] = set()  # keys of vectors that were found damaged
        self.keys: list[Array] = []  # of scored tasks, the first 64 bits
        self.failures = 0  # tasks in a row that the model failed to embed
        self.failure = EmbarkError("nothing failed")  # the last of them, without frames: they hold data and devices
        self.errors: list[BaseException] = []  # of finishing and scoring, that end the run
        self.warnings: tuple[str, ...] = ()  # about the model's vectors
        self.batch_size: int | None = None  # what memory sufficed for
        self.running: set[Future[None]] = set()  # waves that are being finished, and tasks that are being scored
        self.coming: dict[int, Array] = {}  # keys of the vectors that unfinished waves lack, by id of their plan
        self.tried: set[bytes] = set()  # keys of tasks that failed: another that lacks nothing else proves nothing new
        self.finished = 0

    def evaluate(self) -> None:
        """Score every task that the model can do and that has no score on disk."""
        tasks = reading_order(self.evaluation.applicable(self.encoder.card))
        for task in self.evaluation.tasks:
            if task not in tasks:
                self.evaluation.done(task)
        workers = self.bench.settings.workers
        online = any(map(from_hub, tasks)) and not self.bench.settings.offline
        self.total = len(tasks)
        self.activity.stage("read").add(total=len(tasks))
        self.at_once = max(1, min(workers, len(tasks)))
        self.reading = ReadAhead(
            tasks,
            self._open,
            limit=self.bench.settings.memory << 19,  # half of it; scoring has its own share of memory
            fetch=self._fetch if online else None,
            waiting=partial(self.activity.waiting, "download"),
            fetch_ahead=FETCH_AHEAD if self.evaluation.evict else None,
        )
        try:
            with (
                DaemonThreads(self.at_once, "embark-score") as self.scorers,
                DaemonThreads(1, "embark-finish") as finisher,
                self.bench.worker_processes(),
                self.reading,
            ):
                try:
                    unfinished: deque[Future[None]] = deque()
                    while wave := self._next_wave():
                        finish = self._begin(wave)
                        if self.encoder.capabilities.lanes == 1:  # there are no batches left to wait for
                            self._conclude(wave, finish)
                            continue
                        unfinished.append(finisher.submit(self._conclude, wave, finish))
                        self.running.add(unfinished[-1])
                        if len(unfinished) > 1:
                            wait([unfinished.popleft()])
                except Exception:
                    while self.running:  # what is embedded gets its scores, and nobody writes any after the run
                        self.running -= wait(set(self.running)).done
                    raise
        finally:
            if self.keys:
                self.evaluation.run.distinct += len(distinct_numbers(np.concatenate(self.keys)))

    def _next_wave(self) -> list[Opened]:
        """The next tasks to embed: those whose vectors were found damaged, else those that were read. None at the end.

        Tasks that have a result, or could not be read, are done here.
        """
        while True:
            with self.activity.waiting("reading"):
                wave = [self.damaged.popleft() for _ in range(len(self.damaged))] or self.reading.take(self._is_woken)
            if self.errors:
                raise self.errors[0]
            self.running -= {future for future in set(self.running) if future.done() and future.result() is None}
            if not wave and not self.damaged:
                running = set(self.running)
                if not running and not self.damaged:
                    return []
                wait(running, return_when=FIRST_COMPLETED)
            for opened in wave:
                if isinstance(opened.content, Exception):
                    self.evaluation.fail(self.encoder.card.name, [opened.task.name], opened.content)
                if not isinstance(opened.content, list):
                    self._release(opened)
            if wave := [opened for opened in wave if opened.content]:
                return wave

    def _is_woken(self) -> bool:
        """Whether scoring has left something to do: nothing may be read meanwhile, as memory is held for it."""
        return bool(self.damaged or self.errors)

    def _fetch(self, task: Task) -> None:
        if from_hub(task) and (self.evaluation.rescore or not self.evaluation.result(self.encoder.card, task)):
            readers.require(task)
            download(task, self.bench.hub)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, task: Task) -> Opened:
        """A task's result on disk, if it is current; else its data, and the keys of its items."""
        try:
            return self._read(task)
        finally:
            self.activity.stage("read").add(done=1)

    def _read(self, task: Task) -> Opened:
        result = self.evaluation.result(self.encoder.card, task)
        if result:
            _check_folder(task, result)
        if result and not self.evaluation.rescore and self._is_current(result, task):
            self.on_disk[task.name] = result
            return Opened(task, result)
        if result:
            self.outdated[task.name] = result
        demands = self.bench.demands(task, self.encoder)
        return Opened(task, demands, sum(size_of(demand.data) for demand in demands))

    def _is_current(self, result: TaskResult, task: Task) -> bool:
        """Whether every part of a result was made by this protocol and this encoder, of the data as it is."""
        card = self.bench.card(self.encoder.card)
        current = {part: (fingerprint_of(task, *part), encoder_fingerprint(card)) for part in task.parts}
        recorded = {(record.split, record.subset): (record.fingerprint, record.encoder) for record in result.records}
        return current == recorded and self._of_present_data(result, task)

    def _of_present_data(self, result: TaskResult, task: Task) -> bool:
        """Whether a result's data is at the commit that the row's branch has now; so it is if nobody can tell."""
        try:
            return commit_now(task, result.dataset_revision, self.bench.hub) == result.dataset_revision
        except EmbarkError as error:
            source = task.source
            note = f"scores on disk stand, though {source.revision} of {source.id} could not be looked up: {error}"
            with self.evaluation.lock:
                if note not in self.evaluation.run.warnings:
                    self.evaluation.run.warnings.append(note)
            return True

    # ── embedding ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, wave: list[Opened], rely: bool = True) -> Callable[[], Report]:
        """Hand what the tasks of a wave lack to the model; returns what waits for the vectors.

        If others may be relied on, vectors that unfinished waves are computing are not asked for again.
        """
        self.evaluation.folder.check()
        again = [opened for opened in wave if opened.task.name in self.repeated]
        space = self.bench.space(self.encoder.card)
        for demand in _demands(again):
            for keys in demand.keys.values():
                space.discard(keys)
        coming = {key for keys in list(self.coming.values()) for key in keys.tolist()} if rely else set()
        relied: list[Array] = []  # keys of vectors that are coming

        def has(keys: Array) -> Array:
            stored = space.has(keys)
            if coming:
                awaited = ~stored & np.fromiter((key in coming for key in keys.tolist()), bool, len(keys))
                relied.append(keys[awaited])
                stored = stored | awaited
            return stored

        planned = self.bench.plan(self.encoder, _demands(wave), has)
        self.evaluation.reused += planned.total.stored if rely else 0
        for demand, count in zip(planned.demands, planned.counts, strict=True):
            self.counts.setdefault(id(demand), count)
        self.coming[id(planned)] = planned.needs.keys
        begin = partial(self.bench.begin, self.encoder, planned)
        embedding = None if self._given_up else self._attempt(begin, wave)

        def finish() -> Report:
            try:
                report = self._finish(wave, planned, embedding, bool(again))
            finally:
                del self.coming[id(planned)]
            if not all(space.has(keys).all() for keys in relied):  # the wave before has failed, or some of its items
                report.add(self._begin(wave, rely=False)())
            return report

        return finish

    def _finish(self, wave: list[Opened], planned: Plan, embedding: Embedding | None, again: bool) -> Report:
        """Wait for what the tasks of a wave lack. Tasks that fail are taken out of it.

        After a failure, the tasks that lack a vector are tried one by one.
        """
        report = self._attempt(embedding.finish, wave) if embedding else None
        if report is None:
            gc.collect()  # the frames of the error
            report = self._embed_singly(wave, planned)
        elif report.embedded:
            self.failures = 0
        report.warnings = self.warnings = tuple(dict.fromkeys((*self.warnings, *report.warnings)))
        report.batch_size = self.batch_size = min(filter(None, (self.batch_size, report.batch_size)), default=None)
        self.evaluation.run.embedded += report.embedded
        lost = self.lost.intersection(planned.needs.keys.tolist()) if self.lost else ()
        self.evaluation.run.damaged += report.embedded if again else len(lost)
        return report

    def _conclude(self, wave: list[Opened], finish: Callable[[], Report]) -> None:
        """Have the tasks of a wave scored, when their vectors are there; an error ends the run."""
        with self._errors_end_the_run():
            report = finish()
            self.activity.stage("score").add(total=sum(o.task.name not in self.repeated for o in wave))
            self.running.update([self.scorers.submit(self._score, opened, report) for opened in wave])

    @contextmanager
    def _errors_end_the_run(self) -> Iterator[None]:
        """A block in another thread than the run's own."""
        try:
            yield
        except BaseException as error:
            self.errors.append(error)
            self.reading.wake()
            raise

    def _attempt(self, work: Callable[[], Outcome], wave: Sequence[Opened]) -> Outcome | None:
        """What the model's work on a wave gives; None where it failed. A model that costs money is not tried again."""
        try:
            return work()
        except Inconsistent:
            raise
        except Exception as error:
            if self.encoder.capabilities.billed:
                self._remember(error, wave)
                self.failures += 1
        return None

    def _remember(self, error: Exception, wave: Sequence[Opened]) -> None:
        """Log an error of the model now, and keep what it says."""
        names = listed([opened.task.name for opened in wave])
        self.failure = EmbarkError(self.evaluation.log.reason(error, f"{self.encoder.card.name}: {names}"))

    @property
    def _given_up(self) -> bool:
        """Whether the model failed so often that it is not tried again; one that costs money is not, after once."""
        return self.failures >= (1 if self.encoder.capabilities.billed else GIVE_UP)

    def _embed_singly(self, wave: list[Opened], planned: Plan) -> Report:
        """Embed task by task, so that a failure costs only the tasks that need what failed."""
        space = self.bench.space(self.encoder.card)
        report = Report()
        for opened in list(wave):
            missing = self.bench.plan(self.encoder, _demands([opened]))
            if not missing.needs:
                continue
            if not self._given_up:
                try:
                    report.add(self.bench.embed(self.encoder, missing))
                    self.failures = 0
                    continue
                except Exception as of_task:
                    self._remember(of_task, [opened])
                gc.collect()
                keys = missing.needs.keys
                space.refresh()
                if space.has(keys).any():
                    self.failures = 0
                elif not self.tried.issuperset(keys.tolist()):
                    self.failures += 1
                self.tried.update(keys.tolist())
            wave.remove(opened)
            self.evaluation.fail(self.encoder.card.name, [opened.task.name], self.failure)
            self._release(opened)
        space.refresh()
        report.embedded = int(space.has(planned.needs.keys).sum())
        return report

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _score(self, opened: Opened, report: Report) -> None:
        """Score a task; an error that is not its own ends the run."""
        with self._errors_end_the_run():
            self._score_task(opened, report)

    def _score_task(self, opened: Opened, report: Report) -> None:
        """Score a task, and let its data go. A failure is reported; damaged vectors are embedded again, once."""
        task = opened.task
        demands = _demands([opened])
        folder = self.evaluation.folder
        run_id = self.evaluation.log.id
        scoring = Scoring(self.bench, self.encoder, report, folder, run_id, self.at_once, self.outdated)
        try:
            result = score_task(task, [(demand, self.counts[id(demand)]) for demand in demands], scoring)
        except Exception as error:
            if isinstance(error, MissingVectors) and task.name not in self.repeated:
                self.repeated.add(task.name)
                self.lost.update(error.keys.tolist() if isinstance(error, DamagedVectors) else ())
                self.damaged.append(opened)
                self.reading.wake()
                return
            if isinstance(error, CannotSave):
                raise
            if task.limit is not None and type(error) is EmbarkError:
                error = EmbarkError(f"{error} Of a larger sample (limit) there may be a score.")
            self.evaluation.fail(self.encoder.card.name, [task.name], error)
            self._release(opened, f"{task.name} failed")
        else:
            self.scored[task.name] = result
            with self.evaluation.lock:
                self.evaluation.scored.append(result)
            prefixes = [_prefixes(keys) for demand in demands for keys in demand.keys.values()]
            self.keys.append(distinct_numbers(np.concatenate(prefixes)))
            self._release(opened, f"{task.name} {shown(score(result), marks=False)} ({result.metric})")

    def _release(self, opened: Opened, outcome: str = "") -> None:
        """Let the data of a task go that is done, and tell how it ended."""
        with self.evaluation.lock:
            self.finished += 1
            number = self.finished
        if outcome:
            self.activity.stage("score").add(done=1)
            self.evaluation.say(f"{self.encoder.card.name}, task {number} of {self.total}: {outcome}")
        for demand in _demands([opened]):
            self.counts.pop(id(demand), None)
        self.reading.release(opened)
        self.evaluation.done(opened.task)


def _demands(wave: Sequence[Opened]) -> list[Demand]:
    return [demand for opened in wave if isinstance(opened.content, list) for demand in opened.content]


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
