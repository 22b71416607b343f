"""The shape of vector spaces with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.studies.geometry import (
    Geometry,
    hubs,
    matches,
    mean_cosine,
    measure,
    participation,
    separable,
    shape,
    uniformity,
)
from embark.types import Array, Classes, EmbarkError, Gold, Groups, Matches, Qrels, Split
from embedded import embedded, gaussian


def unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_an_even_space() -> None:
    side = shape(unit(gaussian(4_000, 16)))
    assert abs(side.mean_cosine) < 0.01
    assert side.dimensions == pytest.approx(16, rel=0.02)
    assert side.isoscore == pytest.approx(1, abs=0.02)


def test_a_line_has_one_dimension_and_no_isotropy() -> None:
    line = unit(np.outer(np.tile([1.0, -1.0], 50), np.ones(8)))
    side = shape(line)
    assert side.dimensions == pytest.approx(1)
    assert side.isoscore == pytest.approx(0, abs=1e-9)


@given(st.integers(2, 40), st.integers(2, 12), st.integers(0, 99))
def test_mean_cosine_and_uniformity_are_those_of_all_pairs(items: int, dim: int, seed: int) -> None:
    rows = unit(gaussian(items, dim, seed))
    different = ~np.eye(items, dtype=bool)
    cosines = (rows.astype(np.float64) @ rows.T)[different]
    assert mean_cosine(rows) == pytest.approx(cosines.mean(), abs=1e-5)
    assert uniformity(rows) == pytest.approx(np.log(np.exp(-2 * (2 - 2 * cosines)).mean()), abs=1e-3)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30))
def test_isoscore_is_the_papers(variances: list[float]) -> None:
    values, n = np.array(variances), len(variances)
    scaled = np.sqrt(n) * values / np.linalg.norm(values)
    defect = np.linalg.norm(scaled - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    share = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    assert (participation(values) - 1) / (n - 1) == pytest.approx((n * share - 1) / (n - 1), abs=1e-9)


def test_vectors_that_are_zero_are_measured_like_others() -> None:
    rows = np.vstack([unit(gaussian(5, 4)), np.zeros((2, 4), np.float32)])
    apart = ~np.eye(7, dtype=bool)
    assert shape(rows).uniformity == pytest.approx(np.log(np.exp(-2 * (2 - 2 * rows @ rows.T))[apart].mean()), abs=1e-5)


def test_a_gap_is_found() -> None:
    rows = gaussian(300, 8)
    gap = np.array([4.0, *[0.0] * 7])
    left, right = unit(rows + gap), unit(rows - gap)
    assert separable(left, right) == 1.0
    assert separable(unit(rows), unit(gaussian(300, 8, 1))) == pytest.approx(0.5, abs=0.08)


def test_equal_sides_cannot_be_told_apart() -> None:
    same = unit(gaussian(200, 8))
    accuracy = separable(same, same.copy())
    assert accuracy is not None
    assert accuracy <= 0.55


def test_few_items_are_not_separated() -> None:
    assert separable(gaussian(3, 4), gaussian(9, 4)) is None


def test_a_hub_is_everybodys_neighbour() -> None:
    left = unit(gaussian(100, 32) + 3.0)
    right = unit(np.vstack([np.ones((1, 32)), gaussian(99, 32, 1)]))
    neighbors = hubs(left, right, 1)
    assert neighbors.times[0] == 100
    assert neighbors.anti == pytest.approx(0.99)
    assert neighbors.skewness > 5
    assert neighbors.anti_by_chance == pytest.approx(0.99**100)


@pytest.mark.parametrize(("left", "right"), [(1_000, 1_000), (100, 3_000)])
def test_an_even_space_has_the_hubs_of_chance(left: int, right: int) -> None:
    """Few queries for many documents look hubby without being so, which is what the comparison is for."""
    neighbors = hubs(unit(gaussian(left, 64)), unit(gaussian(right, 64, 1)))
    assert neighbors.skewness == pytest.approx(neighbors.skewness_by_chance, abs=0.25)
    assert neighbors.anti == pytest.approx(neighbors.anti_by_chance, abs=0.02)


def test_no_item_is_its_own_neighbour() -> None:
    rows = unit(np.repeat(gaussian(30, 8), 2, axis=0))  # each has an equal twin
    neighbors = hubs(rows, rows, 1)
    assert neighbors.times.tolist() == [1] * 60
    assert neighbors.skewness == 0


@pytest.mark.parametrize(
    ("truth", "kind", "sides", "expected"),
    [
        (Qrels(np.array([0, 1]), np.array([2, 0]), np.array([1, 0])), "retrieval", ("query", "document"), {(0, 2)}),
        (Qrels(np.array([0, 0]), np.array([1, 2]), np.array([0, 1])), "choice", ("query", "document"), {(0, 2)}),
        (
            Classes(np.array([1, 0, 1]), np.array([0, 0, 1, 1]), ("a", "b")),
            "zeroshot",
            ("item", "prompt"),
            {(0, 2), (1, 0), (2, 2)},
        ),
        (Matches(np.array([[0, 1]]), np.array([[3, 2, 1]])), "retrieval", ("image", "text"), {(0, 3), (1, 2)}),
        (
            Gold(np.array([0, 1, 2, 3]), np.array([3, 2, 1, 0]), np.array([1.0, 5.0, 2.0, 3.0])),
            "sts",
            ("left", "right"),
            {(1, 2)},
        ),
        (
            Gold(np.arange(4), np.array([3, 2, 1, 0]), np.eye(4)[1]),  # one pair matches
            "pair-classification",
            ("left", "right"),
            {(1, 2)},
        ),
        (Groups(np.array([0, 1, 0, 1]), ("a", "b")), "clustering", ("item", "item"), {(0, 2), (1, 3)}),
    ],
)
def test_pairs_that_belong_together(
    truth: object, kind: str, sides: tuple[str, str], expected: set[tuple[int, int]]
) -> None:
    task = embedded(kind, truth, {side: gaussian(4, 3) for side in sides})  # type: ignore[arg-type]
    left, right, left_rows, right_rows = matches(task.parts[0])
    assert (left, right) == sides
    assert set(zip(left_rows.tolist(), right_rows.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_test_items_meet_training_items_of_their_label(test: list[int], train: list[int]) -> None:
    truth = Split(np.array(train), np.array(test), tuple("abcde"))
    task = embedded("probe", truth, {"train": gaussian(len(train), 3), "test": gaussian(len(test), 3)})
    _, _, left_rows, right_rows = matches(task.parts[0])
    assert [test[row] for row in left_rows] == [train[row] for row in right_rows]
    assert len(left_rows) == sum(label in train for label in test)


def test_the_table_of_a_task() -> None:
    rows = gaussian(60, 8)
    truth = Qrels(np.arange(60), np.arange(60), np.ones(60, int))
    task = embedded("retrieval", truth, {"query": rows, "document": rows + 0.01 * gaussian(60, 8, 1)})
    measured = measure(task)
    pair = measured.relations[0]
    assert pair.matching.mean() > 0.99
    assert pair.alignment == pytest.approx(2 - 2 * pair.matching.mean(), abs=1e-4)
    table = Geometry((measured, measured)).table()
    assert table.columns == ("measure", "model", "model")
    assert {row.section for row in table.rows} == {
        "query (text, 60 items)",
        "document (image, 60 items)",
        "query → document",
    }
    assert max(map(len, str(table).splitlines())) <= 100


def test_corrupted_sides_are_compared_with_the_clean_one() -> None:
    clean = gaussian(40, 8)
    sides = {"query": gaussian(40, 8, 1), "document": clean, "document:noise": clean + 5}
    measured = measure(embedded("robustness", Qrels(np.arange(40), np.arange(40), np.ones(40, int)), sides))
    assert [(relation.left, relation.right) for relation in measured.relations] == [
        ("query", "document"),
        ("document", "document:noise"),
    ]
    assert measured.relations[1].distance is not None
    assert measured.relations[1].distance > 0.5


def test_an_unknown_subset_is_an_error() -> None:
    task = embedded("clustering", Groups(np.array([0, 1]), ("a", "b")), {"item": gaussian(2, 3)})
    with pytest.raises(EmbarkError, match="no subset 'fr', but part0"):
        measure(task, "fr")
