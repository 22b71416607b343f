"""STS: correlations against scipy's, ties, invariances and what has no correlation.

Parity with mteb's scores is in tests/test_parity.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.evaluators import evaluate, sts
from embark.types import Array, EmbarkError, Gold, Scores

seeds = st.integers(0, 10**6)


def score(left: Array, right: Array, gold: object, **params: object) -> Scores:
    rows = np.arange(len(left))
    vectors = {"left": np.asarray(left, np.float32), "right": np.asarray(right, np.float32)}
    return evaluate("sts", Gold(rows, rows, np.asarray(gold)), vectors, params)


def some(seed: int, n: int = 30) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, n, 6)).astype(np.float32)
    return left, right, np.round(5 * rng.random(n))  # gold with ties


def test_three_pairs_worked_out_by_hand() -> None:
    left, right = [[1, 0]] * 3, [[2, 0], [3, 4], [0, 1]]
    found = score(left, right, [5, 1, 3])
    assert found.outcomes["similarity"] == pytest.approx([1, 0.6, 0])
    assert found.outcomes["gold_rank"].tolist() == [3, 1, 2]
    assert found.outcomes["similarity_rank"].tolist() == [3, 2, 1]
    assert found.metrics["cosine_spearman"] == found.metrics["spearman"] == found.value == pytest.approx(0.5)
    assert found.metrics["cosine_pearson"] == found.metrics["pearson"] == pytest.approx(0.8 / np.sqrt(8 * 7.6 / 15))
    by = {kind: score(left, right, [5, 1, 3], metric=f"{kind}_pearson") for kind in sts.KINDS}
    assert by["dot"].outcomes["similarity"].tolist() == [2, 3, 0]
    assert by["manhattan"].outcomes["similarity"].tolist() == [-1, -6, -2]
    assert by["euclidean"].outcomes["similarity"] == pytest.approx([-1, -np.sqrt(20), -np.sqrt(2)])
    assert {one.statistic for one in by.values()} == {"pearson"}
    assert (found.main, found.statistic, found.unit) == ("cosine_spearman", "spearman", "left")


@given(seeds)
def test_correlations_are_those_of_scipy(seed: int) -> None:
    from scipy.spatial import distance
    from scipy.stats import pearsonr, spearmanr

    left, right, gold = some(seed)
    found = score(left, right, gold)
    for kind, apart in {"cosine": "cosine", "manhattan": "cityblock", "euclidean": "euclidean"}.items():
        near = [-float(getattr(distance, apart)(a, b)) for a, b in zip(left, right, strict=True)]
        assert found.metrics[f"{kind}_pearson"] == pytest.approx(pearsonr(gold, near).statistic, abs=1e-5)
        assert found.metrics[f"{kind}_spearman"] == pytest.approx(spearmanr(gold, near).statistic, abs=1e-5)


@given(seeds)
def test_spearman_ignores_monotone_transforms_and_cosine_ignores_length(seed: int) -> None:
    left, right, gold = some(seed)
    before, after = score(left, right, gold), score(left * 4, right * 0.5, np.exp(gold))
    assert after.metrics["cosine_spearman"] == before.metrics["cosine_spearman"]
    assert after.metrics["dot_spearman"] == before.metrics["dot_spearman"]
    assert score(left, right, -gold).value == pytest.approx(-before.value)


def test_pairs_of_equal_items_tie() -> None:
    left = np.random.default_rng(1).normal(size=(50, 300))
    right = np.concatenate([left[:40], -left[40:]])
    found = score(left, right, np.arange(50))
    assert len(set(found.outcomes["similarity"][:40].tolist())) == 1
    assert found.outcomes["similarity_rank"].tolist() == [30.5] * 40 + [5.5] * 10


def test_pairs_may_share_items_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right, gold = some(3)
    truth = Gold(np.arange(30) // 3, 29 - np.arange(30), gold)
    whole = evaluate("sts", truth, {"left": left, "right": right}, {})
    monkeypatch.setattr(sts, "PAIRS", 7)
    assert evaluate("sts", truth, {"left": left, "right": right}, {}).metrics == whole.metrics
    assert whole.rows.tolist() == truth.left.tolist()
    assert whole.outcomes["right"].tolist() == truth.right.tolist()
    assert score(left[truth.left], right[truth.right], gold).metrics == whole.metrics


def test_the_models_own_similarity() -> None:
    left, right, gold = some(4)
    found = score(left, right, gold, similarity="dot", metric="spearman")
    assert found.metrics["pearson"] == found.metrics["dot_pearson"] != found.metrics["cosine_pearson"]
    assert (found.value, found.statistic) == (found.metrics["dot_spearman"], "spearman")
    assert found.outcomes["similarity"] == pytest.approx((left * right).sum(1), abs=1e-5)
    assert score(left, right, gold, similarity="maxsim").metrics == score(left, right, gold).metrics


def test_constant_similarity_is_zero_with_a_warning() -> None:
    found = score(np.eye(3), 2 * np.eye(3)[[1, 2, 0]], [1, 2, 3])
    assert set(found.metrics.values()) == {0.0}
    assert found.warnings[0] == "The cosine similarity is the same for all 3 pairs: its correlations are set to 0."
    assert len(found.warnings) == 4
    assert score(np.zeros((3, 2)), np.eye(3, 2), [1, 2, 3]).metrics["cosine_spearman"] == 0  # zero vectors


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ([], "at least 2 pairs; there are 0"),
        ([1.0], "at least 2 pairs; there are 1"),
        ([2.5, 2.5, 2.5], "All 3 gold scores are 2.5"),
        ([1.0, np.nan, 2.0], "1 gold scores are not finite, the first at pair 1"),
    ],
)
def test_gold_without_information_is_an_error(gold: list[float], message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        score(np.eye(3)[: len(gold)], np.eye(3)[: len(gold)], gold)


def test_unknown_names_and_broken_vectors_are_errors() -> None:
    left, right, gold = some(5)
    with pytest.raises(EmbarkError, match="no measure 'kendall'; it has pearson, spearman, cosine_pearson"):
        score(left, right, gold, metric="kendall")
    with pytest.raises(EmbarkError, match="Unknown similarity 'angle'; known: cosine, dot"):
        score(left, right, gold, similarity="angle")
    right[4] = np.inf
    with pytest.raises(EmbarkError, match="not finite, the first at row 4"):
        score(left, right, gold)
