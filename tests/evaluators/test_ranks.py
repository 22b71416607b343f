"""Ranks and top lists at a scale where tiles, near-ties and shortcuts matter, against a plain loop in float64."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from cases import slow
from embark.evaluators import rank_counter, similarity, threads
from embark.evaluators import ranks as ranks_module
from embark.evaluators.backend import Numpy, Torch
from embark.evaluators.ranks import UNRANKED, longest, margin_of, ranks, tie_places
from embark.evaluators.retrieval import evaluate
from embark.evaluators.similarity import block, exact
from embark.evaluators.threads import CORES, blas_threads
from embark.evaluators.topk import topk
from embark.types import Array, EmbarkError, Qrels


def scored(queries: Any, documents: Any, kind: str) -> Array:
    """Float64, rounded to float32: the definition of a score."""
    if kind == "maxsim":
        return np.array([[late(q, d) for d in documents] for q in queries], np.float32)
    left, right = np.asarray(queries, np.float64), np.asarray(documents, np.float64)
    if kind == "cosine":
        left, right = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (left, right))
    return np.einsum("qd,nd->qn", left, right).astype(np.float32)


def late(query: Array, document: Array) -> float:
    total = 0.0
    for token in np.asarray(query, np.float64):
        found = [token @ other / np.linalg.norm(token) / np.linalg.norm(other) for other in document.astype(np.float64)]
        total += max(found)
    return total


def listed(scores: Array, place: Array) -> Array:
    """Each query's documents, best first, equals by place."""
    return np.stack([np.lexsort((place, -row)) for row in scores])


def agree(queries: Any, documents: Any, query: Array, document: Array, kind: str, ids: Array | None = None) -> None:
    """Ranks and top lists are those of the full sort."""
    place = tie_places(ids, len(documents))
    order = listed(scored(queries, documents, kind), place)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(1, len(documents) + 1)[None].repeat(len(order), 0), axis=1)
    found, best = ranks(queries, documents, query, document, kind, place)
    np.testing.assert_array_equal(found, rank[query, document])
    first = found == 1
    np.testing.assert_array_equal(best[query[first]], document[first])
    for k in {1, min(7, len(documents)), len(documents)}:
        top, scores = topk(queries, documents, k, kind, ids=ids)
        np.testing.assert_array_equal(top, order[:, :k])
        wanted = np.take_along_axis(scored(queries, documents, kind), top, axis=1)
        sizes = [lengths(side) if kind == "dot" else np.ones(1) for side in (queries, documents)]
        assert (np.abs(scores - wanted) <= 1e-5 * sizes[0][:, None] * sizes[1].max()).all()


def lengths(vectors: Any) -> Array:
    return np.linalg.norm(np.asarray(vectors, np.float64), axis=1)


def pairs(rng: np.random.Generator, queries: int, documents: int, each: int) -> tuple[Array, Array]:
    """`each` different documents for every query, in any order."""
    chosen = np.concatenate([rng.permutation(documents)[:each] for _ in range(queries)])
    order = rng.permutation(len(chosen))
    return np.repeat(np.arange(queries), each)[order], chosen[order]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ways of comparing a tile that were taken."""
    taken: set[str] = set()

    def watch(name: str) -> None:
        real = getattr(rank_counter.RankCounter, name)
        monkeypatch.setattr(rank_counter.RankCounter, name, lambda *given: (taken.add(name), real(*given))[1])

    for name in ("_compare", "_look_up"):
        watch(name)
    return taken


@pytest.mark.parametrize("kind", ["cosine", "dot"])
@pytest.mark.parametrize(
    ("each", "near", "way"),
    [(1, True, "_compare"), (3, False, "_compare"), (40, False, "_look_up")],
)
def test_every_way_of_comparing_a_tile(ways: set[str], kind: str, each: int, near: bool, way: str) -> None:
    rng = np.random.default_rng(each)
    queries = rng.normal(size=(9, 24)).astype(np.float16)
    documents = rng.normal(size=(2 * ranks_module.WIDTH + 33, 24)).astype(np.float16)
    query, document = pairs(rng, 9, len(documents), each)
    if near:  # a good model: few documents reach the relevant one
        documents[document] = queries[query]
    agree(queries, documents, query, document, kind, np.array([f"d{n}" for n in range(len(documents))]))
    assert ways == {way}


@given(st.integers(0, 1 << 32), st.integers(1, 4), st.integers(1, 9))
def test_the_best_document_is_the_highest_and_of_equals_the_first(seed: int, queries: int, documents: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-1, 2, (queries, documents)).astype(np.float32)
    place = rng.permutation(documents)
    row = np.arange(queries)
    own = rng.integers(0, documents, queries)
    low = scores[row, own]
    counter = rank_counter.RankCounter(row, own, low, lambda row, document: scores[row, document], place, documents)
    for tile in np.array_split(rng.permutation(documents), 3):
        near = np.argwhere(scores[:, tile] >= low[:, None])
        rows, columns = rng.permutation(near).T
        counter._update_best(rows, tile[columns], scores[rows, tile[columns]], low)
    np.testing.assert_array_equal(counter.best, listed(scores, place)[:, 0])
    np.testing.assert_array_equal(counter.best_score, scores.max(axis=1))


@pytest.mark.parametrize("each", [2, *slow(30)])
def test_threads_that_meet_in_any_order_count_the_same(monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    """Eight threads, tiles of a few documents, doubts settled at every turn, and many equal scores."""
    monkeypatch.setattr(threads, "CORES", 8)
    monkeypatch.setattr(ranks_module, "WIDTH", 8)
    monkeypatch.setattr(rank_counter, "WAITING", 1)
    rng = np.random.default_rng(each)
    queries = rng.integers(-2, 3, (40, 6)).astype(np.float32)
    documents = rng.integers(-2, 3, (700, 6)).astype(np.float32)
    query, document = pairs(rng, 40, 700, each)
    place = tie_places(None, 700)
    order = listed(scored(queries, documents, "dot"), place)
    rank = np.argsort(order, axis=1)[query, document] + 1
    for depth in (5, 100, 700):
        for _ in range(3):
            found, best = ranks(queries, documents, query, document, "dot", place, depth=depth)
            np.testing.assert_array_equal(found, np.where(rank <= depth, rank, UNRANKED))
            np.testing.assert_array_equal(best, order[:, 0])


@pytest.mark.parametrize("dim", [1, 2, 384, 4096])
@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_documents_one_step_of_rounding_apart(dim: int, kind: str) -> None:
    """Numbers of one size round all the same way: the worst that a product in float32 can do."""
    rng = np.random.default_rng(dim)
    queries = np.full((3, dim), 0.7, np.float32) * rng.uniform(0.5, 1, (3, 1)).astype(np.float32)
    documents = np.full((257, dim), np.float32(0.9))
    for row in documents[1:200]:  # the others are equal
        at = rng.integers(dim)
        row[at] = np.nextafter(row[at], np.float32(rng.choice([0, 2])))
    agree(queries, documents, *pairs(rng, 3, 257, 30), kind, np.array([str(n) for n in range(257)]))


@pytest.mark.parametrize("dim", [64, 384, 1024])
def test_the_margin_is_more_than_products_are_wrong_by(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for low, high in ((-1, 1), (0, 1), (0.5, 0.501), (0.7, 0.7)):
        queries, documents = (rng.uniform(low, high, (n, dim)).astype(np.float32) for n in (16, 300))
        for kind in ("dot", "cosine"):
            left, right = (block(x, 0, len(x), kind) for x in (queries, documents))
            assert isinstance(left, np.ndarray)
            assert isinstance(right, np.ndarray)
            wrong = np.abs(left @ right.T - scored(queries, documents, kind).astype(np.float64))
            assert (wrong < margin_of(left)[:, None] * longest(right, kind)).all()


@pytest.mark.parametrize("each", [1, 40])
def test_lengths_may_differ_by_ten_orders_of_magnitude(each: int) -> None:
    rng = np.random.default_rng(0)
    queries = (rng.normal(size=(12, 8)) * 10.0 ** rng.integers(-6, 5, (12, 1))).astype(np.float32)
    documents = (rng.normal(size=(500, 8)) * 10.0 ** rng.integers(-6, 5, (500, 1))).astype(np.float32)
    documents[250:] = documents[:250] * np.float32(1 + 1e-6)
    agree(queries, documents, *pairs(rng, 12, 500, each), "dot")
    agree(queries * np.float32(1e-20), documents * np.float32(1e-18), *pairs(rng, 12, 500, each), "cosine")


@pytest.mark.parametrize(("queries", "documents"), [(1, 1), (1, 50), (5, 1)])
@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_one_of_each_and_zeros(queries: int, documents: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(queries, 3)), rng.normal(size=(documents, 3))
    left[-1] = right[documents // 2] = 0
    agree(left.astype(np.float32), right.astype(np.float32), *pairs(rng, queries, documents, 1), kind)


def test_a_model_that_gives_everything_one_vector_is_all_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = np.tile(rng.normal(size=64).astype(np.float32), (400, 1))
    ids = np.array([str(number) for number in range(600, 1000)])
    query, document = pairs(rng, 60, 400, 30)
    place = tie_places(ids, 400)
    found, _ = ranks(vectors[:60], vectors, query, document, "cosine", place)
    np.testing.assert_array_equal(found, place[document] + 1)
    monkeypatch.setattr(rank_counter, "WAITING", 10)
    monkeypatch.setattr(rank_counter, "AT_ONCE", 400)
    for depth in (1, 120):
        found, _ = ranks(vectors[:60], vectors, query, document, "cosine", place, depth=depth)
        np.testing.assert_array_equal(found, np.where(place[document] < depth, place[document] + 1, UNRANKED))
    monkeypatch.setattr(ranks_module, "WIDTH", 64)
    top, _ = topk(vectors[:5], vectors, 3, ids=ids)
    assert ids[top].tolist() == [["999", "998", "997"]] * 5


def test_a_pair_that_is_out_of_depth_raises_no_more_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = list[int](), ranks_module.exact
    monkeypatch.setattr(ranks_module, "exact", lambda *given: (asked.append(len(given[2])), real(*given))[1])
    vectors, last = np.ones((5000, 8), np.float32), np.full(20, 4999)
    found, _ = ranks(vectors[:20], vectors, np.arange(20), last, "cosine", tie_places(None, 5000), 1 << 20, depth=100)
    assert (found == UNRANKED).all()
    assert sum(asked) < 20 * 5000 / 2


# ── late interaction ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cut", [1, 40, 1 << 22])
def test_maxsim_is_the_plain_loop(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    monkeypatch.setattr(similarity, "TOKENS", cut)
    monkeypatch.setattr(ranks_module, "WIDTH", 11)
    rng = np.random.default_rng(0)
    queries, documents = (
        [rng.integers(-2, 3, (rng.integers(1, 6), 3)).astype(np.float16) + np.float16(0.5) for _ in range(n)]
        for n in (6, 30)
    )
    documents[7] = documents[3]
    agree(queries, documents, *pairs(rng, 6, 30, 5), "maxsim")


@pytest.mark.slow
def test_many_equal_tokens_do_not_round_a_sum_away() -> None:
    rng = np.random.default_rng(0)
    queries = [np.repeat(rng.normal(size=(1, 4)), 1500, 0).astype(np.float32)]
    documents = [rng.normal(size=(2, 4)).astype(np.float32) for _ in range(8)]
    documents += documents[:3]
    agree(queries, documents, *pairs(rng, 1, 11, 6), "maxsim")


def test_a_tile_of_tokens_is_as_small_as_memory_asks() -> None:
    tokens = [np.ones((1000, 128), np.float32)] * 3
    fit = (64 << 20) // (4 * 1000 * 128)
    assert ranks_module.tile_shape(tokens, tokens, 3, 1 << 40, Numpy()) == (2, fit)
    assert ranks_module.tile_shape(tokens, tokens, 3, 1 << 20, Numpy()) == (1, (1 << 20) // (24_000 * CORES))
    with pytest.raises(EmbarkError, match="1 items have no vectors at all, the first is item 1"):
        block([np.ones((2, 3)), np.ones((0, 3))], 0, 2, "maxsim")
    with pytest.raises(EmbarkError, match="several vectors each"):
        block(tokens, 0, 3, "cosine")


# ── judgements that say a thing twice ────────────────────────────────────────────────────────────────────────────────


def test_a_pair_that_is_judged_twice_is_one_pair() -> None:
    vectors = {"query": np.eye(2, dtype=np.float32), "document": np.eye(2, dtype=np.float32)}
    once = Qrels(np.array([0, 1]), np.array([0, 0]), np.array([2, 1]))
    twice = Qrels(np.array([0, 1, 0, 1]), np.array([0, 0, 0, 0]), np.array([1, 1, 2, 0]))
    assert evaluate(twice, vectors, {}).metrics == evaluate(once, vectors, {}).metrics
    judged = {"judged_only": True}
    assert evaluate(twice, vectors, judged).metrics == evaluate(once, vectors, judged).metrics


# ── what the process shares ──────────────────────────────────────────────────────────────────────────────────────────


def blas() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_limits_that_overlap_are_all_lifted_in_the_end() -> None:
    before, filters = blas(), list(warnings.filters)
    one, other = blas_threads(1, UserWarning), blas_threads(2, FutureWarning)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert set(blas()) <= {1}
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: _limited(), range(20)))
    other.__exit__(None, None, None)
    assert (blas(), list(warnings.filters)) == (before, filters)


def test_who_comes_first_may_leave_first() -> None:
    """Each from a thread of its own: the last to leave is another one than set the limit."""
    before = blas()
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as last:
        one, other = blas_threads(1), blas_threads(1)
        for pool, step in ((first, one.__enter__), (last, other.__enter__)):
            pool.submit(step).result()
        for pool, limit in ((first, one), (last, other)):
            pool.submit(limit.__exit__, None, None, None).result()
    assert blas() == before


def _limited() -> bool:
    with blas_threads(1):
        return set(blas()) <= {1}


def test_a_model_that_allows_rough_products_does_not_roughen_scores() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(64, 256)).astype(np.float32) for _ in range(2))
    allowed = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        backend = Torch()
        found = np.asarray(backend.product(backend.load(left), backend.columns(right)).cpu())
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(allowed)
    np.testing.assert_allclose(found, left @ right.T, atol=1e-4)
    pair = exact(left, right, np.arange(64), np.arange(64), "dot")
    np.testing.assert_allclose(np.diag(found), pair, atol=1e-4)
