"""Tuples of one meaning as text, image, video and audio: their hard negatives, and the mixed lists of queries."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embark.data import items
from embark.types import Dataset, Item, Modality, Qrels


@dataclass(frozen=True)
class Tuple:
    """One meaning: an item of each modality, and the ids of the tuples that are its hard negatives.

    Without negatives it is no query, but a distractor of others.
    """

    items: Mapping[Modality, Item]
    negatives: tuple[str, ...] = ()


def direction(tuples: Mapping[str, Tuple], query: Modality, target: Modality) -> Dataset:
    """Items of one modality to the item of the same tuple in another.

    The candidates of a query are all items of its tuple, the query itself among them, and all items of its hard
    negatives: one list of every modality.
    """
    queries = {id: entry for id, entry in tuples.items() if entry.negatives}
    listed = dict.fromkeys(member for id, entry in queries.items() for member in (id, *entry.negatives))
    documents = {f"{id}-{kind}": item for id in listed for kind, item in tuples[id].items.items()}
    position = {name: number for number, name in enumerate(documents)}
    rows = [
        (number, position[f"{member}-{kind}"], int((member, kind) == (id, target)))
        for number, (id, entry) in enumerate(queries.items())
        for member in (id, *entry.negatives)
        for kind in tuples[member].items
    ]
    sides = {
        "query": items.side({id: entry.items[query] for id, entry in queries.items()}),
        "document": items.side(documents),
    }
    return Dataset(sides, Qrels(*np.array(rows, np.int64).T))


def negatives_by_category(
    categories: Mapping[str, Collection[str]], count: int, alike: Callable[[str, str], bool] = lambda id, other: False
) -> dict[str, tuple[str, ...]]:
    """The hard negatives of every id: the `count` others that share most categories, without those that are `alike`.

    Of others that share equally many, a lot decides that is the same in every run.
    """
    sets = {id: frozenset(of_id) for id, of_id in categories.items()}

    def order(id: str) -> list[str]:
        return sorted(sets, key=lambda other: (-len(sets[id] & sets[other]), _lot(id, other), other))

    return {id: _first(id, order(id), count, alike) for id in sets}


def negatives_by_order(
    orders: Mapping[str, Sequence[str]], count: int, alike: Callable[[str, str], bool] = lambda id, other: False
) -> dict[str, tuple[str, ...]]:
    """The hard negatives of every id from its others, nearest first."""
    return {id: _first(id, order, count, alike) for id, order in orders.items()}


def _first(id: str, order: Sequence[str], count: int, alike: Callable[[str, str], bool]) -> tuple[str, ...]:
    chosen: list[str] = []
    for other in order:
        if len(chosen) == count:
            break
        if other != id and not alike(id, other):
            chosen.append(other)
    return tuple(chosen)


def _lot(id: str, other: str) -> int:
    return zlib.crc32(f"{id}\0{other}".encode("utf-8", "surrogatepass"))
