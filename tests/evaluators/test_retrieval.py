"""Retrieval on vectors made by hand, and its ranks against a ranked list that is really sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import evaluators
from embark.evaluators import rank_counter, similarity
from embark.evaluators import ranks as ranks_module
from embark.evaluators.backend import Backend, Cuda, Numpy, Torch
from embark.evaluators.ranks import UNRANKED, ranks, tie_places
from embark.evaluators.retrieval import evaluate
from embark.types import Array, EmbarkError, Qrels

PLANE = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], np.float32)  # four documents, turning left


def qrels(*pairs: tuple[int, int, int], **ids: Any) -> Qrels:
    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    return Qrels(query, document, grade, **ids)


def sides(query: Any, document: Any) -> dict[str, Array]:
    return {"query": np.array(query, np.float32), "document": np.array(document, np.float32)}


# ── known answers ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_scores_of_three_queries() -> None:
    truth = qrels((0, 0, 1), (1, 1, 1), (1, 2, 1), (2, 0, 1))
    found = evaluate(truth, sides([[1, 0.1], [0, 1], [-1, 0.1]], PLANE), {"metric": "hit_rate_at_1"})
    assert found.outcomes["rank"].tolist() == [1, 1, 4]
    assert found.outcomes["top"].tolist() == [0, 2, 3]
    assert found.outcomes["hit_rate_at_1"].tolist() == [1, 1, 0]
    assert found.value == pytest.approx(2 / 3)
    assert found.metrics["recall_at_1"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found.metrics["accuracy"] == found.metrics["recall_at_1"]
    assert found.metrics["mrr_at_10"] == pytest.approx((1 + 1 + 1 / 4) / 3)
    assert (found.unit, found.rows.tolist()) == ("query", [0, 1, 2])


def test_the_main_metric_is_ndcg_at_10_unless_another_is_asked_for() -> None:
    truth, vectors = qrels((0, 1, 1)), sides([[1, 0]], PLANE)
    assert evaluate(truth, vectors, {}).main == "ndcg_at_10"
    assert evaluate(truth, vectors, {}).value == pytest.approx(1 / np.log2(3))
    assert evaluate(truth, vectors, {"metric": "mrr_at_5"}).value == 0.5
    with pytest.raises(EmbarkError, match="'retrieval' has no measure 'auc'; it has ndcg_at_k, "):
        evaluate(truth, vectors, {"metric": "auc"})


def test_cosine_ignores_length_and_dot_does_not() -> None:
    truth, vectors = qrels((0, 0, 1)), sides([[1, 0.1]], PLANE * [[1], [5], [1], [1]])
    assert evaluate(truth, vectors, {"similarity": "cosine"}).outcomes["rank"].tolist() == [1]
    assert evaluate(truth, vectors, {"similarity": "dot"}).outcomes["rank"].tolist() == [2]
    with pytest.raises(EmbarkError, match="Unknown similarity 'euclid'"):
        evaluate(truth, vectors, {"similarity": "euclid"})


def test_a_zero_vector_is_as_near_to_everything() -> None:
    found = evaluate(qrels((0, 1, 1)), sides([[0, 0]], PLANE), {})
    assert found.outcomes["rank"].tolist() == [2]


def test_queries_without_judgements_are_left_out_and_those_without_positives_score_zero() -> None:
    truth = qrels((0, 3, 0), (1, 0, 1))
    found = evaluate(truth, sides([[1, 0], [1, 0], [0, 1]], PLANE), {"metric": "hit_rate_at_1"})
    assert found.rows.tolist() == [0, 1]
    assert (found.value, found.outcomes["rank"].tolist()) == (0.5, [-1, 1])
    assert found.counts == {"queries": 2, "queries left out": 1, "queries without positives": 1}


def test_queries_without_positives_can_be_dropped_too() -> None:
    truth = qrels((0, 3, 0), (1, 0, 1))
    found = evaluate(truth, sides([[1, 0], [1, 0], [0, 1]], PLANE), {"drop_unanswerable": True})
    assert found.rows.tolist() == [1]
    assert found.counts == {"queries": 1, "queries left out": 2, "queries without positives": 0}


def test_grades_matter_to_ndcg_alone() -> None:
    vectors = sides([[1, 0]], PLANE)
    high, low = (evaluate(qrels((0, 0, a), (0, 2, b)), vectors, {}) for a, b in ((3, 1), (1, 3)))
    assert high.metrics["ndcg_at_10"] > low.metrics["ndcg_at_10"]
    assert high.metrics["map_at_10"] == low.metrics["map_at_10"]


def test_nothing_to_retrieve_or_to_score_is_an_error() -> None:
    with pytest.raises(EmbarkError, match="corpus is empty"):
        evaluate(qrels(), sides(np.ones((1, 2)), np.ones((0, 2))), {})
    with pytest.raises(EmbarkError, match="No query has a relevant document"):
        evaluate(qrels((0, 0, 0)), sides([[1, 0]], PLANE), {})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("side", ["query", "document"])
def test_what_is_not_finite_is_an_error_that_says_where(side: str, bad: float) -> None:
    vectors = sides(PLANE, PLANE)
    vectors[side][2, 1] = bad
    with pytest.raises(EmbarkError, match="1 vectors are not finite, the first at row 2"):
        evaluate(qrels(*((n, n, 1) for n in range(4))), vectors, {})


def test_stored_halves_score_as_their_values_and_inputs_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    vectors = {"query": rng.normal(size=(20, 8)).astype(np.float16), "document": rng.normal(size=(30, 8)).astype("f2")}
    before = {role: matrix.copy() for role, matrix in vectors.items()}
    truth = qrels(*((q, q, 1) for q in range(20)))
    halves = evaluate(truth, vectors, {})
    singles = evaluate(truth, {role: matrix.astype(np.float32) for role, matrix in vectors.items()}, {})
    assert halves.metrics == singles.metrics
    for role in vectors:
        np.testing.assert_array_equal(vectors[role], before[role])


# ── ties ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_among_equals_the_larger_id_is_first_and_without_ids_the_earlier() -> None:
    same = np.ones((3, 2), np.float32)
    vectors = sides([[1, 0]], same)
    by_id = [evaluate(qrels((0, d, 1), document_ids=np.array(["b", "c", "a"])), vectors, {}) for d in range(3)]
    assert [found.outcomes["rank"][0] for found in by_id] == [2, 1, 3]
    assert by_id[1].outcomes["top"].tolist() == [1]
    by_place = [evaluate(qrels((0, d, 1)), vectors, {}) for d in range(3)]
    assert [found.outcomes["rank"][0] for found in by_place] == [1, 2, 3]


def test_the_top_of_equals_that_beat_all_relevant_ones_is_the_larger_id_too() -> None:
    vectors = sides([[1, 0]], [[1, 0], [1, 0], [0, 1]])
    for ids, top in (("abc", 1), ("bac", 0)):
        found = evaluate(qrels((0, 2, 1), document_ids=np.array(list(ids))), vectors, {})
        assert found.outcomes["top"].tolist() == [top]


def test_ids_are_compared_as_text_as_trec_eval_does() -> None:
    assert tie_places(np.array(["10", "9", "2"]), 3).tolist() == [2, 0, 1]


def test_equal_documents_are_ties_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    for queries, documents, dim in ((1, 1906, 256), (5, 333, 512), (2, 50, 64), (3, 101, 768)):
        vectors = sides(rng.normal(size=(queries, dim)), np.repeat(rng.normal(size=(1, dim)), documents, 0))
        truth = qrels(*((q, documents - 1, 1) for q in range(queries)))
        found = evaluate(truth, vectors, {})
        assert found.outcomes["rank"].tolist() == [documents if documents <= 1000 else -1] * queries


# ── ranks against a sorted list ──────────────────────────────────────────────────────────────────────────────────────


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Array, Array, Array, Array]:
    """Small whole numbers, whose products are exact and often equal."""
    queries, documents, dim = draw(st.integers(1, 6)), draw(st.integers(1, 24)), draw(st.integers(1, 3))
    numbers = st.integers(-1, 1)
    matrix = draw(st.lists(st.lists(numbers, min_size=dim, max_size=dim), min_size=queries + documents, max_size=99))
    vectors = np.array(matrix[: queries + documents], np.float32)
    ids = np.array(draw(st.permutations([f"d{n}" for n in range(documents)])))
    pairs = st.tuples(st.integers(0, queries - 1), st.integers(0, documents - 1))
    chosen = np.array(draw(st.lists(pairs, min_size=1, max_size=queries * documents, unique=True)))
    return vectors[:queries], vectors[queries:], ids, chosen[:, 0], chosen[:, 1]


def sorted_ranks(queries: Array, documents: Array, ids: Array, query: Array, document: Array) -> tuple[list, list]:
    """Larger score first, among equals the larger id."""
    lists = []
    for q in queries:
        by_id = sorted(range(len(documents)), key=lambda d: str(ids[d]), reverse=True)
        lists.append(sorted(by_id, key=lambda d: -float(q @ documents[d])))
    return [lists[q].index(d) + 1 for q, d in zip(query, document, strict=True)], [one[0] for one in lists]


@pytest.fixture(params=["numpy", "torch", "torch as on a GPU"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "numpy":
        return Numpy()
    pytest.importorskip("torch")
    return Torch() if request.param == "torch" else Cuda()


@pytest.mark.parametrize("measure", ["cosine", "dot"])
def test_every_backend_has_the_same_ranks_and_names_what_is_not_finite(backend: Backend, measure: str) -> None:
    rng = np.random.default_rng(4)
    queries, documents = rng.normal(size=(40, 16)).astype(np.float16), rng.normal(size=(500, 16)).astype(np.float16)
    documents[100:120] = documents[0]  # ties
    documents[7] = 0
    documents[8] = 1e-7
    query, document = np.repeat(np.arange(40), 3), rng.permutation(500)[:120]
    place = tie_places(None, 500)
    of_numpy = ranks(queries, documents, query, document, measure, place, backend=Numpy())
    of_backend = ranks(queries, documents, query, document, measure, place, backend=backend)
    np.testing.assert_array_equal(of_backend[0], of_numpy[0])
    np.testing.assert_array_equal(of_backend[1], of_numpy[1])
    documents[300, 2] = np.nan
    with pytest.raises(EmbarkError, match="the first at row 300"):
        ranks(queries, documents, query, document, measure, place, backend=backend)


@given(
    case=cases(),
    many=st.sampled_from([0, 1, 16]),
    depth=st.sampled_from([1, 2, 5, None]),
    memory=st.sampled_from([1, 200, 1 << 29]),
    narrow=st.sampled_from([1, 2, 7, 10**6]),
    block=st.sampled_from([1, 30, 1 << 20]),
)
def test_ranks_are_the_places_in_the_sorted_list(
    backend: Backend, case: tuple, many: int, depth: int | None, memory: int, narrow: int, block: int
) -> None:
    """By comparing or by looking up, as deep as asked, in one piece or in many, with a block of vectors or several."""
    queries, documents, ids, query, document = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_counter, "MANY", many)
        patch.setattr(ranks_module, "WIDTH", narrow)
        patch.setattr(similarity, "BLOCK_BYTES", block)
        place = tie_places(ids, len(documents))
        rank, best = ranks(queries, documents, query, document, "dot", place, memory, backend, depth)
    expected, winners = sorted_ranks(queries, documents, ids, query, document)
    assert rank.tolist() == [one if one <= (depth or one) else UNRANKED for one in expected]
    first = {q: d for q, d, r in zip(query, document, rank, strict=True) if r == 1}
    for q in np.unique(query):
        assert queries[q] @ documents[best[q]] == queries[q] @ documents[winners[q]]
        assert first.get(q, best[q]) == best[q]


def test_scores_do_not_depend_on_how_the_work_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    vectors = sides(rng.integers(-3, 4, (50, 6)), rng.integers(-3, 4, (80, 6)))
    truth = qrels(*((q, d, 1 + d % 3) for q in range(50) for d in range(q % 7, 80, 17)))
    whole = evaluate(truth, vectors, {"similarity": "dot"})
    monkeypatch.setattr(ranks_module, "WIDTH", 10)
    monkeypatch.setattr(similarity, "BLOCK_BYTES", 4 * 6 * 3)
    parts = evaluate(truth, vectors, {"similarity": "dot", "memory": 16 * 10 * 7})
    assert parts.metrics == whole.metrics
    for name in whole.outcomes:
        np.testing.assert_array_equal(parts.outcomes[name], whole.outcomes[name])


# ── protocols ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_may_be_kept_from_its_own_document() -> None:
    ids = {"query_ids": np.array(["a", "x"]), "document_ids": np.array(["a", "b", "c", "d"])}
    truth, vectors = qrels((0, 1, 1), (1, 0, 1), **ids), sides([[1, 0], [1, 0]], PLANE)
    assert evaluate(truth, vectors, {}).outcomes["rank"].tolist() == [2, 1]
    assert evaluate(truth, vectors, {"ignore_identical_ids": True}).outcomes["rank"].tolist() == [1, 1]
    with pytest.raises(EmbarkError, match="needs the ids"):
        evaluate(qrels((0, 1, 1)), vectors, {"ignore_identical_ids": True})


def test_the_first_result_may_be_dropped() -> None:
    truth, vectors = qrels((0, 1, 1), (1, 0, 1)), sides([[1, 0], [1, 0]], PLANE)
    assert evaluate(truth, vectors, {"metric": "mrr_at_10"}).outcomes["mrr_at_10"].tolist() == [0.5, 1]
    skipped = evaluate(truth, vectors, {"metric": "mrr_at_10", "skip_first": True})
    assert skipped.outcomes["mrr_at_10"].tolist() == [1, 0]
    only = evaluate(truth, vectors, {"metric": "mrr_at_10", "skip_first": "hit_rate"})
    assert (only.value, only.metrics["hit_rate_at_1"]) == (0.75, 0.5)


def test_outcomes_are_of_the_ranking_that_is_scored() -> None:
    """What left the ranking is not its top, and a rank is the one that the main measure saw."""
    truth, vectors = qrels((0, 0, 1)), sides([[1, 0]], PLANE)
    skipped = evaluate(truth, vectors, {"skip_first": True, "metric": "mrr_at_10"})
    assert [skipped.outcomes[name].tolist() for name in ("mrr_at_10", "rank", "top")] == [[0], [-1], [-1]]
    kept = evaluate(truth, vectors, {"skip_first": "hit_rate", "metric": "mrr_at_10"})
    assert [kept.outcomes[name].tolist() for name in ("mrr_at_10", "rank", "top")] == [[1], [1], [0]]
    hidden = evaluate(
        qrels((0, 1, 1), query_ids=np.array(["a"]), document_ids=np.array(["a", "b", "c", "d"])),
        vectors,
        {"ignore_identical_ids": True},
    )
    assert [hidden.outcomes[name].tolist() for name in ("rank", "top")] == [[1], [-1]]


def test_scores_that_float32_cannot_hold_are_an_error() -> None:
    with pytest.raises(EmbarkError, match="beyond what float32 holds"):
        evaluate(qrels((0, 0, 1)), sides([[1e30, 0]], np.full((3, 2), 1e30)), {"similarity": "dot"})


@pytest.mark.parametrize(
    ("kind", "params", "says"),
    [
        ("probe", {"shot": 2}, r"no parameter of 'probe' named 'shot'. Did you mean shots"),
        ("probe", {"shots": "two"}, "'shots' of 'probe' must be of type int, not 'two'"),
        ("probe", {"probe": "sounds"}, "must be one of 'published', 'sound', not 'sounds'"),
        ("retrieval", {"judged_only": 1}, "must be of type bool, not 1"),
        ("robustness", {"base": "retrieval", "skip_fist": True}, "Did you mean skip_first"),
    ],
)
def test_a_parameter_that_nobody_reads_is_an_error(kind: str, params: dict[str, Any], says: str) -> None:
    """It would be another protocol's score under the name of the one that was meant."""
    with pytest.raises(EmbarkError, match=says):
        evaluators.evaluate(kind, qrels((0, 0, 1)), sides([[1, 0]], PLANE), params)


def test_the_judged_documents_alone_may_be_ranked() -> None:
    truth, vectors = qrels((0, 2, 1), (0, 3, 0)), sides([[1, 0]], PLANE)
    assert evaluate(truth, vectors, {}).outcomes["rank"].tolist() == [3]
    assert evaluate(truth, vectors, {"judged_only": True}).outcomes["rank"].tolist() == [1]


def test_judgements_of_what_is_not_there_are_an_error() -> None:
    with pytest.raises(EmbarkError, match="name 1 documents that are not among the 4"):
        evaluate(qrels((0, 4, 1)), sides([[1, 0]], PLANE), {})
    with pytest.raises(EmbarkError, match="name 1 queries that are not among the 1"):
        evaluate(qrels((1, 0, 1)), sides([[1, 0]], PLANE), {})
