"""From task scores to how a model stands on a benchmark: the family's groups and totals, each with its interval.

Missing tasks are explicit: a mean over fewer tasks than the benchmark has says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan

from embark.analysis.intervals import combined_interval
from embark.analysis.rules import Mean, Rule, mmeb, rule_of
from embark.models import MODELS
from embark.published import ERRATUM, NOTE
from embark.results import TaskResult
from embark.types import Task

Who = tuple[str, str, str]  # a model, its revision, and whose scores they are
ZEROS = "with zeros for the {} tasks of a modality that the model does not take"


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval, over `of` tasks when `count` of them have a score and `zeros` count as zero;
    `marks` are footnotes.
    """

    value: float
    low: float
    high: float
    count: int = 1
    of: int = 1
    marks: tuple[str, ...] = ()
    zeros: int = 0

    @property
    def partial(self) -> bool:
        """Some of the tasks it should cover are not in it."""
        return self.count + self.zeros < self.of


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
    """One standing a model and source, in the order of the results, by what `by_model` keeps of them."""
    aggregate = rule_of(rule)
    out = []
    for (model, revision, _), found in by_model(tasks, results).items():
        if rule == "mmeb":
            aggregate = partial(mmeb, deaf=_deaf(next(iter(found.values()))))
        scores = {task.name: score(found[task.name]) for task in tasks if task.name in found}
        made = aggregate(tasks, {name: one.value for name, one in scores.items()})
        groups, totals = ({n: _score(m, scores) for n, m in part.items()} for part in (made.groups, made.totals))
        weights = next(iter(made.totals.values())).weights
        out.append(Standing(model, revision, scores, groups, totals, weights, found))
    return out


def by_model(tasks: Sequence[Task], results: Iterable[TaskResult]) -> dict[Who, dict[str, TaskResult]]:
    """Results by revision and source, which are never merged; a score under another protocol than its row's, or that is
    not a number, is left out.
    """
    protocols = {task.name: task.protocol for task in tasks}
    found: dict[Who, dict[str, TaskResult]] = {}
    for result in results:
        if protocols.get(result.task) == result.protocol and not isnan(result.score):
            found.setdefault((result.model, result.revision, result.made_by), {})[result.task] = result
    return found


def names(models: Sequence[Who]) -> list[str]:
    """The models' names, with the revision where one source has several."""
    several = Counter((model, source) for model, _, source in models)
    return [f"{model}@{revision}" if several[model, source] > 1 else model for model, revision, source in models]


def score(result: TaskResult) -> Score:
    """A task's score; its warnings become footnotes."""
    return Score(result.score, *result.interval, marks=result.warnings)


def _score(mean: Mean, scores: Mapping[str, Score]) -> Score:
    """An aggregate of independent scores with its interval; it inherits errata, which may have moved it, and the notes
    that all its parts have.
    """
    parts = [(scores[task], weight) for task, weight in mean.weights.items() if task in scores]
    values, intervals = [one.value for one, _ in parts], [(one.low, one.high) for one, _ in parts]
    interval = combined_interval(values, intervals, [weight for _, weight in parts])
    said = dict.fromkeys(mark for one, _ in parts for mark in one.marks)
    everywhere = [mark for mark in said if mark.startswith(NOTE) and all(mark in one.marks for one, _ in parts)]
    marks = [mark for mark in said if mark.startswith(ERRATUM) or mark in everywhere]
    marks += [ZEROS.format(mean.zeros)] * bool(mean.zeros)
    return Score(mean.value, *interval, mean.count, mean.of, tuple(marks), mean.zeros)


def _deaf(result: TaskResult) -> bool:
    """Whether a model takes no audio: as its card says, the one beside its scores first. Papers print zeros instead."""
    if result.made_by == "published":
        return True
    card = MODELS.get(result.model)
    modalities = result.modalities() or (card.modalities if card else ())
    return bool(modalities) and "audio" not in modalities
