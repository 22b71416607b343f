"""Re-ranking: new scores reorder the best documents of a first ranking; the others keep their ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators import full_params
from embark.evaluators.heap import heap_lists, ids_of_rows, search_of
from embark.evaluators.ranks import MEMORY, listed_ranks, ranks_by_score, take, tie_places
from embark.evaluators.topk import topk
from embark.types import Array, Qrels


class Reranked(NamedTuple):
    """The re-ranker's scores: positions of query and document, and the score of the pair. No pair comes twice."""

    query: Array
    document: Array
    score: Array


def shortlist(
    kind: str, truth: Qrels, vectors: Mapping[str, Any], params: Mapping[str, Any], depth: int
) -> tuple[Array, Array]:
    """(query, document) of the `depth` best documents of each judged query, as the evaluator `kind` ranks them."""
    params = full_params(kind, params)
    queries, documents = vectors["query"], vectors["document"]
    similarity = params.get("similarity", "cosine")
    if params.get("judged_only"):
        query, document = np.unique(np.stack([truth.query, truth.document], 1), axis=0).T
        rank, _ = listed_ranks(
            queries, documents, query, document, similarity, tie_places(truth.document_ids, len(documents))
        )
        return query[rank <= depth], document[rank <= depth]
    judged = np.unique(truth.query)
    memory = params.get("memory", MEMORY)
    if truth.repeated:
        lists = heap_lists(queries, documents, judged, depth, ids_of_rows(truth), similarity, search_of(params), memory)
        return np.repeat(judged, [len(ranked) for ranked in lists]), np.concatenate(lists)
    best, _ = topk(take(queries, judged), documents, depth, similarity, ids=truth.document_ids, memory=memory)
    return np.repeat(judged, best.shape[1]), best.ravel()


def reordered(
    query: Array, document: Array, rank: Array, best: Array, reranked: Reranked | None, place: Array
) -> tuple[Array, Array]:
    """Ranks of (query, document) pairs, and the best document of each query, after re-ranking."""
    if reranked is None or not len(reranked.query):
        return rank, best
    new_rank = ranks_by_score(reranked.query, reranked.score, place[reranked.document])
    best = best.copy()
    best[reranked.query[new_rank == 1]] = reranked.document[new_rank == 1]
    pair = query * len(place) + document
    reranked_pair = reranked.query * len(place) + reranked.document
    by_pair = np.argsort(reranked_pair)
    nearest = np.minimum(np.searchsorted(reranked_pair, pair, sorter=by_pair), len(by_pair) - 1)
    position = by_pair[nearest]
    return np.where(reranked_pair[position] == pair, new_rank[position], rank), best
