"""Vectors in blocks: stored vectors become float32, are checked, and scaled for cosine; then compared by one product.

Late interaction has a matrix of token vectors for each item: a query's similarity to a document is the sum, over its
tokens, of the best match among the document's tokens (maxsim).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.evaluators.backend import SHORT, Backend
from embark.types import Array, EmbarkError

BLOCK_BYTES = 64 << 20  # of float32 rows held at a time
PIECE = 1 << 16  # numbers that are converted and scaled at a time: they stay in a processor's cache
TOKENS = 4 << 20  # similarities of tokens held at a time


@dataclass(frozen=True)
class TokenVectors:
    """Items with several vectors: the rows of all items' tokens in one matrix, and the row where each item starts."""

    rows: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.starts)


Block = Array | TokenVectors


def block(vectors: Any, start: int, stop: int, similarity: str, out: Array | None = None) -> Block:
    """Items as float32, of unit length where the similarity needs it; a vector that is not finite is an error.

    Rows of unit length are written to the first rows of `out`, where there is one.
    """
    if similarity not in ("cosine", "dot", "maxsim"):
        raise EmbarkError(f"Unknown similarity '{similarity}'; known: cosine, dot, maxsim.")
    if similarity == "maxsim":
        items = [np.atleast_2d(as_float32(item)) for item in vectors[start:stop]]
        if empty := [row for row, item in enumerate(items, start) if not len(item)]:
            raise EmbarkError(f"{len(empty)} items have no vectors at all, the first is item {empty[0]}.")
        return TokenVectors(_unit(np.concatenate(items), start), np.cumsum([0] + [len(item) for item in items[:-1]]))
    if has_token_vectors(vectors):
        raise EmbarkError("These items have several vectors each (late interaction); this score needs one per item.")
    rows = vectors[start:stop]
    return _unit(rows, start, out) if similarity == "cosine" else _finite(as_float32(rows), start)


def blocks(
    vectors: Any, similarity: str, size: int | None = None, out: Array | None = None
) -> Iterator[tuple[int, Block]]:
    """(start, items) over the whole collection; by default as many items as fit a block.

    Where there is `out`, a block may be overwritten by the next one.
    """
    size = size or rows_that_fit(vectors)
    for start in range(0, len(vectors), size):
        yield start, block(vectors, start, min(start + size, len(vectors)), similarity, out)


def whole(vectors: Any, similarity: str) -> Array:
    """All items, of one vector each, as `block` gives them."""
    rows = block(vectors, 0, len(vectors), "cosine" if similarity == "maxsim" else similarity)
    assert isinstance(rows, np.ndarray)
    return rows


def check(vectors: Any, similarity: str) -> None:
    """Raise an error that names the first vector that is not finite."""
    for _ in blocks(vectors, similarity):
        pass


def exact(queries: Any, documents: Any, query: Array, document: Array, similarity: str) -> Array:
    """Similarity of query[i] and document[i], computed in float64 and rounded to float32."""
    if similarity == "maxsim":
        pairs = zip(query.tolist(), document.tolist(), strict=True)
        return np.array([_maxsim(queries[q], documents[d]) for q, d in pairs], np.float32)
    out = np.empty(len(query), np.float32)
    step = max(1, rows_that_fit(documents) // 256)  # stays in cache
    for start in range(0, len(query), step):
        rows = slice(start, start + step)
        left = _as_float64(queries[query[rows]])
        right = _as_float64(documents[document[rows]])
        score = np.einsum("nd,nd->n", left, right)
        with np.errstate(invalid="ignore", over="ignore"):  # `block` reports what is not finite
            if similarity == "cosine":
                length = np.sqrt(np.einsum("nd,nd->n", left, left) * np.einsum("nd,nd->n", right, right))
                score = np.divide(score, length, out=score, where=length > 0)
            out[rows] = score
    return out


def _maxsim(query: Any, document: Any) -> float:
    left, right = (np.atleast_2d(np.asarray(tokens, np.float64)) for tokens in (query, document))
    left, right = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (left, right))
    return float((left @ right.T).max(axis=1).sum())


def rows_that_fit(vectors: Any) -> int:
    """How many items fit the bytes of a block; at least one."""
    width = np.size(vectors[0]) if len(vectors) else 1
    if has_token_vectors(vectors):
        width = np.shape(vectors[0])[1] * tokens_per_item(vectors)
    return max(1, BLOCK_BYTES // (4 * max(1, width)))


def has_token_vectors(vectors: Any) -> bool:
    """Whether each item is a matrix of token vectors."""
    return len(vectors) > 0 and np.ndim(vectors[0]) == 2


def tokens_per_item(vectors: Any) -> int:
    """How many vectors an item has on average, rounded up."""
    if not has_token_vectors(vectors):
        return 1
    return max(1, -(-tokens_of(vectors) // len(vectors)))


def tokens_of(vectors: Any) -> int:
    """The number of vectors of all items together; stored vectors know it without being read."""
    return int(vectors.shape[0]) if hasattr(vectors, "offsets") else sum(map(len, vectors))


def columns(backend: Backend, queries: Block) -> Any:
    """Queries in the form that `product` takes, made once for all documents."""
    return queries if isinstance(queries, TokenVectors) else backend.columns(queries)


def product(backend: Backend, documents: Block, queries: Any) -> Any:
    """Similarities (documents, queries), in the backend's own kind of array."""
    if isinstance(documents, TokenVectors):
        return backend.load(np.ascontiguousarray(_maxsim_matrix(queries, documents).T))
    return backend.product(backend.load(documents), queries)


def _maxsim_matrix(queries: TokenVectors, documents: TokenVectors) -> Array:
    """Maxsim of all pairs, a few query tokens at a time; summed in float64, because errors of equal tokens add up."""
    best = np.empty((len(queries.rows), len(documents)), np.float32)
    step = max(1, TOKENS // len(documents.rows))
    for start in range(0, len(best), step):
        rows = slice(start, start + step)
        np.maximum.reduceat(queries.rows[rows] @ documents.rows.T, documents.starts, axis=1, out=best[rows])
    return np.add.reduceat(best, queries.starts, axis=0, dtype=np.float64).astype(np.float32)


def _finite(rows: Array, start: int) -> Array:
    if not np.isfinite(rows).all():
        bad = start + np.flatnonzero(~np.isfinite(rows).all(axis=1))
        raise EmbarkError(f"{len(bad)} vectors are not finite, the first at row {bad[0]}.")
    return rows


def _unit(rows: Any, start: int, out: Array | None = None) -> Array:
    rows = np.asarray(rows)
    if rows.dtype != np.float16:
        rows = np.asarray(rows, np.float32)
    unit = np.empty(rows.shape, np.float32) if out is None else out[: len(rows)]
    step = max(1, PIECE // max(1, rows.shape[1]))
    for first in range(0, len(rows), step):
        target = unit[first : first + step]
        piece = as_float32(rows[first : first + step], target)
        length = np.sqrt(np.einsum("nd,nd->n", piece, piece))
        if not np.isfinite(length).all() or length.min() < SHORT:  # cheaper than looking at every number
            return _exactly_unit(as_float32(rows), start)
        np.divide(piece, length[:, None], out=target)
    return unit


def _exactly_unit(rows: Array, start: int) -> Array:
    """Rows of which some are too short, or too long, for lengths in float32."""
    _finite(rows, start)
    length = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


# ── from float16 to float32 ──────────────────────────────────────────────────────────────────────────────────────────
LARGEST_HALF = 65504.0  # of finite float16 numbers
REBIASED = np.float32(2.0**112)  # from the exponents of float16 to those of float32
HALF_BITS = np.int32(-0x70002000)  # sign, exponent and fraction of a float16, in their places in a float32
SMALLEST = np.float32(2.0**-149)


def as_float32(rows: Any, out: Array | None = None) -> Array:
    """Numbers as float32, the same array if they are; float16 ones in a quarter of the time that numpy takes.

    Those of float16 are written to `out`, where there is one.
    """
    rows = np.asarray(rows)
    if rows.dtype != np.float16 or not SMALLEST * REBIASED:  # a library may have set the processor to drop such numbers
        return np.asarray(rows, np.float32)
    numbers = np.empty(rows.shape, np.float32) if out is None else out
    halves = np.ascontiguousarray(rows).reshape(-1)
    flat = numbers.reshape(-1)
    for start in range(0, len(flat), PIECE):
        _widen(halves[start : start + PIECE], flat[start : start + PIECE])
    return numbers


def _as_float64(rows: Any) -> Array:
    rows = np.asarray(rows)
    return np.asarray(as_float32(rows) if rows.dtype == np.float16 else rows, np.float64)


def _widen(halves: Array, out: Array) -> None:
    """Copy float16 to float32: the bits are moved to their places, then the exponents are put right by a product."""
    bits = out.view(np.int32)
    bits[:] = halves.view(np.int16)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, HALF_BITS, out=bits)
    np.multiply(out, REBIASED, out=out)
    if out.max(initial=0) > LARGEST_HALF or out.min(initial=0) < -LARGEST_HALF:  # they were not finite
        out[:] = halves
