"""A model's task scores as the groups and totals of a benchmark's rule, each with its interval.

Missing tasks are explicit: a mean over fewer tasks than the benchmark has says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from embark.boards.contamination import IN_PART, TRAINED, footnotes
from embark.boards.rules import rule_of, summarize
from embark.models import MODELS
from embark.published import ERRATUM, NOTE
from embark.results import COMMIT, TaskResult
from embark.seams import Rule
from embark.stats.means import Mean, ModelKey, by_model, mean_score, score
from embark.stats.outcomes import Readings
from embark.stats.shared import ItemNumbers
from embark.tables import Score
from embark.types import Task

ZEROS = "with zeros for the {} tasks of a modality that the model does not take"


@dataclass(frozen=True)
class Standing:
    """One model's aggregates on a benchmark; `categories` are the groups of the benchmark's rule.

    `weights` tells how much each task counts in the rule's first total; `results` are those that were aggregated, and
    `readings` their outcomes, where they are on disk.
    """

    model: str
    revision: str
    tasks: dict[str, Score]
    categories: dict[str, Score]
    totals: dict[str, Score]
    weights: Mapping[str, float]
    results: Mapping[str, TaskResult]
    readings: Readings = field(repr=False, compare=False)

    @property
    def mean(self) -> Score:
        """The rule's first total, by which models are ranked."""
        return next(iter(self.totals.values()))

    @property
    def key(self) -> ModelKey:
        """The model, its revision, and the source of its scores."""
        return self.model, self.revision, next(iter(self.results.values())).made_by

    @property
    def source(self) -> str:
        """The source of the scores: you, a paper, or another tool."""
        made_by = self.key[2]
        return "yours" if made_by == "embark" else made_by


def standings(
    tasks: Sequence[Task], results: Iterable[TaskResult], rule: str | Rule = "mean-of-categories"
) -> list[Standing]:
    """One standing per model and source, in the order of the results; `by_model` chooses among the results."""
    rule = rule_of(rule)
    numbers = ItemNumbers()
    out = []
    for (model, revision, _), by_task in by_model(tasks, results).items():
        scores = {task.name: _marked(by_task[task.name], task) for task in tasks if task.name in by_task}
        values = {name: value.value for name, value in scores.items()}
        summary = summarize(rule, tasks, values, _missing_modality(rule, by_task))
        readings = Readings(by_task, numbers)
        groups = {name: _score(mean, scores, readings) for name, mean in summary.groups.items()}
        totals = {name: _score(mean, scores, readings) for name, mean in summary.totals.items()}
        weights = next(iter(summary.totals.values())).weights
        if rule.second_axis is not None:
            more_groups, more_totals = rule.second_axis(tasks, by_task)
            groups |= more_groups
            totals |= more_totals
        out.append(Standing(model, revision, scores, groups, totals, weights, by_task, readings))
    return out


def _marked(result: TaskResult, task: Task) -> Score:
    """A task's score, with a footnote if the model was trained on its data."""
    value = score(result)
    return replace(value, marks=(*value.marks, *footnotes(result, task)))


def _score(mean: Mean, scores: Mapping[str, Score], readings: Readings) -> Score:
    """A mean with its interval; it inherits what may have moved it (errata, data at another commit or in the training),
    and the notes that all its tasks have.
    """
    parts = [scores[task] for task in mean.weights if task in scores]
    marks = dict.fromkeys(mark for part in parts for mark in part.marks)
    shared = [mark for mark in marks if mark.startswith(NOTE) and all(mark in part.marks for part in parts)]
    inherited = [mark for mark in marks if mark.startswith((ERRATUM, COMMIT)) or mark in shared]
    inherited += [IN_PART] * any(mark.startswith(TRAINED) for mark in marks)
    return mean_score(mean, scores, [*inherited, *[ZEROS.format(mean.zeros)] * bool(mean.zeros)], readings)


def _missing_modality(rule: Rule, results: Mapping[str, TaskResult]) -> tuple[str, ...]:
    """The modality of `rule.zeros_without`, if the model is known not to take it, else nothing.

    The card that was stored beside the scores decides, else the card in the catalogue. Papers print zeros for such
    models.
    """
    modality = rule.zeros_without
    result = next(iter(results.values()))
    if modality is None:
        return ()
    if result.made_by == "published":
        return (modality,)
    card = result.card() or MODELS.get(result.model)
    modalities = card.modalities if card else ()
    return (modality,) if modalities and modality not in modalities else ()
