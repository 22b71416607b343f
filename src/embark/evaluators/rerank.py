"""Re-ranking: the best documents of a first ranking change places among themselves; the others keep theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators.ranks import MEMORY, candidate_ranks, take, tie_places
from embark.evaluators.topk import topk
from embark.types import Array, Candidates, Qrels


class Reranked(NamedTuple):
    """Pairs that were scored again: positions of query and document, and the new score. No pair comes twice."""

    query: Array
    document: Array
    score: Array


def shortlist(
    truth: Qrels | Candidates, vectors: Mapping[str, Any], params: Mapping[str, Any], depth: int
) -> tuple[Array, Array]:
    """(query, document) of the `depth` best documents of each judged query, of those that the task offers it."""
    queries, documents, similarity = vectors["query"], vectors["document"], params.get("similarity", "cosine")
    if isinstance(truth, Candidates) or params.get("judged_only"):
        pairs = np.unique(np.stack([truth.query, truth.document], 1), axis=0)
        query, document = pairs[:, 0], pairs[:, 1]
        place = tie_places(truth.document_ids, len(documents))
        rank, _ = candidate_ranks(queries, documents, query, document, similarity, place)
        return query[rank <= depth], document[rank <= depth]
    asked = np.unique(truth.query)
    memory = params.get("memory", MEMORY)
    best, _ = topk(take(queries, asked), documents, depth, similarity, ids=truth.document_ids, memory=memory)
    return np.repeat(asked, best.shape[1]), best.ravel()


def reordered(
    query: Array, document: Array, rank: Array, best: Array, second: Reranked | None, place: Array
) -> tuple[Array, Array]:
    """Ranks of (query, document) pairs, and the best document of each query, after the second scoring."""
    if second is None or not len(second.query):
        return rank, best
    order = np.lexsort((place[second.document], -second.score, second.query))
    sorted_query = second.query[order]
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(1, len(order) + 1) - np.searchsorted(sorted_query, sorted_query)
    cells = second.query * len(place) + second.document
    by_cell, wanted = np.argsort(cells), query * len(place) + document
    at = by_cell[np.minimum(np.searchsorted(cells, wanted, sorter=by_cell), len(cells) - 1)]
    best = best.copy()
    best[second.query[turn == 1]] = second.document[turn == 1]
    return np.where(cells[at] == wanted, turn[at], rank), best
