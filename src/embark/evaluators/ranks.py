"""Exact ranks of the relevant documents, without ranked lists.

A document's rank is one more than the number of documents that beat it. A matrix product in float32 decides that for
all but the few that come close; those are compared again in float64, rounded to float32. So equal vectors tie wherever
they stand, scores do not depend on how the work is cut, and memory does not grow with the corpus. Ties go as in
trec_eval: equal in float32, the larger document id ranks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.beaten import Beaten
from embark.evaluators.similarity import (
    Block,
    Tokens,
    block,
    check,
    columns,
    exact,
    product,
    rows_that_fit,
    tokens_an_item,
)
from embark.evaluators.threads import blas_threads
from embark.settings import cores
from embark.types import Array

MEMORY = 256 << 20  # bytes that scoring may hold
WIDTH = 512  # documents of a tile: its scores are compared while they lie in cache
ROUNDING = 2.0**-24  # of float32; a product of n terms may err by n of them, and numbers of one size do err so
CORES = cores()
FEW = 64  # queries a core from which sharing them out pays: every share scales the documents for itself
LOST = np.int64(1) << 60  # the rank of a document that is not in the ranking, or too far down to count


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
    depth: int | None = None,
) -> tuple[Array, Array]:
    """Rank of `document[i]` for `query[i]` among all documents, and a best document of every query (-1: not asked).

    What stands below the first `depth` is LOST: nobody who looks no further needs its rank.
    """
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    asked, row = np.unique(query, return_inverse=True)
    order = np.argsort(row, kind="stable")
    height = tile_height(queries, len(asked), memory, backend)
    cuts = np.searchsorted(row[order], np.arange(0, len(asked) + height, height))
    rank, best = np.empty(len(query), np.int64), np.full(len(queries), -1, np.int64)

    def work(turn: int) -> None:
        rows, mine = asked[turn * height : (turn + 1) * height], order[cuts[turn] : cuts[turn + 1]]
        tile = _Rows(queries, documents, rows, similarity, place, backend)
        rank[mine], best[rows] = tile.ranks_of(row[mine] - turn * height, document[mine], depth or len(documents))

    each(work, range(len(cuts) - 1), backend)
    return rank, best


def tile_height(queries: Any, rows: int, memory: int, backend: Backend) -> int:
    """Queries a tile: what fits in memory a few times, in even shares for all cores; a device takes what it can."""
    tokens = tokens_an_item(queries)
    most = max(1, min(rows, backend.height // tokens, memory // (64 * WIDTH * tokens) if backend.threads else rows))
    if not backend.threads or rows < FEW * CORES:
        return most
    turns = -(-rows // most)
    return -(-rows // (-(-turns // CORES) * CORES))


def tile_width(documents: Any) -> int:
    """Documents a tile: few enough for a cache, and for a block."""
    return min(WIDTH, rows_that_fit(documents))


def each(work: Callable[[int], None], turns: Iterable[int], backend: Backend) -> None:
    """Do the turns on all cores: a thread a core, and one BLAS thread each, so that comparing is parallel too."""
    if not backend.threads:
        for turn in turns:
            work(turn)
        return
    with blas_threads(1), ThreadPoolExecutor() as pool:
        list(pool.map(work, turns))


class _Rows:
    """Some queries against the whole corpus, tile by tile."""

    def __init__(
        self, queries: Any, documents: Any, rows: Array, similarity: str, place: Array, backend: Backend
    ) -> None:
        self.queries, self.documents, self.rows, self.similarity = queries, documents, rows, similarity
        self.place, self.backend = place, backend

    def ranks_of(self, row: Array, document: Array, depth: int) -> tuple[Array, Array]:
        """Ranks of (row, document) pairs, every row at least once, and each query's best document."""
        own = self._exact(row, document)
        order = np.lexsort((own, row))
        row, document, own = row[order], document[order], own[order]
        pairs = Beaten(row, document, own, self._exact, self.place, depth)
        queries = block(take(self.queries, self.rows), 0, len(self.rows), self.similarity)
        margin, width, right = margin_of(queries)[row], tile_width(self.documents), columns(self.backend, queries)
        best, top = document[pairs.last], np.full(len(self.rows), -np.inf, np.float32)
        for start in range(0, len(self.documents), width):
            docs = block(self.documents, start, min(start + width, len(self.documents)), self.similarity)
            slack = margin * longest(docs, self.similarity)
            low, high = _single(own - slack, -np.inf), _single(own + slack, np.inf)
            top = np.maximum(top, low[pairs.last])
            found, column, score = self.backend.reaching(product(self.backend, docs, right), pairs.bar(low, top))
            better = np.flatnonzero(score > top[column])
            better = better[np.lexsort((-better, score[better], column[better]))]  # of a column, the last one stays
            best[column[better]], top[column[better]] = start + found[better], score[better]
            pairs.count(column, start + found, score, low, high)
        pairs.settle()
        first = pairs.beaten == 0
        best[row[first]] = document[first]  # a tie for the first place is settled
        rank = np.empty(len(row), np.int64)
        rank[order] = np.where(pairs.beaten < depth, pairs.beaten + 1, LOST)
        return rank, best

    def _exact(self, row: Array, document: Array) -> Array:
        return exact(self.queries, self.documents, self.rows[row], document, self.similarity)


def margin_of(queries: Block) -> Array:
    """What a product may be wrong by, for each query, per unit of document length.

    As many roundings as there are terms, a quarter more for the lengths that were divided by, and a few for the rest.
    """
    rows = queries.rows if isinstance(queries, Tokens) else queries
    most = ROUNDING * (1.25 * rows.shape[1] + 8)
    if isinstance(queries, Tokens):
        return np.asarray(most * np.diff(np.append(queries.starts, len(rows))))  # one error a token
    return np.asarray(most * np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64)))


def longest(documents: Block, similarity: str) -> float:
    """The length of the longest document, or 1."""
    if similarity != "dot" or isinstance(documents, Tokens):
        return 1.0 + 1e-6  # of unit length, but for rounding
    return float(np.sqrt(np.einsum("nd,nd->n", documents, documents).max(initial=1.0)))


def _single(bound: Array, towards: float) -> Array:
    """A bound in float32, moved outwards rather than rounded inwards."""
    return np.nextafter(bound.astype(np.float32), np.float32(towards))


def take(vectors: Any, rows: Array) -> Any:
    """Some rows of a matrix, or some of a list of matrices."""
    return [vectors[row] for row in rows] if isinstance(vectors, list) else vectors[rows]


def candidate_ranks(
    queries: Any, documents: Any, query: Array, document: Array, similarity: str, place: Array
) -> tuple[Array, Array]:
    """Rank of each candidate among its query's own candidates, and the best one of every query (-1: none offered)."""
    for vectors in (queries, documents):
        check(vectors, similarity)  # also where no query asks for it
    score = exact(queries, documents, query, document, similarity)
    best_first = np.lexsort((place[document], -score, query))
    turn = np.arange(len(score)) - np.searchsorted(query[best_first], query[best_first])
    rank, best = np.empty(len(score), np.int64), np.full(len(queries), -1, np.int64)
    rank[best_first] = turn + 1
    best[query[rank == 1]] = document[rank == 1]
    return rank, best
