"""ARK's reasoning axis: six skills and four cognitive demands, each a pool of queries from several subtypes.

It follows from single queries, not from the subtypes' scores. For your own runs it is computed from their outcomes and
the skills that the labels file states; for the paper's models it is as printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embark import published
from embark.catalogue import group_values
from embark.data.readers import ark
from embark.results import TaskResult
from embark.results.exchange import UNKNOWN
from embark.results.table import Score
from embark.stats.intervals import combined_interval, mean_interval
from embark.tasks.ark import DEMANDS, SKILLS
from embark.types import EmbarkError, Task

AXIS = "reasoning axis"
TABLE = "ARK Table 3"


def reasoning_axis(
    tasks: Sequence[Task], results: Mapping[str, TaskResult]
) -> tuple[dict[str, Score], dict[str, Score]]:
    """The skills and demands of a model with these results, and the axis, as far as they are known."""
    first = next(iter(results.values()))
    scores = _printed(first) if first.made_by == "published" else pooled(results, _pools(tasks))
    groups = {name: scores[name] for name in (*SKILLS, *DEMANDS) if name in scores}
    return groups, {AXIS: scores[AXIS]} if AXIS in scores else {}


def pooled(results: Mapping[str, TaskResult], pools: Mapping[tuple[str, str], tuple[str, ...]]) -> dict[str, Score]:
    """The mean over each pool's queries, and over the six skills; nothing where outcomes are not on disk.

    `pools` names the pools (skills and demand) of each query, by task and query id: ids repeat from task to task.
    """
    pairs: list[tuple[tuple[str, str], float]] = []  # of (task, query) and the value
    try:
        for result in results.values():
            outcomes = result.outcomes()
            queries = ((result.task, query) for query in outcomes["id"].to_pylist())
            pairs += zip(queries, outcomes[result.metric].to_pylist(), strict=True)
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        return {}
    values = group_values((pool, value) for query, value in pairs for pool in pools.get(query, ()))
    sizes = SKILLS | DEMANDS
    scores = {
        pool: Score(float(np.mean(of)), *mean_interval(np.array(of)), len(of), max(len(of), sizes[pool]))
        for pool, of in values.items()
    }
    parts = [scores[skill] for skill in SKILLS if skill in scores]
    if len(parts) == len(SKILLS):
        mean = float(np.mean([part.value for part in parts]))
        interval = combined_interval([part.value for part in parts], [(part.low, part.high) for part in parts])
        scores[AXIS] = Score(mean, *interval, sum(part.count for part in parts), sum(part.of for part in parts))
    return scores


def _pools(tasks: Sequence[Task]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The skills and the demand of each query by task and query id, where there is a labels file."""
    return {
        (task.name, query): (*label.skills, *[label.demand] * bool(label.demand))
        for task in tasks
        if ark.external_state(task)
        for query, label in ark.labels_of(task).items()
    }


def _printed(result: TaskResult) -> dict[str, Score]:
    """The cells of the paper's table for a published model, with their errata."""
    name = result.records[0].model  # as printed: a result may go by its card's name
    cells = [cell for cell in published.scores("ARK") if cell.table == TABLE]
    return {
        cell.name: Score(cell.value, *UNKNOWN, marks=published.footnotes(cell))
        for cell in cells
        if (cell.model, cell.protocol) == (name, result.protocol)
    }
