"""The k best documents of every query, exactly, for any corpus: ranked lists to show, export or re-rank.

Documents pass by in blocks. Each query keeps a bar, the k-th best score so far, and only what comes near it is kept, so
that after the first small block nearly all of the work is the matrix product. Scores and ties are those of `ranks`, and
never more than a tile and a few times k candidates a query are held.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.ranks import MEMORY, Rows, tie_places, tile_shape
from embark.evaluators.threads import CORES, each
from embark.types import Array, EmbarkError

Found = tuple[Array, Array, Array]  # row of a query, document, score
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
    share = -(-len(queries) // CORES) if backend.threads else len(queries)  # of the queries, for every core
    height, width = tile_shape(queries, documents, share, memory, backend)
    found, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)

    def work(start: int) -> None:
        rows = np.arange(start, min(start + height, len(queries)))
        found[rows], scores[rows] = _best(Rows(queries, documents, rows, width, similarity, backend), k, place)

    each(work, range(0, len(queries), height), backend.threads)
    return found, scores


def _best(rows: Rows, k: int, place: Array) -> tuple[Array, Array]:
    """The first documents set the bars; the weak go now and then, and what is left in the end is settled."""
    slack, bar, kept, start = np.zeros(len(rows)), np.full(len(rows), -np.inf), list[Found](), 0
    most = SLACK * k * len(rows)
    while start < len(place):
        stop = min(start + (rows.width if start else max(rows.width, 2 * k)), len(place))
        scores, wrong = rows.scores(start, stop)
        slack = np.maximum(slack, wrong)
        if not start:
            bar = rows.backend.kth_best(scores, k)
        reach = np.nextafter((bar - 2 * slack).astype(np.float32), np.float32(-np.inf))
        found = rows.backend.reaching(scores, reach)
        assert found is not None  # there was no limit
        kept.append((found[1], start + found[0], found[2]))
        if sum(len(row) for row, _, _ in kept) > most:
            row, column, score, bar = _pruned(kept, k, slack)
            if len(row) > most:  # too many come near the bar: nearly all documents score alike
                row, column, score = _kept(row, column, rows.exact(row, column), k, place)
            kept = [(row, column, score)]
        start = stop
    row, column, score, _ = _pruned(kept, k, slack)
    order = _falling(row, score, len(rows))
    column, score = column[order], score[order]
    near = (row[1:] == row[:-1]) & (score[:-1] - score[1:] <= 2 * slack[row[1:]])
    doubt = np.flatnonzero(np.append(near, False) | np.append(False, near))  # whose order the product does not decide
    if rows.similarity == "maxsim":  # a sum over tokens: its rounding shows in the score
        doubt = np.arange(len(row))
    score[doubt] = rows.exact(row[doubt], column[doubt])
    settled = doubt[np.lexsort((place[column[doubt]], -score[doubt], row[doubt]))]  # runs of doubt stay in their places
    column[doubt], score[doubt] = column[settled], score[settled]
    turn, _ = _turns(row, len(rows))
    column, score = column[turn < k], score[turn < k]
    return column.reshape(-1, k), score.reshape(-1, k)


def _pruned(found: list[Found], k: int, slack: Array) -> tuple[Array, Array, Array, Array]:
    """What may be among the k best, given that each score is wrong by `slack` at most; and the k-th best so far."""
    row, column, score = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(row.astype(np.uint16) if len(slack) <= 1 << 16 else row, kind="stable")  # by digits
    row, column, score = row[order], column[order], score[order]
    table = _table(row, score, len(slack), k)
    bar = np.partition(table, -k, axis=1)[:, -k].astype(np.float64)
    kept = np.flatnonzero(score >= (bar - 2 * slack)[row])
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
