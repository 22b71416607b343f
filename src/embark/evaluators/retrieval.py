"""Retrieval: every query ranks the whole corpus.

A document is relevant if its grade is above zero. Queries without judgements are left out and counted; those with
judgements but nothing relevant score zero, as in trec_eval, unless the row says to drop them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from embark import metrics
from embark.evaluators.ranks import LOST, MEMORY, candidate_ranks, ranks, tie_places
from embark.evaluators.rerank import reordered
from embark.evaluators.similarity import check
from embark.types import Array, Candidates, EmbarkError, Qrels, Scores

VERSION = 3
PARAMS = dict.fromkeys(("ignore_identical_ids", "judged_only", "drop_unanswerable"), bool) | {
    "skip_first": (True, False, "hit_rate")
}
LATER = ("hit_rate", "success")  # the measures that skip_first="hit_rate" means
DEPTH = max(metrics.CUTOFFS)  # no measure looks further down
Judged = TypeVar("Judged", Qrels, Candidates)


def evaluate(truth: Qrels, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures over all queries. Parameters, besides similarity and metric:

    ignore_identical_ids   a query never retrieves the document of its own id
    skip_first             every query's first result is dropped, whatever it is; "hit_rate": for that measure alone
    judged_only            only the documents that the qrels list for a query are ranked for it
    drop_unanswerable      queries with judgements but nothing relevant are left out, instead of scoring zero

    `vectors["reranked"]`, if there, is what a re-ranker made of the first ranking.
    """
    queries, documents = vectors["query"], vectors["document"]
    if not len(documents):
        raise EmbarkError("The corpus is empty: there is nothing to retrieve.")
    truth = distinct(truth)
    query, document, grade = relevant(truth, len(queries), len(documents))
    similarity, place = params.get("similarity", "cosine"), tie_places(truth.document_ids, len(documents))
    check(queries, similarity)
    asked = np.unique(query if params.get("drop_unanswerable") else truth.query)
    if params.get("judged_only"):
        if params.get("ignore_identical_ids"):
            raise EmbarkError("'judged_only' and 'ignore_identical_ids' cannot go together: judge it 0 instead.")
        pairs = truth.query, truth.document
        rank, best = candidate_ranks(queries, documents, *pairs, similarity, place)
        rank, best = reordered(*pairs, rank, best, vectors.get("reranked"), place)
        rank = rank[truth.grade > 0]
    else:
        own_query, own_document = _identical(truth) if params.get("ignore_identical_ids") else (query[:0], document[:0])
        wanted = np.concatenate([query, own_query]), np.concatenate([document, own_document])
        memory = params.get("memory", MEMORY)
        depth = DEPTH + 2  # a query's own document and its first result may leave
        rank, best = ranks(queries, documents, *wanted, similarity, place, memory, depth=depth)
        rank, best = reordered(*wanted, rank, best, vectors.get("reranked"), place)
        rank = _without(query, document, rank[: len(query)], own_query, own_document, rank[len(query) :])
        best[own_query[best[own_query] == own_document]] = -1  # it is not in the ranking
    return summary(asked, query, rank, grade, best, len(queries), "ndcg_at_10", params)


def narrow(truth: Qrels, params: Mapping[str, Any]) -> tuple[Qrels, dict[str, Array]]:
    """Queries without judgements score nothing and hide nothing, so they need no vectors."""
    if truth.query_ids is None:
        return truth, {}
    needed = np.zeros(len(truth.query_ids), bool)
    needed[truth.query] = True
    return truth, {"query": needed}


def distinct(truth: Judged) -> Judged:
    """Each pair once: a document that is listed twice for a query is one document; its larger grade counts."""
    order = np.lexsort((-truth.grade, truth.document, truth.query))
    query, document = truth.query[order], truth.document[order]
    again = np.append(False, (query[1:] == query[:-1]) & (document[1:] == document[:-1]))[: len(order)]
    if not again.any():
        return truth
    kept = np.sort(order[~again])
    return replace(truth, query=truth.query[kept], document=truth.document[kept], grade=truth.grade[kept])


def relevant(truth: Qrels | Candidates, queries: int, documents: int) -> tuple[Array, Array, Array]:
    """The rows of the truth with a positive grade; what it names must exist."""
    for what, index, count in (("queries", truth.query, queries), ("documents", truth.document, documents)):
        if unknown := int(((index < 0) | (index >= count)).sum()):
            raise EmbarkError(f"The relevance judgements name {unknown} {what} that are not among the {count}.")
    positive = truth.grade > 0
    if not positive.any():
        raise EmbarkError("No query has a relevant document: there is nothing to score.")
    return truth.query[positive], truth.document[positive], truth.grade[positive]


def summary(
    asked: Array,
    query: Array,
    rank: Array,
    grade: Array,
    best: Array,
    queries: int,
    default: str,
    params: Mapping[str, Any],
) -> Scores:
    """Means of every measure over the queries asked; outcomes: main value, the first hit's rank, the top document."""
    row = np.searchsorted(asked, query)
    skip = params.get("skip_first")
    skipped = np.where(rank > 1, rank - 1, LOST) if skip else rank
    values = metrics.ranking(row, rank if skip == "hit_rate" else skipped, grade, len(asked))
    if skip == "hit_rate":
        later = metrics.ranking(row, skipped, grade, len(asked))
        values |= {name: later[name] for name in later if name.startswith(LATER)}
    values["accuracy"] = values["recall_at_1"]
    main = params.get("metric", default)
    if main not in values:
        raise EmbarkError(f"Ranking has no measure '{main}'; it has {', '.join(sorted(values))}.")
    drops = skip is True or (skip == "hit_rate" and main.startswith(LATER))  # as the main measure sees it
    first = np.full(len(asked), LOST)
    np.minimum.at(first, row, skipped if drops else rank)
    top = np.full(len(asked), -1) if drops else best[asked]  # the next is not known
    outcomes = {main: values[main], "rank": np.where(first <= DEPTH, first, -1), "top": top}
    empty = len(asked) - len(np.unique(row))
    counts = {"queries": len(asked), "queries left out": queries - len(asked), "queries without positives": empty}
    means = {name: float(value.mean()) for name, value in values.items()}
    return Scores(means, main, "query", asked, outcomes, counts=counts)


def _identical(truth: Qrels) -> tuple[Array, Array]:
    """(query, document) pairs that carry the same id."""
    if truth.query_ids is None or truth.document_ids is None:
        raise EmbarkError("'ignore_identical_ids' needs the ids of queries and documents.")
    _, query, document = np.intersect1d(truth.query_ids, truth.document_ids, return_indices=True)
    return query, document


def _without(
    query: Array, document: Array, rank: Array, own_query: Array, own_document: Array, own_rank: Array
) -> Array:
    """Ranks after every query's own document has left the ranking."""
    if not len(own_query):
        return rank
    size = 1 + max(int(query.max()), int(own_query.max()))
    hidden, gone = np.full(size, -1), np.full(size, LOST)
    hidden[own_query], gone[own_query] = own_document, own_rank
    return np.where(document == hidden[query], LOST, rank - (gone[query] < rank))
