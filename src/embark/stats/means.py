"""Scores of models over tasks: grouped by model, averaged over groups of tasks, each mean with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean

from embark.catalogue import group_values
from embark.results import TaskResult, mark_commits
from embark.stats.intervals import combined_interval, wider
from embark.stats.outcomes import Readings
from embark.tables import Exact, Row, Score, Table, footnoted, points
from embark.types import EmbarkError, Task

ModelKey = tuple[str, str, str]  # model, revision, source of the scores
Values = Mapping[str, float]  # scores by task


@dataclass(frozen=True)
class Mean:
    """An aggregate over `count` of `of` tasks; `weights` tells how much each task's score counts.

    `zeros` more count as zero without a score, and have weights, too. `scored` are the tasks with a score, where some
    of them have no weight, as in a median.
    """

    value: float
    count: int
    of: int
    weights: Mapping[str, float]
    zeros: int = 0
    scored: frozenset[str] = frozenset()

    @property
    def over(self) -> frozenset[str]:
        """The tasks that it is over: those with a score or a zero."""
        return self.scored.union(self.weights)

    @property
    def partial(self) -> bool:
        """Whether some of its tasks have no score."""
        return self.count + self.zeros < self.of


@dataclass(frozen=True)
class Summary:
    """A model's aggregates by name."""

    groups: dict[str, Mean]
    totals: dict[str, Mean]


def by_model(tasks: Sequence[Task], results: Iterable[TaskResult]) -> dict[ModelKey, dict[str, TaskResult]]:
    """The results of each model by task; revisions and sources are never merged.

    Scores under another protocol than their row's, and scores that are not numbers, are left out; one on another commit
    of its data than the others' is marked.
    """
    protocols = {task.name: task.protocol for task in tasks}
    results_by_model: dict[ModelKey, dict[str, TaskResult]] = {}
    shown = [r for r in results if protocols.get(r.task) == r.protocol and not isnan(r.score)]
    for result in mark_commits(shown):
        results_by_model.setdefault((result.model, result.revision, result.made_by), {})[result.task] = result
    return results_by_model


def names(models: Sequence[ModelKey]) -> list[str]:
    """The models' names, with the revision where one source has several."""
    several = Counter((model, source) for model, _, source in models)
    return [f"{model}@{revision}" if several[model, source] > 1 else model for model, revision, source in models]


def score(result: TaskResult) -> Score:
    """A task's score; its warnings become footnotes."""
    return Score(result.score, *result.interval, marks=result.warnings)


def mean(tasks: Sequence[str], values: Values) -> Mean:
    """The mean over those of the tasks that have a score."""
    scored = [task for task in tasks if task in values]
    if not scored:
        raise EmbarkError("A mean needs at least one score; none of its tasks has one.")
    return Mean(fmean(values[t] for t in scored), len(scored), len(tasks), dict.fromkeys(scored, 1 / len(scored)))


def grouped(tasks: Sequence[Task], by: Callable[[Task], str]) -> dict[str, list[str]]:
    """Names of tasks by group, groups in the order of the tasks."""
    return group_values((by(task), task.name) for task in tasks)


def mean_of_groups(groups: Mapping[str, Sequence[str]], values: Values) -> Summary:
    """The mean of each group that has a score, and the mean of these means."""
    means = {name: mean(parts, values) for name, parts in groups.items() if any(part in values for part in parts)}
    weights = {task: w / len(means) for group in means.values() for task, w in group.weights.items()}
    value = fmean(group.value for group in means.values())
    total = Mean(value, len(weights), sum(len(parts) for parts in groups.values()), weights)
    return Summary(means, {"mean": total})


def mean_score(
    mean: Mean, scores: Mapping[str, Score], marks: Sequence[str] = (), readings: Readings | None = None
) -> Score:
    """A mean of scores with its interval and footnotes.

    With the `readings` of its outcomes, items that its tasks share move them together; without, tasks are independent.
    A task whose items all have the same outcome has no spread to add, but is not exact: its own interval counts. A mean
    of one task has the interval of its score.
    """
    parts = [(scores[task], weight) for task, weight in mean.weights.items() if task in scores]
    values = [part.value for part, _ in parts]
    ends = [(part.low, part.high) for part, _ in parts]
    interval = combined_interval(values, ends, [weight for _, weight in parts])
    if readings is not None and len(parts) > 1 and (shared := readings.interval(mean.value, mean.weights)):
        interval = wider(interval, shared) if readings.uniform(mean.weights) else shared
    return Score(mean.value, *interval, mean.count, mean.of, tuple(marks), mean.zeros, mean.over)


@dataclass(frozen=True)
class Column:
    """A model in a table of tasks: whose scores they are, the scores by task, and the totals by name."""

    key: ModelKey
    tasks: Mapping[str, Score]
    totals: Mapping[str, Score]


def score_table(tasks: Sequence[Task], results: Iterable[TaskResult]) -> Table:
    """Tasks × models, each score with its 95 % interval, and the mean of the categories' means."""
    categories = grouped(tasks, lambda task: task.category)
    models = []
    for key, results_by_task in by_model(tasks, results).items():
        scores = {task: score(result) for task, result in results_by_task.items()}
        means = mean_of_groups(categories, {task: task_score.value for task, task_score in scores.items()})
        total = mean_score(means.totals["mean"], scores, readings=Readings(results_by_task))
        models.append(Column(key, scores, {"mean": total}))
    return task_table(tasks, models, {"mean": "Mean of categories"} if models else {})


def task_table(tasks: Sequence[Task], models: Sequence[Column], totals: Mapping[str, str]) -> Table:
    """Tasks × models, grouped by category; the last lines are the totals, under the labels that `totals` has."""
    rows = []
    for category in dict.fromkeys(task.category for task in tasks):
        for task in tasks:
            if task.category == category and any(task.name in model.tasks for model in models):
                chance = points(task.chance) or Exact(None, "")
                cells = tuple(model.tasks.get(task.name) for model in models)
                rows.append(Row((task.name, task.metric, chance, *cells), category))
    for name, label in totals.items():
        rows.append(Row((label, "", "", *(model.totals.get(name) for model in models)), total=True))
    columns = ("task", "metric", "chance", *short_names([model.key for model in models]))
    return footnoted(Table(columns, tuple(rows)))


def short_names(models: Sequence[ModelKey]) -> list[str]:
    """Names without the organization where that is enough to tell the models apart; revisions where it is not.

    Whose scores they are is added for those that are not yours, where there are both.
    """
    several = len({made_by for _, _, made_by in models}) > 1
    sources = [f" ({made_by})" if several and made_by != "embark" else "" for _, _, made_by in models]
    for name in (lambda model, _: without_organization(model), lambda model, _: model, "{}@{}".format):
        names = [name(model, revision) + source for (model, revision, _), source in zip(models, sources, strict=True)]
        if len(set(names)) == len(names):
            break
    return names


def without_organization(model: str) -> str:
    """The model's name alone; several models that work together are joined by a plus."""
    return " + ".join(name.split("/")[-1] for name in model.split(" + "))
