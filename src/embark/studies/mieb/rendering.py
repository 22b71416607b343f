"""The cost of reading: scores of models on pairs of sentences as text, against the same pairs drawn as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from embark.boards.comparable_results import Include, load_results, rows_of
from embark.catalogue import group_values, listed
from embark.results import NO_INTERVAL, TaskResult
from embark.settings import Settings
from embark.stats.outcomes import NotComparable, observations_of, parts_of
from embark.stats.paired import PAIRS, Contrast, tested, unpaired
from embark.stats.paired import contrasts as paired
from embark.stats.shared import ItemNumbers, Observations, Part, interval
from embark.studies.analysis import Analysis
from embark.studies.plotting import COLORS, label_points
from embark.tables import Row, Score, Table, applicable, footnoted, short
from embark.tasks import TASKS, Tasks
from embark.tasks.text_sts import TWINS
from embark.types import Array, EmbarkError

ALONE = "the pairs of text and pictures could not be aligned by ids and human scores: as if they were independent"


def rendering(
    tasks: Tasks = None,
    *,
    include: Include = "all",
    settings: Settings | None = None,
) -> Rendering:
    """Compare models' scores on visual STS with those on its text twins: of tasks, or of all of them.

    Scores on pictures are the published ones and yours, or those that `include` names; those on text are
    yours or imported.
    """
    visual = [row for row in rows_of(list(TWINS) if tasks is None else tasks) if row.name in TWINS]
    if not visual:
        raise EmbarkError(f"None of these tasks has a text twin. Those with one: {listed(list(TWINS), len(TWINS))}.")
    rows = [*visual, *(TASKS[name] for name in dict.fromkeys(TWINS[task.name] for task in visual))]
    loaded = load_results(rows, include=include, settings=settings)
    by_task = {  # yours count
        (result.model, result.task): result
        for result in sorted(loaded.results, key=lambda result: result.made_by == "embark")
    }
    order = [task.name for task in visual]
    pairs = [key for key in by_task if key[1] in order and (key[0], TWINS[key[1]]) in by_task]
    pairs.sort(key=lambda key: (key[0], order.index(key[1])))
    numbers = ItemNumbers()
    costs = group_values((m, _cost(by_task[m, name], by_task[m, TWINS[name]], numbers)) for m, name in pairs)
    if not costs:
        raise EmbarkError(
            "No model has scores on a visual STS task and on its text twin. Make some, with a model that takes both: "
            f"embark run -m MODEL -t {visual[0].name} -t {TWINS[visual[0].name]}"
        )
    every_cost = tuple(cost for tasks in costs.values() for cost, _ in tasks)
    means = tuple(_mean(tasks) for tasks in costs.values() if len(tasks) > 1)
    return Rendering(every_cost, means, notes=loaded.notes)


class Cost(NamedTuple):
    """A model's score on a visual task, and its mean over the same splits and languages of the text twin.

    The difference, pictures − text, has an interval where the outcomes of both are on disk: of the same pairs where
    they are `aligned`, else as if they were others.
    """

    model: str
    task: str
    parts: int
    text: Score
    pictures: Score
    difference: Score
    aligned: bool = True


@dataclass(frozen=True)
class Rendering(Analysis):
    """The costs of rendering, by model and task."""

    costs: tuple[Cost, ...]
    means: tuple[Cost, ...] = ()  # of the models with several tasks

    @property
    def title(self) -> str:
        return "The same pairs of sentences as text and as pictures"

    def table(self) -> Table:
        """One row per model and visual task, and the model's mean."""
        rows = []
        for model, costs in group_values((cost.model, cost) for cost in (*self.costs, *self.means)).items():
            for cost in costs:
                difference = cost.difference if cost.aligned else replace(cost.difference, marks=(ALONE,))
                rows.append(Row((model, cost.task, cost.parts, cost.text, cost.pictures, difference)))
        known = [not isnan(cost.difference.low) for cost in self.costs]
        notes = {
            "The same pairs on both sides: means over the splits and languages of the visual task.": True,
            "Costs are pictures − text, in points, with 95 % intervals over pairs.": any(known),
            "No interval where the outcomes of single pairs are not on disk: published and imported scores.": (
                not all(known)
            ),
        }
        columns = ("model", "task", "parts", "as text", "as pictures", "cost")
        return footnoted(Table(columns, tuple(rows), applicable(notes)))

    def draw(self, figure: Any) -> None:
        """Text across, pictures up; below the diagonal, rendering costs."""
        axes = figure.subplots()
        texts = np.array([100 * cost.text.value for cost in self.costs])
        pictures = np.array([100 * cost.pictures.value for cost in self.costs])
        axes.axline((0, 0), slope=1, color="#AAAAAA", lw=1)
        ends = [
            np.array([_arms(cost.text) for cost in self.costs]).T,
            np.array([_arms(cost.pictures) for cost in self.costs]).T,
        ]
        axes.errorbar(texts, pictures, xerr=ends[0], yerr=ends[1], fmt="o", ms=4, color=COLORS[0], mew=0, lw=0.8)
        axes.set(xlabel="as text (points)", ylabel="as pictures (points)", aspect="equal")
        names = [f"{short(cost.model)}, {cost.task}" for cost in self.costs]
        diagonal = np.repeat([[min(texts.min(), pictures.min())], [max(texts.max(), pictures.max())]], 2, axis=1)
        label_points(axes, texts, pictures, names, _along_intervals(texts, pictures, ends), diagonal)


def _arms(score: Score) -> tuple[float, float]:
    """How far the interval reaches down and up, in points; nothing where it is not known."""
    arms = 100 * (score.value - score.low), 100 * (score.high - score.value)
    return (0.0, 0.0) if isnan(sum(arms)) else arms


def _along_intervals(texts: Array, pictures: Array, ends: Sequence[Array]) -> Array:
    """Points along the intervals, which names must not cover."""
    steps = np.linspace(0, 1, 40)[:, None]
    across = texts - ends[0][0] + steps * ends[0].sum(axis=0), np.broadcast_to(pictures, (40, len(pictures)))
    up = np.broadcast_to(texts, (40, len(texts))), pictures - ends[1][0] + steps * ends[1].sum(axis=0)
    return np.concatenate([np.stack(line, axis=2).reshape(-1, 2) for line in (across, up)])


def _cost(pictures: TaskResult, text: TaskResult, numbers: ItemNumbers) -> tuple[Cost, list[Contrast]]:
    """The cost of rendering on a task, and the contrasts behind it; none where outcomes are not on disk."""
    name = pictures.task
    keys = TASKS[name].parts
    scores = {(record.split, record.subset): record.score for record in text.records}
    mean = fmean(scores[key] for key in keys)
    where = (pictures.model, name, len(keys))
    try:
        own, other = parts_of(pictures, ItemNumbers()), parts_of(text, numbers)
        parts = [(_in_order(own[key]), _in_order(other[key])) for key in keys]
    except (NotComparable, KeyError):
        unknown = (Score(mean, *NO_INTERVAL), Score(pictures.score, *pictures.interval))
        return Cost(*where, *unknown, Score(pictures.score - mean, *NO_INTERVAL)), []
    aligned = all(_same_pairs(*pair) for pair in parts)
    written = [part for _, part in parts]
    drawn = [
        part._replace(observations=text_part.observations if aligned else observations_of(part.outcomes, name, numbers))
        for part, text_part in parts
    ]
    contrasts = (paired if aligned else unpaired)(name, drawn, written)
    pieces = (Score(mean, *interval(written)), Score(pictures.score, *interval(drawn)))
    return Cost(*where, *pieces, _difference(pictures.score - mean, contrasts), aligned), contrasts


def _in_order(part: Part) -> Part:
    """A part with its pairs in the order of the ids of both halves."""
    rows = part.outcomes
    order = np.lexsort([rows[name].astype(np.str_) for name in ("right", "id") if name in rows])
    columns = {name: values[order] for name, values in rows.items()}
    first, second = (numbers[order] for numbers in part.observations)
    return part._replace(outcomes=columns, observations=Observations(first, second))


def _same_pairs(pictures: Part, text: Part) -> bool:
    """Whether row by row the ids and the order of the human scores are the same."""
    names = [name for name in ("id", "right", "gold_rank") if name in pictures.outcomes and name in text.outcomes]
    return all(np.array_equal(pictures.outcomes[name], text.outcomes[name]) for name in names)


def _difference(value: float, contrasts: Sequence[Contrast]) -> Score:
    enough = all(part.observations.items >= PAIRS for part in contrasts)
    test = tested(contrasts) if contrasts and enough else None
    return Score(value, test.low, test.high) if test else Score(value, *NO_INTERVAL)


def _mean(tasks: Sequence[tuple[Cost, list[Contrast]]]) -> Cost:
    """A model's mean over its tasks, from their costs and contrasts; pairs that tasks share count once."""
    costs = [cost for cost, _ in tasks]
    known = all(contrasts for _, contrasts in tasks)
    parts = [part._replace(weight=part.weight / len(tasks)) for _, contrasts in tasks for part in contrasts if known]
    text, pictures = (fmean(score.value for score in side) for side in zip(*(cost[3:5] for cost in costs), strict=True))
    sides = (Score(text, *NO_INTERVAL), Score(pictures, *NO_INTERVAL))
    difference = _difference(pictures - text, parts)
    count = sum(cost.parts for cost in costs)
    return Cost(costs[0].model, "mean", count, *sides, difference, all(cost.aligned for cost in costs))
