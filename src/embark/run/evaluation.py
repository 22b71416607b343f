"""The evaluation of models as a stream of tasks: fetch ‖ read and hash ‖ plan and embed ‖ score.

Threads read tasks ahead. Whenever the model is free, all tasks that were read by then (a wave) are planned together
and their missing vectors embedded; threads score them while the next wave is embedded, and let their data go. An item
that an earlier wave embedded is in the store, and so it is not embedded again.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from embark import evaluators
from embark.allocation import keep_freed_memory, return_memory
from embark.catalogue import listed
from embark.data import readers
from embark.data.items import size_of
from embark.data.lazy_items import distinct_numbers
from embark.data.local_state import STATES
from embark.engine.activity import SILENT, Activity
from embark.engine.local import Embedding
from embark.engine.progress import log
from embark.engine.ray import RayEngine
from embark.engine.ray_cluster import Cluster
from embark.engine.report import Report
from embark.engine.self_check import Inconsistent
from embark.models import Loading
from embark.models.encoder import Billed, Encoder
from embark.planning import Count, Demand, Plan, reading_order
from embark.results import CannotSave, Results, TaskResult
from embark.results.table import shown
from embark.run.cluster import cluster_engine, loading_here, remote_scoring
from embark.run.failures import FailureLog
from embark.run.fetching import download, from_hub, require_data
from embark.run.models import Model, load_model, model_card, model_name
from embark.run.outcome import Run, Skipped
from embark.run.predictions import Prediction, prediction_file
from embark.run.read_ahead import Opened, ReadAhead
from embark.run.run_state import activity_state, state_file
from embark.run.score import Scoring, commit_now, encoder_fingerprint, fingerprint_of, score_task
from embark.run.workbench import Workbench
from embark.stats.means import score
from embark.store import DamagedVectors, MissingVectors
from embark.threads import DaemonThreads, rare_garbage_collection
from embark.types import Array, EmbarkError, ModelCard, Task

LONG = 60.0  # seconds after which scores are printed one by one, as they come
GIVE_UP = 3  # tasks in a row whose items a model fails to embed
FETCH_AHEAD = 4  # tasks whose data is on the disk before they are scored, where it is short


class Evaluation:
    """Several models over the same tasks, on one workbench, into one `Run`.

    `evict`: after the last task of a data set, delete what this run downloaded of it.
    """

    def __init__(
        self,
        bench: Workbench,
        tasks: Sequence[Task],
        models: Sequence[Model],
        rescore: bool = False,
        loading: Loading | None = None,
        evict: bool = False,
        cluster: Cluster | None = None,
    ) -> None:
        self.bench = bench
        self.cluster = cluster
        self.tasks = [bench.row(task) for task in tasks]
        self.models = models
        self.rescore = rescore
        self.loading = loading
        self.evict = evict
        self.folder = Results(bench.settings.results)
        self.log = FailureLog(bench.settings)
        self.run = Run(self.tasks, folder=bench.settings.results, warnings=self.folder.notes)
        self.failed = False
        self.start = time.monotonic()
        self.cpu_start = _cpu_seconds()
        self.gpu_uses: list[tuple[float, int]] = []  # when each model was loaded, and on how many GPUs
        self.cards: list[ModelCard] = []  # of the models that were loaded
        self.scored: list[TaskResult] = []  # in the order in which they came
        self.reused = 0  # vectors that were in the store before they were needed
        self.lock = RLock()  # reading, embedding and scoring report at the same time
        self._uses = Counter(id for task in self.tasks for id in self._sources(task) for _ in models)
        self._done: set[str] = set()  # tasks of the present model

    def require_data(self) -> None:
        """Offline: refuse to begin where the data of a task is missing that has no result on disk yet."""
        cards = [model_card(model, self.bench.settings) for model in self.models]

        def recorded(task: Task) -> bool:
            return None not in cards and all(self.result(card, task) is not None for card in cards if card)

        require_data([task for task in self.tasks if self.rescore or not recorded(task)], self.bench.hub)

    def evaluate(self) -> Run:
        """Evaluate the models, one after the other; whatever fails costs tasks, not the run."""
        keep_freed_memory()
        try:
            with rare_garbage_collection(), state_file(self.bench.settings, self.log.id, self._state):
                return self._evaluate_all()
        finally:
            return_memory()

    def _state(self) -> dict[str, Any]:
        """What the run is doing, for whoever follows it."""
        with self.lock:
            scores = [(result.model, result.task, shown(score(result), marks=False)) for result in self.scored]
            skipped = [(skip.model, skip.task, skip.kind, skip.why) for skip in self.run.skipped]
        return {
            "seconds": round(time.monotonic() - self.start, 1),
            "cpu_seconds": round(_cpu_seconds() - self.cpu_start, 1),
            "gpu_seconds": None if self.cluster else round(self._gpu_seconds(), 1),
            "predicted": self._predicted_seconds(),
            "models": [model_name(model) for model in self.models],
            "tasks": len(self.tasks),
            "embedded": self.run.embedded,
            "reused": self.reused,
            "scores": scores,
            "skipped": skipped,
            **activity_state(self.bench.activity),
        }

    def _gpu_seconds(self) -> float:
        """How long the GPUs of this machine were held: each by a model, until the next one is loaded."""
        ends = [*(start for start, _ in self.gpu_uses[1:]), time.monotonic()]
        return sum(gpus * (end - start) for (start, gpus), end in zip(self.gpu_uses, ends, strict=False))

    def _predicted_seconds(self) -> float | None:
        """What a plan predicted for a run that did just this; None before it is done."""
        prediction = Prediction.load(prediction_file(self.bench.settings, self.cards, self.tasks))
        run = (self.run.computed, self.run.embedded)
        return prediction.seconds if prediction and run == (prediction.scores, prediction.embedded) else None

    def _evaluate_all(self) -> Run:
        for number, model in enumerate(self.models, 1):
            self.bench.heading = f"model {number} of {len(self.models)}, " if len(self.models) > 1 else ""
            self.bench.keep_data = number < len(self.models)
            self._evaluate(model)
            gc.collect()  # what refers to itself still holds the model, and the next one needs its memory
        return self.run

    def _evaluate(self, model: Model) -> None:
        """Evaluate one model on the tasks that have no score of it yet."""
        on_disk: dict[str, TaskResult] = {}
        scored: dict[str, TaskResult] = {}
        failed_before = len(self.run.skipped)
        self._done.clear()
        try:
            here = loading_here(self.loading) if self.cluster else self.loading
            encoder = load_model(model, here, self.bench.settings)
            self.cards.append(encoder.card)
            self.gpu_uses.append((time.monotonic(), str(encoder.card.loaded.get("device", "")).count("cuda")))
            with (
                Activity(f"{self.bench.heading}{encoder.card.name}", self.bench.show_progress) as activity,
                self._engine(model, encoder) as self.bench.engine,
            ):
                if self.cluster:
                    self.bench.score_elsewhere = remote_scoring(self.cluster, self.bench.settings)
                self.bench.activity = activity
                _ModelStream(self, encoder, activity, on_disk, scored).evaluate()
        except CannotSave:
            raise
        except Exception as error:
            done = {*on_disk, *scored, *(skip.task for skip in self.run.skipped[failed_before:])}
            self.fail(model_name(model), [task.name for task in self.tasks if task.name not in done], error)
        self.bench.engine = self.bench.score_elsewhere = None
        for task in self.tasks:
            self.done(task)
        place = {task.name: number for number, task in enumerate(self.tasks)}
        self.run.skipped[failed_before:] = sorted(self.run.skipped[failed_before:], key=lambda skip: place[skip.task])
        self.bench.activity = SILENT
        self.run.computed += len(scored)
        results_by_task = on_disk | scored
        self.run.results += [results_by_task[task.name] for task in self.tasks if task.name in results_by_task]

    def _engine(self, model: Model, encoder: Encoder) -> AbstractContextManager[RayEngine | None]:
        """The cluster that embeds for a model; none where this process does."""
        if self.cluster is None:
            return nullcontext()
        return cluster_engine(self.cluster, model, self.loading, self.bench, encoder)

    def result(self, card: ModelCard, task: Task) -> TaskResult | None:
        """The result of a model that is on disk, current or not."""
        card = self.bench.card(card)
        return self.folder.load(card.name, card.revision, task.name, task.protocol)

    def applicable(self, card: ModelCard) -> list[Task]:
        """The tasks that a model can do; the others are reported before anything is embedded."""
        applicable = []
        for task in self.tasks:
            if task.evaluator not in evaluators.EVALUATORS:
                why = f"there is no evaluator '{task.evaluator}'"
                self.run.skipped.append(Skipped(card.name, task.name, "not available", why))
            elif reason := self.bench.incompatibility(card, task):
                self.run.skipped.append(Skipped(card.name, task.name, "not applicable", reason))
            else:
                applicable.append(task)
        return applicable

    def done(self, task: Task) -> None:
        """A model needs the data of a task no more; where no task of any model does, and the user wants it, what was
        downloaded goes.
        """
        with self.lock:
            sources = () if task.name in self._done else self._sources(task)
            self._done.add(task.name)
            self._uses.subtract(sources)
            unused = [id for id in sources if not self._uses[id]]
        for id in unused:
            self.bench.hub.evict(id)

    def _sources(self, task: Task) -> tuple[str, ...]:
        """The datasets that a task may need, where they are to be evicted."""
        return readers.sources(task) if self.evict else ()

    def say(self, text: str) -> None:
        """Print a line at once, in a run that somebody has to wait for."""
        if self.bench.show_progress and time.monotonic() - self.start >= LONG:
            log(f"{self.bench.heading}{text}")

    def fail(self, model: str, tasks: Sequence[str], error: Exception) -> None:
        """Report that tasks got no score because of an error."""
        why = self.log.reason(error, f"{model}: {listed(tasks)}")
        with self.lock:
            self.failed = True  # the error itself is not kept: its frames hold what was on the device
            self.run.skipped += [Skipped(model, task, "failed", why) for task in tasks]


class _ModelStream:
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
        self.errors: list[BaseException] = []  # of scoring, that end the run
        self.warnings: tuple[str, ...] = ()  # about the model's vectors
        self.batch_size: int | None = None  # what memory sufficed for
        self.running: set[Future[None]] = set()  # waves that are finished, and tasks that are scored, beside the next
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
                        if getattr(self.encoder, "lanes", 1) == 1:  # there are no batches left to wait for
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
        embedding: Embedding | None = None
        if not self._given_up:
            try:
                embedding = self.bench.begin(self.encoder, planned)
            except Inconsistent:
                raise
            except Exception as error:
                self._failed(error, wave)

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
        report: Report | None = None
        if embedding is not None:
            try:
                report = embedding.finish()
                self.failures = 0 if report.embedded else self.failures
            except Inconsistent:
                raise
            except Exception as error:
                self._failed(error, wave)
        if report is None:
            gc.collect()  # the frames of the error
            report = self._embed_singly(wave, planned)
        report.warnings = self.warnings = tuple(dict.fromkeys((*self.warnings, *report.warnings)))
        report.batch_size = self.batch_size = min(filter(None, (self.batch_size, report.batch_size)), default=None)
        self.evaluation.run.embedded += report.embedded
        lost = self.lost.intersection(planned.needs.keys.tolist()) if self.lost else ()
        self.evaluation.run.damaged += report.embedded if again else len(lost)
        return report

    def _conclude(self, wave: list[Opened], finish: Callable[[], Report]) -> None:
        """Have the tasks of a wave scored, when their vectors are there; an error ends the run."""
        try:
            report = finish()
            self.activity.stage("score").add(total=sum(o.task.name not in self.repeated for o in wave))
            self.running.update([self.scorers.submit(self._score, opened, report) for opened in wave])
        except BaseException as error:
            self.errors.append(error)
            self.reading.wake()
            raise

    def _failed(self, error: Exception, wave: Sequence[Opened]) -> None:
        """Take note that the model failed on a wave; one that costs money is not tried again."""
        if isinstance(self.encoder, Billed):
            self._remember(error, wave)
            self.failures += 1

    def _remember(self, error: Exception, wave: Sequence[Opened]) -> None:
        """Log an error of the model now, and keep what it says."""
        names = listed([opened.task.name for opened in wave])
        self.failure = EmbarkError(self.evaluation.log.reason(error, f"{self.encoder.card.name}: {names}"))

    @property
    def _given_up(self) -> bool:
        """Whether the model failed so often that it is not tried again; one that costs money is not, after once."""
        return self.failures >= (1 if isinstance(self.encoder, Billed) else GIVE_UP)

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
        try:
            self._score_task(opened, report)
        except BaseException as error:
            self.errors.append(error)
            self.reading.wake()
            raise

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


def _cpu_seconds() -> float:
    """The time that the cores have worked for this process, and for those of its processes that have ended."""
    return sum(os.times()[:4])
