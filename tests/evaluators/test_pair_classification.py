"""Pair classification: average precision against scikit-learn's, the best thresholds, ties, useless labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import evaluators
from embark.evaluators import evaluate
from embark.evaluators.chance import chance
from embark.stats.statistics import check_score
from embark.types import Array, EmbarkError, Gold, Scores

seeds = st.integers(0, 10**6)


def score(left: object, right: object, gold: object, **params: object) -> Scores:
    vectors = {"left": np.asarray(left, np.float32), "right": np.asarray(right, np.float32)}
    rows = np.arange(len(vectors["left"]))
    return evaluate("pair-classification", Gold(rows, rows, np.asarray(gold)), vectors, params)


def of_similarity(similarity: Array, gold: object, **params: object) -> Scores:
    """Of pairs with these cosines."""
    left = np.tile([1.0, 0.0], (len(similarity), 1))
    return score(left, np.column_stack([similarity, np.sqrt(1 - np.square(similarity))]), gold, **params)


def some(seed: int, n: int = 40) -> tuple[Array, Array]:
    """Similarities with ties, and labels of both kinds that go with them."""
    rng = np.random.default_rng(seed)
    gold = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
    return np.round(np.clip(rng.normal(size=n) / 3 + gold / 4, -1, 1), 1), gold


def test_four_pairs_worked_out_by_hand() -> None:
    found = of_similarity(np.array([0.9, 0.6, 0.3, 0.0]), [1, 0, 1, 0])
    assert found.outcomes["similarity"] == pytest.approx([0.9, 0.6, 0.3, 0.0])
    assert found.metrics == pytest.approx({"cosine_ap": (1 + 2 / 3) / 2, "cosine_accuracy": 3 / 4, "cosine_f1": 4 / 5})
    assert found.outcomes["cosine_accuracy"].tolist() == [1, 1, 0, 1]  # of equally good thresholds, the highest
    assert (found.main, found.statistic, found.unit) == ("cosine_ap", "average_precision", "left")
    assert found.counts == {"pairs": 4, "matches": 2}


@given(seeds)
def test_average_precision_is_that_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import average_precision_score

    similarity, gold = some(seed)
    found = of_similarity(similarity, gold)
    expected = average_precision_score(gold, found.outcomes["similarity"])
    assert found.metrics["cosine_ap"] == pytest.approx(expected, abs=1e-12)
    check_score(found)


@given(seeds)
def test_accuracy_and_f1_are_the_best_of_all_thresholds(seed: int) -> None:
    from sklearn.metrics import accuracy_score, f1_score

    found = of_similarity(*some(seed), metric="cosine_accuracy")
    gold, similarity = found.outcomes["gold"], found.outcomes["similarity"]
    accepted = [similarity >= threshold for threshold in (*similarity, np.inf)]
    assert found.value == pytest.approx(max(accuracy_score(gold, one) for one in accepted))
    assert found.metrics["cosine_f1"] == pytest.approx(max(f1_score(gold, one) for one in accepted))
    check_score(found)


def test_pairs_that_tie_have_one_place_whatever_their_order() -> None:
    assert of_similarity(np.zeros(4), [1, 0, 0, 0]).value == of_similarity(np.zeros(4), [0, 0, 0, 1]).value == 0.25


def test_the_length_of_vectors_and_the_models_own_similarity_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(2, 30, 5))
    gold = np.arange(30) % 2
    found = score(left, right, gold)
    assert score(4 * left, right / 2, gold, similarity="dot").metrics == found.metrics


def test_a_threshold_that_is_worse_than_none_accepts_no_pair() -> None:
    found = of_similarity(np.array([0.9, 0.6, 0.3]), [0, 0, 1])
    assert found.outcomes["cosine_accuracy"].tolist() == [1, 1, 0]


def test_the_level_of_chance_is_the_share_of_matches() -> None:
    rows = np.arange(2_000)
    contents = {"left": rows, "right": rows + len(rows)}
    truth = Gold(rows, rows, (rows % 5 == 0) * 1.0)
    assert chance("pair-classification", truth, contents, {}, draws=2) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ([], "no pairs to classify"),
        ([1.0, 0.0, 4.5], r"1 \(they match\) or 0, not 4.5 as of pair 2 \(1 such pairs\).*scored by 'sts'"),
        ([1.0, np.nan, 0.0], "not nan as of pair 1"),
        ([1.0, 1.0, 1.0], "All 3 pairs have the label 1: there is nothing to tell apart"),
        ([0.0, 0.0, 0.0], "All 3 pairs have the label 0"),
    ],
)
def test_labels_that_tell_nothing_are_an_error(gold: list[float], message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        score(np.eye(3)[: len(gold)], np.eye(3)[: len(gold)], gold)


def test_pairs_of_one_label_are_refused_before_anything_is_embedded() -> None:
    rows = np.arange(3)
    with pytest.raises(EmbarkError, match="'cosine_ap' is 1 for every model on data of this shape"):
        evaluators.check_measure("pair-classification", Gold(rows, rows, np.ones(3)), {})


def test_f1_is_no_metric_of_a_row_and_broken_vectors_are_errors() -> None:
    with pytest.raises(EmbarkError, match="no measure 'cosine_f1'; it has cosine_ap, cosine_accuracy"):
        score(np.eye(2), np.eye(2), [0, 1], metric="cosine_f1")
    with pytest.raises(EmbarkError, match="not finite, the first at row 1"):
        score(np.eye(2), [[1, 0], [np.inf, 0]], [0, 1])
