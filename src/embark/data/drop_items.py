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
    nobody's average changes silently.
    """
    masks = {role: np.ones(len(side), bool) for role, side in data.sides.items()}  # of the items that stay
    for role, positions in dropped.items():
        if role not in masks:
            raise EmbarkError(f"There is no side '{role}' to leave items out of, only {', '.join(masks)}.")
        if not all(0 <= position < len(masks[role]) for position in positions):
            raise EmbarkError(f"Side '{role}' has {len(masks[role])} items; positions outside it cannot be left out.")
        masks[role][list(positions)] = False
    sides = {
        role: Side(tuple(compress(side.ids, masks[role])), tuple(compress(side.items, masks[role])))
        for role, side in data.sides.items()
    }
    about = {
        role: {fact: tuple(compress(values, masks[role])) for fact, values in facts.items()}
        for role, facts in data.about.items()
    }
    return replace(data, sides=sides, truth=_truth(data.truth, masks), about=about)


def _truth(truth: Truth, masks: Mapping[str, Array]) -> Truth:
    index_masks = [
        masks[spec.metadata["index"]][getattr(truth, spec.name)] for spec in fields(truth) if "index" in spec.metadata
    ]
    # A mask over the table that index fields make up; a sample of several items needs them all.
    whole = [mask.all(axis=tuple(range(1, mask.ndim))) for mask in index_masks]
    rows = np.logical_and.reduce(whole) if whole else None
    changed: dict[str, Any] = {}
    for spec in fields(truth):
        values = getattr(truth, spec.name)
        if not isinstance(values, np.ndarray):
            continue  # class names, and ids that were not given
        if "aligned" in spec.metadata:
            changed[spec.name] = values[masks[spec.metadata["aligned"]]]
        elif "index" in spec.metadata:
            renumbered = np.cumsum(masks[spec.metadata["index"]]) - 1
            changed[spec.name] = renumbered[values[rows]].astype(values.dtype)
        elif rows is not None and len(values) == len(rows):
            changed[spec.name] = values[rows]
    return replace(truth, **changed)
