"""One encoder on several devices: each takes an even share of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from embark.models.encoder import Encoder, Interrupted
from embark.types import Array, Content, Item, Rendered


class Replicas(Encoder):
    """The same checkpoint loaded once a device; what it sees is decided and prepared by the first."""

    def __init__(self, copies: Sequence[Encoder]) -> None:
        self.copies, self.card, self.batch_size = tuple(copies), copies[0].card, copies[0].batch_size
        self.pool = ThreadPoolExecutor(len(copies))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """As the model has it."""
        return self.copies[0].render(item, role, instruction)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """As the model has it; prepared values lie on the CPU."""
        return self.copies[0].prepare(contents, mode)

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """Shares in their order, computed at once."""
        cuts = [len(batch) * turn // len(self.copies) for turn in range(len(self.copies) + 1)]

        def share(copy: Encoder, at: int, end: int) -> Array | Sequence[Array]:
            try:
                return copy.embed(batch[at:end])
            except Interrupted as cut:  # it counts from the beginning of its share
                raise Interrupted(str(cut), {at + row: vector for row, vector in cut.done.items()}) from cut

        work = [(copy, at, end) for copy, (at, end) in zip(self.copies, pairwise(cuts), strict=True) if at < end]
        parts = list(self.pool.map(share, *zip(*work, strict=True)))
        ragged = isinstance(parts[0], (list, tuple))
        return [row for part in parts for row in part] if ragged else np.concatenate(parts)
