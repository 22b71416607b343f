"""Exact ranks of the relevant documents, without ranked lists.

A document's rank is one more than the number of documents that beat it, so one matrix product and a count per relevant
document suffice. Ties go as in trec_eval: equal in float32, the larger document id ranks first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.similarity import blocks
from embark.types import Array

MEMORY = 512 << 20  # bytes of scores held at a time
SORT_FROM = 16  # relevant documents a query from which sorting beats counting


def tie_places(ids: Array | None, documents: int) -> Array:
    """Where each document stands among equals: by falling id, or by position where there are no ids."""
    place = np.arange(documents)
    if ids is not None:
        place[np.argsort(ids, kind="stable")[::-1]] = np.arange(documents)
    return place


def ranks(
    queries: Any, documents: Any, query: Array, document: Array, similarity: str, place: Array
) -> tuple[Array, Array]:
    """Rank of `document[i]` for `query[i]` among all documents, and the best document of every query."""
    wanted = place[document]  # columns are laid out in tie order
    order = np.argsort(place)
    by_query = np.argsort(query, kind="stable")
    rank, best = np.empty(len(query), np.int64), np.empty(len(queries), np.int64)
    rows = max(1, min(len(queries), MEMORY // (4 * len(documents))))
    for start, block in blocks(queries, similarity, rows):
        scores = np.empty((len(block), len(documents)), np.float32)
        for at, docs in blocks(documents, similarity):
            scores[:, place[at : at + len(docs)]] = block @ docs.T
        best[start : start + len(block)] = order[scores.argmax(axis=1)]
        lo, hi = np.searchsorted(query[by_query], [start, start + len(block)])
        mine = by_query[lo:hi]
        rank[mine] = _ranks_in(scores, query[mine] - start, wanted[mine])
    return rank, best


def _ranks_in(scores: Array, row: Array, column: Array) -> Array:
    """Rank of each (row, column) in its row; equal scores rank by column."""
    if len(row) > SORT_FROM * len(np.unique(row)):
        order = np.argsort(-scores, axis=1, kind="stable")
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(scores.shape[1])[None], axis=1)
        return np.asarray(place[row, column] + 1)
    rank = np.empty(len(row), np.int64)
    turn = np.arange(len(row)) - np.searchsorted(row, row)  # the how-manyeth relevant document of its query
    for t in range(int(turn.max(initial=-1)) + 1):
        now = np.flatnonzero(turn == t)
        mine = scores if len(now) == len(scores) else scores[row[now]]
        score = mine[np.arange(len(now)), column[now]][:, None]
        rank[now] = 1 + (mine > score).sum(axis=1)
        tied = np.flatnonzero((mine == score).sum(axis=1) > 1)  # rare: count the equals that stand before it
        before = np.arange(scores.shape[1])[None] < column[now[tied], None]
        rank[now[tied]] += ((mine[tied] == score[tied]) & before).sum(axis=1)
    return rank
