"""Re-ranking: new scores reorder the best documents of a first ranking; the others keep their ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators import full_params
from embark.evaluators.ranks import MEMORY, listed_ranks, take, tie_places
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
        pairs = np.unique(np.stack([truth.query, truth.document], 1), axis=0)
        query, document = pairs[:, 0], pairs[:, 1]
        place = tie_places(truth.document_ids, len(documents))
        rank, _ = listed_ranks(queries, documents, query, document, similarity, place)
        return query[rank <= depth], document[rank <= depth]
    judged = np.unique(truth.query)
    memory = params.get("memory", MEMORY)
    best, _ = topk(take(queries, judged), documents, depth, similarity, ids=truth.document_ids, memory=memory)
    return np.repeat(judged, best.shape[1]), best.ravel()


def reordered(
    query: Array, document: Array, rank: Array, best: Array, reranked: Reranked | None, place: Array
) -> tuple[Array, Array]:
    """Ranks of (query, document) pairs, and the best document of each query, after re-ranking."""
    if reranked is None or not len(reranked.query):
        return rank, best
    order = np.lexsort((place[reranked.document], -reranked.score, reranked.query))
    sorted_query = reranked.query[order]
    new_rank = np.empty(len(order), np.int64)
    new_rank[order] = np.arange(1, len(order) + 1) - np.searchsorted(sorted_query, sorted_query)
    best = best.copy()
    best[reranked.query[new_rank == 1]] = reranked.document[new_rank == 1]
    pair = query * len(place) + document
    reranked_pair = reranked.query * len(place) + reranked.document
    by_pair = np.argsort(reranked_pair)
    nearest = np.minimum(np.searchsorted(reranked_pair, pair, sorter=by_pair), len(by_pair) - 1)
    position = by_pair[nearest]
    return np.where(reranked_pair[position] == pair, new_rank[position], rank), best
