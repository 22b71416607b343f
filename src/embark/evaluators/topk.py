"""The k best documents of every query, exactly, for any corpus: ranked lists to show, export or re-rank.

Documents are scored in blocks. Each query has a threshold, the k-th best score so far, and only documents near or above
it become candidates, so that after the first small block nearly all of the work is the matrix product. Scores and ties
are those of `ranks`; memory holds a tile, and a few times k candidates for each query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.evaluators.backend import Backend, backend_for
from embark.evaluators.ranks import MEMORY, QueryRows, tie_places, tile_shape
from embark.evaluators.threads import CORES, on_all_cores
from embark.types import Array, EmbarkError

Candidates = tuple[Array, Array, Array]  # row of a query, document, score
SLACK = 2  # candidates are pruned when there are more than SLACK × k for each query


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

    The order is exact; a score is that of the float32 product wherever that decides the order.
    """
    if k < 1 or not len(documents):
        raise EmbarkError(f"Cannot take the {k} best of {len(documents)} documents.")
    k = min(k, len(documents))
    place = tie_places(ids, len(documents))
    backend = backend or backend_for(float(len(queries)) * len(documents) * np.size(queries[0]))
    share = -(-len(queries) // CORES) if backend.threads else len(queries)  # queries for each core
    height, width = tile_shape(queries, documents, share, memory, backend)
    positions = np.empty((len(queries), k), np.int64)
    scores = np.empty((len(queries), k), np.float32)

    def work(start: int) -> None:
        rows = np.arange(start, min(start + height, len(queries)))
        positions[rows], scores[rows] = _best(QueryRows(queries, documents, rows, width, similarity, backend), k, place)

    on_all_cores(work, range(0, len(queries), height), backend.threads)
    return positions, scores


def _best(rows: QueryRows, k: int, place: Array) -> tuple[Array, Array]:
    """Positions and scores of the k best documents of each row, best first."""
    row, document, score, slack = _candidates(rows, k, place)
    order = _falling(row, score, len(rows))
    document, score = document[order], score[order]
    near = (row[1:] == row[:-1]) & (score[:-1] - score[1:] <= 2 * slack[row[1:]])
    unsure = np.flatnonzero(np.append(near, False) | np.append(False, near))  # the product does not decide their order
    if rows.similarity == "maxsim":  # a sum over tokens: its rounding shows in the score
        unsure = np.arange(len(row))
    score[unsure] = rows.exact(row[unsure], document[unsure])
    settled = unsure[np.lexsort((place[document[unsure]], -score[unsure], row[unsure]))]  # neighbors swap
    document[unsure], score[unsure] = document[settled], score[settled]
    rank, _ = _ranks_in_rows(row, len(rows))
    return document[rank < k].reshape(-1, k), score[rank < k].reshape(-1, k)


def _candidates(rows: QueryRows, k: int, place: Array) -> tuple[Array, Array, Array, Array]:
    """Row, document and score of all that may be among the k best of a row, and each row's largest error.

    The first block of documents sets the thresholds; whenever candidates become too many, those below them are dropped.
    """
    slack = np.zeros(len(rows))
    threshold = np.full(len(rows), -np.inf)
    candidates: list[Candidates] = []
    most = SLACK * k * len(rows)
    start = 0
    while start < len(place):
        stop = min(start + (rows.width if start else max(rows.width, 2 * k)), len(place))
        scores, error = rows.scores(start, stop)
        slack = np.maximum(slack, error)
        if not start:
            threshold = rows.backend.kth_best(scores, k)
        reach = np.nextafter((threshold - 2 * slack).astype(np.float32), np.float32(-np.inf))
        reached = rows.backend.at_least(scores, reach)
        assert reached is not None  # no limit was set
        document, row, score = reached
        candidates.append((row, start + document, score))
        if sum(len(row) for row, _, _ in candidates) > most:
            row, document, score, threshold = _pruned(candidates, k, slack)
            if len(row) > most:  # nearly all documents score alike
                row, document, score = _k_best(row, document, rows.exact(row, document), k, place)
            candidates = [(row, document, score)]
        start = stop
    row, document, score, _ = _pruned(candidates, k, slack)
    return row, document, score, slack


def _pruned(candidates: list[Candidates], k: int, slack: Array) -> tuple[Array, Array, Array, Array]:
    """Candidates that may be among the k best, if no score is wrong by more than `slack`; and the k-th best score."""
    row, document, score = (np.concatenate(column) for column in zip(*candidates, strict=True))
    order = np.argsort(row.astype(np.uint16) if len(slack) <= 1 << 16 else row, kind="stable")  # radix sort
    row, document, score = row[order], document[order], score[order]
    threshold = np.partition(_table(row, score, len(slack), k), -k, axis=1)[:, -k].astype(np.float64)
    possible = np.flatnonzero(score >= (threshold - 2 * slack)[row])
    return row[possible], document[possible], score[possible], threshold


def _k_best(row: Array, document: Array, score: Array, k: int, place: Array) -> Candidates:
    """The k best of each row, or fewer, best first; equals by place."""
    order = np.lexsort((place[document], -score, row))
    row, document, score = row[order], document[order], score[order]
    rank, _ = _ranks_in_rows(row, int(row[-1]) + 1)
    return row[rank < k], document[rank < k], score[rank < k]


def _falling(row: Array, score: Array, rows: int) -> Array:
    """The order of falling scores within each row; `row` is sorted."""
    _, counts = _ranks_in_rows(row, rows)
    order = np.argsort(-_table(row, score, rows, 1), axis=1)
    first = np.cumsum(counts) - counts
    return np.asarray((first[:, None] + order)[np.arange(order.shape[1]) < counts[:, None]])


def _table(row: Array, score: Array, rows: int, width: int) -> Array:
    """The scores as (rows, at least `width`), padded with -inf."""
    rank, counts = _ranks_in_rows(row, rows)
    table = np.full((rows, max(width, int(counts.max()))), -np.inf, np.float32)
    table[row, rank] = score
    return table


def _ranks_in_rows(row: Array, rows: int) -> tuple[Array, Array]:
    """The number of each entry within its row, from 0, and the number of entries of each row; `row` is sorted."""
    counts = np.bincount(row, minlength=rows)
    return np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts), counts
