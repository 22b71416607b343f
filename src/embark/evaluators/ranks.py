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
from embark.evaluators.similarity import Block, Tokens, block, check, exact, product, rows_that_fit, tokens_an_item
from embark.evaluators.threads import blas_threads
from embark.settings import cores
from embark.types import Array

MEMORY = 256 << 20  # bytes that scoring may hold
WIDTH = 512  # documents of a tile: its scores are compared while they lie in cache
PAIRS = 4096  # relevant documents of a tile: where a model gives all documents one score, each meets a whole tile
ROUNDING = 2.0**-24  # of float32; a product of n terms may err by n of them, and numbers of one size do err so
CORES = cores()
FEW = 64  # queries a core from which sharing them out pays: every share scales the documents for itself
SPARSE = 4  # one in so many scores, or fewer, reaches a relevant document: then only those are looked at
SORT_FROM = 24  # relevant documents a query from which sorting a tile beats comparing it with each


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
    """Rank of `document[i]` for `query[i]` among all documents, and a best document of every query (-1: not asked)."""
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    own = exact(queries, documents, query, document, similarity)
    asked, row = np.unique(query, return_inverse=True)
    order = np.argsort(row, kind="stable")
    height = min(tile_height(queries, len(asked), memory, backend), max(1, PAIRS * len(asked) // max(1, len(query))))
    cuts = np.searchsorted(row[order], np.arange(0, len(asked) + height, height))
    rank, best = np.empty(len(query), np.int64), np.full(len(queries), -1, np.int64)

    def work(turn: int) -> None:
        rows, mine = asked[turn * height : (turn + 1) * height], order[cuts[turn] : cuts[turn + 1]]
        tile = _Rows(queries, documents, rows, similarity, place, backend)
        rank[mine], best[rows] = tile.ranks_of(row[mine] - turn * height, document[mine], own[mine])

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


def tile_width(documents: Any, backend: Backend) -> int:
    """Documents a tile: as many as suit the backend, or as a block holds."""
    return min(WIDTH * backend.wide, rows_that_fit(documents))


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
        self.all_queries, self.documents, self.rows, self.similarity = queries, documents, rows, similarity
        self.place, self.backend = place, backend
        self.queries = block(take(queries, rows), 0, len(rows), similarity)

    def ranks_of(self, row: Array, document: Array, own: Array) -> tuple[Array, Array]:
        """Ranks of (row, document) pairs, by rising row, whose exact scores are `own`; each query's best document."""
        margin = margin_of(self.queries)[row]
        beaten = np.zeros(len(row), np.int64)
        best, top = np.zeros(len(self.rows), np.int64), np.full(len(self.rows), -np.inf, np.float32)
        width = tile_width(self.documents, self.backend)
        for start in range(0, len(self.documents), width):
            docs = block(self.documents, start, min(start + width, len(self.documents)), self.similarity)
            scores = product(self.backend, self.queries, docs)
            slack = margin * longest(docs, self.similarity)
            over, which, column, value = _above(self.backend, scores, row, own - slack, own + slack)
            beaten += over
            if len(which):
                beaten += self._close(row, document, own, which, start, column)
            if len(better := np.flatnonzero(value > top)):
                best[better], top[better] = start + self.backend.best(scores, better), value[better]
        first = beaten == 0
        best[row[first]] = document[first]  # a tie for the first place is settled
        return beaten + 1, best

    def _close(self, row: Array, document: Array, own: Array, which: Array, start: int, column: Array) -> Array:
        """How many of the documents that come close to a pair's own score really beat it."""
        rival = start + column != document[which]
        which, column = which[rival], column[rival]
        if not len(which):
            return np.zeros(len(row), np.int64)
        other, width = start + column, int(column.max()) + 1
        cell, back = np.unique(row[which] * width + column, return_inverse=True)  # pairs of a query may meet the same
        query, rest = np.divmod(cell, width)
        score = exact(self.all_queries, self.documents, self.rows[query], start + rest, self.similarity)[back]
        wins = (score > own[which]) | ((score == own[which]) & (self.place[other] < self.place[document[which]]))
        return np.bincount(which[wins], minlength=len(row))


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


Above = tuple[Array, Array, Array]  # how many scores beat each pair; (which, column) of those that come close


def _above(backend: Backend, scores: Any, row: Array, low: Array, high: Array) -> tuple[Array, Array, Array, Array]:
    """As the backend's `above`, for any number of pairs by rising row, and the largest score of each row.

    The way is chosen by what the tile holds. A largest score below all of its row's pairs need not be found.
    """
    height, width = scores.shape
    pairs = np.bincount(row, minlength=height)
    first = np.cumsum(pairs) - pairs
    low, high = _single(low, -np.inf), _single(high, np.inf)
    reached = backend.reaching(scores, np.minimum.reduceat(low, first), height * width // (SPARSE * int(pairs.max())))
    if reached is not None:
        return _above_sparse(*reached, width, low, high, pairs, first)
    if len(row) > SORT_FROM * height:
        found = _above_sorted(np.asarray(scores.cpu() if hasattr(scores, "cpu") else scores), row, low, high)
    else:
        found = _above_dense(backend, scores, row, low, high, np.arange(len(row)) - first[row])
    return *found, backend.largest(scores)


def _single(bound: Array, towards: float) -> Array:
    """A bound in float32, moved outwards rather than rounded inwards."""
    return np.nextafter(bound.astype(np.float32), np.float32(towards))


def _above_sparse(
    at: Array, score: Array, width: int, low: Array, high: Array, pairs: Array, first: Array
) -> tuple[Array, Array, Array, Array]:
    """Few documents reach any of their query's relevant ones: compare those, with its first, its second…"""
    height = len(pairs)
    starts = np.searchsorted(at, np.arange(height + 1) * width)
    counts = np.diff(starts)
    over, which, where = np.zeros(len(low), np.int64), [], []
    for turn in range(int(pairs.max())):
        has = pairs > turn
        pair = np.where(has, first + turn, 0)
        least, most = (np.repeat(np.where(has, bound[pair], np.float32(np.inf)), counts) for bound in (low, high))
        above = score > most
        over[pair[has]] = np.diff(np.searchsorted(np.flatnonzero(above), starts))[has]
        close = np.flatnonzero((score >= least) ^ above)
        which.append(pair[np.searchsorted(starts, close, side="right") - 1])
        where.append(at[close] % width)
    value = np.full(height, -np.inf, np.float32)
    if len(at):
        value[counts > 0] = np.maximum.reduceat(score, starts[:-1][counts > 0])
    return over, np.concatenate(which), np.concatenate(where), value


def _above_dense(backend: Backend, scores: Any, row: Array, low: Array, high: Array, turn: Array) -> Above:
    """A pass for the first pair of each row, one for the second, …"""
    over, between = np.empty(len(row), np.int64), []
    for t in range(int(turn.max()) + 1):
        now = np.flatnonzero(turn == t)
        over[now], which, column = backend.above(scores, row[now], low[now], high[now])
        between.append((now[which], column))
    which, column = (np.concatenate(parts) for parts in zip(*between, strict=True))
    return over, which, column


def _above_sorted(scores: Array, row: Array, low: Array, high: Array) -> Above:
    """By sorting each row once and looking its pairs up; they come by rising row."""
    order = np.argsort(scores, axis=1)
    first, last = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
    for mine in np.split(np.arange(len(row)), np.flatnonzero(np.diff(row)) + 1):
        rising = scores[row[mine[0]], order[row[mine[0]]]]
        first[mine], last[mine] = np.searchsorted(rising, low[mine]), np.searchsorted(rising, high[mine], side="right")
    which = np.repeat(np.arange(len(row)), last - first)
    at = np.arange(len(which)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return scores.shape[1] - last, which, order[row[which], first[which] + at]


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
