"""Choice: every query ranks its own candidates; accuracy is recall at 1. Queries without a right one are left out.

Visual and temporal grounding and moment retrieval are choices too: among crops, segments or moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark.evaluators.ranks import candidate_ranks, tie_places
from embark.evaluators.rerank import reordered
from embark.evaluators.retrieval import distinct, relevant, summary
from embark.types import Candidates, Scores

VERSION = 2


def evaluate(truth: Candidates, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures within each query's candidates. Parameters: similarity, metric."""
    queries, documents = vectors["query"], vectors["document"]
    truth = distinct(truth)
    query, _, grade = relevant(truth, len(queries), len(documents))
    place = tie_places(truth.document_ids, len(documents))
    similarity = params.get("similarity", "cosine")
    pairs = truth.query, truth.document
    rank, best = candidate_ranks(queries, documents, *pairs, similarity, place)
    rank, best = reordered(*pairs, rank, best, vectors.get("reranked"), place)
    return summary(np.unique(query), query, rank[truth.grade > 0], grade, best, len(queries), "accuracy", params)
