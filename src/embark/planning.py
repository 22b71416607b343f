"""Plans what to embed: the vectors that tasks need from an encoder, without those in the store.

Every item of every task has the key of its vector. Equal keys are one vector, so an item that ten tasks share is
embedded once. Pure: nothing is read, embedded or written here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from operator import eq
from typing import overload

import numpy as np

from embark.catalogue import group_values
from embark.items import KEY, Kinds, as_items, as_keys, first_positions, hash_content, key, plain_keys
from embark.items import take as take_items
from embark.items.lazy_items import Chained
from embark.models.encoder import Encoder, render_item, renders_plainly
from embark.protocol import vector_space
from embark.types import Array, Dataset, Item, Rendered, Style, Task, role_of

BLOCK_NEEDS = 1024  # needs that are made at a time
LETTERS = {"t": "text", "i": "image", "v": "video", "a": "audio"}  # of directions: it2t
SIDES = {  # that tasks of an evaluator embed
    "retrieval": ("query", "document"),
    "choice": ("query", "document"),
    "zeroshot": ("item", "prompt"),
    "pairs": ("image", "text"),
    "probe": ("train", "test"),
    "multilabel": ("train", "test"),
    "sts": ("left", "right"),
    "pair-classification": ("left", "right"),
}


@dataclass(frozen=True)
class Demand:
    """The vectors that one task needs, for one split and subset: by side, the key of every item."""

    task: Task
    split: str
    subset: str
    data: Dataset
    keys: Mapping[str, Array]


@dataclass(slots=True)  # not frozen: millions are made, in a third of the time
class Need:
    """A vector to compute: its key, the item, instruction and style to embed it with, and where the item stands.

    Of several places that need the vector, this is the first: the plan's `demand`, its `side`, and the `row` in it.
    """

    key: bytes
    item: Item
    side: str
    instruction: str | None
    demand: int
    row: int
    style: Style | None = None

    def render(self, encoder: Encoder) -> Rendered:
        """Exactly what the encoder will see."""
        return render_item(encoder, self.item, role_of(self.side), self.instruction, self.style)


@dataclass(frozen=True)
class Count:
    """How many items one demand has (or all demands together), and how many vectors they need."""

    items: int = 0
    unique: int = 0  # distinct vectors
    stored: int = 0  # distinct vectors in the store
    first: int = 0  # distinct vectors that no earlier demand needs
    missing: int = 0  # of `first`, those to embed

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


class Needs(Sequence[Need]):
    """Vectors to compute, as rows of the sides of demands: a need is made when it is asked for.

    `positions` count the items of all demands, one side after another.
    """

    def __init__(self, demands: Sequence[Demand], positions: Array) -> None:
        self.demands = demands
        self._sides = [(number, side) for number, demand in enumerate(demands) for side in demand.keys]
        self._items = Chained(
            [as_items(demands[number].data.sides[side].items) for number, side in self._sides], positions
        )

    def __len__(self) -> int:
        return len(self._items)

    def take(self, rows: Array | slice) -> Needs:
        """The needs at these places of the sequence."""
        taken = copy(self)
        taken._items = self._items.take(rows)
        return taken

    @property
    def keys(self) -> Array:
        """The key of each."""
        keys = np.empty(len(self), KEY)
        for rows, number, side, places in self.by_side():
            keys[rows] = self.demands[number].keys[side][places]
        return keys

    @property
    def numbers(self) -> Array:
        """The number of the demand of each."""
        numbers = np.empty(len(self), np.int64)
        for rows, number, _, _ in self.by_side():
            numbers[rows] = number
        return numbers

    @property
    def styles(self) -> list[Style | None]:
        """Those in which the items are embedded."""
        return [self.demands[number].task.style for _, number, _, _ in self.by_side()]

    def texts(self) -> list[str] | None:
        """The text of each item, where each is one text."""
        return self._items.texts()

    def pictures(self) -> list[tuple[bytes | memoryview, int]] | None:
        """The bytes and the orientation of each item, where each is one picture in a file with many."""
        return self._items.pictures()

    def kinds(self) -> Kinds:
        """The kinds of the items to embed."""
        return self._items.kinds()

    def lengths(self) -> Array:
        """The number of characters in the texts of each item."""
        return self._items.lengths()

    def by_side(self) -> Iterator[tuple[Array, int, str, Array]]:
        """By demand (its number) and side: places in this sequence, and the rows of the side that they stand for."""
        for rows, side, places in self._items.by_sequence():
            yield rows, *self._sides[side], places

    @overload
    def __getitem__(self, row: int) -> Need: ...
    @overload
    def __getitem__(self, row: slice) -> Needs: ...
    def __getitem__(self, row: int | slice) -> Need | Needs:
        if isinstance(row, slice):
            return self.take(row)
        [need] = self.take(np.array([range(len(self))[row]]))
        return need

    def __iter__(self) -> Iterator[Need]:
        for start in range(0, len(self), BLOCK_NEEDS):
            yield from self.take(slice(start, start + BLOCK_NEEDS))._list()

    def _list(self) -> list[Need]:
        needs: dict[int, Need] = {}
        for rows, number, side, places in self.by_side():
            demand = self.demands[number]
            instruction = demand.task.instruction(role_of(side), demand.subset)
            items = take_items(demand.data.sides[side].items, places)
            keys = demand.keys[side][places].tolist()
            for row, vector_key, item, place in zip(rows.tolist(), keys, items, places.tolist(), strict=True):
                needs[row] = Need(vector_key, item, side, instruction, number, place, demand.task.style)
        return [needs[row] for row in range(len(needs))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))


def keys_of(needs: Sequence[Need]) -> Array:
    """The key of each need."""
    return needs.keys if isinstance(needs, Needs) else as_keys(need.key for need in needs)


def take(needs: Sequence[Need], rows: Array) -> Sequence[Need]:
    """The needs at these places."""
    return needs.take(rows) if isinstance(needs, Needs) else [needs[row] for row in rows.tolist()]


@dataclass(frozen=True)
class Plan:
    """Demands, and the vectors to compute before they can be scored."""

    demands: tuple[Demand, ...]
    counts: tuple[Count, ...]  # of each demand
    needs: Needs

    @property
    def total(self) -> Count:
        """The count of all demands together; a vector that several need is one distinct vector."""
        total = sum(self.counts, Count())
        return Count(total.items, total.first, total.first - total.missing, total.first, total.missing)


def task_demand(task: Task, split: str, subset: str, data: Dataset, encoder: Encoder) -> Demand:
    """The demand of a task for this encoder: the keys of all its items."""
    keys = {name: item_keys(task, subset, name, side.items, encoder) for name, side in data.sides.items()}
    return Demand(task, split, subset, data, keys)


def item_keys(task: Task, subset: str, side: str, items: Sequence[Item], encoder: Encoder) -> Array:
    """The keys that the items of a side of a subset have for this encoder."""
    space = vector_space(encoder.card)
    role = role_of(side)
    instruction = task.instruction(role, subset)
    modalities = {modality for names in as_items(items).kinds().names for modality in names}
    if renders_plainly(encoder, task.style, modalities):
        return plain_keys(space, items)
    rendered = (render_item(encoder, item, role, instruction, task.style) for item in hash_content(items))
    return as_keys(key(space, seen) for seen in rendered)


def plan(demands: Iterable[Demand], stored: Callable[[Array], Array]) -> Plan:
    """The vectors that the demands need, without those in the store; each vector counts for its first demand.

    `stored` returns, for an array of keys, which of them are in the store.
    """
    demands = tuple(demands)
    keys = np.concatenate([np.empty(0, KEY), *(keys for demand in demands for keys in demand.keys.values())])
    first = first_positions(keys)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    is_stored = np.zeros(len(keys), bool)
    is_stored[distinct] = stored(keys[distinct])
    counts = []
    start = 0
    for demand in demands:
        end = start + sum(map(len, demand.keys.values()))
        own = distinct[slice(*np.searchsorted(distinct, [start, end]))]
        shared = np.unique(first[start:end][first[start:end] < start])  # vectors of earlier demands
        in_store = int(is_stored[own].sum())
        known = in_store + int(is_stored[shared].sum())
        counts.append(Count(end - start, len(own) + len(shared), known, len(own), len(own) - in_store))
        start = end
    return Plan(demands, tuple(counts), Needs(demands, distinct[~is_stored[distinct]]))


def reading_order(tasks: Iterable[Task]) -> list[Task]:
    """The tasks so that those of one data set, or with a pool in common, follow each other, and small ones come first.

    Tasks whose rows state no sizes keep their place at the beginning.
    """
    groups: list[tuple[set[str], list[Task]]] = []
    for task in tasks:
        names = {task.source.id, *(pool.id for pool in task.pools)}
        joined = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        shared = names.union(*(group[0] for group in joined))
        groups.append((shared, [*(member for _, members in joined for member in members), task]))

    def size(members: Iterable[Task]) -> int:
        return sum({pool.id: pool.items for task in members for pool in task.pools}.values())

    ordered = sorted((members for _, members in groups), key=size)
    return [task for members in ordered for task in sorted(members, key=lambda task: size([task]))]


@dataclass(frozen=True)
class Saving:
    """A pool of items that several tasks share."""

    pool: str
    times: int  # number of uses
    saved: int  # embeddings saved, compared with embedding each task separately
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Outline:
    """How much a run would embed, as far as rows tell, for a model that embeds an item alike in every role."""

    items: int  # of all tasks
    unique: int  # distinct ones
    savings: tuple[Saving, ...]  # largest first
    unknown: tuple[str, ...]  # tasks whose rows state no sizes


def outline(tasks: Iterable[Task]) -> Outline:
    """A plan from the pools that rows state, without any data: pools of the same id are the same items."""
    tasks = tuple(tasks)
    uses = group_values((pool.id, (task.name, pool.items)) for task in tasks for pool in task.pools)
    sizes = {pool: max(items for _, items in pool_uses) for pool, pool_uses in uses.items()}
    used = {pool: sum(items for _, items in pool_uses) for pool, pool_uses in uses.items()}
    savings = [
        Saving(pool, len(pool_uses), used[pool] - sizes[pool], tuple(dict.fromkeys(name for name, _ in pool_uses)))
        for pool, pool_uses in uses.items()
        if len(pool_uses) > 1
    ]
    return Outline(
        items=sum(used.values()),
        unique=sum(sizes.values()),
        savings=tuple(sorted(savings, key=lambda saving: -saving.saved)),
        unknown=tuple(task.name for task in tasks if not task.pools),
    )


@dataclass(frozen=True)
class Workload:
    """How many items of each kind tasks embed, as far as their rows tell; a kind names the parts of an item.

    Parts are text (a query, a caption or a label), passage (a longer text), image, video and audio.
    """

    by_task: Mapping[tuple[str, ...], int]  # every task separately
    once: Mapping[tuple[str, ...], int]  # every distinct item once, for a model that embeds it alike in every role
    uncounted: Mapping[str, tuple[str, ...]]  # task → the sides whose sizes its row does not state; of all, none


def workload(tasks: Iterable[Task]) -> Workload:
    """The items of tasks by kind, from the pools that rows state: pools of the same id are the same items."""
    by_task: Counter[tuple[str, ...]] = Counter()
    distinct: dict[str, tuple[int, tuple[str, ...]]] = {}
    uncounted = {}
    for task in tasks:
        for pool in task.pools:
            kind = _kind(task, pool.side)
            by_task[kind] += pool.items
            distinct[pool.id] = max(distinct.get(pool.id, (0, kind)), (pool.items, kind))
        stated = {pool.side for pool in task.pools}
        missing = tuple(side for side in SIDES.get(task.evaluator, ()) if side not in stated)
        if missing or not stated:
            uncounted[task.name] = missing if stated else ()
    once: Counter[tuple[str, ...]] = Counter()
    for items, kind in distinct.values():
        once[kind] += items
    return Workload(by_task, once, uncounted)


def _kind(task: Task, side: str) -> tuple[str, ...]:
    """The parts of the items on a side; of a row that does not tell, all of its modalities."""
    direction = re.fullmatch("([tiva]+)2([tiva]+)", task.tags.get("direction", ""))
    if direction and side in ("query", "document"):
        query, document = direction.groups()
        parts = tuple(LETTERS[letter] for letter in (query if side == "query" else document))
        # What is searched by media alone are captions and labels.
        longer = side == "document" and "t" in query
        return tuple("passage" if longer and part == "text" else part for part in parts)
    media = tuple(modality for modality in task.modalities if modality != "text")
    if side in ("prompt", "text") or not media:
        return ("text",)
    return media if side in ("item", "image") else tuple(task.modalities)
