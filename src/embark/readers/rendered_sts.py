"""Pairs with a human score of their similarity, as images of sentences (or of any other modality).

The kind of the items is the task's first modality.
"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from embark.hub import Hub
from embark.items.lazy_items import Numbered
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import open_table
from embark.seams import Reader
from embark.types import Dataset, Gold, Side, Task


def read_rendered_sts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pair i is item i of both sides."""
    kind = task.modalities[0]
    score_column = task.columns.get("score", "score")
    table = open_table(task, split, subset, hub).with_values(score_column)
    table, _ = table.with_items({kind: task.columns["left"]})  # first the rows that have both items, then the items
    table, right = table.with_items({kind: task.columns["right"]})
    table, left = table.with_items({kind: task.columns["left"]})
    scores = table.numbers_of(score_column)
    ids = Numbered(table.numbers)
    positions = np.arange(len(table))
    sides = {"left": Side(ids, left), "right": Side(ids, right)}
    return Dataset(sides, Gold(positions, positions, scores), table.skipped)


RENDERED_STS = Reader(
    "rendered-sts",
    cleandoc(__doc__ or ""),
    read_rendered_sts,
    evaluators=("sts",),
    files=TABLES,
    version=2,
    columns={
        "left": "one item of each pair",
        "right": "the other",
        "score": "their similarity, as a number",
    },
    options=_table.OPTIONS,
)
