"""The ledger of an evaluation: what its threads report while they read, embed and score at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from threading import RLock

from embark import readers
from embark.catalogue import listed
from embark.hub import Hub
from embark.results import Results, TaskResult
from embark.run.crash_log import CrashLog
from embark.run.outcome import Run, Skipped
from embark.settings import Settings
from embark.types import Task


class Ledger:
    """Results, skipped tasks and counts so far, and whose data is still needed.

    `run` is what becomes the outcome: results of earlier models, skipped tasks, numbers of items. `evict`: when no task
    of any model needs a data set any more, what was downloaded of it is deleted.
    """

    def __init__(self, tasks: Sequence[Task], models: int, settings: Settings, hub: Hub, evict: bool) -> None:
        self.folder = Results(settings.results)
        self.log = CrashLog(settings)
        self.run = Run(list(tasks), folder=settings.results, warnings=self.folder.notes)
        self.evict = evict
        self.failed = False
        self.scored: list[TaskResult] = []  # computed now, in the order in which they came
        self.reused = 0  # vectors that were in the store before they were needed
        self.lock = RLock()
        self._hub = hub
        self._of_model: dict[str, TaskResult] = {}  # results of the present model, by task
        self._skipped_before = 0  # by earlier models
        self._uses = Counter(id for task in tasks for id in self._sources(task) for _ in range(models))
        self._done: set[str] = set()  # tasks of the present model

    # ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin_model(self) -> None:
        """What is reported from now on is about the next model."""
        self._of_model = {}
        self._skipped_before = len(self.run.skipped)
        self._done.clear()

    def end_model(self) -> None:
        """Put the model's results and skipped tasks into the order of the tasks, and let the data of all tasks go."""
        for task in self.run.tasks:
            self.done(task)
        place = {task.name: number for number, task in enumerate(self.run.tasks)}
        skipped = self.run.skipped[self._skipped_before :]
        self.run.skipped[self._skipped_before :] = sorted(skipped, key=lambda skip: place[skip.task])
        self.run.results += [self._of_model[name] for name in place if name in self._of_model]

    @property
    def unreported(self) -> list[str]:
        """The tasks that the present model has neither a result of nor a reason why there is none."""
        reported = {*self._of_model, *(skip.task for skip in self.run.skipped[self._skipped_before :])}
        return [task.name for task in self.run.tasks if task.name not in reported]

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def found(self, result: TaskResult) -> None:
        """A result on disk stands."""
        with self.lock:
            self._of_model[result.task] = result

    def computed(self, result: TaskResult) -> None:
        """A result was computed."""
        with self.lock:
            self._of_model[result.task] = result
            self.scored.append(result)
            self.run.computed += 1

    def skip(self, model: str, task: str, kind: str, why: str) -> None:
        """A task gets no score."""
        with self.lock:
            self.run.skipped.append(Skipped(model, task, kind, why))

    def fail(self, model: str, tasks: Iterable[str], error: Exception) -> None:
        """Tasks got no score because of an error."""
        names = list(tasks)
        why = self.log.reason(error, f"{model}: {listed(names)}")
        with self.lock:
            self.failed = True  # the error itself is not kept: its frames hold what was on the device
            self.run.skipped += [Skipped(model, name, "failed", why) for name in names]

    def warn(self, note: str) -> None:
        """A note about results, which is kept once."""
        with self.lock:
            if note not in self.run.warnings:
                self.run.warnings.append(note)

    def done(self, task: Task) -> None:
        """The present model needs the data of a task no more."""
        with self.lock:
            sources = () if task.name in self._done else self._sources(task)
            self._done.add(task.name)
            self._uses.subtract(sources)
            unused = [id for id in sources if not self._uses[id]]
        for id in unused:
            self._hub.evict(id)

    def _sources(self, task: Task) -> tuple[str, ...]:
        """The data sets that a task may need, where they are to be evicted."""
        return readers.sources(task) if self.evict else ()
