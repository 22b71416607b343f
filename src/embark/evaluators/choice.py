"""Choice: every query ranks its own candidates; accuracy is how often a right one comes first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark import metrics
from embark.evaluators.ranks import tie_places
from embark.evaluators.retrieval import summary
from embark.evaluators.similarity import whole
from embark.types import Array, Candidates, EmbarkError, Scores

VERSION = 1
PAIRS = 65_536  # pairs compared at a time


def evaluate(truth: Candidates, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures within each query's candidates. Parameters as for retrieval; the default metric is accuracy."""
    similarity = params.get("similarity", "cosine")
    queries, documents = whole(vectors["query"], similarity), whole(vectors["document"], similarity)
    score = _pair_scores(queries, documents, truth.query, truth.document)
    place = tie_places(truth.document_ids, len(documents))
    best_first = np.lexsort((place[truth.document], -score, truth.query))
    starts = np.searchsorted(truth.query[best_first], truth.query[best_first])
    rank = np.empty(len(score), np.int64)
    rank[best_first] = np.arange(len(score)) - starts + 1

    relevant = truth.grade > 0
    asked, row = np.unique(truth.query[relevant], return_inverse=True)
    if not len(asked):
        raise EmbarkError("No query has a right candidate: there is nothing to score.")
    values = metrics.ranking(row, rank[relevant], truth.grade[relevant], len(asked))
    winner = np.zeros(len(queries), np.int64)
    winner[truth.query[rank == 1]] = truth.document[rank == 1]
    main = params.get("metric", "accuracy")
    return summary(values, main, asked, row, rank[relevant], winner[asked], len(queries) - len(asked))


def _pair_scores(queries: Array, documents: Array, query: Array, document: Array) -> Array:
    score = np.empty(len(query), np.float32)
    for at in range(0, len(query), PAIRS):
        rows = slice(at, at + PAIRS)
        np.einsum("nd,nd->n", queries[query[rows]], documents[document[rows]], out=score[rows])
    return score
