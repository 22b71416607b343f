"""The k best documents of every query, exactly, for any corpus: ranked lists to show, export or re-rank.

Documents pass by in blocks. Each query keeps a threshold, the k-th best score so far, and only what reaches it is kept,
so that after the first small block nearly all of the work is the matrix product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.ranks import MEMORY, WIDTH, each, take, tie_places, tile_height
from embark.evaluators.similarity import Block, block, product
from embark.types import Array, EmbarkError

SLACK = 2  # times k candidates a query that may wait before the weak ones go


def topk(
    queries: Any,
    documents: Any,
    k: int,
    similarity: str = "cosine",
    *,
    ids: Array | None = None,
    memory: int = MEMORY,
    backend: Backend | None = None,
) -> tuple[Array, Array]:
    """(positions, scores), each (queries, min(k, documents)), best first; ties by falling id, else by position."""
    if k < 1 or not len(documents):
        raise EmbarkError(f"Cannot take the {k} best of {len(documents)} documents.")
    k = min(k, len(documents))
    place = tie_places(ids, len(documents))
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    height = tile_height(len(queries), memory, backend)
    found, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)

    def work(turn: int) -> None:
        rows = np.arange(turn * height, min((turn + 1) * height, len(queries)))
        some = block(take(queries, rows), 0, len(rows), similarity)
        found[rows], scores[rows] = _best(backend, some, documents, k, similarity, place)

    each(work, range(-(-len(queries) // height)), backend)
    return found, scores


def _best(
    backend: Backend, queries: Block, documents: Any, k: int, similarity: str, place: Array
) -> tuple[Array, Array]:
    """The first tile sets the thresholds; candidates are pruned when there are too many of them."""
    threshold = np.full(len(queries), -np.inf, np.float32)
    row, column, score = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    start = 0
    while start < len(documents):
        stop = min(start + (WIDTH if start else max(WIDTH, 2 * k)), len(documents))
        scores = product(backend, queries, block(documents, start, stop, similarity))
        if not start:
            threshold = backend.kth_best(scores, k)
        reached = backend.at_least(scores, threshold)
        assert reached is not None  # no limit was given
        more_row, more_column, more_score = reached
        row, column = np.concatenate([row, more_row]), np.concatenate([column, more_column + start])
        score = np.concatenate([score, more_score])
        if len(row) > SLACK * k * len(queries):
            row, column, score, threshold = _prune(row, column, score, k, threshold)
        start = stop
    return _sorted(row, column, score, k, place)


def _prune(row: Array, column: Array, score: Array, k: int, threshold: Array) -> tuple[Array, Array, Array, Array]:
    """Raise the thresholds to the k-th best of the candidates; what is below them goes, equals stay."""
    padded, order = _padded(row, score, len(threshold))
    if padded.shape[1] > k:
        threshold = np.maximum(threshold, np.partition(padded, -k, axis=1)[:, -k])
    row, column, score = row[order], column[order], score[order]
    kept = score >= threshold[row]
    return row[kept], column[kept], score[kept], threshold


def _sorted(row: Array, column: Array, score: Array, k: int, place: Array) -> tuple[Array, Array]:
    """The k best of each query, best first; equals by place."""
    in_place = np.argsort(place[column], kind="stable")
    row, column, score = row[in_place], column[in_place], score[in_place]
    padded, order = _padded(row, score, int(row.max()) + 1)
    counts = np.bincount(row)
    starts = np.cumsum(counts) - counts
    best = np.argsort(-padded, axis=1, kind="stable")[:, :k]
    return column[order][starts[:, None] + best], np.take_along_axis(padded, best, axis=1)


def _padded(row: Array, score: Array, rows: int) -> tuple[Array, Array]:
    """Scores as a matrix, one row a query, filled up with -inf; and the order in which they were taken."""
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row, minlength=rows)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded = np.full((rows, int(counts.max())), -np.inf, np.float32)
    padded[row[order], turn] = score[order]
    return padded, order
