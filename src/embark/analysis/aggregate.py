"""From task scores to how a model stands on a benchmark: the family's groups and totals, each with its interval.

Missing tasks are explicit: a mean over fewer tasks than the benchmark has says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from embark.analysis.intervals import combined_interval
from embark.analysis.rules import Mean, Rule, rule_of
from embark.published import ERRATUM, NOTE
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
    """How one model stands on a benchmark; `categories` are the groups of the benchmark's rule.

    `weights` tells how much each task counts in the rule's first total; `results` are what it was made from.
    """

    model: str
    revision: str
    tasks: dict[str, Score]
    categories: dict[str, Score]
    totals: dict[str, Score]
    weights: Mapping[str, float]
    results: Mapping[str, TaskResult]

    @property
    def mean(self) -> Score:
        """What models are ranked by: the rule's first total."""
        return next(iter(self.totals.values()))

    @property
    def source(self) -> str:
        """Whose scores they are: yours, published, or another tool's."""
        made_by = next(iter(self.results.values())).made_by
        return "yours" if made_by == "embark" else made_by


def standings(
    tasks: Sequence[Task], results: Iterable[TaskResult], rule: str | Rule = "mean-of-categories"
) -> list[Standing]:
    """One standing a model and source, in the order of the results; a score under another protocol than its row's is
    left out.
    """
    aggregate = rule_of(rule)
    protocols = {task.name: task.protocol for task in tasks}
    by_model: dict[tuple[str, str, str], dict[str, TaskResult]] = {}
    for result in results:
        if protocols.get(result.task) == result.protocol:
            by_model.setdefault((result.model, result.revision, result.made_by), {})[result.task] = result
    out = []
    for (model, revision, _), found in by_model.items():
        scores = {task.name: score(found[task.name]) for task in tasks if task.name in found}
        made = aggregate(tasks, {name: one.value for name, one in scores.items()})
        groups, totals = ({n: _score(m, scores) for n, m in part.items()} for part in (made.groups, made.totals))
        weights = next(iter(made.totals.values())).weights
        out.append(Standing(model, revision, scores, groups, totals, weights, found))
    return out


def score(result: TaskResult) -> Score:
    """A task's score; its warnings become footnotes."""
    return Score(result.score, *result.interval, marks=result.warnings)


def _score(mean: Mean, scores: Mapping[str, Score]) -> Score:
    """An aggregate of independent scores with its interval; it inherits errata, which may have moved it, and the notes
    that all its parts have.
    """
    parts = [(scores[task], weight) for task, weight in mean.weights.items() if task in scores]
    scaled = [(len(parts) * w * one.low, len(parts) * w * one.high) for one, w in parts]
    interval = combined_interval(scaled, mean.value)
    said = dict.fromkeys(mark for one, _ in parts for mark in one.marks)
    everywhere = [mark for mark in said if mark.startswith(NOTE) and all(mark in one.marks for one, _ in parts)]
    marks = [mark for mark in said if mark.startswith(ERRATUM) or mark in everywhere]
    return Score(mean.value, *interval, mean.count, mean.of, tuple(marks))
