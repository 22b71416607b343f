"""Reading a task: its reader's items and truth, checked, with pictures upright and ids as evaluators want them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from embark.catalogue import UnknownName
from embark.hub import Hub
from embark.items import as_items
from embark.items.consistency import check_modalities, problems
from embark.items.lazy_items import compact_side
from embark.items.upright import upright
from embark.readers._errors import checked_listing, expected_data
from embark.readers._table import of_subset
from embark.readers.folder_state import check_state
from embark.readers.registry import check_row, reader_of
from embark.types import Array, Dataset, EmbarkError, Qrels, Side, Task, role_of

WIDEST = 64  # characters of ids that are kept in an array of fixed width


def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items and truth of one split and subset of a task, checked for consistency."""
    reader = reader_of(task)
    check_row(task)
    for what, name, known in (
        (f"split of {task.name}", split, task.source.splits),
        (f"subset of {task.name}", subset, task.subsets),
    ):
        if name not in known:
            raise UnknownName(what, name, known)
    with _without_garbage_collection(), checked_listing(task, hub), expected_data(task, hub):
        data = reader.read(of_subset(task, subset), split, subset, hub)
        check_state(task, hub)
        for problem in problems(data):
            raise EmbarkError(f"Task {task.name} ({split}, {subset}) was read wrongly: {problem}.")
    data = replace(data, sides={name: compact_side(side) for name, side in data.sides.items()})
    check_modalities(task, data)
    data = _adjusted(task, data)
    pa.default_memory_pool().release_unused()  # what decoding of tables took
    return replace(_with_ids(data), revision=hub.commit(task.source.id, task.source.revision))


def read_unlabeled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items of a task, for rankings that are scored elsewhere; labels are read only where the reader needs them."""
    reader = reader_of(task)
    if reader.read_unlabeled is None:
        return read(task, split, subset, hub)
    return _adjusted(task, reader.read_unlabeled(task, split, subset, hub))


def _adjusted(task: Task, data: Dataset) -> Dataset:
    """The dataset with pictures upright and texts stripped, where the task says so."""
    stripped = {
        name: Side(side.ids, as_items(side.items).stripped())
        for name, side in data.sides.items()
        if role_of(name) in task.options.get("strip", ())
    }
    data = replace(data, sides={**data.sides, **stripped})
    return upright(data) if task.upright else data


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off: with millions of small objects, it takes a third of a reader's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _with_ids(data: Dataset) -> Dataset:
    """The dataset with ids in the truth of a ranking, which resolves ties by document id."""
    if not isinstance(data.truth, Qrels):
        return data
    query: Any
    document: Any
    query, document = data.sides["query"].ids, data.sides["document"].ids
    if data.truth.repeated:  # the reader gave the ids of its rows, of which those of the sides are variants
        query, document = data.truth.query_ids, data.truth.document_ids
    return replace(data, truth=replace(data.truth, query_ids=_array(query), document_ids=_array(document)))


def _array(ids: Any) -> Array:
    """Ids as an array: of fixed width where they are short, as it sorts five times as fast but pads to the longest."""
    if isinstance(ids, np.ndarray) and ids.dtype != object:
        return ids
    width = max(map(len, ids), default=0)
    if width > WIDEST:
        return np.fromiter(ids, object, len(ids))
    if all(map(str.isascii, ids)):  # a byte a character, in the same order
        return np.fromiter(map(str.encode, ids), f"S{max(1, width)}", len(ids))
    return np.fromiter(ids, f"U{max(1, width)}", len(ids))
