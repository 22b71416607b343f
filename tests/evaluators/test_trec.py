"""Rankings against trec_eval itself: graded judgements, whole-number vectors whose scores tie again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark import evaluators
from embark.evaluators import choice, rank_counter, ranks, retrieval
from embark.metrics import CUTOFFS
from embark.types import Array, Qrels, Scores

pytrec_eval = pytest.importorskip("pytrec_eval")

KS = ",".join(map(str, CUTOFFS))
MEASURES = {f"{name}.{KS}" for name in ("ndcg_cut", "map_cut", "recall", "P", "success")}
NAMES = {
    "ndcg_cut": "ndcg_at",
    "map_cut": "map_at",
    "recall": "recall_at",
    "P": "precision_at",
    "success": "success_at",
}


def random_case(seed: int) -> tuple[Array, Array, Array, dict[tuple[int, int], int]]:
    """(queries, documents, document ids, grades): zeros and negatives are judged, some queries have no positive."""
    rng = np.random.default_rng(seed)
    queries, documents, dim = int(rng.integers(1, 9)), int(rng.integers(1, 60)), int(rng.integers(1, 4))
    vectors = rng.integers(-2, 3, (queries + documents, dim)).astype(np.float32)
    ids = np.array([str(n) if n % 3 else f"d{n:0{n % 5}d}é" for n in rng.permutation(1500)[:documents]])
    judged = rng.random((queries, documents)) < rng.choice([0.1, 0.5, 1])
    judged[0, 0] = True
    grade = rng.integers(-1, 4, judged.shape) * (rng.random((queries, 1)) < 0.8)
    grade[0, 0] = 2
    return vectors[:queries], vectors[queries:], ids, {(q, d): int(grade[q, d]) for q, d in np.argwhere(judged)}


def oracle(run: dict[str, dict[str, float]], grades: dict[tuple[int, int], int], ids: Array) -> dict[str, Any]:
    qrel: dict[str, dict[str, int]] = {}
    for (query, document), grade in grades.items():
        qrel.setdefault(f"q{query}", {})[ids[document]] = grade
    found: dict[str, Any] = pytrec_eval.RelevanceEvaluator(qrel, MEASURES | {"recip_rank"}).evaluate(run)
    return found


def agree(evaluate: Callable[[list[int]], Scores], expected: dict[str, Any], rows: list[int]) -> None:
    """Every measure at every cut-off: of each query alone, and the mean of all of them together."""
    for some in ([row] for row in rows), [rows]:
        for these in some:
            found = evaluate(these)
            assert found.rows.tolist() == these
            for theirs, ours in NAMES.items():
                for k in CUTOFFS:
                    wanted = np.mean([expected[f"q{row}"][f"{theirs}_{k}"] for row in these])
                    assert found.metrics[f"{ours}_{k}"] == pytest.approx(wanted, abs=1e-9), f"{ours}_{k} of {these}"
            wanted = np.mean([expected[f"q{row}"]["recip_rank"] for row in these])
            assert found.metrics["mrr_at_1000"] == pytest.approx(wanted, abs=1e-9)


def of(queries: list[int], columns: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """The judgements of some queries."""
    query, document, grade = (column[np.isin(columns[0], queries)] for column in columns)
    return query, document, grade


def listed(grades: dict[tuple[int, int], int], seed: int) -> tuple[Array, Array, Array]:
    """The judgements as columns, in any order."""
    rows = np.array([(q, d, g) for (q, d), g in grades.items()], np.int64)
    query, document, grade = np.random.default_rng(seed).permutation(rows).T
    return query, document, grade


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), width=st.sampled_from([3, 16, 2048]), many=st.sampled_from([0, 24]))
@pytest.mark.slow
def test_retrieval_is_trec_evals(seed: int, width: int, many: int) -> None:
    queries, documents, ids, grades = random_case(seed)
    run = {
        f"q{q}": {str(name): float(score) for name, score in zip(ids, row, strict=True)}
        for q, row in enumerate(queries @ documents.T)
    }
    rows, vectors = listed(grades, seed), {"query": queries, "document": documents}
    expected = oracle(run, grades, ids)
    answerable = sorted({q for (q, _), grade in grades.items() if grade > 0})

    def evaluate(some: list[int]) -> Scores:
        return retrieval.evaluate(Qrels(*of(some, rows), document_ids=ids), vectors, {"similarity": "dot"})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "WIDTH", width)
        patch.setattr(rank_counter, "MANY", many)
        agree(evaluate, expected, answerable)
        everybody = sorted({q for q, _ in grades})  # those without a positive score zero
        found = evaluate(everybody)
        assert found.rows.tolist() == everybody
        wanted = [expected[f"q{row}"]["ndcg_cut_10"] for row in everybody]
        np.testing.assert_allclose(found.outcomes["ndcg_at_10"], wanted, atol=1e-9)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_choice_is_trec_evals_on_each_querys_own_candidates(seed: int) -> None:
    queries, documents, ids, grades = random_case(seed)
    run: dict[str, dict[str, float]] = {}
    for query, document in grades:
        run.setdefault(f"q{query}", {})[str(ids[document])] = float(queries[query] @ documents[document])
    rows, vectors = listed(grades, seed), {"query": queries, "document": documents}

    def evaluate(some: list[int]) -> Scores:
        return choice.evaluate(Qrels(*of(some, rows), document_ids=ids), vectors, {"similarity": "dot"})

    agree(evaluate, oracle(run, grades, ids), sorted({q for (q, _), grade in grades.items() if grade > 0}))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 70))
@pytest.mark.parametrize("kind", ["retrieval", "choice"])
def test_a_metric_at_any_cutoff_is_trec_evals(kind: str, seed: int, k: int) -> None:
    queries, documents, ids, grades = random_case(seed)
    run = {
        f"q{q}": {
            str(ids[d]): float(queries[q] @ documents[d])
            for d in range(len(documents))
            if kind == "retrieval" or (q, d) in grades
        }
        for q in {q for q, _ in grades}
    }
    qrel: dict[str, dict[str, int]] = {}
    for (query, document), grade in grades.items():
        qrel.setdefault(f"q{query}", {})[ids[document]] = grade
    measures = {f"{name}.{k}" for name in NAMES}
    expected: dict[str, Any] = pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)
    answerable = sorted({q for (q, _), grade in grades.items() if grade > 0})
    truth = Qrels(*of(answerable, listed(grades, seed)), document_ids=ids)
    vectors = {"query": queries, "document": documents}
    for theirs, ours in NAMES.items():
        params = {"similarity": "dot", "metric": f"{ours}_{k}"}
        found = evaluators.evaluate(kind, truth, vectors, params)
        assert (found.main, found.rows.tolist()) == (f"{ours}_{k}", answerable)
        wanted = [expected[f"q{row}"][f"{theirs}_{k}"] for row in answerable]
        np.testing.assert_allclose(found.outcomes[found.main], wanted, atol=1e-9)
        assert {f"{ours}_{cutoff}" for cutoff in (*CUTOFFS, k)} <= set(found.metrics)


def test_a_cutoff_below_the_usual_depth_of_a_ranking_is_trec_evals() -> None:
    documents = np.linspace(1, 0, 1600, dtype=np.float32)[:, None]
    ids = np.array([f"d{number:04}" for number in range(1600)])
    truth = Qrels(np.zeros(2, int), np.array([1199, 1550]), np.ones(2, int), document_ids=ids)
    vectors = {"query": np.ones((1, 1), np.float32), "document": documents}
    run = {"q0": dict(zip(ids.tolist(), documents[:, 0].astype(float).tolist(), strict=True))}
    judge = pytrec_eval.RelevanceEvaluator({"q0": {"d1199": 1, "d1550": 1}}, {"ndcg_cut.1000,1500", "recall.1500"})
    expected = judge.evaluate(run)["q0"]
    found = evaluators.evaluate("retrieval", truth, vectors, {"similarity": "dot", "metric": "ndcg_at_1500"})
    assert found.value == pytest.approx(expected["ndcg_cut_1500"])
    assert found.metrics["recall_at_1500"] == expected["recall_1500"] == 0.5
    assert found.metrics["ndcg_at_1000"] == expected["ndcg_cut_1000"] == 0
    assert found.outcomes["rank"].tolist() == [1200]
    usual = evaluators.evaluate("retrieval", truth, vectors, {"similarity": "dot"})
    assert usual.outcomes["rank"].tolist() == [-1]  # not among the first 1,000


@pytest.mark.slow
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_positives_outside_the_corpus_are_trec_evals(seed: int) -> None:
    """Judged documents that the corpus lacks: in the ideal gain and recall's denominator, never in the ranking."""
    queries, documents, ids, grades = random_case(seed)
    rng = np.random.default_rng(seed)
    outside = rng.integers(1, 4, (len(queries), 12)) * (rng.random((len(queries), 12)) < rng.choice([0.1, 0.9]))
    names = np.array([f"6:{number}" for number in range(12)])
    run = {
        f"q{q}": {str(name): float(score) for name, score in zip(ids, row, strict=True)}
        for q, row in enumerate(queries @ documents.T)
    }
    judged = grades | {(int(q), len(ids) + int(d)): int(outside[q, d]) for q, d in np.argwhere(outside)}
    expected = oracle(run, judged, np.concatenate([ids, names]))
    rows, vectors = listed(grades, seed), {"query": queries, "document": documents}
    reachable = sorted({q for (q, _), grade in grades.items() if grade > 0})

    def evaluate(some: list[int]) -> Scores:
        of_some = np.where(np.isin(np.arange(len(queries)), some)[:, None], outside, 0)
        truth = Qrels(*of(some, rows), document_ids=ids, outside=of_some)
        return retrieval.evaluate(truth, vectors, {"similarity": "dot"})

    agree(evaluate, expected, reachable)
    everybody = sorted({q for q, _ in judged})
    scores = evaluate(everybody)
    assert scores.rows.tolist() == everybody  # those with nothing in reach score zero
    wanted = [expected[f"q{row}"]["ndcg_cut_10"] for row in everybody]
    np.testing.assert_allclose(scores.outcomes["ndcg_at_10"], wanted, atol=1e-9)


def test_a_perfect_model_with_one_of_ten_positives_in_reach() -> None:
    truth = Qrels(np.array([0]), np.array([0]), np.array([1]), outside=np.ones((1, 9), np.int64))
    eye = np.eye(2, dtype=np.float32)
    scores = retrieval.evaluate(truth, {"query": eye[:1], "document": eye}, {})
    assert scores.metrics["ndcg_at_10"] == pytest.approx(0.220, abs=5e-4)
    assert scores.metrics["recall_at_10"] == pytest.approx(0.1)
