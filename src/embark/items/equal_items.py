"""Items of equal content: merged into one, and counted where they stand on both sides of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from embark.items import digest, digests, first_positions
from embark.items.drop_items import without
from embark.items.lazy_items import take_ids
from embark.types import Array, Dataset, Qrels, Split, Task, Truth, role_of

SIDES = ("query", "document", "item", "train", "test")  # a prompt is its class's own


def merge_equal(task: Task, data: Dataset) -> Dataset:
    """The dataset with each content once on a side: the first item has the judgements of all, and its own id.

    Equal items with different labels are left out, and counted: nobody can tell which label is right.
    """
    if any(role_of(name) != name for name in data.sides):
        return data  # items under several conditions differ in some
    first = {name: first_positions(digests(side.items)) for name, side in data.sides.items() if name in SIDES}
    repeated = {name: np.flatnonzero(places != np.arange(len(places))) for name, places in first.items()}
    if not any(map(len, repeated.values())):
        return data
    changes: dict[str, Any] = {}
    skipped = list(data.skipped)
    for spec in fields(data.truth):
        values = getattr(data.truth, spec.name)
        side = spec.metadata.get("index") or spec.metadata.get("aligned")
        if side not in first or not isinstance(values, np.ndarray):
            continue
        if "index" in spec.metadata:
            changes[spec.name] = first[side][values]
        elif not isinstance(data.truth, Qrels):
            contradictory = _contradictory(values, first[side])
            if len(contradictory):
                repeated[side] = np.union1d(repeated[side], contradictory)
                skipped.append(_contradiction(data, side, values, contradictory))
    truth: Truth = replace(data.truth, **changes)
    truth = _once(truth) if isinstance(truth, Qrels) else truth
    data = replace(data, truth=truth, skipped=tuple(skipped))
    merged = without(data, repeated)
    counts = {f"equal items of side '{name}'": len(rows) for name, rows in repeated.items() if len(rows)}
    return replace(merged, counts={**data.counts, **counts})


def with_overlaps(data: Dataset, params: Mapping[str, Any]) -> Dataset:
    """The dataset with a count of, and a warning about, test items that are training items, and queries in the corpus.

    Queries that are in the corpus by design (the first result, or the one of their own id, is not counted) are none.
    """
    pair = ("test", "train") if isinstance(data.truth, Split) else ("query", "document")
    by_design = params.get("skip_first") or params.get("ignore_identical_ids")
    if by_design or not all(name in data.sides for name in pair):
        return data
    side, other = (data.sides[name] for name in pair)
    first = first_positions(np.concatenate([digests(other.items), digests(side.items)]))[len(other) :]
    shared = take_ids(side.ids, np.flatnonzero(first < len(other)))
    if not shared:
        return data
    if pair[0] == "test":
        name = "test items among the training items"
        warning = f"{len(shared):,} of {len(side):,} test items are training items, too ({shared[0]} first)"
    else:
        name = "queries among the documents"
        warning = f"{len(shared):,} of {len(side):,} queries are in the corpus as they are ({shared[0]} first)"
    return replace(data, skipped=(*data.skipped, warning), counts={**data.counts, name: len(shared)})


def _once(truth: Qrels) -> Qrels:
    """The judgements with each (query, document) pair once; of a pair that is listed twice, the larger grade counts."""
    grades: dict[tuple[int, int], Any] = {}
    for query, document, grade in zip(truth.query.tolist(), truth.document.tolist(), truth.grade.tolist(), strict=True):
        grades[query, document] = max(grade, grades.get((query, document), grade))
    pairs = np.array(list(grades), np.int64).reshape(-1, 2)
    grade = np.array(list(grades.values()), truth.grade.dtype)
    return replace(truth, query=pairs[:, 0], document=pairs[:, 1], grade=grade)


def _contradictory(labels: Array, first: Array) -> Array:
    """The items of which equal ones have other labels."""
    different = (labels != labels[first]).any(axis=tuple(range(1, labels.ndim)))
    return np.flatnonzero(np.isin(first, first[different]))


def _contradiction(data: Dataset, side: str, labels: Array, rows: Array) -> str:
    """A note that such items were left out, with two of them."""
    items = data.sides[side]
    first, *others = rows.tolist()
    content = digest(items.items[first].parts)
    other = next(
        row for row in others if digest(items.items[row].parts) == content and (labels[row] != labels[first]).any()
    )
    both = " and ".join(f"{items.ids[row]} ({_label(data, labels, row)})" for row in (first, other))
    return f"{len(rows):,} items were left out, because equal ones have other labels: {both} first"


def _label(data: Dataset, labels: Array, row: int) -> str:
    names = getattr(data.truth, "names", ())
    numbers = np.flatnonzero(labels[row]) if labels.ndim == 2 else [labels[row]]
    return "'" + ", ".join(names[number] for number in numbers) + "'"
