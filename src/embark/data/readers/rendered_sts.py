"""Pairs with a human score of their similarity, as pictures of sentences (or anything else a model can see or read).

Columns: `left`, `right` and `score`. The kind of the items is the task's first modality.
"""

from __future__ import annotations

import numpy as np

from embark.data.fetch import Hub
from embark.data.readers._table import Table, open_table
from embark.types import Dataset, EmbarkError, Gold, Item, Side, Task

VERSION = 2
OPTIONS: tuple[str, ...] = ()


def read_rendered_sts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pair i is item i of either side; equal content is embedded once all the same."""
    score, kind = task.columns.get("score", "score"), task.modalities[0]
    table = open_table(task, split, subset, hub).full(score)
    table, _ = table.shown({kind: task.columns["left"]})  # first which rows are whole, then their items
    table, right = table.shown({kind: task.columns["right"]})
    table, left = table.shown({kind: task.columns["left"]})
    scores = np.array(table.values(score), dtype=np.float64)
    if not np.isfinite(scores).all():
        row = table.numbers[int(np.flatnonzero(~np.isfinite(scores))[0])]
        raise EmbarkError(f"Task {task.name}: the score of row {row} of {table.split} is not a number.")
    rows = np.arange(len(table))
    return Dataset({"left": _side(table, left), "right": _side(table, right)}, Gold(rows, rows, scores), table.skipped)


def _side(table: Table, shown: list[Item]) -> Side:
    return Side(tuple(str(number) for number in table.numbers), tuple(shown))
