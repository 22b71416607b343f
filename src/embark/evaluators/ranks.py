"""Exact ranks of the relevant documents, without ranked lists.

A document's rank is one more than the number of documents that beat it, so matrix products and a count per relevant
document suffice, and memory does not grow with the corpus. Ties go as in trec_eval: equal in float32, the larger
document id ranks first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, Numpy, backend_for
from embark.evaluators.similarity import Block, block, check, product, rows_that_fit, whole
from embark.types import Array

MEMORY = 256 << 20  # bytes of scores and documents held at a time
SORT_FROM = 16  # relevant documents a query from which sorting a row beats counting in it
WIDE = 131_072  # documents that are still compared in one piece
NARROW = 32_768  # a piece of a larger corpus


def tie_places(ids: Array | None, documents: int) -> Array:
    """Where each document stands among equals: by falling id, or by position where there are no ids."""
    place = np.arange(documents)
    if ids is not None:
        place[np.argsort(ids, kind="stable")[::-1]] = np.arange(documents)
    return place


def ranks(
    queries: Any,
    documents: Any,
    query: Array,
    document: Array,
    similarity: str,
    place: Array,
    memory: int = MEMORY,
    backend: Backend | None = None,
) -> tuple[Array, Array]:
    """Rank of `document[i]` for `query[i]` among all documents, and the best document of every query asked for.

    `place` resolves ties. Queries are taken in the order of their relevant documents, so that the scores to compare
    with are found in few pieces of the corpus; then all pieces are counted.
    """
    work = _Work(queries, documents, similarity, place, memory, backend)
    first = np.full(len(queries), len(documents))
    np.minimum.at(first, query, document)
    asked = np.unique(query)
    asked = asked[np.argsort(first[asked], kind="stable")]
    turn = np.empty(len(queries), np.int64)
    turn[asked] = np.arange(len(asked))
    pairs = np.argsort(turn[query], kind="stable")
    cuts = np.searchsorted(turn[query][pairs], np.arange(0, len(asked) + work.height, work.height))
    rank, best = np.empty(len(query), np.int64), np.full(len(queries), -1, np.int64)
    for at, lo, hi in zip(range(0, len(asked), work.height), cuts, cuts[1:], strict=False):
        rows, mine = asked[at : at + work.height], pairs[lo:hi]
        rank[mine], best[rows] = work.ranks_of(rows, turn[query[mine]] - at, document[mine])
    return rank, best


class _Work:
    """One corpus to rank against: how it is cut, and the products over it."""

    def __init__(
        self, queries: Any, documents: Any, similarity: str, place: Array, memory: int, backend: Backend | None
    ) -> None:
        self.queries, self.documents, self.similarity, self.place = queries, documents, similarity, place
        width = np.size(queries[0])
        self.backend = backend or backend_for(float(len(queries)) * len(documents) * width)
        self.width = len(documents) if len(documents) <= WIDE else NARROW
        self.height = max(1, min(len(queries), memory // (8 * self.width)))

    def ranks_of(self, rows: Array, row: Array, document: Array) -> tuple[Array, Array]:
        """Ranks of (row, document) pairs for these queries, and each query's best document."""
        queries = block(take(self.queries, rows), 0, len(rows), self.similarity)
        if self.width == len(self.documents):
            scores = self._piece(queries, 0)
            return self._ranks_within(scores, row, document), self.backend.best(scores, self.place)[1]
        own = np.empty(len(row), np.float32)
        for start in np.unique(document // self.width) * self.width:
            here = np.flatnonzero((document >= start) & (document < start + self.width))
            own[here] = self.backend.pick(self._piece(queries, start), row[here], document[here] - start)
        beaten, best, top = np.zeros(len(row), np.int64), np.zeros(len(rows), np.int64), np.full(len(rows), -np.inf)
        for start in range(0, len(self.documents), self.width):
            scores = self._piece(queries, start)
            beaten += self._beaten(scores, start, row, own, document)
            value, column = self.backend.best(scores, self.place[start : start + self.width])
            ahead = (value > top) | ((value == top) & (self.place[start + column] < self.place[best]))
            best, top = np.where(ahead, start + column, best), np.maximum(value, top)
        return beaten + 1, best

    def _ranks_within(self, scores: Any, row: Array, document: Array) -> Array:
        if len(row) > SORT_FROM * scores.shape[0]:
            return self.backend.sorted_ranks(scores, row, document, self.place)
        return 1 + self._beaten(scores, 0, row, self.backend.pick(scores, row, document), document)

    def _beaten(self, scores: Any, start: int, row: Array, own: Array, document: Array) -> Array:
        """How many documents of a piece beat each wanted one; a pass for the first of every query, the second, …"""
        order = np.argsort(row, kind="stable")
        turn = np.empty(len(row), np.int64)
        turn[order] = np.arange(len(row)) - np.searchsorted(row[order], row[order])
        places, out = self.place[start : start + scores.shape[1]], np.empty(len(row), np.int64)
        here = (document >= start) & (document < start + scores.shape[1])
        for t in range(int(turn.max(initial=-1)) + 1):
            now = np.flatnonzero(turn == t)
            out[now] = self.backend.beaten_by(scores, row[now], own[now], places, self.place[document[now]], here[now])
        return out

    def _piece(self, queries: Block, start: int) -> Any:
        """Scores of the queries with the documents of one piece, made in parts that fit in memory."""
        stop, step = min(start + self.width, len(self.documents)), rows_that_fit(self.documents)
        parts = [
            product(self.backend, queries, block(self.documents, at, min(at + step, stop), self.similarity))
            for at in range(start, stop, step)
        ]
        return parts[0] if len(parts) == 1 else self.backend.beside(parts)


def take(vectors: Any, rows: Array) -> Any:
    """Some rows of a matrix, or some of a list of matrices."""
    return [vectors[row] for row in rows] if isinstance(vectors, list) else vectors[rows]


def candidate_ranks(
    queries: Any, documents: Any, query: Array, document: Array, similarity: str, place: Array
) -> tuple[Array, Array]:
    """Rank of each candidate among its query's own candidates, and the best one of every query (-1: none offered)."""
    for vectors in (queries, documents):
        check(vectors, similarity)  # also where no query asks for it
    score = pair_scores(queries, documents, query, document, similarity)
    best_first = np.lexsort((place[document], -score, query))
    turn = np.arange(len(score)) - np.searchsorted(query[best_first], query[best_first])
    rank, best = np.empty(len(score), np.int64), np.full(len(queries), -1, np.int64)
    rank[best_first] = turn + 1
    best[query[rank == 1]] = document[rank == 1]
    return rank, best


def pair_scores(queries: Any, documents: Any, query: Array, document: Array, similarity: str) -> Array:
    """Similarity of query[i] and document[i]."""
    if similarity == "maxsim":
        numpy = Numpy()
        pairs = zip(take(queries, query), take(documents, document), strict=True)
        return np.array(
            [product(numpy, block([q], 0, 1, similarity), block([d], 0, 1, similarity))[0, 0] for q, d in pairs]
        )
    score, step = np.empty(len(query), np.float32), rows_that_fit(documents)
    for at in range(0, len(query), step):
        left = whole(queries[query[at : at + step]], similarity)
        right = whole(documents[document[at : at + step]], similarity)
        np.einsum("nd,nd->n", left, right, out=score[at : at + step])
    return score
