"""A task as one model embedded it: what geometry looks at, and what sweeps change and score again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from embark import evaluators
from embark.evaluators.similarity import as_float32, has_token_vectors, tokens_of
from embark.items import as_items, content_numbers, part_numbers, take
from embark.items.lazy_items import take_ids
from embark.results.schema import PART, PARTNER
from embark.stats.shared import partners
from embark.types import MODALITIES, Array, Scores, Side, Task, Truth

Change = Callable[[Array], Array]  # of (n, dim) float32 rows


@dataclass(frozen=True)
class EmbeddedPart:
    """One split and subset: its truth, and a matrix of vectors for each side, read when it is needed."""

    split: str
    subset: str
    evaluator: str
    truth: Truth
    vectors: Mapping[str, Any]
    params: Mapping[str, Any]
    ids: Mapping[str, Sequence[str]]
    modalities: Mapping[str, str]  # side → "text", "image", "text+image"
    sides: Mapping[str, Side] = field(default_factory=dict)  # the items themselves, where they are at hand

    def scores(self) -> Scores:
        """The evaluator's scores of the vectors."""
        return evaluators.evaluate(self.evaluator, self.truth, self.vectors, self.params)

    def items(self, scores: Scores) -> dict[str, Any]:
        """The items that each outcome stands on, see `item_columns`."""
        return item_columns({**self.ids, **self.sides}, self.truth, scores)

    def changed(self, change: Change) -> EmbeddedPart:
        """The part with every vector changed."""
        return replace(self, vectors={side: changed(vectors, change) for side, vectors in self.vectors.items()})


@dataclass(frozen=True)
class Embedded:
    """A task with all its parts, and notes on what was left out."""

    model: str
    task: Task
    parts: tuple[EmbeddedPart, ...]
    notes: tuple[str, ...] = ()

    @property
    def dim(self) -> int:
        """The dimension of its vectors."""
        return int(np.shape(self._first[0])[-1])

    @property
    def itemsize(self) -> int:
        """The size of a stored number in bytes."""
        return int(np.dtype(getattr(self._first, "dtype", np.float32)).itemsize)

    @property
    def tokens(self) -> float:
        """The mean number of vectors per item: 1, except for late interaction."""
        if not has_token_vectors(self._first):
            return 1.0
        sides = [vectors for part in self.parts for vectors in part.vectors.values()]
        return sum(map(tokens_of, sides)) / sum(map(len, sides))

    @property
    def _first(self) -> Any:
        return next(iter(self.parts[0].vectors.values()))

    def changed(self, change: Change) -> Embedded:
        """The task with every vector changed."""
        return replace(self, parts=tuple(part.changed(change) for part in self.parts))

    def under(self, **params: Any) -> Embedded:
        """The task with other parameters of its evaluator."""
        return replace(self, parts=tuple(replace(part, params={**part.params, **params}) for part in self.parts))


def item_columns(sides: Mapping[str, Side | Sequence[str]], truth: Truth, scores: Scores) -> dict[str, Any]:
    """The items that each outcome stands on: `id` and `content` (a hash, the same for every model) of its own, and
    those of a `partner`: the other half of a pair, or the document that answers a query.

    Sides of ids alone tell no contents.
    """
    columns = _named(sides[scores.unit], scores.rows)
    partner = partners(truth, scores.rows)
    if partner is not None:
        side, rows = partner
        of_partner = _named(sides[side], rows)
        columns |= {f"partner{'' if name == 'id' else f'_{name}'}": column for name, column in of_partner.items()}
    return columns


def _named(side: Side | Sequence[str], rows: Array) -> dict[str, Any]:
    """The ids and contents of items."""
    if not isinstance(side, Side):
        return {"id": take_ids(side, rows)}
    return {"id": take_ids(side.ids, rows), "content": content_numbers(side.items, rows).astype(np.int64)}


def part_columns(sides: Mapping[str, Side], truth: Truth, scores: Scores) -> dict[str, Any]:
    """The identities of the parts of the items that each outcome stands on, as lists of numbers by modality: questions
    on one picture have the same number in `part_image`. Those of a partner begin with `partner_`.

    Items of one part need no columns: `content` is the identity of that part.
    """
    columns = _parts(sides[scores.unit], scores.rows)
    if (partner := partners(truth, scores.rows)) is not None:
        side, rows = partner
        columns |= {f"{PARTNER}{name}": column for name, column in _parts(sides[side], rows).items()}
    return columns


def _parts(side: Side, rows: Array) -> dict[str, Any]:
    """The identities of the parts of items by modality; none where all items have one part."""
    if not as_items(side.items).several_parts():
        return {}
    distinct, places = np.unique(rows, return_inverse=True)
    of_items = list(part_numbers(take(side.items, distinct)))
    columns: dict[str, Any] = {}
    for modality in MODALITIES if any(len(parts) > 1 for parts in of_items) else ():
        lists = [[number for kind, number in parts if kind == modality] for parts in of_items]
        if any(lists):
            columns[f"{PART}{modality}"] = pa.array(lists, pa.list_(pa.int64())).take(pa.array(places.reshape(-1)))
    return columns


def changed(vectors: Any, change: Change) -> Any:
    """The vectors after a change, which is applied as they are read, so that a large corpus is never in memory."""
    if has_token_vectors(vectors):
        return [change(as_float32(tokens)) for tokens in vectors[:]]
    return _Changed(vectors, change)


class _Changed:
    def __init__(self, vectors: Any, change: Change) -> None:
        self.vectors = vectors
        self.change = change

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, index: Any) -> Array:
        rows = as_float32(self.vectors[index])
        return self.change(rows) if rows.ndim == 2 else self.change(rows[None])[0]


def sample(items: int, most: int) -> Array:
    """Positions of at most so many of the items, always the same ones, in order."""
    if items <= most:
        return np.arange(items)
    return np.sort(np.random.default_rng(0).permutation(items)[:most])


def sampled(vectors: Any, most: int) -> Array:
    """The vectors (or tokens) of at most so many items, as float32."""
    rows = vectors[sample(len(vectors), most)] if not isinstance(vectors, list) else vectors[:most]
    return as_float32(np.concatenate(rows) if isinstance(rows, list) else rows)
