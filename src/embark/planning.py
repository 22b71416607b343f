"""What is missing: tasks × encoder − store. Pure: nothing is read, embedded or written here.

Every item of every task becomes the key of the vector it needs. Equal keys are one vector, whichever tasks ask for it,
so an item that ten tasks share is embedded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from embark.data.items import as_keys, key
from embark.models.encoder import Encoder, fingerprint
from embark.types import Array, Dataset, Item, Rendered, Task, role_of


@dataclass(frozen=True)
class Demand:
    """What one task asks of one encoder, for one split and subset: a key for every item of every side."""

    task: Task
    split: str
    subset: str
    data: Dataset
    keys: Mapping[str, Array]


@dataclass(frozen=True)
class Need:
    """One missing vector: its key, what to embed for it, and the first place that asked for it."""

    key: bytes
    item: Item
    side: str
    instruction: str | None
    demand: int
    row: int

    def render(self, encoder: Encoder) -> Rendered:
        """Exactly what the encoder will see."""
        return encoder.render(self.item, role_of(self.side), self.instruction)


@dataclass(frozen=True)
class Count:
    """How one demand (or all of them) stands: items asked for, distinct ones, those stored, those to embed."""

    items: int
    unique: int
    stored: int  # of the distinct
    first: int  # distinct ones that no earlier demand asked for
    missing: int  # to embed, counted where they are asked for first

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Plan:
    """The demands, and everything that must be embedded before they can be scored."""

    demands: tuple[Demand, ...]
    counts: tuple[Count, ...]  # one a demand
    needs: tuple[Need, ...]

    @property
    def total(self) -> Count:
        """All demands together; an item shared by several is one distinct item."""
        total = sum(self.counts, Count(0, 0, 0, 0, 0))
        return Count(total.items, total.first, total.first - total.missing, total.first, total.missing)


def demand(task: Task, split: str, subset: str, data: Dataset, encoder: Encoder) -> Demand:
    """The keys that a task's items have for this encoder."""
    space = fingerprint(encoder.card)

    def keys_of(side: str, items: Sequence[Item]) -> Array:
        role = role_of(side)
        instruction = task.instructions.get(role)
        return as_keys([key(space, encoder.render(item, role, instruction)) for item in items])

    return Demand(task, split, subset, data, {name: keys_of(name, side.items) for name, side in data.sides.items()})


def plan(demands: Iterable[Demand], stored: Callable[[Array], Array]) -> Plan:
    """Subtract what is stored, and what an earlier demand already asks for."""
    demands, counts, needs = tuple(demands), [], []
    asked: set[bytes] = set()
    for number, each in enumerate(demands):
        places: dict[bytes, tuple[str, int]] = {}  # distinct key → where this demand has it first
        for side, keys in each.keys.items():
            for row, found in enumerate(keys.tolist()):
                places.setdefault(found, (side, row))
        present = stored(as_keys(list(places)))
        new = [
            (found, place, here)
            for (found, place), here in zip(places.items(), present, strict=True)
            if found not in asked
        ]
        missing = [
            Need(found, each.data.sides[side].items[row], side, each.task.instructions.get(role_of(side)), number, row)
            for found, (side, row), here in new
            if not here
        ]
        items = sum(len(keys) for keys in each.keys.values())
        counts.append(Count(items, len(places), int(present.sum()), len(new), len(missing)))
        needs.extend(missing)
        asked.update(places)
    return Plan(demands, tuple(counts), tuple(needs))


@dataclass(frozen=True)
class Saving:
    """A set of items that several tasks ask for: how often, by which tasks, and how many embeddings sharing saves."""

    pool: str
    times: int
    saved: int
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Outline:
    """What rows alone tell about a run, for a model that sees an item the same way in every role."""

    items: int  # task by task
    unique: int  # embedded once
    savings: tuple[Saving, ...]  # largest first
    unknown: tuple[str, ...]  # tasks whose sizes are not all known


def outline(tasks: Iterable[Task]) -> Outline:
    """Plan on the rows' own counts, without any data: pools of the same id are the same items."""
    tasks = tuple(tasks)
    sizes: dict[str, int] = {}
    uses: dict[str, list[tuple[str, int]]] = {}
    for task in tasks:
        for pool in task.pools:
            sizes[pool.id] = max(sizes.get(pool.id, 0), pool.items)
            uses.setdefault(pool.id, []).append((task.name, pool.items))
    savings = [
        Saving(pool, len(used), sum(items for _, items in used) - sizes[pool], tuple(dict.fromkeys(n for n, _ in used)))
        for pool, used in uses.items()
        if len(used) > 1
    ]
    asked = sum(items for used in uses.values() for _, items in used)
    unknown = tuple(task.name for task in tasks if not task.pools)
    return Outline(asked, sum(sizes.values()), tuple(sorted(savings, key=lambda s: -s.saved)), unknown)
