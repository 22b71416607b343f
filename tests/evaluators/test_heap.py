"""Of rows with one id, the one counts that mteb's search takes: held against torch, and against mteb's own search."""

from __future__ import annotations

from heapq import heappush, heappushpop
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import slow
from embark import evaluators
from embark.evaluators import heap as heap_module
from embark.evaluators.heap import SEARCHES, Search, heap_lists
from embark.evaluators.introselect import sorted_best, unsorted_best
from embark.evaluators.rerank import Reranked, shortlist
from embark.evaluators.retrieval import evaluate, evaluate_lists, narrow
from embark.types import Array, EmbarkError, Qrels

# ── the order of a chunk's best ──────────────────────────────────────────────────────────────────────────────────────


def killer(count: int) -> Array:
    """Values that let partitions around a median of three go wrong again and again, so that a heap takes over."""
    half = count // 2
    values = np.zeros(count, np.float32)
    for number in range(1, half + 1):
        if number % 2:
            values[number - 1 : number + 1] = number, half + number
        values[half + number - 1] = 2 * number
    return -values


def topk(values: Array, k: int, is_sorted: bool) -> list[int]:
    torch = pytest.importorskip("torch")
    positions: list[int] = torch.topk(torch.from_numpy(values.copy()), k, sorted=is_sorted).indices.tolist()
    return positions


@given(st.lists(st.integers(0, 9), min_size=1, max_size=150), st.data())
def test_a_chunks_best_are_in_the_order_of_torchs_topk(numbers: list[int], data: Any) -> None:
    """Many values are equal; below k / 64 values, torch takes another way."""
    values = np.array(numbers, np.float32)
    k = data.draw(st.integers(len(values) // 64 + 1, len(values)))
    assert unsorted_best(values, k).tolist() == topk(values, k, False)
    assert sorted_best(values, k).tolist() == topk(values, k, True)


@pytest.mark.parametrize("count", [64, 1000, 4000])
def test_a_chunks_best_are_in_torchs_order_after_many_bad_partitions(count: int) -> None:
    for values in (killer(count), -killer(count), np.floor(killer(count) / 3), np.arange(count, dtype=np.float32)):
        for k in (count // 3, count - 1, count):
            assert unsorted_best(values, k).tolist() == topk(values, k, False)
            assert sorted_best(values, k).tolist() == topk(values, k, True)


def test_a_chunks_best_of_mtebs_size_are_in_torchs_order() -> None:
    values = np.random.default_rng(0).standard_normal(20_000).astype(np.float32)
    for of_kind in (values, np.round(values, 1), np.repeat(values[:10_000], 2)):
        assert unsorted_best(of_kind, 1000).tolist() == topk(of_kind, 1000, False)
        assert sorted_best(of_kind, 1000).tolist() == topk(of_kind, 1000, True)


# ── known answers ────────────────────────────────────────────────────────────────────────────────────────────────────

ONE = np.ones((1, 1), np.float32)


def lists(
    scores: Any, documents: str, queries: str = "q", search: Search = SEARCHES["mteb2"], memory: int = 1 << 20
) -> list[str]:
    """The ranked ids of each query id; `scores` are those of (row of the queries, row of the documents)."""
    table = np.atleast_2d(np.array(scores, np.float32))
    ids = np.array(list(queries)), np.array(list(documents))
    first = np.unique(heap_module.first_rows(ids[0])[0])
    ranked = heap_lists(np.eye(len(table), dtype=np.float32), table.T.copy(), first, 99, ids, "dot", search, memory)
    return ["".join(ids[1][row]) for row in ranked]


def test_the_score_that_stands_last_in_the_heap_counts() -> None:
    """Sorted scores .9 a, .8 b, .7 a make the heap [.7 a, .9 a, .8 b], so that a has .9. With .6 c, .5 b and .4 b after
    them it is [.4 b, .6 c, .5 b, .9 a, .7 a, .8 b]: a counts with .7, and b with .8, which is more.
    """
    assert lists([0.9, 0.8, 0.7], "aba") == ["ab"]
    assert lists([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], "abacbb") == ["bac"]


def test_chunks_come_one_after_another() -> None:
    """In one chunk the heap is [.5 a, .6 a, .8 b, .9 a, .7 a], in chunks of two [.5 a, .6 a, .7 a, .9 a, .8 b]."""
    scores = [0.9, 0.7, 0.6, 0.5, 0.8]
    assert lists(scores, "aaaab") == ["ba"]
    assert lists(scores, "aaaab", search=Search(2, 3, sorted_best)) == ["ab"]


def test_rows_of_one_query_id_share_a_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rows of q find three documents; four of the six scores stay: .9 a, .8 b, .7 c and .5 b."""
    monkeypatch.setattr(heap_module, "HEAP_ENTRIES", 4)
    scores = [[0.9, 0.2, 0.1], [0.3, 0.8, 0.7], [0.1, 0.5, 0.4]]
    assert lists(scores, "abc", "qrq") == ["abc", "bca"]  # q: [.2 b, .4 c, .5 b, .9 a]


def test_a_list_ends_where_the_heap_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_module, "HEAP_ENTRIES", 3)
    assert lists([0.9, 0.8, 0.7, 0.6, 0.5], "aabcd") == ["ab"]


def qrels(documents: str, *pairs: tuple[int, int, int], queries: str = "q") -> Qrels:
    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    return Qrels(query, document, grade, np.array(list(queries)), np.array(list(documents)), repeated=True)


SIX = np.array([[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]], np.float32).T


def test_measures_are_about_ids_and_not_about_rows() -> None:
    truth = qrels("abacbb", (0, 0, 1), (0, 3, 1))  # a and c, which are second and third
    scores = evaluate(truth, {"query": ONE, "document": SIX}, {"similarity": "dot", "metric": "hit_rate_at_1"})
    assert scores.value == 0
    assert (scores.outcomes["rank"].tolist(), scores.outcomes["top"].tolist()) == ([2], [1])
    assert scores.metrics["recall_at_3"] == 1
    assert scores.metrics["map_at_10"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_mteb1_and_mteb2_count_different_rows() -> None:
    rng = np.random.default_rng(5)
    document = rng.standard_normal((400, 4)).astype(np.float32)
    query = rng.standard_normal((30, 4)).astype(np.float32)
    ids = np.array([f"d{n % 100}" for n in range(400)])
    first = np.arange(100)
    truth = Qrels(
        np.arange(30), first[:30], np.ones(30, int), np.array([f"q{n}" for n in range(30)]), ids, repeated=True
    )
    values = {
        heap: evaluate(truth, {"query": query, "document": document}, {"heap": heap}).metrics["mrr_at_100"]
        for heap in ("mteb1", "mteb2")
    }
    default = evaluate(truth, {"query": query, "document": document}, {}).metrics["mrr_at_100"]
    assert default == values["mteb2"] != values["mteb1"]


def test_unjudged_ids_need_no_vectors_and_judged_ones_need_all_their_rows() -> None:
    truth = qrels("ab", (0, 0, 1), queries="qrqrs")
    assert narrow(truth, {})[1]["query"].tolist() == [True, False, True, False, False]
    scores = evaluate(truth, {"query": np.ones((5, 1), np.float32), "document": ONE[[0, 0]]}, {})
    assert scores.counts["queries"] == 1
    assert scores.counts["queries left out"] == 2


def test_a_query_never_finds_its_own_id() -> None:
    truth = qrels("qaqb", (0, 1, 1), queries="q")
    vectors = {"query": ONE, "document": np.array([[0.9], [0.8], [0.7], [0.6]], np.float32)}
    scores = evaluate(truth, vectors, {"similarity": "dot", "ignore_identical_ids": True})
    assert scores.outcomes["rank"].tolist() == [1]


def test_a_reranker_gets_the_documents_of_the_list() -> None:
    truth = qrels("abacbb", (0, 0, 1))
    vectors = {"query": ONE, "document": SIX}
    query, document = shortlist("retrieval", truth, vectors, {"similarity": "dot"}, 2)
    assert (query.tolist(), document.tolist()) == ([0, 0], [1, 0])  # b and a, by their first rows
    turned = Reranked(query, document, np.array([0.1, 0.9], np.float32))
    scores = evaluate(truth, {**vectors, "reranked": turned}, {"similarity": "dot"})
    assert scores.outcomes["rank"].tolist() == [1]


def test_what_cannot_be_done_with_repeated_ids_is_an_error() -> None:
    truth = qrels("aa", (0, 0, 1))
    vectors = {"query": ONE, "document": ONE[[0, 0]]}
    with pytest.raises(EmbarkError, match="repeated='last'"):
        evaluate(truth, vectors, {"judged_only": True})
    with pytest.raises(EmbarkError, match="no index ranks them as mteb does"):
        evaluate_lists(truth, np.zeros((1, 1), int), 2, {})
    with pytest.raises(EmbarkError, match="must be one of 'mteb1', 'mteb2'"):
        evaluators.check("retrieval", {"heap": "mteb3"})


def test_a_measure_is_not_called_constant_where_the_rows_of_few_ids_may_fill_a_list() -> None:
    truth = qrels("aabb", (0, 0, 1))
    assert evaluators.check_measure("retrieval", truth, {"metric": "recall_at_10"}) is None


def test_late_interaction_is_scored_too() -> None:
    tokens = [np.array([[1, 0], [0, 1]], np.float32), np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)]
    truth = qrels("aba", (0, 0, 1))
    scores = evaluate(truth, {"query": [tokens[0]], "document": tokens}, {"similarity": "maxsim"})
    assert scores.outcomes["rank"].tolist() == [1]


# ── mteb's own search ────────────────────────────────────────────────────────────────────────────────────────────────


def mteb1_search(
    scores: Array, queries: list[str], documents: list[str], chunk: int, top: int
) -> dict[str, dict[str, float]]:
    """The loop of Any2AnyDenseRetrievalExactSearch.search in mteb 1.39.7, on scores."""
    torch = pytest.importorskip("torch")
    heaps: dict[str, list[tuple[float, str]]] = {name: [] for name in queries}
    for start in range(0, len(documents), chunk):
        part = torch.from_numpy(scores[:, start : start + chunk].copy())
        values, places = torch.topk(part, min(top, part.size(1)), dim=1, largest=True, sorted=False)
        for row, name in enumerate(queries):
            for place, score in zip(places[row].tolist(), values[row].tolist(), strict=True):
                entry = score, documents[start + place]
                (heappush if len(heaps[name]) < top else heappushpop)(heaps[name], entry)
    return {name: {document: score for score, document in of_query} for name, of_query in heaps.items()}


def mteb2_search(
    scores: Array, queries: list[str], documents: list[str], chunk: int, top: int
) -> dict[str, dict[str, float]]:
    """mteb 2's own search over the scores, and the dictionary that SearchEncoderWrapper.search makes of it."""
    search = pytest.importorskip("mteb.models.search_wrappers")
    from datasets import Dataset

    corpus = Dataset.from_dict({"id": documents, "text": [str(row) for row in range(len(documents))]})
    heaps = search.chunked_full_corpus_search(
        task_corpus=corpus,
        corpus_chunk_size=chunk,
        query_idx_to_id=dict(enumerate(queries)),
        query_embeddings=scores,
        task_metadata=SimpleNamespace(get_modalities=lambda _: ["text"]),
        hf_subset="default",
        hf_split="test",
        top_k=top,
        encode_kwargs={"show_progress_bar": False},
        encode_fn=lambda batches, **_: np.array([int(text) for batch in batches for text in batch["text"]]),
        similarity_fn=lambda table, rows: table[:, rows].copy(),
        search_k_offset=1,
    )
    results: dict[str, dict[str, float]] = {name: {} for name in queries}
    for name in heaps:
        for score, document in heaps[name]:
            results[name][document] = score
    return results


@pytest.mark.parametrize("heap", ["mteb1", *slow("mteb2")])
def test_lists_are_those_of_mtebs_search(heap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random scores with ties, ids over several chunks, and heaps that are smaller than the corpus."""
    pytest.importorskip("datasets" if heap == "mteb2" else "torch")
    oracle = {"mteb1": mteb1_search, "mteb2": mteb2_search}[heap]
    rng = np.random.default_rng(1)
    for turn in range(40 if heap == "mteb1" else 25):
        rows, columns = int(rng.integers(1, 12)), int(rng.integers(2, 250))
        queries = [f"q{n}" for n in rng.integers(0, rows // 2 + 1, rows)]
        documents = [f"d{n}" for n in rng.integers(0, columns // 3 + 1, columns)]
        scores = rng.standard_normal((rows, columns)).astype(np.float32)
        scores = np.round(scores, int(rng.integers(0, 3))) if turn % 2 else scores
        top, chunk = int(rng.integers(1, 60)), int(rng.integers(1, columns + 9))
        top = max(top, chunk // 64 + 1)  # below that, torch takes another way, which mteb's sizes never need
        monkeypatch.setattr(heap_module, "HEAP_ENTRIES", top)
        search = Search(chunk, top + (heap == "mteb2"), SEARCHES[heap].best)
        expected = oracle(scores, queries, documents, chunk, top)
        ids = np.array(queries), np.array(documents)
        first = np.unique(heap_module.first_rows(ids[0])[0])
        found = heap_lists(
            np.eye(rows, dtype=np.float32), scores.T.copy(), first, 999, ids, "dot", search, int(rng.integers(1, 9999))
        )
        for row, ranked in zip(first.tolist(), found, strict=True):
            of_query = expected[queries[row]]
            assert ids[1][ranked].tolist() == sorted(of_query, key=lambda name: (of_query[name], name), reverse=True)
