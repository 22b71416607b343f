"""Sweeps over vectors whose scores are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.run.embedded_task import Embedded, changed, sample
from embark.studies import vector_variants
from embark.types import Array, EmbarkError, Gold, Groups, Qrels
from embedded import embedded, gaussian

EYE = Qrels(np.arange(40), np.arange(40), np.ones(40, int))


def retrieval(queries: Array, documents: Array, **params: str) -> Embedded:
    return embedded("retrieval", EYE, {"query": queries, "document": documents}, **params)


def noisy(dim: int = 16, noise: float = 0.8) -> Embedded:
    rows = gaussian(40, dim)
    return retrieval(rows, rows + noise * gaussian(40, dim, 1))


def values(sweep: vector_variants.Sweep) -> dict[str, float]:
    return {point.variant.name: point.score.value for point in sweep.curves[0].points}


@given(st.integers(1, 12), st.integers(0, 99))
def test_truncation_keeps_lengths(size: int, seed: int) -> None:
    rows = gaussian(5, 12, seed)
    for change in (vector_variants.first(size), vector_variants.projected(np.eye(12, dtype=np.float32)[:, :size])):
        cut = change(rows)
        assert cut.shape == (5, size)
        np.testing.assert_allclose(np.linalg.norm(cut, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-4)
        cosine = (cut * rows[:, :size]).sum(1) / np.linalg.norm(cut, axis=1) / np.linalg.norm(rows[:, :size], axis=1)
        np.testing.assert_allclose(cosine, 1, rtol=1e-4)


@given(st.integers(0, 99))
def test_int8_is_off_by_half_a_step_at_most(seed: int) -> None:
    rows = gaussian(30, 6, seed)
    most = np.abs(rows).max(axis=0)
    step = most / 127
    quantized = vector_variants.in_bytes(most)(rows)
    assert (np.abs(quantized - rows) <= step / 2 + 1e-6).all()
    assert len(np.unique(np.rint(quantized / step))) <= 255


@given(st.integers(0, 99))
def test_signs_compare_as_hamming_does(seed: int) -> None:
    a, b = vector_variants.signs(gaussian(2, 32, seed))
    assert a @ b == 32 - 2 * np.count_nonzero(a != b)


def test_all_principal_axes_keep_every_score() -> None:
    task = noisy()
    axes = vector_variants.principal_axes(task)
    np.testing.assert_allclose(axes.T @ axes, np.eye(16), atol=1e-5)
    turned = task.changed(vector_variants.projected(axes))
    assert turned.parts[0].scores().value == task.parts[0].scores().value


def test_pca_finds_what_the_first_dimensions_lack() -> None:
    rows = np.hstack([0.01 * gaussian(40, 8), gaussian(40, 4, 1)])  # all that matters stands in the last four
    scores = values(vector_variants.truncated([retrieval(rows, rows + 0.02 * gaussian(40, 12, 2))], [4]))
    assert scores["all 12"] == scores["PCA 4"] == 1
    assert scores["first 4"] < 0.5


def test_sizes_and_differences() -> None:
    sweep = vector_variants.truncated([noisy()])
    points = sweep.curves[0].points
    assert [(p.variant.name, p.variant.bytes) for p in points] == [("all 16", 64), ("first 8", 32), ("PCA 8", 32)]
    assert points[0].difference is None
    for point in points[1:]:
        assert point.difference is not None
        assert point.difference.value == pytest.approx(point.score.value - points[0].score.value)
        assert point.difference.low <= point.difference.value <= point.difference.high


def test_quantised_vectors() -> None:
    sweep = vector_variants.quantized([noisy(64, 2.0)], [64])
    scores, points = values(sweep), sweep.curves[0].points
    assert [p.variant.bytes for p in points] == [256, 128, 64, 8]
    assert scores["int8, 64"] == scores["float16, 64"] == scores["float32, 64"] > scores["binary, 64"] > 0.3
    assert points[2].difference is not None
    assert points[2].difference.value == 0
    assert points[2].difference.high > 0  # no item differs, which is no proof that none would


def test_a_dimension_that_a_model_has_not() -> None:
    with pytest.raises(EmbarkError, match="16 dimensions; it cannot be cut to 32"):
        vector_variants.truncated([noisy()], [32])


def test_length_matters_to_the_dot_product_only() -> None:
    rows = gaussian(40, 8)
    longer = np.where(np.arange(40)[:, None] == 0, 100, 1) * rows
    sweep = vector_variants.compared([retrieval(rows, longer)])
    scores = values(sweep)
    assert list(scores) == ["cosine", "dot"]
    assert scores["cosine"] == 1 > scores["dot"]
    assert sweep.definitions == ()


def test_unit_vectors_are_said_to_agree() -> None:
    rows = gaussian(40, 8)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sweep = vector_variants.compared([retrieval(rows, rows, similarity="dot")])
    assert list(values(sweep)) == ["dot", "cosine"]
    assert "length one" in sweep.definitions[0]


def test_similarity_tasks_know_distances() -> None:
    gold = np.linspace(0, 5, 30)
    left = np.ones((30, 2), np.float32)
    right = left + (5 - gold[:, None]) * np.array([1.0, 1.0], np.float32)  # the angle is always the same
    task = embedded("sts", Gold(np.arange(30), np.arange(30), gold), {"left": left, "right": right.astype(np.float32)})
    scores = values(vector_variants.compared([task]))
    assert list(scores) == ["cosine", "dot", "manhattan", "euclidean"]
    assert scores["euclidean"] == scores["manhattan"] == pytest.approx(1)
    assert scores["dot"] == pytest.approx(-1)


def test_tasks_without_a_similarity() -> None:
    task = embedded("clustering", Groups(np.arange(20) % 2, ("a", "b")), {"item": gaussian(20, 4)})
    with pytest.raises(EmbarkError, match="scored without the model's similarity: 'clustering'"):
        vector_variants.compared([task])


def test_a_statistic_that_is_no_mean_is_compared_by_resampling() -> None:
    rows = gaussian(200, 16)
    other = rows + gaussian(200, 16, 1) * np.linspace(0, 2, 200, dtype=np.float32)[:, None]
    gold = Gold(np.arange(200), np.arange(200), np.linspace(5, 0, 200))
    point = vector_variants.truncated([embedded("sts", gold, {"left": rows, "right": other})], [2]).curves[0].points[1]
    assert point.difference is not None
    assert point.difference.high < 0


def test_several_parts_share_their_items() -> None:
    rows = gaussian(40, 8)
    sides = [{"query": rows + 0.5 * gaussian(40, 8, seed), "document": rows} for seed in (1, 2, 3)]
    sweep = vector_variants.truncated([embedded("retrieval", [EYE] * 3, sides)], [4])
    curve = sweep.curves[0]
    assert curve.count == "n = 120 in 3 parts"
    part_scores = [part.scores().value for part in curve.task.parts]
    assert curve.points[0].score.value == pytest.approx(np.mean(part_scores))
    assert curve.points[0].score.low < curve.points[0].score.value < curve.points[0].score.high


def test_late_interaction_is_cut_token_by_token() -> None:
    tokens = [gaussian(2 + number % 3, 8, number) for number in range(40)]
    task = retrieval(tokens, tokens, similarity="maxsim")  # type: ignore[arg-type]
    points = vector_variants.truncated([task], [4]).curves[0].points
    assert points[0].score.value == points[1].score.value == 1
    assert points[1].variant.bytes == pytest.approx(4 * 4 * np.mean([len(item) for item in tokens]))
    with pytest.raises(EmbarkError, match="maxsim"):
        vector_variants.compared([task])


def test_changes_are_made_as_rows_are_read() -> None:
    rows = gaussian(10, 4)
    lazy = changed(rows, lambda scores: scores[:, :2] * 2)
    np.testing.assert_array_equal(lazy[3], rows[3, :2] * 2)
    np.testing.assert_array_equal(lazy[np.array([4, 1])], rows[[4, 1], :2] * 2)
    assert lazy[2:2].shape == (0, 2)
    assert len(lazy) == 10


@given(st.integers(1, 200), st.integers(1, 50))
def test_samples_are_distinct_and_stay_the_same(items: int, most: int) -> None:
    positions = sample(items, most)
    assert len(positions) == len(set(positions.tolist())) == min(items, most)
    assert positions.tolist() == sorted(sample(items, most).tolist())


@pytest.mark.parametrize("several", [1, 2])
@pytest.mark.parametrize("sweep", [vector_variants.truncated, vector_variants.quantized, vector_variants.compared])
def test_tables_fit_and_plots_are_drawn(sweep: object, several: int, tmp_path: Path) -> None:
    study = sweep([noisy()] * several)  # type: ignore[operator]
    assert max(map(len, str(study).splitlines())) <= 100
    study.plot(tmp_path / "plot.svg")
    words = (tmp_path / "plot.svg").read_text()
    assert "95 % intervals" in words
    assert study.title in words
