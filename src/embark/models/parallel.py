"""One encoder on several devices: each embeds an even share of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from embark.models.encoder import Encoder, Interrupted, Matching, Reranker, render_item
from embark.types import Array, Content, Item, Rendered, Style


class Replicas(Encoder):
    """Copies of one checkpoint, one per device; the first copy renders and prepares for all."""

    def __init__(self, copies: Sequence[Encoder]) -> None:
        self.copies = tuple(copies)
        self.card = copies[0].card
        self.batch_size = copies[0].batch_size
        self.pool = ThreadPoolExecutor(len(copies))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """As a copy renders it."""
        return self.copies[0].render(item, role, instruction)

    def render_styled(self, item: Item, role: str, instruction: str | None, style: Style) -> Rendered:
        """As a copy renders it."""
        return render_item(self.copies[0], item, role, instruction, style)

    @property
    def matcher(self) -> Reranker:
        """That of a copy, where it has one."""
        matcher: Reranker = getattr(self.copies[0], "matcher")  # noqa: B009  # without one, this is no `Matching`
        return matcher

    def render_pair(self, image: Item, text: Item, style: Style) -> Rendered:
        """As a copy renders it."""
        copy = self.copies[0]
        assert isinstance(copy, Matching)
        return copy.render_pair(image, text, style)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """As a copy prepares it; prepared values are on the CPU."""
        return self.copies[0].prepare(contents, mode)

    def prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Sequence[Any]:
        """As a copy prepares them."""
        return self.copies[0].prepare_many(batch, modes)

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """The vectors of all shares, in the order of the batch."""
        bounds = [len(batch) * copy // len(self.copies) for copy in range(len(self.copies) + 1)]

        def embed_share(copy: Encoder, start: int, end: int) -> Array | Sequence[Array]:
            try:
                return copy.embed(batch[start:end])
            except Interrupted as error:  # it counts rows from the beginning of its share
                raise Interrupted(str(error), {start + row: vector for row, vector in error.done.items()}) from error

        pairs = zip(self.copies, pairwise(bounds), strict=True)
        work = [(copy, start, end) for copy, (start, end) in pairs if start < end]
        shares = list(self.pool.map(embed_share, *zip(*work, strict=True)))
        ragged = isinstance(shares[0], (list, tuple))
        return [row for share in shares for row in share] if ragged else np.concatenate(shares)
