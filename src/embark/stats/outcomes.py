"""The outcomes of a result on disk, split by split and subset by subset, with the items that they stand on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from embark.results import Damaged, TaskResult
from embark.stats.shared import ItemNumbers, Part
from embark.stats.statistics import STATISTICS, Outcomes, run_columns
from embark.types import EmbarkError

KEYS = ("split", "subset", "id")
NAMES = ("id", "content", "partner", "partner_content", "right")  # columns that tell which items a row stands on
Parts: TypeAlias = dict[tuple[str, str], Part]


class NotComparable(EmbarkError):
    """Two results that must not be compared; the message says why."""


def parts_of(result: TaskResult, numbers: ItemNumbers) -> Parts:
    """The parts of a result, their rows in the order of their ids."""
    try:
        table = result.outcomes().sort_by([(key, "ascending") for key in KEYS])
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        split, subset = columns["split"], columns["subset"]
    except Damaged as damage:
        raise NotComparable(str(damage)) from None
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    statistic = statistic_of(result, columns)
    # Rows of a part follow each other, since they are sorted.
    starts = np.flatnonzero(np.append(True, (split[1:] != split[:-1]) | (subset[1:] != subset[:-1]))[: len(split)])
    parts: Parts = {}
    for start, end in zip(starts, np.append(starts[1:], len(split)), strict=True):
        rows = {name: values[start:end] for name, values in columns.items()}
        items = {name: rows[name].tolist() for name in NAMES if name in rows}
        observations = numbers.observations(result.dataset_revision, items)
        parts[str(split[start]), str(subset[start])] = Part(statistic, result.metric, rows, observations)
    return parts


def statistic_of(result: TaskResult, columns: Outcomes) -> str:
    """The name of the statistic that computes a result's score from its outcomes.

    It is recorded with the result; for older records it is inferred from the columns of the outcomes.
    """
    if recorded := result.records[0].statistic:
        return recorded
    metric = result.metric
    if run_columns(metric, columns):
        return "runs"
    names = [name for name in (metric, metric.rpartition("_")[2]) if name in STATISTICS]
    if not names and metric not in columns:
        raise NotComparable(f"its items have no outcome that {metric} could be computed from")
    return names[0] if names else "mean"
