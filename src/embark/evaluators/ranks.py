"""Exact ranks of the relevant documents, without ranked lists.

A document's rank is one more than the number of documents that beat it. A matrix product in float32 decides that for
all but the few that come close; those are compared again in float64, rounded to float32. So equal vectors tie wherever
they stand, scores do not depend on the tiling, and memory does not grow with the corpus. Ties go as in trec_eval: of
documents with equal scores in float32, the one with the larger id ranks first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, Cuda, backend_for
from embark.evaluators.rank_counter import RankCounter
from embark.evaluators.similarity import (
    Block,
    TokenVectors,
    block,
    check,
    columns,
    exact,
    product,
    rows_that_fit,
    tokens_per_item,
)
from embark.evaluators.threads import CORES, on_all_cores
from embark.types import Array, EmbarkError

MEMORY = 512 << 20  # bytes that scoring may hold
BYTES = 24  # memory for each score of a tile, including its comparison and the copies of the few that count
HALVED_BELOW = 4  # a tile is halved if more than 1 / FEW of its scores count
WIDTH = 4096  # largest number of documents in a tile; at least an eighth of it, if memory allows
ROUNDING = 2.0**-24  # relative rounding error of float32; a sum of n products may be wrong by n of them
UNIT = 1.0 + 1e-6  # the longest of rows of length one, by rounding
SHARE = 1024  # exact scores that a core computes at a time
UNRANKED = np.int64(1) << 60  # stands for the rank of a document that is not in the ranking, or ranks below `depth`


def tie_places(ids: Array | None, documents: int) -> Array:
    """The order of documents with equal scores: by falling id, or by position where there are no ids."""
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
    """Rank of `document[i]` for `query[i]` among all documents, and the best document of every query.

    The best document is -1 for a query that is not in `query`. A rank below the first `depth` is UNRANKED.
    """
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    ranked, row = np.unique(query, return_inverse=True)
    order = np.argsort(row, kind="stable")
    height, width = tile_shape(queries, documents, len(ranked), memory, backend)
    cuts = np.searchsorted(row[order], np.arange(0, len(ranked) + height, height))
    rank = np.empty(len(query), np.int64)
    best = np.full(len(queries), -1, np.int64)
    for tile, (start, stop) in enumerate(pairwise(cuts)):
        pairs = order[start:stop]
        first = tile * height
        rows = QueryRows(queries, documents, ranked[first : first + height], width, similarity, backend)
        rank[pairs], best[rows.rows] = _ranks_of(rows, row[pairs] - first, document[pairs], place, depth)
    return rank, best


def _ranks_of(rows: QueryRows, row: Array, document: Array, place: Array, depth: int | None) -> tuple[Array, Array]:
    """Ranks of (row, document) pairs, every row at least once, and each row's best document."""
    depth = depth or len(place)
    own = rows.exact_in_shares(row, document)
    if not np.isfinite(own).all():
        check(rows.documents, rows.similarity)  # a vector that is not finite is named
        raise EmbarkError("Scores are beyond what float32 holds: scale the vectors, or compare them by cosine.")
    order = np.lexsort((own, row))
    counter = RankCounter(row[order], document[order], own[order], rows.exact, place, depth)

    def count(start: int) -> None:
        scores, slack = rows.scores(start, min(start + rows.width, len(place)))
        low = _float32_bound(counter.own - slack[counter.row], -np.inf)
        high = _float32_bound(counter.own + slack[counter.row], np.inf)
        if isinstance(rows.backend, Cuda) and counter.few:
            counter.count_all(rows.backend, scores, start, low, high)
        else:
            _count(rows, scores, start, counter, low, high)

    on_all_cores(count, range(0, len(place), rows.width), rows.backend.threads)
    counter.settle()
    rank = np.empty(len(row), np.int64)
    rank[order] = np.where(counter.beaten_by < depth, counter.beaten_by + 1, UNRANKED)
    best = counter.best
    best[row[rank == 1]] = document[rank == 1]  # the counter's best may be wrong in a near tie
    return rank, best


def _count(rows: QueryRows, scores: Any, start: int, counter: RankCounter, low: Array, high: Array) -> None:
    """Count the scores of a tile.

    A tile with too many scores above the thresholds is counted in halves: the first half may raise the thresholds of
    the second.
    """
    most = max(1, rows.width // HALVED_BELOW) * len(rows)
    if counted := rows.backend.at_least(scores, counter.threshold(low), most):
        document, row, score = counted
        counter.count(row, start + document, score, low, high)
        return
    for half in (slice(0, len(scores) // 2), slice(len(scores) // 2, len(scores))):
        _count(rows, scores[half], start + half.start, counter, low, high)


def tile_shape(queries: Any, documents: Any, rows: int, memory: int, backend: Backend) -> tuple[int, int]:
    """(queries, documents) of a tile for so many `rows` of queries: fast on the backend and within memory.

    Queries are cut into tiles of about the same height.
    """
    tokens = tokens_per_item(queries)
    scores = min(backend.scores, memory // (BYTES * CORES)) if backend.threads else backend.scores
    most = max(1, min(rows, min(backend.height, 8 * scores // WIDTH) // tokens))
    height = -(-rows // -(-rows // most))
    return height, max(1, min(scores // (height * tokens), WIDTH, rows_that_fit(documents)))


class QueryRows:
    """The queries at `rows` against the whole corpus, a tile of `width` documents at a time."""

    def __init__(
        self, queries: Any, documents: Any, rows: Array, width: int, similarity: str, backend: Backend
    ) -> None:
        self.queries = queries
        self.documents = documents
        self.rows = rows
        self.width = width
        self.similarity = similarity
        self.backend = backend
        query_block = block(take(queries, rows), 0, len(rows), similarity)
        self.margin = margin_of(query_block)
        self.columns = columns(backend, query_block)

    def __len__(self) -> int:
        return len(self.rows)

    def scores(self, start: int, stop: int) -> tuple[Any, Array]:
        """Scores (documents, queries) by the backend's product, and the largest error of each query's scores."""
        if isinstance(self.backend, Cuda) and self.similarity != "maxsim":
            unit = self.similarity == "cosine"
            if on_device := self.backend.block(self.documents, start, stop, unit):
                rows, length = on_device
                return self.backend.product(rows, self.columns), self.margin * (UNIT if unit else max(length, 1.0))
        documents = block(self.documents, start, stop, self.similarity)
        return product(self.backend, documents, self.columns), self.margin * longest(documents, self.similarity)

    def exact(self, row: Array, document: Array) -> Array:
        """Exact scores of (row, document) pairs."""
        return exact(self.queries, self.documents, self.rows[row], document, self.similarity)

    def exact_in_shares(self, row: Array, document: Array) -> Array:
        """Exact scores of (row, document) pairs, on all cores."""
        score = np.empty(len(row), np.float32)

        def work(start: int) -> None:
            share = slice(start, start + SHARE)
            score[share] = self.exact(row[share], document[share])

        on_all_cores(work, range(0, len(row), SHARE))
        return score


def margin_of(queries: Block) -> Array:
    """The largest error of a product for each query, per unit of document length.

    The error bound is one rounding for each term, a quarter more for the division by lengths, and a few for the rest.
    """
    rows = queries.rows if isinstance(queries, TokenVectors) else queries
    error = ROUNDING * (1.25 * rows.shape[1] + 8)
    if isinstance(queries, TokenVectors):
        return np.asarray(error * np.diff(np.append(queries.starts, len(rows))))  # errors of all tokens add up
    return np.asarray(error * np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64)))


def longest(documents: Block, similarity: str) -> float:
    """The length of the longest document, at least 1."""
    if similarity != "dot" or isinstance(documents, TokenVectors):
        return UNIT
    return float(np.sqrt(np.einsum("nd,nd->n", documents, documents).max(initial=1.0)))


def _float32_bound(bound: Array, towards: float) -> Array:
    """The bound in float32, rounded towards `towards`, so that it is never too tight."""
    return np.nextafter(bound.astype(np.float32), np.float32(towards))


def take(vectors: Any, rows: Array) -> Any:
    """The rows of a matrix, or of a list of matrices, at these positions."""
    return [vectors[row] for row in rows] if isinstance(vectors, list) else vectors[rows]


def listed_ranks(
    queries: Any, documents: Any, query: Array, document: Array, similarity: str, place: Array
) -> tuple[Array, Array]:
    """Rank of each listed document among those of its query, and the best one of every query (-1: none listed)."""
    for vectors in (queries, documents):
        check(vectors, similarity)  # also those that no pair needs
    rank = ranks_by_score(query, exact(queries, documents, query, document, similarity), place[document])
    best = np.full(len(queries), -1, np.int64)
    best[query[rank == 1]] = document[rank == 1]
    return rank, best


def ranks_by_score(query: Array, score: Array, place: Array) -> Array:
    """Rank of each entry among those of its query: by falling score, then by place."""
    order = np.lexsort((place, -score, query))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1) - np.searchsorted(query[order], query[order])
    return rank
