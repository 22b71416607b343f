"""Each family's own rule from task scores to its table, as data. Every aggregate is a weighted sum of task scores, and
knows how many of its tasks have one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from statistics import fmean

from embark.boards.reasoning import reasoning_axis
from embark.plugins import registry
from embark.seams import Rule, Subtotal
from embark.stats.means import Mean, Summary, Values, grouped, mean, mean_of_groups
from embark.types import EmbarkError, Task

Groups = Mapping[str, Sequence[str]]  # the tasks of each group


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


def summarize(rule: Rule, tasks: Sequence[Task], values: Values, lacking: Collection[str] = ()) -> Summary:
    """The groups that have a score, and the totals, of one model; `lacking` lists modalities that it does not take."""
    tasks = [task for task in tasks if task.name not in rule.without]
    groupings = [grouped(tasks, partial(_group, by=by)) for by in rule.by]
    columns = {name: names for groups in groupings for name, names in groups.items()}
    average = rule.average or mean
    averages = {name: average(names, values) for name, names in columns.items() if _scored(names, values)}
    if rule.over == "groups":
        return Summary(averages, _over_groups(rule, groupings[0], values))
    return Summary(averages, _over_tasks(rule, [task.name for task in tasks], groupings[0], values, lacking))


def _over_groups(rule: Rule, groups: Groups, values: Values) -> dict[str, Mean]:
    totals = {rule.total: mean_of_groups(groups, values).totals["mean"]}
    if rule.subtotal:
        part = {name: names for name, names in groups.items() if name not in rule.subtotal.without}
        if len(part) < len(groups) and any(_scored(names, values) for names in part.values()):
            totals[rule.subtotal.name] = mean_of_groups(part, values).totals["mean"]
    return totals


def _over_tasks(
    rule: Rule, tasks: Sequence[str], groups: Groups, values: Values, lacking: Collection[str]
) -> dict[str, Mean]:
    average = rule.average or mean
    if rule.weights is not None:
        return {rule.total: weighted_mean(tasks, values, rule.weights)}
    if rule.zeros_without is None:
        return {rule.total: average(tasks, values)}
    needing = groups.get(rule.zeros_without, [])
    zeros = needing if rule.zeros_without in lacking and not _scored(needing, values) else []
    part = average([task for task in tasks if task not in zeros], values)
    weights = dict.fromkeys([*part.weights, *zeros], 1 / (part.count + len(zeros)))
    whole = Mean(part.value * part.count / len(weights), part.count, len(tasks), weights, len(zeros))
    return {rule.total: whole, f"{rule.total}*": part} if needing else {rule.total: whole}


TABLE_22_LACKS = (
    "VOC2007", "FashionIQIT2IRetrieval", "GLDv2I2TRetrieval", "SketchyI2IRetrieval", "SOPI2IRetrieval",
)  # fmt: skip

OURS = (
    Rule("mean-of-categories", "The mean of the categories' means."),
    Rule(
        "mean-of-types",
        "The mean of the types' means: Table 2 of MIEB, where two types are not English, and Table 1 of UniBench.",
        by=("type",),
        subtotal=Subtotal("mean (en)", without=("Any2AnyMultilingualRetrieval", "VisualSTS(multi)")),
    ),
    Rule(
        "coarse-and-fine",
        "The mean of the means of the columns of MIEB's Table 22, which parts classification in two (section 6.1).",
        by=("column",),
        subtotal=Subtotal("mean (en)", without=("Retrieval (multilingual)", "Visual STS (multilingual)")),
        without=TABLE_22_LACKS,
    ),
    Rule("mean-of-capabilities", "The mean of the capabilities' means: Table 5 of UniBench.", by=("capability",)),
    Rule(
        "median-of-types",
        "The median task of each type and of all: UniBench's figures, which one easy benchmark does not move.",
        by=("type",), over="tasks", total="median", average=median,
    ),
    Rule(
        "median-of-capabilities",
        "The median task of each capability and of all.",
        by=("capability",), over="tasks", total="median", average=median,
    ),
    Rule(
        "mmeb",
        "The mean over tasks, by modality group and sub-category; models without audio get zeros for it in All.",
        by=("group", "category"), over="tasks", total="All", zeros_without="audio",
    ),
    Rule(
        "ark",
        "The mean over subtypes (not over domains), and the axis of reasoning beside it.",
        over="tasks", total="knowledge axis", second_axis=reasoning_axis,
    ),
)  # fmt: skip
RULES = registry("rule", {rule.name: rule for rule in OURS}, "rules")


def by_difficulty(model: str, scores: Values) -> Rule:
    """A rule that weights each task by a model's distance from a full score on it: tasks hard for the model count more.

    UniBench (A.7) takes CLIP ViT-B/32 as the measure of difficulty and prints no formula: this one is ours.
    """
    weights = {task: 1 - score for task, score in scores.items()}
    name = f"mean weighted by what {model} lacks"
    return Rule(name, "The mean over tasks, by their difficulty.", over="tasks", total="weighted mean", weights=weights)


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
