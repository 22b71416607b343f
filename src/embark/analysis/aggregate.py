"""From task scores to a benchmark's numbers: category means, and the mean over categories.

Missing tasks are explicit: a mean over fewer tasks than the benchmark has says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from embark.analysis.intervals import combined_interval
from embark.results import TaskResult
from embark.types import Task


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval, over `of` tasks when `count` of them have a score; `marks` are footnotes."""

    value: float
    low: float
    high: float
    count: int = 1
    of: int = 1
    marks: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """Some of the tasks it should cover have no score."""
        return self.count < self.of


@dataclass(frozen=True)
class Standing:
    """How one model stands on a benchmark."""

    model: str
    revision: str
    tasks: dict[str, Score]
    categories: dict[str, Score]
    mean: Score  # of the category means


def standings(tasks: Sequence[Task], results: Iterable[TaskResult]) -> list[Standing]:
    """One standing a model, in the order of the results; scores under another protocol than a row's are not its."""
    protocols = {task.name: task.protocol for task in tasks}
    by_model: dict[tuple[str, str], dict[str, TaskResult]] = {}
    for result in results:
        if protocols.get(result.task) == result.protocol:
            by_model.setdefault((result.model, result.revision), {})[result.task] = result
    out = []
    for (model, revision), found in by_model.items():
        scores = {task.name: score(found[task.name]) for task in tasks if task.name in found}
        if scores:
            categories = category_means(tasks, scores)
            total = mean(list(categories.values()), len({task.category for task in tasks}))
            covered = Score(total.value, total.low, total.high, len(scores), len(tasks))
            out.append(Standing(model, revision, scores, categories, covered))
    return out


def score(result: TaskResult) -> Score:
    """A task's score; its warnings become footnotes."""
    return Score(result.score, *result.interval, marks=result.warnings)


def category_means(tasks: Sequence[Task], scores: dict[str, Score]) -> dict[str, Score]:
    """The mean of each category's tasks, in the order of the tasks."""
    out = {}
    for category in dict.fromkeys(task.category for task in tasks):
        names = [task.name for task in tasks if task.category == category]
        if present := [scores[name] for name in names if name in scores]:
            out[category] = mean(present, len(names))
    return out


def mean(scores: Sequence[Score], of: int) -> Score:
    """The mean of independent scores."""
    value = sum(s.value for s in scores) / len(scores)
    return Score(value, *combined_interval([(s.low, s.high) for s in scores], value), len(scores), of)
