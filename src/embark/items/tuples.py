"""Tuples of one meaning as text, image, video and audio: their hard negatives, and the mixed lists of queries."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from PIL import Image

from embark import items
from embark.items.decoding import on_white, open_image
from embark.types import Dataset, Item, Modality, Qrels

BITS = 3  # of 64 in which the hashes of near-duplicate pictures may differ


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


Alike = Callable[[str, str], bool]  # whether two ids are near-duplicates, of which neither is a negative of the other


def negatives_by_category(
    queries: Iterable[str], categories: Mapping[str, Collection[str]], count: int, alike: Alike
) -> dict[str, tuple[str, ...]]:
    """The hard negatives of each query: the `count` others that share most categories, without those that are `alike`.

    Of others that share equally many, a lot decides that is the same in every run.
    """
    sets = {id: frozenset(of_id) for id, of_id in categories.items()}

    def order(id: str) -> list[str]:
        return sorted(sets, key=lambda other: (-len(sets[id] & sets[other]), _lot(id, other), other))

    return {id: first_negatives(id, order(id), count, alike) for id in queries}


def first_negatives(id: str, order: Iterable[str], count: int, alike: Alike) -> tuple[str, ...]:
    """The first `count` others in an order, hardest first, that are not `alike`."""
    return tuple(islice((other for other in order if other != id and not alike(id, other)), count))


def picture_hash(picture: bytes) -> int:
    """64 bits: whether each pixel of a small grey copy is brighter than the one to its right."""
    grey = np.asarray(on_white(open_image(picture)).convert("L").resize((9, 8), Image.Resampling.BOX))
    return int.from_bytes(np.packbits(grey[:, :-1] > grey[:, 1:]).tobytes(), "big")


def look_alike(picture: int, other: int) -> bool:
    """Whether two pictures are near-duplicates, by their hashes."""
    return (picture ^ other).bit_count() <= BITS


def _lot(id: str, other: str) -> int:
    return zlib.crc32(f"{id}\0{other}".encode("utf-8", "surrogatepass"))
