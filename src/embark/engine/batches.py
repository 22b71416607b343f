"""Which items go into a batch together, and how many: by kind and length, at the size that is fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embark.data.items import ItemList
from embark.engine.report import Report
from embark.planning import Need, Needs, take

FIRST_BATCH = 32
LARGEST_BATCH = 1024
WORTH_IT = 1.05  # gain in items a second for which the batch size is doubled again
HOPELESS = 256  # items of a kind without one valid vector, after which the others of that kind are not tried


@dataclass
class BatchSize:
    """The size of the next batch: doubles while that is faster, halves for good when memory runs out."""

    now: int = FIRST_BATCH
    limit: int = LARGEST_BATCH
    best: float = 0.0  # items a second
    growing: bool = True

    def record_time(self, items: int, seconds: float) -> None:
        """Record that a batch of `items` took `seconds`."""
        rate = items / max(seconds, 1e-9)
        if not self.growing or items < self.now:
            return
        self.growing = rate > WORTH_IT * self.best and self.now < self.limit
        self.best = max(rate, self.best)
        if self.growing:
            self.now = min(2 * self.now, self.limit)

    def record_out_of_memory(self, items: int) -> None:
        """Record that memory did not suffice for a batch of `items`."""
        self.now = self.limit = max(1, min(self.now, items // 2))
        self.growing = False


@dataclass
class Kind:
    """The items of one kind: those to embed, the size of their batches, and what became of them so far."""

    needs: Sequence[Need]
    size: BatchSize
    done: int = 0
    seconds: float = 0.0
    valid: int = 0
    invalid: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the model returned many invalid vectors for it, and no valid one."""
        return self.invalid >= HOPELESS and not self.valid

    def give_up(self, report: Report) -> None:
        """Report the items that were not tried like the others of their kind."""
        reason = next(report.invalid[need.key] for need in self.needs if need.key in report.invalid)
        for need in self.needs:
            if need.key not in report.unreadable:
                report.invalid.setdefault(need.key, reason)


def new_batch_size(fixed: int | None) -> BatchSize:
    return BatchSize(fixed, fixed, growing=False) if fixed else BatchSize()


def first_batches_first(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Sequence[Need]]]:
    """The items to embed, in parts; of several kinds, a few of each come first and tell what the others will cost."""
    kinds = [kind for kind in kinds if kind.needs]
    samples = {}
    for number, kind in enumerate(kinds if len(kinds) > 1 else ()):
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


def by_kind(needs: Sequence[Need]) -> list[Sequence[Need]]:
    """Needs grouped by kind of item, short texts first: batches are even and need little padding."""
    rows: Needs | ItemList = needs if isinstance(needs, Needs) else ItemList([need.item for need in needs])
    names, numbers = rows.kinds()
    lengths = rows.lengths()
    groups = [np.flatnonzero(numbers == number) for number in range(len(names))]
    return [take(needs, group[np.argsort(lengths[group], kind="stable")]) for group in groups]
