"""Retrieval: every query ranks the whole corpus.

Queries without a relevant document are left out and counted. A document is relevant if its grade is above zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark import metrics
from embark.evaluators.ranks import ranks, tie_places
from embark.types import Array, EmbarkError, Qrels, Scores

VERSION = 1


def evaluate(truth: Qrels, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures over all queries. Parameters: similarity, metric."""
    queries, documents = vectors["query"], vectors["document"]
    if not len(documents):
        raise EmbarkError("The corpus is empty: there is nothing to retrieve.")
    relevant = truth.grade > 0
    query, document, grade = truth.query[relevant], truth.document[relevant], truth.grade[relevant]
    asked, row = np.unique(query, return_inverse=True)
    if not len(asked):
        raise EmbarkError("No query has a relevant document: there is nothing to score.")
    place = tie_places(truth.document_ids, len(documents))
    rank, best = ranks(queries, documents, query, document, params.get("similarity", "cosine"), place)
    values = metrics.ranking(row, rank, grade, len(asked))
    return summary(values, params.get("metric", "ndcg_at_10"), asked, row, rank, best[asked], len(queries) - len(asked))


def summary(
    values: Mapping[str, Array], main: str, asked: Array, row: Array, rank: Array, best: Array, dropped: int
) -> Scores:
    """Means of every measure; outcomes are the main value, the first hit's rank and the top document."""
    first = np.full(len(asked), np.iinfo(np.int64).max)
    np.minimum.at(first, row, rank)
    means = {name: float(value.mean()) for name, value in values.items()}
    means["accuracy"] = means["recall_at_1"]
    if main not in means:
        raise EmbarkError(f"Ranking has no measure '{main}'; it has {', '.join(sorted(means))}.")
    outcomes = {main: values["recall_at_1" if main == "accuracy" else main], "rank": first, "top": best}
    counts = {"queries": len(asked), "queries without positives": dropped}
    return Scores(means, main, "query", asked, outcomes, counts=counts)
