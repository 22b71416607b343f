"""Each family's own rule from task scores to its table, as data. Every aggregate is a weighted sum of task scores, and
knows how many of its tasks have one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Literal, NamedTuple

from embark.boards.reasoning import reasoning_axis
from embark.catalogue import Catalogue
from embark.results import TaskResult
from embark.results.table import Score
from embark.stats.means import Mean, Summary, Values, grouped, mean, mean_of_groups
from embark.types import EmbarkError, Task

Groups = Mapping[str, Sequence[str]]  # the tasks of each group
SecondAxis = Callable[[Sequence[Task], Mapping[str, TaskResult]], tuple[dict[str, Score], dict[str, Score]]]


class Subtotal(NamedTuple):
    """One more total: over all groups but these."""

    name: str
    without: tuple[str, ...]


def median(tasks: Sequence[str], values: Values) -> Mean:
    """The median of the tasks' scores, over the tasks that have one."""
    scored = sorted((task for task in tasks if task in values), key=lambda task: values[task])
    middle = scored[(len(scored) - 1) // 2 : len(scored) // 2 + 1]
    weights = dict.fromkeys(middle, 1 / len(middle))
    return Mean(fmean(values[t] for t in middle), len(scored), len(tasks), weights, scored=frozenset(scored))


def weighted_mean(tasks: Sequence[str], values: Values, weights: Values) -> Mean:
    """The mean over the tasks that have a weight and a score."""
    weighed = [task for task in tasks if task in weights]
    scored = {task: weights[task] for task in weighed if task in values}
    total = sum(scored.values())
    if not total:
        raise EmbarkError("No task with a score counts: their weights are all zero.")
    shares = {task: weight / total for task, weight in scored.items()}
    value = sum(share * values[task] for task, share in shares.items())
    return Mean(value, len(scored), len(weighed), shares)


@dataclass(frozen=True)
class Rule:
    """How a model's scores become the columns and totals of a table: called with tasks and {task: score}.

    Columns are groups of tasks, `by` category or tags. Models are ranked by the `total`: the mean of the groups' means
    by the first of these, or the `average` over tasks. Tasks of the group `zeros_without` count as zero for a model
    that lacks that modality; a total with a star leaves them out. `second_axis` makes more groups and totals of a
    model's results. Tasks of `without` do not count.
    """

    name: str
    by: tuple[str, ...] = ("category",)
    over: Literal["groups", "tasks"] = "groups"
    total: str = "mean"
    average: Callable[[Sequence[str], Values], Mean] = mean
    weights: Values | None = None  # how much each task counts in a total over tasks; None: all alike
    subtotal: Subtotal | None = None
    zeros_without: str | None = None
    second_axis: SecondAxis | None = None
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def __call__(self, tasks: Sequence[Task], values: Values, lacking: Collection[str] = ()) -> Summary:
        """The groups that have a score, and the totals; `lacking` lists modalities that the model does not take."""
        tasks = [task for task in tasks if task.name not in self.without]
        groupings = [grouped(tasks, partial(_group, by=by)) for by in self.by]
        columns = {name: names for groups in groupings for name, names in groups.items()}
        averages = {name: self.average(names, values) for name, names in columns.items() if _scored(names, values)}
        if self.over == "groups":
            return Summary(averages, self._over_groups(groupings[0], values))
        return Summary(averages, self._over_tasks([task.name for task in tasks], groupings[0], values, lacking))

    def _over_groups(self, groups: Groups, values: Values) -> dict[str, Mean]:
        totals = {self.total: mean_of_groups(groups, values).totals["mean"]}
        if self.subtotal:
            part = {name: names for name, names in groups.items() if name not in self.subtotal.without}
            if len(part) < len(groups) and any(_scored(names, values) for names in part.values()):
                totals[self.subtotal.name] = mean_of_groups(part, values).totals["mean"]
        return totals

    def _over_tasks(
        self, tasks: Sequence[str], groups: Groups, values: Values, lacking: Collection[str]
    ) -> dict[str, Mean]:
        if self.weights is not None:
            return {self.total: weighted_mean(tasks, values, self.weights)}
        if self.zeros_without is None:
            return {self.total: self.average(tasks, values)}
        needing = groups.get(self.zeros_without, [])
        zeros = needing if self.zeros_without in lacking and not _scored(needing, values) else []
        part = self.average([task for task in tasks if task not in zeros], values)
        weights = dict.fromkeys([*part.weights, *zeros], 1 / (part.count + len(zeros)))
        whole = Mean(part.value * part.count / len(weights), part.count, len(tasks), weights, len(zeros))
        return {self.total: whole, f"{self.total}*": part} if needing else {self.total: whole}


TABLE_22_LACKS = (
    "VOC2007", "FashionIQIT2IRetrieval", "GLDv2I2TRetrieval", "SketchyI2IRetrieval", "SOPI2IRetrieval",
)  # fmt: skip

RULES = Catalogue(
    "rule",
    (
        Rule("mean-of-categories"),
        # Table 2 of MIEB, where two types are not English, and Table 1 of UniBench.
        Rule(
            "mean-of-types",
            by=("type",),
            subtotal=Subtotal("mean (en)", without=("Any2AnyMultilingualRetrieval", "VisualSTS(multi)")),
        ),
        # Table 22 of MIEB, which parts classification in two (section 6.1 has the list).
        Rule(
            "coarse-and-fine",
            by=("column",),
            subtotal=Subtotal("mean (en)", without=("Retrieval (multilingual)", "Visual STS (multilingual)")),
            without=TABLE_22_LACKS,
        ),
        Rule("mean-of-capabilities", by=("capability",)),  # Table 5 of UniBench
        # The median task of each group and of all: UniBench's figures, which one easy benchmark does not move.
        Rule("median-of-types", by=("type",), over="tasks", total="median", average=median),
        Rule("median-of-capabilities", by=("capability",), over="tasks", total="median", average=median),
        # Modality groups and sub-categories; models without audio get zeros for that group in "All".
        Rule("mmeb", by=("group", "category"), over="tasks", total="All", zeros_without="audio"),
        # Domains, and the mean over subtypes (not over domains).
        Rule("ark", over="tasks", total="knowledge axis", second_axis=reasoning_axis),
    ),
    str,
)


def by_difficulty(model: str, scores: Values) -> Rule:
    """A rule that weights each task by a model's distance from a full score on it: tasks hard for the model count more.

    UniBench (A.7) takes CLIP ViT-B/32 as the measure of difficulty and prints no formula: this one is ours.
    """
    weights = {task: 1 - score for task, score in scores.items()}
    return Rule(f"mean weighted by what {model} lacks", over="tasks", total="weighted mean", weights=weights)


def rule_of(rule: str | Rule) -> Rule:
    """A rule by its name, or itself."""
    return rule if isinstance(rule, Rule) else RULES[rule]


def _scored(tasks: Sequence[str], values: Values) -> bool:
    return any(task in values for task in tasks)


def _group(task: Task, by: str) -> str:
    """A task's category or tag; a tag that repeats the category is spelled like it."""
    if by == "category":
        return task.category
    if by not in task.tags:
        raise EmbarkError(f"This rule is not for {task.family}: {task.name} has no {by}.")
    return task.category if task.tags[by] == task.category.lower() else task.tags[by]
