"""Vectors in blocks: stored halves become float32, are checked, and scaled for cosine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from embark.types import Array, EmbarkError

BLOCK = 32_768  # documents a product: large enough for the GEMM, small enough to stay in memory


def block(vectors: Any, start: int, stop: int, similarity: str) -> Array:
    """Rows as float32, of unit length where the similarity is cosine; what is not finite is an error."""
    rows = np.array(vectors[start:stop], dtype=np.float32)  # a copy: it is scaled in place
    if not np.isfinite(rows).all():
        bad = start + np.flatnonzero(~np.isfinite(rows).all(axis=1))
        raise EmbarkError(f"{len(bad)} vectors are not finite, the first at row {bad[0]}.")
    if similarity == "dot":
        return rows
    if similarity != "cosine":
        raise EmbarkError(f"Unknown similarity '{similarity}'; known: cosine, dot.")
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


def blocks(vectors: Any, similarity: str, size: int = BLOCK) -> Iterator[tuple[int, Array]]:
    """(start, rows) over the whole matrix."""
    for start in range(0, len(vectors), size):
        yield start, block(vectors, start, min(start + size, len(vectors)), similarity)


def whole(vectors: Any, similarity: str) -> Array:
    """The whole matrix as `block` gives it."""
    return block(vectors, 0, len(vectors), similarity)
