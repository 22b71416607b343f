"""ARK's reasoning axis: six skills and four cognitive demands, each a pool of queries from several subtypes.

It follows from single queries, not from the subtypes' scores. For your own runs it is computed from their outcomes and
the skills that the labels file tells; for the paper's models it is as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from embark import published
from embark.boards.aggregate import Standing
from embark.results import TaskResult
from embark.results.table import Score
from embark.stats.intervals import combined_interval, mean_interval
from embark.tasks.ark import DEMANDS, SKILLS
from embark.types import EmbarkError

AXIS = "reasoning axis"
TABLE = "ARK Table 3"


def with_reasoning(model: Standing, skills: Mapping[str, tuple[str, ...]]) -> Standing:
    """The standing with the second axis among its totals, and its skills and demands among the groups.

    `skills` names the pools (skills and demand) of each query.
    """
    first = next(iter(model.results.values()))
    found = _printed(first) if first.made_by == "published" else pooled(model.results, skills)
    groups = {name: found[name] for name in (*SKILLS, *DEMANDS) if name in found}
    axis = {AXIS: found[AXIS]} if AXIS in found else {}
    return replace(model, categories=model.categories | groups, totals=model.totals | axis)


def pooled(results: Mapping[str, TaskResult], skills: Mapping[str, tuple[str, ...]]) -> dict[str, Score]:
    """The mean over each pool's queries, and over the six skills; nothing where outcomes are not on disk."""
    values: dict[str, list[float]] = {}
    try:
        for result in results.values():
            outcomes = result.outcomes()
            pairs = zip(outcomes["id"].to_pylist(), outcomes[result.metric].to_pylist(), strict=True)
            for query, value in pairs:
                for pool in skills.get(query, ()):
                    values.setdefault(pool, []).append(value)
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        return {}
    sizes = SKILLS | DEMANDS
    found = {
        pool: Score(float(np.mean(of)), *mean_interval(np.array(of)), len(of), max(len(of), sizes[pool]))
        for pool, of in values.items()
    }
    parts = [found[skill] for skill in SKILLS if skill in found]
    if len(parts) == len(SKILLS):
        mean = float(np.mean([part.value for part in parts]))
        interval = combined_interval([part.value for part in parts], [(part.low, part.high) for part in parts])
        found[AXIS] = Score(mean, *interval, *(sum(of) for of in zip(*((p.count, p.of) for p in parts), strict=True)))
    return found


def _printed(result: TaskResult) -> dict[str, Score]:
    """The cells of the paper's table for a published model, with their errata."""
    name = result.records[0].model  # as printed: a result may go by its card's name
    cells = [cell for cell in published.scores("ARK") if cell.table == TABLE]
    return {
        cell.name: Score(cell.value, *published.UNKNOWN, marks=published.footnotes(cell))
        for cell in cells
        if (cell.model, cell.protocol) == (name, result.protocol)
    }
