"""Zero-shot: the class of the nearest prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embark.evaluators import similarity
from embark.evaluators.zeroshot import best_classes, class_vectors, evaluate
from embark.types import Array, Classes, EmbarkError

AXES = np.eye(7, dtype=np.float32)


def classes(label: Any, prompt: Any, count: int) -> Classes:
    return Classes(np.asarray(label), np.asarray(prompt), tuple(f"class {n}" for n in range(count)))


def sides(item: Any, prompt: Any) -> dict[str, Array]:
    return {"item": np.array(item, np.float32), "prompt": np.array(prompt, np.float32)}


def test_an_item_belongs_to_the_nearest_prompt() -> None:
    found = evaluate(classes([0, 1, 1], [0, 1], 2), sides([[2, 1], [1, 3], [3, 1]], AXES[:2, :2]), {})
    assert found.outcomes["predicted"].tolist() == [0, 1, 0]
    assert found.outcomes["accuracy"].tolist() == [1, 1, 0]
    assert found.value == pytest.approx(2 / 3)
    assert (found.main, found.unit, found.rows.tolist()) == ("accuracy", "item", [0, 1, 2])


def test_top_5_counts_the_five_nearest() -> None:
    item = [[7, 6, 5, 4, 3, 2, 1]]
    fifth, sixth = (evaluate(classes([n], range(7), 7), sides(item, AXES), {}) for n in (4, 5))
    assert (fifth.metrics["accuracy"], fifth.metrics["top5_accuracy"]) == (0, 1)
    assert sixth.metrics["top5_accuracy"] == 0
    assert evaluate(classes([4], range(7), 7), sides(item, AXES), {"metric": "top5_accuracy"}).value == 1


def test_an_ensemble_is_the_direction_of_the_mean_of_unit_vectors() -> None:
    prompts = np.array([[10, 0], [0, 1], [1, -0.2]], np.float32)  # the first two are class 0: together, 45 degrees
    found = evaluate(classes([0, 1], [0, 0, 1], 2), sides([[1, 1], [1, 0]], prompts), {})
    assert found.outcomes["predicted"].tolist() == [0, 1]
    made = class_vectors(np.array([[1, 0], [0, 1], [3, 4]], np.float32), np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(made, [[0.5**0.5, 0.5**0.5], [3, 4]], rtol=1e-6)


def test_prompts_that_cancel_out_are_far_from_everything() -> None:
    found = evaluate(classes([1], [0, 0, 1], 2), sides([[1, 0.1]], [[1, 0], [-1, 0], [1, 0]]), {})
    assert found.value == 1


def test_any_of_several_labels_is_right() -> None:
    label = np.array([[True, True, False], [False, False, True], [False, True, True]])
    found = evaluate(classes(label, [0, 1, 2], 3), sides([[1, 0, 0], [1, 0, 0], [0, 1, 0]], AXES[:3, :3]), {})
    assert found.outcomes["accuracy"].tolist() == [1, 0, 1]
    assert found.metrics["top5_accuracy"] == 1


def test_ties_go_to_the_lower_class() -> None:
    found = evaluate(classes([1, 1], [2, 1, 0], 3), sides([[0, 1], [1, 1]], [[1, 0], [0, 1], [0, 1]]), {})
    assert found.outcomes["predicted"].tolist() == [0, 0]


def test_the_best_classes_are_the_first_of_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(-3, 4, (200, 9)).astype(np.float32)  # with ties
    infinite = scores.copy()
    infinite[::7, ::2] = -np.inf
    infinite[3, 4], infinite[5, 6] = np.inf, np.nan
    for matrix in (scores, infinite, scores[:, :2]):
        for count in (1, 2, min(5, matrix.shape[1])):
            expected = np.argsort(-matrix, axis=1, kind="stable")[:, :count]
            np.testing.assert_array_equal(best_classes(matrix.copy(), count), expected)


def test_a_class_without_a_prompt_is_an_error_that_names_it() -> None:
    with pytest.raises(EmbarkError, match="1 classes have no prompt, the first is 'class 1'"):
        evaluate(classes([0], [0, 2], 3), sides([[1, 0]], AXES[:2, :2]), {})


def test_no_items_unknown_measures_and_nan_are_errors() -> None:
    with pytest.raises(EmbarkError, match="no items"):
        evaluate(classes([], [0, 1], 2), sides(np.ones((0, 2)), AXES[:2, :2]), {})
    with pytest.raises(EmbarkError, match="no measure 'f1'; it has accuracy, top5_accuracy"):
        evaluate(classes([0], [0, 1], 2), sides([[1, 0]], AXES[:2, :2]), {"metric": "f1"})
    for bad in (sides([[1, 0], [np.nan, 0]], AXES[:2, :2]), sides([[1, 0], [1, 0]], [[1, 0], [np.inf, 0]])):
        with pytest.raises(EmbarkError, match="not finite, the first at row 1"):
            evaluate(classes([0, 0], [0, 1], 2), bad, {})


def test_blocks_halves_and_copies_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = {role: rng.integers(-4, 5, (n, 6)).astype(np.float16) for role, n in (("item", 50), ("prompt", 12))}
    before = {role: matrix.copy() for role, matrix in vectors.items()}
    truth = classes(rng.integers(0, 12, 50), rng.permutation(12), 12)
    whole = evaluate(truth, {role: m.astype(np.float32) for role, m in vectors.items()}, {"similarity": "dot"})
    monkeypatch.setattr(similarity, "BLOCK_BYTES", 4 * 6 * 7)
    parts = evaluate(truth, vectors, {"similarity": "dot"})
    assert parts.metrics == whole.metrics
    np.testing.assert_array_equal(parts.outcomes["predicted"], whole.outcomes["predicted"])
    for role in vectors:
        np.testing.assert_array_equal(vectors[role], before[role])


def test_predictions_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(2)
    item, prompt, owner = rng.normal(size=(40, 5)), rng.normal(size=(9, 5)), np.array([0, 1, 2, 0, 1, 2, 0, 3, 3])
    found = evaluate(classes(np.zeros(40, int), owner, 4), sides(item, prompt), {})
    for row, predicted in zip(item, found.outcomes["predicted"], strict=True):
        means = [np.mean([p / np.linalg.norm(p) for p in prompt[owner == c]], axis=0) for c in range(4)]
        assert predicted == np.argmax([row @ mean / np.linalg.norm(mean) for mean in means])


def test_classes_with_the_same_prompt_tie_wherever_they_stand() -> None:
    """Two classes are called "crane": the lower number wins every time, not whichever rounds better."""
    rng = np.random.default_rng(0)
    for classes in (5, 33, 101, 1000):
        prompts = rng.normal(size=(classes, 300)).astype(np.float32)
        prompts[classes - 1] = prompts[1]
        items = (prompts[1] + 0.01 * rng.normal(size=(200, 300))).astype(np.float32)
        truth = Classes(np.full(200, 1), np.arange(classes), tuple(map(str, range(classes))))
        assert evaluate(truth, {"item": items, "prompt": prompts}, {}).value == 1
