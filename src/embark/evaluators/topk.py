"""The k best documents of every query, exactly, for any corpus: ranked lists to show, export or re-rank.

Documents pass by in blocks. Each query keeps a bar, the k-th best score so far, and only what comes near it is kept, so
that after the first small block nearly all of the work is the matrix product. Scores and ties are those of `ranks`, and
never more than a tile and a few times k candidates a query are held.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.ranks import MEMORY, each, longest, margin_of, take, tie_places, tile_height, tile_width
from embark.evaluators.similarity import block, columns, exact, product
from embark.types import Array, EmbarkError

TILES = 4  # of `ranks` at a time: looking for the best costs a little for every tile
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
    """(positions, scores), each (queries, min(k, documents)), best first; ties by falling id, else by position.

    The order is exact; a score is that of the float32 product wherever the order does not hang on more.
    """
    if k < 1 or not len(documents):
        raise EmbarkError(f"Cannot take the {k} best of {len(documents)} documents.")
    k = min(k, len(documents))
    place = tie_places(ids, len(documents))
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    height = tile_height(queries, len(queries), memory, backend)
    found, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)

    def work(turn: int) -> None:
        rows = np.arange(turn * height, min((turn + 1) * height, len(queries)))
        found[rows], scores[rows] = _best(backend, queries, rows, documents, k, similarity, place)

    each(work, range(-(-len(queries) // height)), backend)
    return found, scores


def _best(
    backend: Backend, queries: Any, rows: Array, documents: Any, k: int, similarity: str, place: Array
) -> tuple[Array, Array]:
    """The first tile sets the bars; the weak go now and then, and what is left in the end is scored exactly."""
    some = block(take(queries, rows), 0, len(rows), similarity)
    margin, slack, bar = margin_of(some), np.zeros(len(rows)), np.full(len(rows), -np.inf)
    row, column, score = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    start, width, right = 0, TILES * tile_width(documents), columns(backend, some)
    while start < len(documents):
        stop = min(start + (width if start else max(width, 2 * k)), len(documents))
        docs = block(documents, start, stop, similarity)
        scores, slack = product(backend, docs, right), np.maximum(slack, margin * longest(docs, similarity))
        if not start:
            bar = backend.kth_best(scores, k)
        found = backend.reaching(scores, np.nextafter((bar - 2 * slack).astype(np.float32), np.float32(-np.inf)))
        row, column = np.concatenate([row, found[1]]), np.concatenate([column, start + found[0]])
        score = np.concatenate([score, found[2]])
        if len(row) > SLACK * k * len(rows):
            row, column, score, bar = _pruned(row, column, score, k, slack)
        if len(row) > SLACK * k * len(rows):  # too many come near the bar: nearly all documents score alike
            row, column, score = _kept(row, column, exact(queries, documents, rows[row], column, similarity), k, place)
        start = stop
    row, column, score, _ = _pruned(row, column, score, k, slack)
    order = _falling(row, score, len(rows))
    column, score = column[order], score[order]
    near = (row[1:] == row[:-1]) & (score[:-1] - score[1:] <= 2 * slack[row[1:]])
    doubt = np.flatnonzero(np.append(near, False) | np.append(False, near))  # whose order the product does not decide
    if similarity == "maxsim":  # a sum over tokens: its rounding shows in the score
        doubt = np.arange(len(row))
    score[doubt] = exact(queries, documents, rows[row[doubt]], column[doubt], similarity)
    settled = doubt[np.lexsort((place[column[doubt]], -score[doubt], row[doubt]))]  # runs of doubt stay in their places
    column[doubt], score[doubt] = column[settled], score[settled]
    turn, _ = _turns(row, len(rows))
    column, score = column[turn < k], score[turn < k]
    return column.reshape(-1, k), score.reshape(-1, k)


def _pruned(row: Array, column: Array, score: Array, k: int, slack: Array) -> tuple[Array, Array, Array, Array]:
    """What may be among the k best, given that each score is wrong by `slack` at most; and the k-th best so far."""
    order = np.argsort(row, kind="stable")
    row, column, score = row[order], column[order], score[order]
    table = _table(row, score, len(slack), k)
    bar = np.partition(table, -k, axis=1)[:, -k].astype(np.float64)
    kept = score >= (bar - 2 * slack)[row]
    return row[kept], column[kept], score[kept], bar


def _kept(row: Array, column: Array, score: Array, k: int, place: Array) -> tuple[Array, Array, Array]:
    """The k best of each query, or fewer, best first; equals by place."""
    order = np.lexsort((place[column], -score, row))
    row, column, score = row[order], column[order], score[order]
    turn, _ = _turns(row, int(row[-1]) + 1)
    return row[turn < k], column[turn < k], score[turn < k]


def _falling(row: Array, score: Array, rows: int) -> Array:
    """The order of falling scores within each row; rows rise already."""
    _, counts = _turns(row, rows)
    order = np.argsort(-_table(row, score, rows, 1), axis=1)
    first = np.cumsum(counts) - counts
    return np.asarray((first[:, None] + order)[np.arange(order.shape[1]) < counts[:, None]])


def _table(row: Array, score: Array, rows: int, width: int) -> Array:
    """The scores of each row side by side, at least so many; nothing is worse than anything."""
    turn, counts = _turns(row, rows)
    table = np.full((rows, max(width, int(counts.max()))), -np.inf, np.float32)
    table[row, turn] = score
    return table


def _turns(row: Array, rows: int) -> tuple[Array, Array]:
    """Which of its row each one is, and how many a row has; rows rise."""
    counts = np.bincount(row, minlength=rows)
    return np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts), counts
