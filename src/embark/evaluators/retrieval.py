"""Retrieval: every query ranks the whole corpus, or only the documents that are listed for it.

A document is relevant if its grade is above zero. Queries without judgements are left out and counted; those with
judgements but nothing relevant score zero, as in trec_eval, unless the row says to drop them too. Positives outside the
corpus count in the ideal gain and in recall's denominator, as in trec_eval; nothing can retrieve them.
Where several rows have one id, one of them counts for each query: the one that mteb's search takes (`heap`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embark import metrics
from embark.evaluators.heap import HEAP_ENTRIES, SEARCHES, first_rows, heap_ranks, ids_of_rows, search_of
from embark.evaluators.ranks import MEMORY, UNRANKED, listed_ranks, ranks, tie_places
from embark.evaluators.rerank import reordered
from embark.evaluators.similarity import check
from embark.metrics import Measure
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Option, Qrels, Scores

PARAMS = {
    "ignore_identical_ids": Option(bool, "A query never retrieves the document of its own id."),
    "judged_only": Option(bool, "Only the documents that the qrels list for a query are ranked for it."),
    "drop_unanswerable": Option(bool, "Queries with nothing relevant are left out, instead of scoring zero."),
    "skip_first": Option(
        (True, False, "hit_rate"), "Every query's first result is dropped, whatever it is; hit_rate: for it alone."
    ),
    "heap": Option(
        tuple(SEARCHES), "Of rows with one id, the one that counts, as mteb 1 or mteb 2 takes it (default: mteb2)."
    ),
}
HIT_RATES = ("hit_rate", "success")  # the measures that skip_first="hit_rate" is about


def evaluate(truth: Qrels, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures over all queries. Parameters: similarity, metric and those of `PARAMS`.

    `vectors["reranked"]`, if there is any, holds a re-ranker's scores (`Reranked`) of the best documents.
    """
    queries, documents = vectors["query"], vectors["document"]
    if not len(documents):
        raise EmbarkError("The corpus is empty: there is nothing to retrieve.")
    truth = distinct(truth)
    query, document, grade = relevant(truth, len(queries), len(documents))
    similarity = params.get("similarity", "cosine")
    place = tie_places(truth.document_ids, len(documents))
    if params.get("judged_only"):
        if params.get("ignore_identical_ids"):
            raise EmbarkError("'judged_only' and 'ignore_identical_ids' exclude each other: grade own documents 0.")
        if truth.repeated:
            raise EmbarkError("With 'judged_only', an id is one row: set the reader's option repeated='last'.")
        pairs = truth.query, truth.document
        rank, best = listed_ranks(queries, documents, *pairs, similarity, place)
        rank, best = reordered(*pairs, rank, best, vectors.get("reranked"), place)
        rank = rank[truth.grade > 0]
    else:
        check(queries, similarity)
        own_query, own_document = _identical(truth) if params.get("ignore_identical_ids") else (query[:0], document[:0])
        pairs = np.concatenate([query, own_query]), np.concatenate([document, own_document])
        memory = params.get("memory", MEMORY)
        # Two more than the measures need: a query's own document and its first result may be removed.
        if truth.repeated:
            if _depth(params) > HEAP_ENTRIES:
                raise EmbarkError(
                    f"Several rows have one id, so rankings end at {HEAP_ENTRIES:,}: lower the metric's cut-off."
                )
            ids, search = ids_of_rows(truth), search_of(params)
            rank, best = heap_ranks(queries, documents, *pairs, ids, similarity, search, memory)
        else:
            rank, best = ranks(queries, documents, *pairs, similarity, place, memory, depth=_depth(params) + 2)
        rank, best = reordered(*pairs, rank, best, vectors.get("reranked"), place)
        rank = _without(query, document, rank[: len(query)], own_query, own_document, rank[len(query) :])
        best[own_query[best[own_query] == own_document]] = -1  # it is not in the ranking
    return _over_queries(truth, query, rank, grade, best, len(queries), params)


def evaluate_lists(truth: Qrels, ranked: Array, documents: int, params: Mapping[str, Any]) -> Scores:
    """The measures of ranked lists that something else retrieved: (queries, k) positions of documents, best first.

    -1 stands for no document. What is not in a list counts as not retrieved, so that measures deeper than k say little.
    """
    if params.get("judged_only"):
        raise EmbarkError("Queries that rank only the documents listed for them need no index.")
    if truth.repeated:
        raise EmbarkError("Several rows have one id here: no index ranks them as mteb does. Leave the task out.")
    truth = distinct(truth)
    query, document, grade = relevant(truth, len(ranked), documents)
    own_query, own_document = _identical(truth) if params.get("ignore_identical_ids") else (query[:0], document[:0])
    rank = _list_ranks(ranked, documents, np.concatenate([query, own_query]), np.concatenate([document, own_document]))
    rank = _without(query, document, rank[: len(query)], own_query, own_document, rank[len(query) :])
    best = ranked[:, 0].astype(np.int64)
    best[own_query[best[own_query] == own_document]] = -1  # it is not in the ranking
    return _over_queries(truth, query, rank, grade, best, len(ranked), params)


def narrow(truth: Qrels, params: Mapping[str, Any]) -> tuple[Qrels, dict[str, Array]]:
    """The truth as it is, and a mask of the queries with judgements: only these are scored and need vectors."""
    if truth.query_ids is None:
        return truth, {}
    needed = np.zeros(len(truth.query_ids), bool)
    needed[truth.query] = True
    if truth.outside is not None:
        needed |= (truth.outside > 0).any(1)
    if truth.repeated:
        needed = needed[first_rows(ids_of_rows(truth)[0])[0]]  # the first row of an id stands for all of them
    return truth, {"query": needed}


def constant(truth: Qrels, params: Mapping[str, Any]) -> tuple[float, list[str]] | None:
    """The value of the main measure where it is the same for every model, and the measures that tell something."""
    design = [name for name in ("judged_only", "skip_first", "ignore_identical_ids") if params.get(name)]
    design += ["repeated"] * truth.repeated  # the rows of a few ids may fill a query's list
    if truth.document_ids is None or truth.outside is not None or design or not (truth.grade > 0).any():
        return None
    documents = len(truth.document_ids)
    judged = distinct(truth)
    relevant = np.unique(judged.query[judged.grade > 0], return_counts=True)[1]
    irrelevant = documents - int(relevant.min())  # of the query that has the fewest relevant documents

    def is_constant(measure: str) -> bool:
        parsed = Measure.parse(measure)
        if parsed.cutoff is None:
            return False
        if not irrelevant:
            return True
        if parsed.name in HIT_RATES:
            return irrelevant < parsed.cutoff
        return parsed.name == "recall" and documents <= parsed.cutoff

    if not is_constant(RETRIEVAL.metric(params)):
        return None
    return 1.0, [name for name in ("hit_rate_at_1", "ndcg_at_10") if not is_constant(name)]


def distinct(truth: Qrels) -> Qrels:
    """The judgements with each (query, document) pair once; of a pair that is listed twice, the larger grade counts."""
    order = np.lexsort((-truth.grade, truth.document, truth.query))
    query, document = truth.query[order], truth.document[order]
    repeated = np.append(False, (query[1:] == query[:-1]) & (document[1:] == document[:-1]))[: len(order)]
    if not repeated.any():
        return truth
    rows = np.sort(order[~repeated])
    return replace(truth, query=truth.query[rows], document=truth.document[rows], grade=truth.grade[rows])


def relevant(truth: Qrels, queries: int, documents: int) -> tuple[Array, Array, Array]:
    """(query, document, grade) of the judgements with a positive grade; a position out of range is an error."""
    for side, positions, count in (("queries", truth.query, queries), ("documents", truth.document, documents)):
        if unknown := int(((positions < 0) | (positions >= count)).sum()):
            raise EmbarkError(f"The relevance judgements name {unknown} {side} that are not among the {count}.")
    positive = truth.grade > 0
    if not positive.any():
        raise EmbarkError("No query has a relevant document: there is nothing to score.")
    return truth.query[positive], truth.document[positive], truth.grade[positive]


def summary(
    scored: Array, query: Array, rank: Array, grade: Array, best: Array, queries: int, params: Mapping[str, Any]
) -> Scores:
    """Means of every measure over the scored queries; outcomes: main value, the first hit's rank, the top document."""
    row = np.searchsorted(scored, query)
    skip = params.get("skip_first")
    rank_after = np.where(rank > 1, rank - 1, UNRANKED) if skip else rank  # the first result is dropped
    main = RETRIEVAL.metric(params)
    cutoffs = metrics.cutoffs(main)
    values = metrics.ranking(row, rank if skip == "hit_rate" else rank_after, grade, len(scored), cutoffs)
    if skip == "hit_rate":
        after = metrics.ranking(row, rank_after, grade, len(scored), cutoffs)
        values |= {name: after[name] for name in after if name.startswith(HIT_RATES)}
    values["accuracy"] = values["recall_at_1"]
    main_skips = skip is True or (skip == "hit_rate" and main.startswith(HIT_RATES))
    first = np.full(len(scored), UNRANKED)
    np.minimum.at(first, row, rank_after if main_skips else rank)
    return Scores(
        {name: float(value.mean()) for name, value in values.items()},
        main,
        "query",
        scored,
        {
            main: values[main],
            "rank": np.where(first <= max(cutoffs), first, -1),
            "top": np.full(len(scored), -1) if main_skips else best[scored],  # the second best is not known
        },
        counts={
            "queries": len(scored),
            "queries left out": queries - len(scored),
            "queries without positives": len(scored) - len(np.unique(row)),
        },
    )


def _over_queries(
    truth: Qrels, query: Array, rank: Array, grade: Array, best: Array, queries: int, params: Mapping[str, Any]
) -> Scores:
    """The measures over all queries that count, from the ranks of their relevant documents."""
    scored = np.unique(query if params.get("drop_unanswerable") else truth.query)
    queries = len(np.unique(ids_of_rows(truth)[0])) if truth.repeated else queries
    if truth.outside is not None:
        row, column = np.nonzero(truth.outside > 0)
        scored = np.union1d(scored, row)
        query = np.concatenate([query, row])
        rank = np.concatenate([rank, np.full(len(row), UNRANKED)])
        grade = np.concatenate([grade, truth.outside[row, column]])
    return summary(scored, query, rank, grade, best, queries, params)


def _depth(params: Mapping[str, Any]) -> int:
    """The deepest cut-off: no measure looks further down."""
    return max(metrics.cutoffs(RETRIEVAL.metric(params)))


def _list_ranks(ranked: Array, documents: int, query: Array, document: Array) -> Array:
    """The rank of each (query, document) pair in the lists."""
    row, place = np.nonzero(ranked >= 0)
    pairs = row * documents + ranked[row, place]
    order = np.argsort(pairs, kind="stable")
    wanted = query * documents + document
    position = np.minimum(np.searchsorted(pairs[order], wanted), max(len(pairs) - 1, 0))
    known = pairs[order][position] == wanted if len(pairs) else np.zeros(len(wanted), bool)
    return np.where(known, place[order][position] + 1 if len(pairs) else 0, UNRANKED)


def _identical(truth: Qrels) -> tuple[Array, Array]:
    """(query, document) pairs with the same id."""
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
    own_document_of = np.full(size, -1)
    own_document_of[own_query] = own_document
    own_rank_of = np.full(size, UNRANKED)
    own_rank_of[own_query] = own_rank
    return np.where(document == own_document_of[query], UNRANKED, rank - (own_rank_of[query] < rank))


RETRIEVAL = Evaluator(
    "retrieval",
    (__doc__ or "").strip(),
    (Qrels,),
    evaluate,
    measures={**{f"{name}_at_k": "mean" for name in metrics.RANKING}, "accuracy": "mean"},
    main="ndcg_at_10",
    version=3,
    params=PARAMS,
    narrow=narrow,
    constant=constant,
)
