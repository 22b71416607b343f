"""ARK's reasoning axis: six skills and four cognitive demands, each a pool of queries from several subtypes.

It follows from single queries, not from the subtypes' scores. For your own runs it is computed from their outcomes and
the skills and demands that they hold, or that the labels file states; for the paper's models it is as printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from embark import published, readers
from embark.catalogue import group_values
from embark.results import ABOUT, TaskResult
from embark.results.exchange import UNKNOWN
from embark.stats.outcomes import observations_of, parts_of
from embark.stats.shared import ItemNumbers, Observations, Part, interval
from embark.tables import Score
from embark.tasks.ark import DEMANDS, SKILLS
from embark.types import EmbarkError, Task

AXIS = "reasoning axis"
TABLE = "ARK Table 3"
VALUE = "value"
LABELS = ("skills", "demand")  # of queries, as readers name them


def reasoning_axis(
    tasks: Sequence[Task], results: Mapping[str, TaskResult]
) -> tuple[dict[str, Score], dict[str, Score]]:
    """The skills and demands of a model with these results, and the axis, as far as they are known."""
    first = next(iter(results.values()))
    if first.made_by == "published":
        scores = _printed(first)
    else:
        pools = {(task.name, query): names for task in tasks for query, names in _pools(task, results).items()}
        stated = any(task.family == "ARK" for task in tasks)  # the paper's sizes; another benchmark has its own
        sizes = SKILLS | DEMANDS if stated else Counter(name for names in pools.values() for name in names)
        scores = pooled(results, pools, sizes)
    groups = {name: scores[name] for name in (*SKILLS, *DEMANDS) if name in scores}
    return groups, {AXIS: scores[AXIS]} if AXIS in scores else {}


def axis_labels(task: Task, result: TaskResult) -> dict[str, tuple[tuple[str, ...], str]]:
    """The skills and the demand of each query by its id: as the outcomes hold them, else as the labels file states."""
    table = result.outcomes()
    names = [f"{ABOUT}{label}" for label in LABELS]
    if {*names} & {*table.column_names}:
        ids = table["id"].to_pylist()
        nothing = [None] * len(ids)
        skills, demands = (table[name].to_pylist() if name in table.column_names else nothing for name in names)
        return {id: (tuple(of_id or ()), demand or "") for id, of_id, demand in zip(ids, skills, demands, strict=True)}
    if task.reader != "ark" or not readers.external_state(task):
        return {}
    from embark.readers import ark

    return {query: (label.skills, label.demand) for query, label in ark.labels_of(task).items()}


def pooled(
    results: Mapping[str, TaskResult],
    pools: Mapping[tuple[str, str], tuple[str, ...]],
    sizes: Mapping[str, int] = SKILLS | DEMANDS,
) -> dict[str, Score]:
    """The mean over each pool's queries, and over the six skills; nothing where outcomes are not on disk.

    `pools` names the pools (skills and demand) of each query, by task and query id: ids repeat from task to task. A
    query that bears several skills moves all of them. `sizes` are the queries that pools should have.
    """
    rows: list[tuple[str, float, int, int]] = []  # the pool, the value, and the items that it stands on
    numbers = ItemNumbers()
    try:
        for result in results.values():
            for part in parts_of(result, ItemNumbers()).values():
                observations = observations_of(part.outcomes, result.task, numbers)
                columns = (part.outcomes["id"], part.outcomes[result.metric], *observations)
                for query, value, first, second in zip(*columns, strict=True):
                    rows += [(pool, value, first, second) for pool in pools.get((result.task, query), ())]
    except (EmbarkError, KeyError):
        return {}
    parts = {pool: _part(of_pool) for pool, of_pool in group_values((row[0], row[1:]) for row in rows).items()}
    scores = {}
    for pool, part in parts.items():
        values = part.outcomes[VALUE]
        scores[pool] = Score(float(values.mean()), *interval([part]), len(values), max(len(values), sizes[pool]))
    skills = [skill for skill in SKILLS if skill in scores]
    if len(skills) == len(SKILLS):
        mean = float(np.mean([scores[skill].value for skill in skills]))
        counts = (sum(scores[skill].count for skill in skills), sum(scores[skill].of for skill in skills))
        scores[AXIS] = Score(mean, *interval([parts[skill] for skill in skills]), *counts)
    return scores


def _part(rows: Sequence[tuple[float, int, int]]) -> Part:
    """The values of a pool, with the items that they stand on."""
    values, first, second = map(np.array, zip(*rows, strict=True))
    return Part("mean", VALUE, {VALUE: values}, Observations(first, second))


def _pools(task: Task, results: Mapping[str, TaskResult]) -> dict[str, tuple[str, ...]]:
    """The skills and the demand of each query of a task by its id, as far as they are known."""
    try:
        labels = axis_labels(task, results[task.name])
    except (EmbarkError, OSError, ValueError, KeyError):  # no outcomes
        return {}
    return {query: (*skills, *[demand] * bool(demand)) for query, (skills, demand) in labels.items()}


def _printed(result: TaskResult) -> dict[str, Score]:
    """The cells of the paper's table for a published model, with their errata."""
    name = result.records[0].model  # as printed: a result may go by its card's name
    cells = [cell for cell in published.scores("ARK") if cell.table == TABLE]
    return {
        cell.name: Score(cell.value, *UNKNOWN, marks=published.footnotes(cell))
        for cell in cells
        if (cell.model, cell.protocol) == (name, result.protocol)
    }
