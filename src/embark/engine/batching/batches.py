"""Which items go into a batch together, and how many: by kind and by cost, at the size that is fastest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from math import prod
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from embark.engine.report import EmbeddingReport
from embark.items import ItemList
from embark.items.decoding import UnreadableMedia
from embark.models.encoder import TextParts
from embark.models.tokens import Tokens
from embark.planning import Need, Needs, keys_of, take
from embark.types import MODALITIES, Array, Content, Modality

FIRST_BATCH = 32
LARGEST_BATCH = 4096  # items, where each costs little; a quarter of that where it costs more than SHORT
SHORT = 128  # tokens of a short text
WORTH_IT = 1.05  # gain in cost a second for which the batch size is doubled again
BATCH_SECONDS = 10.0  # of a batch that does not grow further: progress is to be seen, and a kill is to lose little
PER_BATCH = 0.001  # seconds that a batch takes beside the forward pass: gathering, checking, handing over
FULL = 0.8  # share of the budget from which a batch tells what a full one takes
SMALL_SHARE = 0.125  # share of the budget up to which a batch is rather filled than even
MOST_PADDING = 0.1  # of a batch that is larger than that, as a share of its items' own cost
WINDOW = 8  # batches of prepared items to choose the next one from; padding falls with it
UNKNOWN_COST = 3 * 224 * 224  # of what only the model itself makes numbers of: an undecoded or unscaled picture
MOST_FILES = 256 * UNKNOWN_COST  # in larger batches, the device waits longer for the first and the last of them
HOPELESS = 256  # items of a kind without one valid vector, after which the others of that kind are not tried


# ── what an item costs ───────────────────────────────────────────────────────────────────────────────────────────────


def cost(value: Any) -> int:
    """What a prepared item costs, relative to others of its kind: its tokens, else the elements of its largest array.

    The parts of an item and the frames of a film add up.
    """
    return max(1, _cost(value))


def costs_and_shapes(values: Sequence[Any]) -> tuple[Array, list[tuple[int, ...]]]:
    """The cost of each prepared item, and the shape of its first array, by which items of equal cost are told apart;
    no shapes for texts and tokens.
    """
    if isinstance(values, TextParts):
        return np.maximum(1, values.tokens.lengths), []
    if _are_of_towers(values):
        values = [value[0][1] for value in values]
    if _are_flat(values):
        return np.maximum(1, np.fromiter(map(len, values), np.int64, len(values))), []
    return np.fromiter(map(cost, values), np.int64, len(values)), list(map(_shape, values))


def _are_flat(values: Sequence[Any]) -> bool:
    """Whether all are texts, or all lists of tokens: these are many, and are measured at once."""
    types = set(map(type, values))
    return types == {str} or (types == {list} and {type(value[0]) for value in values if value} <= {int})


def _are_of_towers(values: Sequence[Any]) -> bool:
    """Whether all are one part with its modality, as towers take it."""
    if set(map(type, values)) != {list} or set(map(len, values)) != {1}:
        return False
    parts = [value[0] for value in values]
    if set(map(type, parts)) != {tuple} or set(map(len, parts)) != {2}:
        return False
    kinds = [part[0] for part in parts]
    return set(map(type, kinds)) == {str} and set(kinds) <= set(MODALITIES)


def _is_of_tower(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and type(value[0]) is str and value[0] in MODALITIES


def _cost(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (list, tuple)):
        if _is_of_tower(value):
            return _cost(value[1])
        if isinstance(value, list) and value and type(value[0]) is int:
            return len(value)
        return sum(map(_cost, value))
    if isinstance(value, Mapping):
        return max(map(_cost, value.values()), default=0)
    if isinstance(value, Content):
        return _cost(value.value)
    if (shape := getattr(value, "shape", None)) is not None:
        return int(prod(shape))
    if value is None or isinstance(value, (int, float)):
        return 0
    if is_dataclass(value) and not isinstance(value, type):
        return sum(_cost(getattr(value, part.name, None)) for part in fields(value))
    return UNKNOWN_COST


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, Mapping):
        return next(filter(None, map(_shape, value.values())), ())
    if isinstance(value, (list, tuple)):
        flat = not value or type(value[0]) is int
        return () if flat else next(filter(None, map(_shape, value)), ())
    return tuple(getattr(value, "shape", ()))


# ── how much goes into a batch ───────────────────────────────────────────────────────────────────────────────────────


@dataclass
class BatchSize:
    """The size of the next batch: doubles while that is faster, halves for good when memory runs out.

    It is a budget of cost, padding included, 0 before anything is known; if `fixed`, it is a number of items. `unit` is
    the mean cost of an item that waits.
    """

    budget: int = 0
    limit: int | None = None
    best: float = 0.0  # cost a second
    growing: bool = True
    fixed: bool = False
    unit: int = 1
    fastest: int = 0  # the budget at the best speed
    warm: bool = True  # if not, the first batch says nothing about speed
    doubted: bool = False  # whether the latest batch was no faster; one may have been disturbed, so a second decides
    _lock: Any = field(default_factory=Lock, repr=False, compare=False)

    @property
    def now(self) -> int:
        """The number of items in the next batch, if they cost as much as others."""
        if self.fixed or not self.budget:
            return self.budget or FIRST_BATCH
        return max(1, min(largest_batch(self.unit), self.budget // self.unit))

    def cost(self, batch: Batch) -> int:
        """The part of the budget that a batch takes."""
        return len(batch) if self.fixed else batch.padded

    def is_tried_by(self, batch: Batch) -> bool:
        """Whether the time of this batch decides if the size grows: it should be alone on the device."""
        return self.growing and self.cost(batch) >= FULL * self.budget

    def record_time(self, taken: int, seconds: float) -> None:
        """Record that a batch which took so much of the budget was done in `seconds`."""
        with self._lock:
            if not self.growing or taken < FULL * self.budget:
                return
            if not self.warm:
                self.warm = True
                return
            rate = taken / (seconds + PER_BATCH)
            faster = rate > WORTH_IT * self.best
            self.best = max(rate, self.best)
            if faster:
                self.fastest = self.budget
                self.growing = self.budget != self.limit and seconds < BATCH_SECONDS
                if self.growing:
                    self.budget = min(2 * self.budget, self.limit or 2 * self.budget)
            else:
                self.growing = not self.doubted
            self.doubted = not faster

    def record_out_of_memory(self, taken: int) -> None:
        """Record that memory did not suffice for a batch which took so much of the budget."""
        with self._lock:
            self.budget = self.limit = max(1, min(self.budget, taken // 2))
            self.fastest = self.budget
            self.growing = False


def fixed_size(items: int) -> BatchSize:
    """Batches of so many items."""
    return BatchSize(items, items, growing=False, fixed=True)


def largest_batch(unit: int) -> int:
    """The most items that a batch may have, by the cost of an item."""
    return LARGEST_BATCH if unit <= SHORT else LARGEST_BATCH // 4


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Ready(NamedTuple):
    """Prepared items: their places among the needs, values (or the errors that they are unreadable), and bytes."""

    rows: Array
    values: Sequence[Any]
    sizes: Array

    def part(self, places: slice) -> Ready:
        """Some of the items."""
        return Ready(self.rows[places], self.values[places], self.sizes[places])


@dataclass
class Batch:
    """Items to embed together: needs, prepared values and costs, in one order; and by key, why others do not decode."""

    needs: Sequence[Need]
    values: Sequence[Any]
    costs: Array
    unreadable: dict[bytes, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.needs)

    @property
    def padded(self) -> int:
        """The cost of the batch where every item is padded to the dearest."""
        return len(self.costs) * int(self.costs.max(initial=0))

    def part(self, rows: Sequence[int]) -> Batch:
        """The items of these rows."""
        places = np.array(rows, np.int64)
        return Batch(take(self.needs, places), _chosen(self.values, places), self.costs[places])


def _chosen(values: Sequence[Any], places: Array) -> Sequence[Any]:
    """The prepared values at these places."""
    return values.take(places) if isinstance(values, TextParts) else [values[place] for place in places.tolist()]


def _joined(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """All prepared values of the parts, one after the other."""
    texts = [part for part in parts if isinstance(part, TextParts)]
    if texts and sum(map(len, texts)) == sum(map(len, parts)):
        return TextParts(Tokens.joined(part.tokens for part in texts))
    return list(chain.from_iterable(parts))


class Window:
    """Prepared items of `needs` from which batches are cut: items of like cost go together, so that little is padded.

    A sweep goes from the cheap to the dear and begins again; what comes after it has passed waits for the next one.
    Items of one cost do not wait for others, and batches of a fixed size are taken as the items come. Items that are
    `alike` have one cost, whatever they were prepared to: the model itself brings pictures to one size.
    """

    def __init__(
        self, needs: Sequence[Need], ready: Iterator[Ready], size: BatchSize, most_bytes: int, alike: bool = False
    ) -> None:
        self._needs = needs
        self._alike = alike
        if alike and not size.fixed:
            size.limit = min(size.limit or MOST_FILES, MOST_FILES)
            size.budget = min(size.budget, size.limit)
        self._ready = ready
        self._size = size
        self._most_bytes = most_bytes
        self._values: Sequence[Any] = []  # in the order of their costs, unless the size is fixed
        self._rows = np.empty(0, np.int64)  # of these values: the place of each in `needs`
        self._costs = np.empty(0, np.int64)
        self._shapes = np.empty(0, np.int64)  # numbers of shapes
        self._numbers: dict[tuple[int, ...], int] = {(): 0}  # shape → number
        self._sizes = np.empty(0, np.int64)  # bytes
        self._unreadable: dict[bytes, str] = {}
        self._bytes = 0
        self._begun = Ready(self._rows, [], self._sizes)  # what is left of the chunk that was begun
        self._batches = 0
        self._coming = True  # whether more items may come
        self._reached = 0  # the cost up to which the sweep has come

    def next_batch(self) -> Batch | None:
        """The next batch; None when there are no more items."""
        size = self._size
        self._draw(size.now if size.fixed or not self._values else self._items_for(1))
        if not size.fixed and self._values:
            size.budget = size.budget or FIRST_BATCH * int(np.median(self._costs))
            if self._costs[0] != self._costs[-1]:
                self._draw(self._items_for(min(WINDOW, 1 + self._batches)))  # the first do not wait for many items
            size.unit = max(1, round(self._costs.mean()))
        if not self._values and not self._unreadable:
            return None
        self._batches += 1
        return self._take(*self._cut())

    def _items_for(self, batches: int) -> int:
        """The number of items that fill so many batches, if others cost as much as these."""
        mean = float(self._costs.mean())
        return batches * max(1, min(largest_batch(round(mean)), int(self._size.budget / mean)))

    def _draw(self, items: int) -> None:
        """Draw prepared items until there are so many, or their bytes are enough."""
        drawn = [self._begun.part(slice(0))]
        count = len(self._values)
        while count < items and self._bytes < self._most_bytes:
            if not self._begun.values:
                chunk = next(self._ready, None)
                if chunk is None:
                    self._coming = False
                    break
                self._begun = chunk
            filled = np.searchsorted(np.cumsum(self._begun.sizes), self._most_bytes - self._bytes)
            end = min(items - count, int(filled) + 1)
            drawn.append(self._begun.part(slice(end)))
            self._begun = self._begun.part(slice(end, None))
            self._bytes += int(drawn[-1].sizes.sum())
            count += len(drawn[-1].values)
        rows = np.concatenate([part.rows for part in drawn])
        sizes = np.concatenate([part.sizes for part in drawn])
        values = _joined([part.values for part in drawn])
        if isinstance(values, list) and any(issubclass(kind, UnreadableMedia) for kind in set(map(type, values))):
            readable = np.array([not isinstance(value, UnreadableMedia) for value in values])
            keys = keys_of(take(self._needs, rows[~readable])).tolist()
            errors = (str(value) for value in values if isinstance(value, UnreadableMedia))
            self._unreadable |= dict(zip(keys, errors, strict=True))
            rows, sizes = rows[readable], sizes[readable]
            values = [value for value in values if not isinstance(value, UnreadableMedia)]
        if values:
            self._add(rows, values, sizes)

    def _add(self, rows: Array, values: Sequence[Any], sizes: Array) -> None:
        self._values = _joined([self._values, values])
        self._rows = np.append(self._rows, rows)
        self._sizes = np.append(self._sizes, sizes)
        of_items, shapes = (np.full(len(values), UNKNOWN_COST), []) if self._alike else costs_and_shapes(values)
        self._costs = np.append(self._costs, of_items)
        numbers = [self._numbers.setdefault(shape, len(self._numbers)) for shape in shapes]
        self._shapes = np.append(self._shapes, numbers or np.zeros(len(values), np.int64))
        if self._size.fixed or ((self._costs[:-1] <= self._costs[1:]).all() and not self._shapes.any()):
            return  # the usual case: texts come in the order of their lengths
        order = np.lexsort((self._shapes, self._costs))  # stable, and equal shapes stand together
        self._values = _chosen(self._values, order)
        self._rows, self._sizes = self._rows[order], self._sizes[order]
        self._costs, self._shapes = self._costs[order], self._shapes[order]

    def _cut(self) -> tuple[int, int]:
        """The first item of the next batch, and the one after its last."""
        if self._size.fixed or not self._values:
            return 0, self._size.now
        budget = self._size.budget
        start = int(np.searchsorted(self._costs, self._reached))
        dear = self._costs[start:]
        if not len(dear) or (self._coming and len(dear) * int(dear[-1]) < SMALL_SHARE * budget):
            start = 0  # the few that are left wait for more of their like
        ahead = self._costs[start : start + largest_batch(int(self._costs[start]))]
        padded = ahead * np.arange(1, len(ahead) + 1)
        even = padded <= (1 + MOST_PADDING) * np.cumsum(ahead)
        fitting = np.flatnonzero((padded <= budget) & (even | (padded <= SMALL_SHARE * budget)))
        return start, start + (int(fitting[-1]) + 1 if len(fitting) else 1)

    def _take(self, start: int, end: int) -> Batch:
        """The batch of these items, which leave the window."""
        taken = slice(start, end)
        unreadable = self._unreadable
        batch = Batch(take(self._needs, self._rows[taken]), self._values[taken], self._costs[taken], unreadable)
        if len(batch):
            self._bytes -= int(self._sizes[taken].sum())
            self._reached = int(batch.costs[-1])
        self._values = _joined([self._values[:start], self._values[end:]])
        self._rows, self._sizes = np.delete(self._rows, taken), np.delete(self._sizes, taken)
        self._costs, self._shapes = np.delete(self._costs, taken), np.delete(self._shapes, taken)
        self._unreadable = {}
        return batch


# ── kinds of items ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Kind:
    """The items of one kind: those to embed, the size of their batches, and what became of them so far."""

    needs: Sequence[Need]
    size: BatchSize
    modalities: tuple[Modality, ...]  # of each of its items
    done: int = 0
    seconds: float = 0.0
    valid: int = 0
    invalid: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the model returned many invalid vectors for it, and no valid one."""
        return self.invalid >= HOPELESS and not self.valid

    def give_up(self, report: EmbeddingReport) -> None:
        """Report the items that were not tried like the others of their kind."""
        reason = next(report.invalid[need.key] for need in self.needs if need.key in report.invalid)
        for need in self.needs:
            if need.key not in report.unreadable:
                report.invalid.setdefault(need.key, reason)


def first_batches_first(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Sequence[Need]]]:
    """The items to embed, in parts; a few of each kind come first and tell what the others will cost.

    Not those of a single kind where the size of its batches is known.
    """
    kinds = [kind for kind in kinds if kind.needs]
    samples = {}
    for number, kind in enumerate(kinds):
        if len(kinds) == 1 and kind.size.budget:
            break
        count = min(FIRST_BATCH, kind.size.now)
        samples[number] = np.arange(0, len(kind.needs), max(1, len(kind.needs) // count))[:count]
        yield kind, take(kind.needs, samples[number])
    for number, kind in enumerate(kinds):
        if rest := take(kind.needs, np.delete(np.arange(len(kind.needs)), samples.get(number, []))):
            yield kind, rest


def seconds_left(kinds: Sequence[Kind]) -> float:
    """The time for all other items, by what an item of their kind took; a kind that has not begun costs the most."""
    prices = [kind.seconds / kind.done for kind in kinds if kind.done]
    return sum(
        (len(kind.needs) - kind.done) * (kind.seconds / kind.done if kind.done else max(prices)) for kind in kinds
    )


def by_kind(needs: Sequence[Need]) -> list[tuple[tuple[Modality, ...], Sequence[Need]]]:
    """Needs grouped by kind of item: its modalities.

    Short texts come first, so that batches are even and need little padding; what has media stays in its order, in
    which files are read once.
    """
    rows: Needs | ItemList = needs if isinstance(needs, Needs) else ItemList([need.item for need in needs])
    names, numbers = rows.kinds()
    groups = {name: np.flatnonzero(numbers == number) for number, name in enumerate(names)}
    if ("text",) in groups:
        texts = groups["text",]
        groups["text",] = texts[np.argsort(rows.take(texts).lengths(), kind="stable")]
    return [(kind, take(needs, group)) for kind, group in groups.items()]
