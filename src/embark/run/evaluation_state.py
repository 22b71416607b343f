"""The state of an evaluation: its tasks and settings, the run so far, and who still needs which data."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from threading import RLock

from embark import evaluators
from embark.catalogue import listed
from embark.data import readers
from embark.engine.progress import log
from embark.engine.ray_cluster import Cluster
from embark.models import Loading
from embark.registries import EVALUATORS
from embark.results import Results, TaskResult
from embark.results.task_rows import remember
from embark.run.failures import FailureLog
from embark.run.models import Model
from embark.run.outcome import Run, Skipped
from embark.run.workbench import Workbench
from embark.types import ModelCard, Task

LONG = 60.0  # seconds after which scores are printed one by one, as they come


class EvaluationState:
    """The part of an evaluation that all threads of all its models work on.

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
        self.log = FailureLog(bench.settings)
        self.run = Run(self.tasks, folder=bench.settings.results, warnings=self.folder.notes)
        self.failed = False
        self.start = time.monotonic()
        self.cpu_start = cpu_seconds()
        self.gpu_uses: list[tuple[float, int]] = []  # when each model was loaded, and on how many GPUs
        self.cards: list[ModelCard] = []  # of the models that were loaded
        self.scored: list[TaskResult] = []  # in the order in which they came
        self.reused = 0  # vectors that were in the store before they were needed
        self.lock = RLock()  # reading, embedding and scoring report at the same time
        self._uses = Counter(id for task in self.tasks for id in self._sources(task) for _ in models)
        self._done: set[str] = set()  # tasks of the present model

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


def cpu_seconds() -> float:
    """The time that the cores have worked for this process, and for those of its processes that have ended."""
    return sum(os.times()[:4])
