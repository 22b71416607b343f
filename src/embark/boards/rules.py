"""Each family's own rule from task scores to its table. Every aggregate is a weighted sum of task scores, and says
how many of its tasks have one.

A rule takes a benchmark's tasks and {task: score} of one model. Its groups are the table's columns; its first total is
what models are ranked by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from embark.catalogue import UnknownName
from embark.stats.means import Mean, Summary, Values, grouped, mean, mean_of_groups
from embark.types import EmbarkError, Task

MULTILINGUAL = ("Any2AnyMultilingualRetrieval", "VisualSTS(multi)")  # MIEB's types outside its English mean


Rule = Callable[[Sequence[Task], Values], Summary]


def mean_of_categories(tasks: Sequence[Task], values: Values) -> Summary:
    """Category means, and their mean."""
    return mean_of_groups(grouped(tasks, lambda task: task.category), values)


def mean_of_types(tasks: Sequence[Task], values: Values) -> Summary:
    """Means of task types and their mean: Table 2 of MIEB (and its English half), Table 1 of UniBench."""
    groups = grouped(tasks, _type)
    english = {name: parts for name, parts in groups.items() if name not in MULTILINGUAL}
    summary = mean_of_groups(groups, values)
    if len(english) < len(groups) and any(task in values for parts in english.values() for task in parts):
        summary.totals["mean (en)"] = mean_of_groups(english, values).totals["mean"]
    return summary


def mean_of_capabilities(tasks: Sequence[Task], values: Values) -> Summary:
    """Means of capabilities and their mean: Table 5 of UniBench."""
    return mean_of_groups(grouped(tasks, lambda task: _tag(task, "capability")), values)


def median_of_types(tasks: Sequence[Task], values: Values) -> Summary:
    """The median task of each type and of all: what UniBench's figures show, which one easy benchmark does not move."""
    return _medians(grouped(tasks, _type), values)


def median_of_capabilities(tasks: Sequence[Task], values: Values) -> Summary:
    """The median task of each capability and of all."""
    return _medians(grouped(tasks, lambda task: _tag(task, "capability")), values)


def mmeb(tasks: Sequence[Task], values: Values, deaf: bool = False) -> Summary:
    """Means over tasks by modality group and sub-category, and over all: a deaf model, without audio scores, gets zeros
    for that group in "All", and does without it in "All*". Audio that another model was not run on is missing.
    """
    groups = grouped(tasks, lambda task: _tag(task, "group"))
    audio = groups.get("audio", [])
    zeros = audio if deaf and not any(name in values for name in audio) else []
    over = mean([task.name for task in tasks if task.name not in zeros], values)
    weights = dict.fromkeys([*over.weights, *zeros], 1 / (over.count + len(zeros)))
    whole = Mean(over.value * over.count / len(weights), over.count, len(tasks), weights, len(zeros))
    totals = {"All": whole, "All*": over} if "audio" in groups else {"All": whole}
    groups |= grouped(tasks, lambda task: task.category)
    means = {name: mean(parts, values) for name, parts in groups.items() if any(part in values for part in parts)}
    return Summary(means, totals)


def ark(tasks: Sequence[Task], values: Values) -> Summary:
    """ARK's knowledge axis: means of the five domains, and the mean over subtypes (not over domains)."""
    domains = grouped(tasks, lambda task: task.category)
    means = {name: mean(parts, values) for name, parts in domains.items() if any(part in values for part in parts)}
    return Summary(means, {"knowledge axis": mean([task.name for task in tasks], values)})


RULES: dict[str, Rule] = {
    "mean-of-categories": mean_of_categories,
    "mean-of-types": mean_of_types,
    "mean-of-capabilities": mean_of_capabilities,
    "median-of-types": median_of_types,
    "median-of-capabilities": median_of_capabilities,
    "mmeb": mmeb,
    "ark": ark,
}


@dataclass(frozen=True)
class Difficulty:
    """A rule in which tasks that a model finds hard count more: each by what that model lacks to a full score.

    UniBench (A.7) takes CLIP ViT-B/32 as the measure of difficulty and prints no formula: this one is ours.
    """

    model: str
    scores: Values

    def __str__(self) -> str:
        return f"mean weighted by what {self.model} lacks"

    def __call__(self, tasks: Sequence[Task], values: Values) -> Summary:
        """Plain means of categories, and the weighted mean over the tasks that the model has a score on."""
        lacks = {task.name: 1 - self.scores[task.name] for task in tasks if task.name in self.scores}
        found = {name: weight for name, weight in lacks.items() if name in values}
        if not sum(found.values()):
            raise EmbarkError(f"{self.model} finds none of these tasks hard, or has no score on any of them.")
        weights = {name: weight / sum(found.values()) for name, weight in found.items()}
        value = sum(weight * values[name] for name, weight in weights.items())
        groups = mean_of_categories(tasks, values).groups
        return Summary(groups, {"weighted mean": Mean(value, len(found), len(lacks), weights)})


def rule_of(rule: str | Rule) -> Rule:
    """A rule by its name, or itself."""
    if not isinstance(rule, str):
        return rule
    if rule not in RULES:
        raise UnknownName("rule", rule, RULES)
    return RULES[rule]


def common_tasks(scores: Mapping[str, Values]) -> list[str]:
    """The tasks that every model has a score on: over these alone, models with gaps compare with the others."""
    first, *others = scores.values() or [{}]
    return [task for task in first if all(task in values for values in others)]


def _type(task: Task) -> str:
    return task.category if task.family == "UniBench" else _tag(task, "type")


def _tag(task: Task, name: str) -> str:
    if name not in task.tags:
        raise EmbarkError(f"This rule is not for {task.family}: {task.name} has no {name}.")
    return task.tags[name]


def _medians(groups: Mapping[str, Sequence[str]], values: Values) -> Summary:
    everything = [task for parts in groups.values() for task in parts]
    found = {name: _median(parts, values) for name, parts in groups.items() if any(part in values for part in parts)}
    return Summary(found, {"median": _median(everything, values)})


def _median(tasks: Sequence[str], values: Values) -> Mean:
    """The middle score of those that there are, or the mean of the two in the middle."""
    found = sorted((task for task in tasks if task in values), key=lambda task: values[task])
    middle = found[(len(found) - 1) // 2 : len(found) // 2 + 1]
    return Mean(fmean(values[task] for task in middle), len(found), len(tasks), dict.fromkeys(middle, 1 / len(middle)))
