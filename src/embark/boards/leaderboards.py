"""Leaderboards: models by a benchmark's own rule, with rank intervals, tie groups, and whose scores they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embark.boards.aggregate import Standing, standings
from embark.boards.reasoning import with_reasoning
from embark.boards.rules import Rule, common_tasks, rule_of
from embark.results import TaskResult
from embark.results.table import Row, Table, footnoted
from embark.stats import ranking
from embark.stats.means import Column, names, task_table
from embark.stats.ranking import FEWEST, Place
from embark.types import Array, Task

ENOUGH = 0.9  # of a benchmark's tasks: with fewer, a model is shown and not ranked
UNRANKED = f"#: – is not ranked, for want of scores on {100 * ENOUGH:.0f} % of the tasks"
PARTIAL = "over those tasks that have a score, not over all"
TIES = "tie: models with one letter cannot be told apart (paired differences, corrected for the number of pairs)"


class Entry(NamedTuple):
    """A line of a leaderboard: a model, its place (none if it is not ranked) and its Borda points."""

    model: Standing
    place: Place | None
    points: float


def leaderboard(
    tasks: Sequence[Task],
    results: Iterable[TaskResult],
    rule: str | Rule = "mean-of-categories",
    *,
    borda: bool = False,
    top: int | None = None,
    skills: Mapping[str, tuple[str, ...]] | None = None,
) -> Table:
    """Models by the rule's first total, or by Borda points; one column a total, then one a group.

    `skills` are those of ARK's queries, for its second axis.
    """
    models = standings(tasks, results, rule)
    if rule == "ark":
        models = [with_reasoning(model, skills or {}) for model in models]
    entries, over = ranked(tasks, models, borda)
    shown = entries[:top]
    totals, groups = _columns(tasks, rule, shown)
    partial = any(entry.model.mean.partial for entry in shown)
    columns = ("#", "95 %", "tie", "model", "source", *["tasks"] * partial, *["Borda"] * borda, *totals, *groups)
    rows, told = [], names([(entry.model.model, entry.model.revision, entry.model.source) for entry in entries])
    for name, (model, place, points) in zip(told, shown, strict=False):
        rank = ("–", "", "") if place is None else (str(place.rank), place.interval, place.tie)
        covered = [f"{model.mean.count}/{model.mean.of}"] * partial
        scores = (*map(model.totals.get, totals), *map((model.tasks | model.categories).get, groups))
        rows.append(Row((*rank, name, model.source, *covered, *[f"{points:.1f}"] * borda, *scores)))
    protocols = ", ".join(dict.fromkeys(task.protocol for task in tasks))
    said = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} by the rule {rule}, protocol {protocols}"
    notes = (said, *_notes(over, sum(e.place is not None for e in entries), any(e.place is None for e in shown)))
    if len(models) > 1 and any(model.mean.partial for model in models):
        notes = (*notes, _offer(tasks, models))
    return footnoted(Table(columns, tuple(rows), notes, models="rows"), PARTIAL)


def by_task(tasks: Sequence[Task], results: Iterable[TaskResult], rule: str | Rule = "mean-of-categories") -> Table:
    """Tasks × models, grouped by category; the last lines are the totals of the rule."""
    models = [Column(model.who, model.tasks, model.totals) for model in standings(tasks, results, rule)]
    totals = rule_of(rule)(tasks, {task.name: 0.0 for task in tasks}).totals
    labels = {name: str(rule).replace("-", " ").capitalize() if name == "mean" else name for name in totals}
    return task_table(tasks, models, labels)


def ranked(tasks: Sequence[Task], models: Sequence[Standing], borda: bool = False) -> tuple[list[Entry], str]:
    """Models best first, then those without enough scores, by how many they have; and what was resampled: items,
    tasks, or nothing.
    """
    values = _table(tasks, [{name: score.value for name, score in model.tasks.items()} for model in models], np.nan)
    weights = _table(tasks, [model.weights for model in models], 0.0)
    if borda:
        values, weights = ranking.points(values), np.full(values.shape, 1 / max(len(tasks), 1))
    totals = (weights * np.nan_to_num(values)).sum(axis=1)
    enough = [at for at, model in enumerate(models) if model.mean.count >= ENOUGH * model.mean.of]
    drawn, freedom, over = None, np.inf, "items"
    if not borda:
        drawn = ranking.over_items([models[at].results for at in enough], [models[at].weights for at in enough])
    if drawn is None:
        freedom, over = ranking.freedom(weights[enough]), "tasks"
        drawn = ranking.over_tasks(values[enough], weights[enough])
    if freedom < FEWEST - 1:
        drawn, over = None, "nothing"
    places = dict(zip(enough, ranking.places(totals[enough], drawn, freedom), strict=True))
    gaps = [0 if at in places else len(tasks) - len(model.tasks) for at, model in enumerate(models)]
    order = sorted(range(len(models)), key=lambda at: (at not in places, gaps[at], -totals[at]))
    return [Entry(models[at], places.get(at), totals[at] * len(tasks)) for at in order], over


def shared(tasks: Sequence[Task], models: Sequence[Standing]) -> list[Task]:
    """The tasks that every model has a score on: over these, models with gaps compare with the others."""
    common = set(common_tasks({str(at): {n: s.value for n, s in m.tasks.items()} for at, m in enumerate(models)}))
    return [task for task in tasks if task.name in common]


def _offer(tasks: Sequence[Task], models: Sequence[Standing]) -> str:
    """Where models with gaps can be compared."""
    common = f"the {len(models)} models share {len(shared(tasks, models))} of the tasks"
    return f"{common}: --comparable ranks them over those; fewer models (-m) may share more"


def _columns(tasks: Sequence[Task], rule: str | Rule, shown: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """The totals, and the groups that someone has: tasks, where the only group would be all of them."""
    whole = rule_of(rule)(tasks, {task.name: 0.0 for task in tasks})
    totals = dict.fromkeys([*whole.totals, *(name for entry in shown for name in entry.model.totals)])
    real = [name for name, group in whole.groups.items() if group.of < len(tasks)] or [task.name for task in tasks]
    groups = dict.fromkeys([*real, *(n for e in shown for n in e.model.categories if n not in whole.groups)])
    return list(totals), [n for n in groups if any(n in (e.model.tasks | e.model.categories) for e in shown)]


def _table(tasks: Sequence[Task], rows: Sequence[Mapping[str, float]], missing: float) -> Array:
    """Models × tasks."""
    cells = [row.get(task.name, missing) for row in rows for task in tasks]
    return np.array(cells, np.float64).reshape(len(rows), len(tasks))


def _notes(over: str, models: int, gaps: bool) -> tuple[str, ...]:
    notes = [UNRANKED] if gaps else []
    if models < 2:
        return tuple(notes)
    if over == "nothing":
        return (*notes, f"95 %: fewer than {FEWEST} tasks of equal weight say nothing about other tasks")
    what = {"items": "the items of each task", "tasks": "the tasks"}[over]
    return (*notes, f"95 %: of the rank, when {what} are drawn again, the same for all {models} models", TIES)
