"""Leaving items out of a dataset so that its sides and its truth still agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from itertools import compress
from typing import Any

import numpy as np

from embark.types import Array, Dataset, EmbarkError, Side, Truth


def without(data: Dataset, dropped: Mapping[str, Collection[int]]) -> Dataset:
    """The dataset without the items at these positions, by role.

    Rows of the truth that mention a dropped item go with it. A query that loses all its documents stays, so that
    no average changes silently.
    """
    masks = {role: np.ones(len(side), bool) for role, side in data.sides.items()}
    for role, positions in dropped.items():
        if role not in masks:
            raise EmbarkError(f"There is no side '{role}' to leave items out of, only {', '.join(masks)}.")
        mask = masks[role]
        if not all(0 <= position < len(mask) for position in positions):
            raise EmbarkError(f"Side '{role}' has {len(mask)} items; positions outside it cannot be left out.")
        mask[list(positions)] = False
    sides = {
        role: Side(tuple(compress(side.ids, masks[role])), tuple(compress(side.items, masks[role])))
        for role, side in data.sides.items()
    }
    return replace(data, sides=sides, truth=_masked_truth(data.truth, masks))


def _masked_truth(truth: Truth, masks: Mapping[str, Array]) -> Truth:
    """The truth about the items that the masks of their sides select."""
    rows: Array | None = None  # which rows of the table that the index fields make up are selected
    for spec in fields(truth):
        if "index" in spec.metadata:
            selected = masks[spec.metadata["index"]][getattr(truth, spec.name)]
            selected = selected.all(axis=tuple(range(1, selected.ndim)))  # a sample of several items needs them all
            rows = selected if rows is None else rows & selected
    changed: dict[str, Any] = {}
    for spec in fields(truth):
        values = getattr(truth, spec.name)
        if not isinstance(values, np.ndarray):
            continue  # class names, or ids that are not set
        if "aligned" in spec.metadata:
            changed[spec.name] = values[masks[spec.metadata["aligned"]]]
        elif "index" in spec.metadata:
            new_positions = np.cumsum(masks[spec.metadata["index"]]) - 1
            changed[spec.name] = new_positions[values[rows]].astype(values.dtype)
        elif rows is not None and len(values) == len(rows):
            changed[spec.name] = values[rows]
    return replace(truth, **changed)
