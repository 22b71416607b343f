"""Re-ranking as arithmetic: the shortlist, the new places, and what stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import evaluators
from embark.evaluators.rerank import Reranked, reordered, shortlist
from embark.types import Array, Qrels

QUERIES, DOCUMENTS = 5, 12


def vectors(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"query": rng.normal(size=(QUERIES, 4)), "document": rng.normal(size=(DOCUMENTS, 4))}


def qrels(seed: int) -> Qrels:
    rng = np.random.default_rng(seed)
    pairs = np.array([(q, d) for q in range(QUERIES) for d in rng.permutation(DOCUMENTS)[: 3 + q]])
    grade = np.tile([1, 0], len(pairs))[: len(pairs)]
    ids = [np.array([f"{side}{at:02d}" for at in range(count)]) for side, count in (("q", 5), ("d", 12))]
    return Qrels(pairs[:, 0], pairs[:, 1], grade, *ids)


def order_of(similarity: Array, second: dict[tuple[int, int], float], query: int, depth: int) -> list[int]:
    """The whole ranking of a query, made the slow way."""
    first = sorted(range(DOCUMENTS), key=lambda d: (-similarity[query, d], -d))
    return sorted(first[:depth], key=lambda d: (-second[query, d], -d)) + first[depth:]


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(1, DOCUMENTS + 3), st.integers(1, 4))
def test_ranks_are_those_of_the_list_that_was_sorted_again(seed: int, depth: int, levels: int) -> None:
    found, truth = vectors(seed), qrels(seed)
    query, document = shortlist("retrieval", truth, found, {}, depth)
    score = np.random.default_rng(seed).integers(0, levels, len(query)).astype(np.float32)  # ties, where levels are few
    second = {(q, d): s for q, d, s in zip(query.tolist(), document.tolist(), score.tolist(), strict=True)}
    unit = {side: rows / np.linalg.norm(rows, axis=1, keepdims=True) for side, rows in found.items()}
    similarity = (unit["query"] @ unit["document"].T).astype(np.float32)
    scores = evaluators.evaluate("retrieval", truth, {**found, "reranked": Reranked(query, document, score)}, {})
    for row in range(QUERIES):
        order = order_of(similarity, second, row, depth)
        relevant = truth.document[(truth.query == row) & (truth.grade > 0)]
        assert scores.outcomes["rank"][row] == 1 + min(order.index(d) for d in relevant)
        assert scores.outcomes["top"][row] == order[0]


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_the_first_scores_again_change_nothing(seed: int) -> None:
    found, truth = vectors(seed), qrels(seed)
    unit = {side: rows / np.linalg.norm(rows, axis=1, keepdims=True) for side, rows in found.items()}
    for kind in ("retrieval", "choice"):
        query, document = shortlist(kind, truth, found, {}, DOCUMENTS)
        again = Reranked(query, document, (unit["query"][query] * unit["document"][document]).sum(1))
        plain, second = (evaluators.evaluate(kind, truth, {**found, **more}, {}) for more in ({}, {"reranked": again}))
        assert second.metrics == pytest.approx(plain.metrics)


@pytest.mark.parametrize(("kind", "params"), [("choice", {}), ("retrieval", {"judged_only": True})])
def test_only_what_a_query_is_offered_is_scored_again(kind: str, params: dict[str, Any]) -> None:
    truth = qrels(1)
    query, document = shortlist(kind, truth, vectors(1), params, 2)
    offered = set(zip(truth.query.tolist(), truth.document.tolist(), strict=True))
    assert set(zip(query.tolist(), document.tolist(), strict=True)) <= offered
    assert np.bincount(query).tolist() == [2] * QUERIES


def test_the_shortlist_is_the_best_of_judged_queries() -> None:
    found = {"query": np.eye(3), "document": np.array([[1, 0, 0.1], [0.9, 0.5, 0], [0, 1, 0], [0, 0, 1.0]])}
    truth = Qrels(np.array([0, 2]), np.array([2, 3]), np.array([1, 1]))
    query, document = shortlist("retrieval", truth, found, {}, 2)
    assert query.tolist() == [0, 0, 2, 2]
    assert document.tolist() == [0, 1, 3, 0]


def test_late_interaction_has_a_shortlist_too() -> None:
    rng = np.random.default_rng(0)
    found = {side: [rng.normal(size=(2 + at % 3, 4)) for at in range(6)] for side in ("query", "document")}
    truth = Qrels(np.arange(6), np.arange(6), np.ones(6))
    query, document = shortlist("retrieval", truth, found, {"similarity": "maxsim"}, 3)
    score = (query == document).astype(np.float32)
    scores = evaluators.evaluate(
        "retrieval", truth, {**found, "reranked": Reranked(query, document, score)}, {"similarity": "maxsim"}
    )
    hits = np.isin(np.arange(6), query[query == document])
    assert np.array_equal(scores.outcomes["rank"] == 1, hits)


def test_nothing_scored_again_is_nothing_moved() -> None:
    rank, best, none = np.array([3, 1]), np.array([4, 5]), np.empty(0, np.int64)
    for second in (None, Reranked(none, none, none)):
        same, top = reordered(np.array([0, 1]), np.array([1, 2]), rank, best, second, np.arange(6))
        assert (same.tolist(), top.tolist()) == ([3, 1], [4, 5])
