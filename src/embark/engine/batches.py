"""Which items go into a batch together, and how many: by kind and length, at the size that is fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from embark.catalogue import group_values
from embark.engine.report import Report
from embark.planning import Need
from embark.types import Text

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

    needs: list[Need]
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


def first_batches_first(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, list[Need]]]:
    """The items to embed, in parts; of several kinds, a few of each come first and tell what the others will cost."""
    kinds = [kind for kind in kinds if kind.needs]
    samples = {}
    for number, kind in enumerate(kinds if len(kinds) > 1 else ()):
        count = min(FIRST_BATCH, kind.size.now)
        samples[number] = range(0, len(kind.needs), max(1, len(kind.needs) // count))[:count]
        yield kind, [kind.needs[row] for row in samples[number]]
    for number, kind in enumerate(kinds):
        if rest := [need for row, need in enumerate(kind.needs) if row not in samples.get(number, ())]:
            yield kind, rest


def seconds_left(kinds: Sequence[Kind]) -> float:
    """The time for all other items, by what an item of their kind took; a kind that has not begun costs the most."""
    prices = [kind.seconds / kind.done for kind in kinds if kind.done]
    return sum(
        (len(kind.needs) - kind.done) * (kind.seconds / kind.done if kind.done else max(prices)) for kind in kinds
    )


def by_kind(needs: Sequence[Need]) -> list[list[Need]]:
    """Needs grouped by kind of item, short texts first: batches are even and need little padding."""
    groups = group_values((need.item.modalities, need) for need in needs)
    return [sorted(group, key=_length) for group in groups.values()]


def _length(need: Need) -> int:
    return sum(len(part.text) for part in need.item.parts if isinstance(part, Text))
