"""Tuples of one meaning as text, image, video and audio, as `embark build omni` writes them; a subset is a direction.

A query ranks one list of all modalities: its own tuple, the query itself among it, and its hard negatives.
"""

from __future__ import annotations

from inspect import cleandoc

from embark import items
from embark.catalogue import check_name, listed
from embark.hub import Hub
from embark.items import tuples
from embark.readers import _table
from embark.readers._files import TableFiles, with_tables
from embark.readers._table import OUTSIDE, as_list
from embark.readers.rows import split_files
from embark.seams import Reader
from embark.tasks.omni import DIRECTIONS, KINDS
from embark.types import Dataset, EmbarkError, Item, Task

COLUMNS = {
    "id": "the name of each tuple",
    "text": "its text",
    "image": "its picture",
    "video": "its film",
    "audio": "its sound",
    "negatives": "lists of ids: its hard negatives; a tuple without negatives is not a query",
}


def read_tuples(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One direction between two modalities."""
    check_name("direction", subset, DIRECTIONS)
    return tuples.direction(_tuples(task, split, hub), *DIRECTIONS[subset])


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The table of each split: all directions are of the same tuples."""
    return [
        TableFiles(tuple(split_files(task.source, split, hub)), (split,), roles=tuple(task.columns))
        for split in task.source.splits
    ]


def _tuples(task: Task, split: str, hub: Hub) -> dict[str, tuples.Tuple]:
    if missing := [role for role in COLUMNS if role not in task.columns]:
        raise EmbarkError(f"Task {task.name} names no column for {listed(missing)}.")
    columns = task.columns
    table = _table.open_split(task, split, task.source.config, hub)
    table = table.with_values(*(columns[role] for role in ("id", *KINDS)))
    ids = [str(id) for id in table.values(columns["id"])]
    known = set(ids)
    if len(known) < len(ids):
        raise EmbarkError(f"Task {task.name}: two tuples have the same id.")
    views: dict[str, list[Item]] = {"text": [items.text(str(text)) for text in table.values(columns["text"])]}
    for kind in KINDS[1:]:
        files = table.media(kind, columns[kind])
        if None in files:
            raise EmbarkError(f"Task {task.name}: '{ids[files.index(None)]}' has no {kind}.")
        views[kind] = [Item((media,)) for media in files if media is not None]
    out = {}
    for row, (id, cell) in enumerate(zip(ids, table.values(columns["negatives"]), strict=True)):
        negatives = tuple(map(str, as_list(cell)))
        if unknown := [other for other in negatives if other not in known]:
            raise EmbarkError(f"Task {task.name}: '{unknown[0]}' is a hard negative of '{id}', but no tuple.")
        out[id] = tuples.Tuple({kind: views[kind][row] for kind in KINDS}, negatives)
    if not any(entry.negatives for entry in out.values()):
        raise EmbarkError(f"Task {task.name}: no tuple has hard negatives, so there is no query.")
    return out


TUPLES = Reader(
    "tuples",
    cleandoc(__doc__ or ""),
    read_tuples,
    evaluators=("choice",),
    files=with_tables(tables),
    columns=COLUMNS,
    options={OUTSIDE: _table.OPTIONS[OUTSIDE]},
)
