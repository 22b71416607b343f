"""Images and captions of which some belong together: text j belongs to image j, what is left over is a distractor.

Columns: `images` and `texts`, each one column or several with commas between; a column may hold lists, which are taken
in order. So one image with a right and a wrong caption is {"images": "image", "texts": "right,wrong"}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers._table import Table, as_text, open_table
from embark.types import Array, Dataset, EmbarkError, Item, Matches, Side, Task

VERSION = 2
OPTIONS: tuple[str, ...] = ()

Cells = list[list[Item]]  # a row's items


def read_captions(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One sample a row; all samples have as many images, and as many texts."""
    table = open_table(task, split, subset, hub)
    readers: dict[str, Callable[[Table, str], Cells]] = {"image": _images, "text": _texts}
    columns = {side: [name.strip() for name in task.columns[f"{side}s"].split(",")] for side in readers}
    found = {side: [readers[side](table, column) for column in columns[side]] for side in readers}
    whole = {side: [[*chain(*cells)] for cells in zip(*found[side], strict=True)] for side in readers}
    holes = [at for at in range(len(table)) if any(not column[at] for side in found.values() for column in side)]
    kept = table.without(holes, " or ".join(name for names in columns.values() for name in names))
    gone = set(holes)
    sides, samples = {}, {}
    for side in readers:
        cells = [one for at, one in enumerate(whole[side]) if at not in gone]
        samples[side] = _numbered(kept, side, cells)
        ids = tuple(f"{row}-{at}" for row, one in zip(kept.numbers, cells, strict=True) for at in range(len(one)))
        sides[side] = Side(ids, tuple(item for one in cells for item in one))
    return Dataset(sides, Matches(samples["image"], samples["text"]), kept.skipped)


def _images(table: Table, column: str) -> Cells:
    try:
        single = table.media("image", column)
    except EmbarkError:  # a column of lists; anything else that is wrong with it, this says as well
        return [[Item((one,)) for one in cell] for cell in table.list_media("image", column)]
    return [[] if one is None else [Item((one,))] for one in single]


def _texts(table: Table, column: str) -> Cells:
    out: Cells = []
    for cell in table.values(column):
        several = cell if isinstance(cell, (list, tuple)) else [] if cell is None else [cell]
        out.append([items.text(as_text(one)) for one in several])
    return out


def _numbered(table: Table, side: str, cells: Sequence[Sequence[Item]]) -> Array:
    """Positions in the side, (samples, items a sample)."""
    size = len(cells[0]) if cells else 0
    for number, one in zip(table.numbers, cells, strict=True):
        if len(one) != size:
            said = f"row {number} of {table.split} has {len(one)} {side}s where the first has {size}"
            raise EmbarkError(f"Task {table.task.name}: {said}; samples must be of one size.")
    return np.arange(len(cells) * size).reshape(len(cells), size)
