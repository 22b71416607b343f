"""The evaluation of several models over the same tasks, one model after the other; `model_stream` has one of them."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

from embark import evaluators, readers
from embark.allocation import keep_freed_memory, return_memory
from embark.catalogue import listed
from embark.engine.activity import SILENT, Activity
from embark.engine.progress import log
from embark.engine.ray.cluster import Cluster
from embark.engine.ray.engine import RayEngine
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.registries import EVALUATORS
from embark.results import CannotSave, Results, TaskResult
from embark.results.table import shown
from embark.results.task_rows import remember
from embark.run.cluster import cluster_engine, loading_here, remote_scoring
from embark.run.crash_log import CrashLog
from embark.run.fetching import require_data
from embark.run.model_stream import ModelStream
from embark.run.models import Model, load_model, model_card, model_name
from embark.run.outcome import Run, Skipped
from embark.run.predictions import Prediction, prediction_file
from embark.run.run_state import activity_state, state_file
from embark.run.workbench import Workbench
from embark.stats.means import score
from embark.threads import rare_garbage_collection
from embark.types import ModelCard, Task

LONG = 60.0  # seconds after which scores are printed one by one, as they come


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
        evaluators.check_tasks(self.tasks)
        remember(self.tasks, bench.settings.home)
        self.models = models
        self.rescore = rescore
        self.loading = loading
        self.evict = evict
        self.folder = Results(bench.settings.results)
        self.log = CrashLog(bench.settings)
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
                ModelStream(self, encoder, activity, on_disk, scored).evaluate()
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
            if task.evaluator not in EVALUATORS:
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


def _cpu_seconds() -> float:
    """The time that the cores have worked for this process, and for those of its processes that have ended."""
    return sum(os.times()[:4])
