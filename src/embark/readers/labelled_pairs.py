"""Pairs with a label: whether two items match (1) or not (0).

The items of both sides are of the task's modality; of two, the first is that of the left ones, or the one that the
option `left` names. Where a row holds lists of texts and labels, as in many of mteb's data sets, each place in the
lists is a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import cleandoc
from itertools import chain
from typing import Any

import numpy as np

from embark.hub import Hub
from embark.items.lazy_items import Numbered
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import SourceTable, as_list, open_table
from embark.readers.formats import TableFile
from embark.readers.rows import Rows
from embark.seams import Reader
from embark.types import MODALITIES, Bytes, Dataset, EmbarkError, Gold, Modality, Option, Side, Task

COLUMNS = {
    "left": "one item of each pair",
    "right": "the other",
    "label": "1 if they match, 0 if not",
}


class PairLists(TableFile):
    """The lists of a table's rows, with a row for each place in them."""

    def __init__(self, table: SourceTable, columns: Sequence[str]) -> None:
        self.path = table.rows.name
        self.column_names = tuple(columns)
        lists = {column: [as_list(cell) for cell in table.values(column)] for column in columns}
        for number, row in zip(table.numbers, zip(*lists.values(), strict=True), strict=True):
            if len(sizes := {len(values) for values in row}) > 1:
                raise EmbarkError(
                    f"Task {table.task.name}: row {number} of {table.split} has lists of different lengths in "
                    f"{', '.join(columns)} ({', '.join(map(str, sorted(sizes)))}). Mend the data."
                )
        self._cells = {column: list(chain(*lists[column])) for column in columns}

    def __len__(self) -> int:
        return len(self._cells[self.column_names[0]])

    def values(self, column: str) -> list[Any]:
        return self._cells[column]

    def chunks(self, column: str) -> Sequence[Bytes | None]:
        raise EmbarkError(f"{self.path}: column '{column}' holds lists; pairs of media have a row each.")


def read_labelled_pairs(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pair i is item i of both sides."""
    left_kind, right_kind = _kinds(task)
    left_column, right_column, label_column = (task.columns[role] for role in COLUMNS)
    table = open_table(task, split, subset, hub).with_values(label_column)
    if any(isinstance(cell, (list, tuple)) for cell in table.values(label_column)):
        lists = PairLists(table, (left_column, right_column, label_column))
        table = replace(table, rows=Rows(table.rows.name, [lists]), numbers=range(len(lists))).with_values(label_column)
    table, _ = table.with_items({left_kind: left_column})  # first the rows that have both items, then the items
    table, right = table.with_items({right_kind: right_column})
    table, left = table.with_items({left_kind: left_column})
    ids = Numbered(table.numbers)
    positions = np.arange(len(table))
    sides = {"left": Side(ids, left), "right": Side(ids, right)}
    return Dataset(sides, Gold(positions, positions, table.numbers_of(label_column)), table.skipped)


def _kinds(task: Task) -> tuple[Modality, Modality]:
    """The modality of the left items and of the right ones."""
    left = task.options.get("left", task.modalities[0])
    if left not in task.modalities or len(task.modalities) > 2:
        raise EmbarkError(
            f"Task {task.name}: pairs have one modality or two, and the option 'left' names one of them; 'modalities' "
            f"are {', '.join(task.modalities)}, and 'left' is {left}."
        )
    return left, next((kind for kind in task.modalities if kind != left), left)


LABELLED_PAIRS = Reader(
    "labelled-pairs",
    cleandoc(__doc__ or ""),
    read_labelled_pairs,
    evaluators=("pair-classification",),
    files=TABLES,
    columns=COLUMNS,
    options={
        **_table.OPTIONS,
        "left": Option(MODALITIES, "The modality of the left items, where the right ones have another."),
    },
)
