"""One encoder on several devices: each takes an even share of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from embark.models.encoder import Encoder
from embark.types import Array, Content, Item, Rendered


class Replicas(Encoder):
    """The same checkpoint loaded once a device; what it sees is decided and prepared by the first."""

    def __init__(self, copies: Sequence[Encoder]) -> None:
        self.copies, self.card = tuple(copies), copies[0].card
        self.pool = ThreadPoolExecutor(len(copies))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """As the model has it."""
        return self.copies[0].render(item, role, instruction)

    def prepare(self, contents: Sequence[Content], mode: str = "") -> Any:
        """As the model has it; prepared values lie on the CPU."""
        return self.copies[0].prepare(contents, mode) if mode else self.copies[0].prepare(contents)

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """Shares in their order, computed at once."""
        cuts = [len(batch) * turn // len(self.copies) for turn in range(len(self.copies) + 1)]
        shares = [batch[at:end] for at, end in pairwise(cuts)]
        work = [(copy, share) for copy, share in zip(self.copies, shares, strict=True) if len(share)]
        parts = list(self.pool.map(lambda each: each[0].embed(each[1]), work))
        ragged = isinstance(parts[0], (list, tuple))
        return [row for part in parts for row in part] if ragged else np.concatenate(parts)
