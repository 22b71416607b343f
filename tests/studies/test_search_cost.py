"""Search indexes over vectors whose neighbors are known, and the numbers that the study tells of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embark
from embark.evaluators.retrieval import evaluate, evaluate_lists
from embark.run.embedded_task import Embedded
from embark.studies import search_cost
from embark.studies.search_cost import IndexPoint, SearchCosts, indexed
from embark.types import Array, EmbarkError, Qrels
from embedded import embedded, gaussian

ITEMS, DIM = 400, 64
NAMES = [
    "exact", "int8", "binary", "binary, 4× re-scored", "binary, 16× re-scored", "graph, 16", "graph, 64", "graph, 256",
    "int8 graph, 16", "int8 graph, 64", "int8 graph, 256",
]  # fmt: skip


def qrels(items: int = ITEMS) -> Qrels:
    return Qrels(np.arange(items), np.arange(items), np.ones(items, int))


def noisy(noise: float = 1.6, items: int = ITEMS, **params: str) -> Embedded:
    """Every query is a document with noise."""
    rows = gaussian(items, DIM)
    vectors = {"query": rows + noise * gaussian(items, DIM, 1), "document": rows}
    return embedded("retrieval", qrels(items), vectors, **params)


def points(study: SearchCosts) -> dict[str, IndexPoint]:
    return {point.name: point for point in study.curves[0].points}


@pytest.fixture(scope="module")
def study() -> SearchCosts:
    return indexed([noisy()], repeats=2, threads=1)


def test_exact_search_has_the_score_of_the_run(study: SearchCosts) -> None:
    exact = points(study)["exact"]
    assert exact.score.value == noisy().parts[0].scores().value
    assert exact.score.low < exact.score.value < exact.score.high
    assert (exact.overlap, exact.difference) == (1, None)


def test_every_index_is_there_with_its_size(study: SearchCosts) -> None:
    by_name = points(study)
    assert list(by_name) == NAMES
    assert [by_name[name].bytes for name in ("exact", "int8", "binary", "binary, 4× re-scored")] == [256, 64, 8, 8]
    assert 256 < by_name["graph, 16"].bytes == by_name["graph, 256"].bytes < 256 + 300
    assert 64 < by_name["int8 graph, 16"].bytes < by_name["graph, 16"].bytes - 150


def test_more_work_finds_more(study: SearchCosts) -> None:
    by_name = points(study)
    for names in (NAMES[2:5], NAMES[5:8], NAMES[8:11]):
        overlaps = [by_name[name].overlap for name in names]
        assert overlaps == sorted(overlaps)
    assert by_name["int8"].overlap > 0.95
    assert by_name["graph, 256"].overlap > 0.99
    assert by_name["binary"].overlap < 0.6
    assert by_name["binary"].difference is not None
    assert by_name["binary"].difference.high < 0
    assert by_name["binary, 16× re-scored"].score.value > by_name["binary"].score.value


def test_times_are_of_every_repeat(study: SearchCosts) -> None:
    for point in study.curves[0].points:
        assert 0 < point.speed.low <= point.speed.middle <= point.speed.high
        assert 0 < point.build.low <= point.build.middle <= point.build.high


@pytest.mark.slow
def test_the_table_and_the_drawing(study: SearchCosts, tmp_path: Path) -> None:
    table = study.table()
    text = str(table)
    assert "model · PocketNameToImage: hit_rate_at_1, 400 queries, 400 documents of 64 dimensions" in text
    assert "10 documents each, on 1 threads of this machine; the median and range of 2 repeats" in text
    assert "re-scored" in text
    rows = study.to_frame()
    assert list(rows["index"]) == NAMES
    assert (rows["range low"] <= rows["queries a second"]).all()
    study.plot(tmp_path / "index.svg")
    drawing = (tmp_path / "index.svg").read_text()
    for label in ("queries a second", "bytes a vector", "int8 graph (candidates)", "none is better in both"):
        assert label in drawing


def test_dot_products_and_several_parts() -> None:
    rows = gaussian(60, DIM)
    lengths = np.linspace(1, 3, 60, dtype=np.float32)[:, None]
    part = {"query": rows + gaussian(60, DIM, 1), "document": lengths * rows}
    both = embedded("retrieval", [qrels(60), qrels(60)], [part, part], similarity="dot")
    by_name = points(indexed([both], repeats=1))
    exact = np.mean([part.scores().value for part in both.parts])
    assert by_name["exact"].score.value == exact
    assert by_name["graph, 256"].score.value == pytest.approx(exact, abs=0.02)


def test_a_corpus_smaller_than_what_a_search_returns() -> None:
    by_name = points(indexed([noisy(0.5, items=6)], repeats=1))
    assert [round(point.overlap, 2) for point in by_name.values()] == [1] * len(NAMES)


def test_only_retrieval_by_vectors_is_searched() -> None:
    with pytest.raises(EmbarkError, match="PocketClockReading does not search a corpus"):
        indexed([replace(noisy(), task=embark.get_tasks("PocketClockReading")[0])])
    with pytest.raises(EmbarkError, match="similarity that an index can have named 'maxsim'"):
        indexed([noisy(similarity="maxsim")])
    with pytest.raises(EmbarkError, match="at least once, not 0 times"):
        search_cost.index("embark/random", "PocketNameToImage", repeats=0)


def test_without_usearch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch", None)
    with pytest.raises(EmbarkError, match=r"pip install 'embark-bench\[index\]'"):
        indexed([noisy(items=20)], repeats=1)


def test_by_name(pocket_home: Path) -> None:
    study = embark.analyze.index("embark/random", "PocketClockArithmetic", repeats=1, show_progress=False)
    assert list(points(study)) == NAMES
    settings = embark.load_settings(pocket_home, pocket_home / "results")
    [result] = embark.load_results(tasks="PocketClockArithmetic", include="own", settings=settings).results
    assert points(study)["exact"].score.value == pytest.approx(result.score)


# ── scores of ranked lists ───────────────────────────────────────────────────────────────────────────────────────────


def lists(queries: Array, documents: Array) -> Array:
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, documents)]
    return np.argsort(-(unit[0] @ unit[1].T), axis=1)


@pytest.mark.parametrize(
    "params", [{}, {"ignore_identical_ids": True}, {"skip_first": True}, {"drop_unanswerable": True}]
)
def test_whole_lists_have_the_scores_of_the_vectors(params: dict[str, bool]) -> None:
    rng = np.random.default_rng(0)
    queries, documents = gaussian(30, 8), gaussian(50, 8, 1)
    ids = np.array([f"d{row}" for row in range(50)])
    pairs = np.unique(rng.integers(0, (30, 50), (90, 2)), axis=0)
    grade = rng.integers(0, 3, len(pairs))
    truth = Qrels(pairs[:, 0], pairs[:, 1], grade, query_ids=ids[:30], document_ids=ids)
    expected = evaluate(truth, {"query": queries, "document": documents}, params)
    scores = evaluate_lists(truth, lists(queries, documents), 50, params)
    assert scores.metrics == expected.metrics
    assert scores.counts == expected.counts
    known = expected.outcomes["top"] >= 0  # of queries without positives, vectors tell no first document
    np.testing.assert_array_equal(scores.outcomes["top"][known], expected.outcomes["top"][known])
    np.testing.assert_array_equal(scores.outcomes["rank"], expected.outcomes["rank"])


def test_what_is_not_in_a_list_is_not_retrieved() -> None:
    truth = Qrels(np.array([0, 1, 2]), np.array([3, 1, 0]), np.ones(3, int))
    scores = evaluate_lists(truth, np.array([[3, -1], [0, 1], [-1, -1]]), 4, {})
    assert scores.metrics["hit_rate_at_1"] == pytest.approx(1 / 3)
    assert scores.metrics["hit_rate_at_3"] == pytest.approx(2 / 3)
    np.testing.assert_array_equal(scores.outcomes["rank"], [1, 2, -1])
    np.testing.assert_array_equal(scores.outcomes["top"], [3, 0, -1])
    nothing = evaluate_lists(truth, np.full((3, 2), -1), 4, {})
    assert nothing.metrics["hit_rate_at_1"] == 0
    with pytest.raises(EmbarkError, match="need no index"):
        evaluate_lists(truth, np.zeros((3, 1), int), 4, {"judged_only": True})
