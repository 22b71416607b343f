"""Whether a data set is consistent: its sides, their ids, its truth, and the modalities of its items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from embark.items import as_items
from embark.items.lazy_items import distinct_ids
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Task, role_of


def problems(data: Dataset) -> Iterator[str]:
    """A text for each inconsistency between the sides, their ids and the truth."""
    for role, side in data.sides.items():
        if len(side.ids) != len(side.items):
            yield f"side '{role}' has {len(side.ids)} ids for {len(side.items)} items"
        if distinct_ids(side.ids) != len(side.ids):
            yield f"side '{role}' has repeated ids"
        if not len(side):
            yield f"side '{role}' is empty"
        for fact, values in data.about.get(role, {}).items():
            if len(values) != len(side):
                yield f"side '{role}' has {len(values)} values of '{fact}' for {len(side)} items"
        base = data.sides.get(role_of(role))
        if base is None or len(base) != len(side):
            yield f"side '{role}' is not a variant of a side of the same length"
    for spec in fields(data.truth):
        values = getattr(data.truth, spec.name)
        for kind, role in spec.metadata.items():
            if role not in data.sides:
                yield f"there is no side '{role}'"
                continue
            count = len(data.sides[role])
            if kind == "index":
                yield from _index_problems(spec.name, values, role, count)
            elif values is not None and len(values) != count:
                yield f"'{spec.name}' has {len(values)} rows for {count} items of side '{role}'"
        yield from _value_problems(spec.name, values, getattr(data.truth, "names", None))


def _value_problems(name: str, values: Any, classes: Sequence[str] | None) -> list[str]:
    """Grades and scores that are no finite numbers; labels that are no class, or tables of other classes."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf" or name == "drawn":
        return []
    if classes is None or values.dtype.kind == "f":
        return [f"'{name}' is {values[tuple(row)]} in row {row[0]}" for row in np.argwhere(~np.isfinite(values))[:1]]
    if values.ndim == 2:
        return [] if values.shape[1] == len(classes) else [f"'{name}' has other than {len(classes)} classes"]
    outside = np.flatnonzero((values < 0) | (values >= len(classes)))
    return [f"'{name}' is {values[row]} in row {row}, and there are {len(classes)} classes" for row in outside[:1]]


def _index_problems(name: str, values: Array, role: str, count: int) -> list[str]:
    if not np.issubdtype(values.dtype, np.integer):
        return [f"'{name}' holds {values.dtype}, not positions in side '{role}'"]
    if len(values) and not (values.min() >= 0 and values.max() < count):
        return [f"'{name}' points outside the {count} items of side '{role}'"]
    return []


def check_modalities(task: Task, data: Dataset) -> None:
    """Raise an error for items of a modality that the task does not list: models are chosen by the listed ones."""
    kinds = {
        kind for side in data.sides.values() for modalities in as_items(side.items).kinds().names for kind in modalities
    }
    if other := [kind for kind in MODALITIES if kind in kinds and kind not in task.modalities]:
        raise EmbarkError(
            f"Task {task.name} has items of {' and '.join(other)}, but its `modalities` are "
            f"{', '.join(task.modalities) or 'none'}. Correct its `modalities` or its `columns`."
        )
