"""Plans what to embed: the vectors that tasks need from an encoder, without those in the store.

Every item of every task has the key of its vector. Equal keys are one vector, so an item that ten tasks share is
embedded once. Pure: nothing is read, embedded or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from embark.catalogue import group_values
from embark.data.items import as_keys, key
from embark.models.encoder import Encoder, fingerprint, render_item
from embark.types import Array, Dataset, Item, Rendered, Style, Task, role_of


@dataclass(frozen=True)
class Demand:
    """The vectors that one task needs, for one split and subset: by side, the key of every item."""

    task: Task
    split: str
    subset: str
    data: Dataset
    keys: Mapping[str, Array]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Plan:
    """Demands, and the vectors to compute before they can be scored."""

    demands: tuple[Demand, ...]
    counts: tuple[Count, ...]  # of each demand
    needs: tuple[Need, ...]

    @property
    def total(self) -> Count:
        """The count of all demands together; a vector that several need is one distinct vector."""
        total = sum(self.counts, Count())
        return Count(total.items, total.first, total.first - total.missing, total.first, total.missing)


def task_demand(task: Task, split: str, subset: str, data: Dataset, encoder: Encoder) -> Demand:
    """The demand of a task for this encoder: the keys of all its items."""
    space = fingerprint(encoder.card)

    def keys_of(side: str, items: Sequence[Item]) -> Array:
        role = role_of(side)
        instruction = task.instructions.get(role)
        return as_keys([key(space, render_item(encoder, item, role, instruction, task.style)) for item in items])

    return Demand(task, split, subset, data, {name: keys_of(name, side.items) for name, side in data.sides.items()})


def plan(demands: Iterable[Demand], stored: Callable[[Array], Array]) -> Plan:
    """The vectors that the demands need, without those in the store; each vector counts for its first demand.

    `stored` returns, for an array of keys, which of them are in the store.
    """
    demands = tuple(demands)
    counts: list[Count] = []
    needs: list[Need] = []
    planned: set[bytes] = set()  # keys of earlier demands
    for number, current in enumerate(demands):
        places: dict[bytes, tuple[str, int]] = {}  # distinct key → its first side and row
        for side, keys in current.keys.items():
            for row, vector_key in enumerate(keys.tolist()):
                places.setdefault(vector_key, (side, row))
        is_stored = stored(as_keys(list(places)))
        missing: list[Need] = []
        first = 0
        for (vector_key, (side, row)), present in zip(places.items(), is_stored.tolist(), strict=True):
            if vector_key in planned:
                continue
            first += 1
            if not present:
                item = current.data.sides[side].items[row]
                instruction = current.task.instructions.get(role_of(side))
                missing.append(Need(vector_key, item, side, instruction, number, row, current.task.style))
        items = sum(len(keys) for keys in current.keys.values())
        counts.append(Count(items, len(places), int(is_stored.sum()), first, len(missing)))
        needs += missing
        planned.update(places)
    return Plan(demands, tuple(counts), tuple(needs))


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
