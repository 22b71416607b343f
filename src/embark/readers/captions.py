"""Images and captions that belong together: text j belongs to image j, those left over are distractors.

One image with a right and a wrong caption is {"images": "image", "texts": "right,wrong"}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from itertools import chain

import numpy as np

from embark import items
from embark.hub import Hub
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import SourceTable, as_list, open_table
from embark.seams import Reader
from embark.types import Array, Dataset, EmbarkError, Item, Matches, Side, Task

ItemLists = list[list[Item]]  # the items of each row


def read_captions(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One sample per row; all samples have the same number of images and the same number of texts."""
    table = open_table(task, split, subset, hub)
    readers: dict[str, Callable[[SourceTable, str], ItemLists]] = {"image": _images, "text": _texts}
    names = {side: [name.strip() for name in task.columns[f"{side}s"].split(",")] for side in readers}
    columns = {side: [readers[side](table, name) for name in names[side]] for side in readers}
    cells = zip(*chain(*columns.values()), strict=True)
    missing = {position for position, row in enumerate(cells) if not all(row)}
    filled = table.drop_missing(missing, " or ".join(chain(*names.values())))
    sides = {}
    positions = {}
    for side in readers:
        rows = [list(chain(*row)) for row in zip(*columns[side], strict=True)]
        samples = [sample for position, sample in enumerate(rows) if position not in missing]
        positions[side] = _positions(filled, side, samples)
        ids = [f"{row}-{k}" for row, sample in zip(filled.numbers, samples, strict=True) for k in range(len(sample))]
        sides[side] = Side(tuple(ids), tuple(chain(*samples)))
    return Dataset(sides, Matches(positions["image"], positions["text"]), filled.skipped)


def _images(table: SourceTable, column: str) -> ItemLists:
    try:
        media = [[] if image is None else [image] for image in table.media("image", column)]
    except EmbarkError:  # not a column of single images: a column of lists, or else the next line raises too
        media = table.list_media("image", column)
    return [[Item((image,)) for image in images] for images in media]


def _texts(table: SourceTable, column: str) -> ItemLists:
    return [[items.text(str(text)) for text in as_list(cell)] for cell in table.values(column)]


def _positions(table: SourceTable, side: str, samples: Sequence[Sequence[Item]]) -> Array:
    """The positions of each sample's items in the side, (samples, items per sample)."""
    size = len(samples[0]) if samples else 0
    for number, sample in zip(table.numbers, samples, strict=True):
        if len(sample) != size:
            raise EmbarkError(
                f"Task {table.task.name}: row {number} of {table.split} has {len(sample)} {side}s where the first has "
                f"{size}; samples must be of one size."
            )
    return np.arange(len(samples) * size).reshape(len(samples), size)


CAPTIONS = Reader(
    "captions",
    cleandoc(__doc__ or ""),
    read_captions,
    evaluators=("pairs",),
    files=TABLES,
    version=2,
    columns={
        "images": "the column of images, or several with commas between; a column may hold lists, taken in order",
        "texts": "likewise of texts",
    },
    options=_table.OPTIONS,
)
