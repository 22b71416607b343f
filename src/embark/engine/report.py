"""What became of the items that an engine was given."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class EmbeddingReport:
    """The result of embedding: how many vectors in how many seconds, and the items that have none.

    `unreadable` items do not decode; `too_large` ones do not fit the device's memory even alone; of `invalid` ones, the
    model returned a vector that is none. `batch_size` is what batches came down to where memory did not suffice.
    `cost` is that of all items (tokens, or elements of arrays), `padded` that of their batches, padding included.
    """

    embedded: int = 0
    seconds: float = 0.0
    unreadable: dict[bytes, str] = field(default_factory=dict)  # key → reason
    too_large: dict[bytes, str] = field(default_factory=dict)  # key → reason
    invalid: dict[bytes, str] = field(default_factory=dict)  # key → what the model returned
    batch_size: int | None = None
    warnings: tuple[str, ...] = ()
    cost: int = 0
    padded: int = 0

    @property
    def padding(self) -> float:
        """The share of work that padding adds, where a model pads the items of a batch to the dearest."""
        return self.padded / self.cost - 1 if self.cost else 0.0

    def add(self, other: EmbeddingReport) -> None:
        """Count what was embedded after this."""
        self.embedded += other.embedded
        self.seconds += other.seconds
        self.unreadable |= other.unreadable
        self.too_large |= other.too_large
        self.invalid |= other.invalid
        self.batch_size = min(filter(None, (self.batch_size, other.batch_size)), default=None)
        self.warnings = tuple(dict.fromkeys((*self.warnings, *other.warnings)))
        self.cost += other.cost
        self.padded += other.padded
