"""Exact ranks of the relevant documents, without ranked lists.

A document's rank is one more than the number of documents that beat it. A matrix product in float32 decides that for
all but the few that come close; those are compared again in float64, rounded to float32. So equal vectors tie wherever
they stand, scores do not depend on how the work is cut, and memory does not grow with the corpus. Ties go as in
trec_eval: equal in float32, the larger document id ranks first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.rank_counter import Beaten
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
from embark.evaluators.threads import CORES, each
from embark.types import Array, EmbarkError

MEMORY = 512 << 20  # bytes that scoring may hold
BYTES = 24  # a score, its comparison, and what is known of the few that count
FEW = 4  # one in so many scores of a tile; if more count, it is cut
WIDTH = 4096  # documents a tile, at most; and at least an eighth of that, if memory allows
ROUNDING = 2.0**-24  # of float32; a product of n terms may err by n of them, and numbers of one size do err so
SHARE = 1024  # exact scores a core at a time
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
    height, width = tile_shape(queries, documents, len(asked), memory, backend)
    cuts = np.searchsorted(row[order], np.arange(0, len(asked) + height, height))
    rank, best = np.empty(len(query), np.int64), np.full(len(queries), -1, np.int64)
    for turn in range(len(cuts) - 1):
        rows, mine = asked[turn * height : (turn + 1) * height], order[cuts[turn] : cuts[turn + 1]]
        some = Rows(queries, documents, rows, width, similarity, backend)
        rank[mine], best[rows] = _ranks_of(some, row[mine] - turn * height, document[mine], place, depth)
    return rank, best


def _ranks_of(rows: Rows, row: Array, document: Array, place: Array, depth: int | None) -> tuple[Array, Array]:
    """Ranks of (row, document) pairs, every row at least once, and each row's best document."""
    own, depth = rows.exact_in_shares(row, document), depth or len(place)
    if not np.isfinite(own).all():
        check(rows.documents, rows.similarity)  # a vector that is not finite is named
        raise EmbarkError("Scores are beyond what float32 holds: scale the vectors, or compare them by cosine.")
    order = np.lexsort((own, row))
    pairs = Beaten(row[order], document[order], own[order], rows.exact, place, depth)

    def count(start: int, stop: int) -> None:
        scores, slack = rows.scores(start, stop)
        low, high = _single(pairs.own - slack[pairs.row], -np.inf), _single(pairs.own + slack[pairs.row], np.inf)
        _count(rows, scores, start, pairs, low, high)

    rows.each_tile(count)
    pairs.settle()
    rank, best = np.empty(len(row), np.int64), pairs.best
    rank[order] = np.where(pairs.beaten < depth, pairs.beaten + 1, LOST)
    best[row[rank == 1]] = document[rank == 1]  # a tie for the first place is settled
    return rank, best


def _count(rows: Rows, scores: Any, start: int, pairs: Beaten, low: Array, high: Array) -> None:
    """Count what beats a pair; if too much does for memory, half by half: one half may raise the bar for the other."""
    most = max(1, rows.width // FEW) * len(rows)
    if found := rows.backend.reaching(scores, pairs.bar(low), most):
        document, row, score = found
        pairs.count(row, start + document, score, low, high)
        return
    for half in (slice(0, len(scores) // 2), slice(len(scores) // 2, len(scores))):
        _count(rows, scores[half], start + half.start, pairs, low, high)


def tile_shape(queries: Any, documents: Any, rows: int, memory: int, backend: Backend) -> tuple[int, int]:
    """(queries, documents) a tile: what suits the backend and fits in memory for every core; queries in even shares."""
    tokens = tokens_an_item(queries)
    scores = min(backend.scores, memory // (BYTES * CORES)) if backend.threads else backend.scores
    most = max(1, min(rows, min(backend.height, 8 * scores // WIDTH) // tokens))
    height = -(-rows // -(-rows // most))
    return height, max(1, min(scores // (height * tokens), WIDTH, rows_that_fit(documents)))


class Rows:
    """Some queries against the whole corpus, a tile of documents at a time."""

    def __init__(
        self, queries: Any, documents: Any, rows: Array, width: int, similarity: str, backend: Backend
    ) -> None:
        self.queries, self.documents, self.rows, self.similarity = queries, documents, rows, similarity
        some = block(take(queries, rows), 0, len(rows), similarity)
        self.width, self.backend = width, backend
        self.margin, self.columns = margin_of(some), columns(backend, some)

    def __len__(self) -> int:
        return len(self.rows)

    def each_tile(self, work: Callable[[int, int], None]) -> None:
        """Do the work for the documents of every tile, from `start` to before `stop`, on all cores."""
        tiles = range(0, len(self.documents), self.width)
        each(lambda at: work(at, min(at + self.width, len(self.documents))), tiles, self.backend.threads)

    def scores(self, start: int, stop: int) -> tuple[Any, Array]:
        """Scores (documents, queries) by the backend's product, and what those of a query may be wrong by."""
        some = block(self.documents, start, stop, self.similarity)
        return product(self.backend, some, self.columns), self.margin * longest(some, self.similarity)

    def exact(self, row: Array, document: Array) -> Array:
        """Scores beyond doubt."""
        return exact(self.queries, self.documents, self.rows[row], document, self.similarity)

    def exact_in_shares(self, row: Array, document: Array) -> Array:
        """The same on all cores."""
        score = np.empty(len(row), np.float32)

        def work(at: int) -> None:
            score[at : at + SHARE] = self.exact(row[at : at + SHARE], document[at : at + SHARE])

        each(work, range(0, len(row), SHARE))
        return score


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
