"""Leaving items out of a dataset, one by one or all but a sample, so that its sides and its truth still agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from itertools import compress
from typing import Any

import numpy as np

from embark.items import take
from embark.items.lazy_items import take_ids
from embark.types import Array, Dataset, EmbarkError, Gold, Matches, Qrels, Side, Split, Truth, role_of


def without(data: Dataset, dropped: Mapping[str, Collection[int] | Array]) -> Dataset:
    """The dataset without the items at these positions, by role.

    Rows of the truth that mention a dropped item go with it. A query that loses all its documents stays, so that
    nobody's average changes silently.
    """
    masks = {role: np.ones(len(side), bool) for role, side in data.sides.items()}  # of the items that stay
    for role, positions in dropped.items():
        if role not in masks:
            raise EmbarkError(f"There is no side '{role}' to leave items out of, only {', '.join(masks)}.")
        rows = np.fromiter(positions, np.int64, len(positions))
        if ((rows < 0) | (rows >= len(masks[role]))).any():
            raise EmbarkError(f"Side '{role}' has {len(masks[role])} items; positions outside it cannot be left out.")
        masks[role][rows] = False
    sides = {role: _remaining(side, masks[role]) for role, side in data.sides.items()}
    about = {
        role: {fact: tuple(compress(values, masks[role])) for fact, values in facts.items()}
        for role, facts in data.about.items()
    }
    return replace(data, sides=sides, truth=_truth(_represented(data.truth, masks), masks), about=about)


def _remaining(side: Side, mask: Array) -> Side:
    rows = np.flatnonzero(mask)
    return side if len(rows) == len(side) else Side(take_ids(side.ids, rows), take(side.items, rows))


def sample(data: Dataset, most: int, listed_only: bool = False) -> tuple[Dataset, int]:
    """The dataset with at most so many of its queries, test items or pairs, and how many it had.

    They are always the same ones, and a smaller sample is part of a larger one. All documents, prompts and training
    items stay; `listed_only` leaves out documents that no query of the sample lists.
    """
    truth = data.truth
    if isinstance(truth, Matches | Gold):
        table = {spec.name: getattr(truth, spec.name) for spec in fields(truth)}
        rows = len(next(iter(table.values())))
        drawn = _drawn(np.arange(rows), most)
        truth = replace(truth, **{name: column[drawn] for name, column in table.items()})
        used = {
            spec.metadata["index"]: np.unique(getattr(truth, spec.name))
            for spec in fields(truth)
            if "index" in spec.metadata
        }
        return _only(replace(data, truth=truth), used), rows
    if isinstance(truth, Qrels):
        positive = np.empty(0, int) if truth.outside is None else np.flatnonzero((truth.outside > 0).any(axis=1))
        queries = np.union1d(truth.query, positive)  # others are not scored
        drawn = _drawn(queries, most)
        if truth.repeated and truth.query_ids is not None:  # the other rows of an id go with the first
            drawn = np.flatnonzero(np.isin(truth.query_ids, truth.query_ids[drawn]))
        documents = {"document": np.unique(truth.document[np.isin(truth.query, drawn)])} if listed_only else {}
        return _only(data, {"query": drawn, **documents}), len(queries)
    role = "test" if isinstance(truth, Split) else "item"
    rows = len(data.sides[role])
    return _only(data, {role: _drawn(np.arange(rows), most)}), rows


def _drawn(rows: Array, most: int) -> Array:
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _only(data: Dataset, rows: Mapping[str, Array]) -> Dataset:
    """The dataset with these items of some roles, under all conditions, and all items of the others."""
    return without(
        data,
        {
            name: np.setdiff1d(np.arange(len(side)), rows[role_of(name)])
            for name, side in data.sides.items()
            if role_of(name) in rows
        },
    )


def _represented(truth: Truth, masks: Mapping[str, Array]) -> Truth:
    """The judgements with, for each id that several rows have, the first row that stays."""
    if not isinstance(truth, Qrels) or truth.query_ids is None or truth.document_ids is None or not truth.repeated:
        return truth
    query = _first_that_stays(truth.query, truth.query_ids, masks["query"])
    document = _first_that_stays(truth.document, truth.document_ids, masks["document"])
    return replace(truth, query=query, document=document)


def _first_that_stays(positions: Array, ids: Array, mask: Array) -> Array:
    """For each position, the first row with its id that stays; the position itself where none does."""
    _, number = np.unique(ids, return_inverse=True)
    rows = np.flatnonzero(mask)[::-1]
    first = np.full(len(number), len(ids))
    first[number[rows]] = rows
    stays = first[number[positions]]
    return np.where(stays == len(ids), positions, stays)


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
