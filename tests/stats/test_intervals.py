"""Intervals: they cover what they promise, and agree with a bootstrap that is written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.stats.intervals import combined_interval, mean_interval
from embark.stats.shared import ItemNumbers, Part, interval
from embark.types import Array


def subset_interval(values: list[Array], ids: list[list[str]]) -> tuple[float, float]:
    """Of the mean of subset means, where an item may be in several subsets."""
    numbers = ItemNumbers()
    return interval(
        [
            Part("mean", "score", {"score": subset}, numbers.observations("", {"id": names}))
            for subset, names in zip(values, ids, strict=True)
        ]
    )


def slow(values: list[Array], ids: list[list[str]]) -> tuple[float, float]:
    """Draw items with replacement, with all their appearances, and take the mean of the subset means."""
    rng, means = np.random.default_rng(99), []
    names = sorted({one for subset in ids for one in subset})
    places = [np.array([names.index(one) for one in subset]) for subset in ids]
    for _ in range(2000):
        times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        means.append(np.mean([times[at] @ v / times[at].sum() for v, at in zip(values, places, strict=True)]))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def numbered(count: int, start: str = "item") -> list[str]:
    return [f"{start} {n}" for n in range(count)]


def width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def agrees(found: tuple[float, float], expected: tuple[float, float]) -> None:
    """To a tenth of the width: what 2,000 replicates can tell."""
    assert np.abs(np.subtract(found, expected)).max() < 0.1 * width(expected)


# ── one set of items ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_nineteen_of_twenty_intervals_cover_the_truth() -> None:
    rng, runs, truth = np.random.default_rng(3), 400, 0.3
    found = [mean_interval((rng.random(200) < truth).astype(float)) for _ in range(runs)]
    covered = np.mean([low <= truth <= high for low, high in found])
    assert 0.92 <= covered <= 0.98


@pytest.mark.parametrize(
    "values",
    [
        (np.arange(300) % 10 < 3).astype(float),
        np.random.default_rng(0).random(400),
        np.random.default_rng(1).choice([0, 0.25, 0.5, 1], 150),
        np.random.default_rng(2).random(3000) ** 8,  # more values than bins, most of them near zero
    ],
    ids=["right or wrong", "all different", "few values", "many values"],
)
def test_it_agrees_with_a_plain_bootstrap(values: Array) -> None:
    agrees(mean_interval(values), slow([values], [numbered(len(values))]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_it_is_deterministic_and_encloses_the_mean_of_what_is_possible(values: list[float]) -> None:
    low, high = mean_interval(np.array(values))
    assert mean_interval(np.array(values)) == (low, high)
    assert 0 <= low <= high <= 1 + 1e-12
    assert mean_interval(np.array(values[::-1])) == pytest.approx((low, high))


def test_more_items_are_more_certain() -> None:
    few, many = (np.arange(n) % 2.0 for n in (50, 5000))
    assert width(mean_interval(few)) > 5 * width(mean_interval(many))


def test_all_right_or_all_wrong_is_not_certainty() -> None:
    low, high = mean_interval(np.ones(50))
    assert high == 1
    assert low**50 == pytest.approx(0.025)  # at this rate, 50 right answers in a row are that likely
    assert mean_interval(np.zeros(50)) == pytest.approx((0, 1 - low))
    assert mean_interval(np.zeros(1)) == pytest.approx((0, 0.975))


@pytest.mark.parametrize("value", [0.25, 0.999, -0.5])
def test_a_constant_that_is_neither_is_not_certainty_either(value: float) -> None:
    """As many items as the binomial bound allows may have fallen anywhere on the scale."""
    few, many = (mean_interval(np.full(n, value)) for n in (3, 3000))
    assert few[0] < many[0] < value < many[1] < few[1]
    assert -1 <= few[0] < few[1] <= 1
    assert width(many) < 0.003
    assert mean_interval(np.full(5, 7.0))[1] == pytest.approx(7)  # of no known scale


# ── several subsets ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_subset_is_a_plain_mean() -> None:
    values = np.arange(100) % 3 / 2
    assert subset_interval([values], [numbered(100)]) == pytest.approx(mean_interval(values))


def test_copies_of_a_subset_add_no_certainty() -> None:
    values = (np.random.default_rng(0).random(200) < 0.4).astype(float)
    clustered = subset_interval([values] * 8, [numbered(200)] * 8)
    naive = mean_interval(np.tile(values, 8))
    assert width(clustered) > 2.5 * width(naive)
    agrees(clustered, mean_interval(values))


def test_rows_of_one_item_add_no_certainty_within_a_subset_either() -> None:
    values = np.random.default_rng(0).random(60)
    once, often = subset_interval([values], [numbered(60)]), subset_interval([values.repeat(9)], [numbered(60) * 9])
    often_in_order = subset_interval([values.repeat(9)], [[name for name in numbered(60) for _ in range(9)]])
    assert width(often_in_order) == pytest.approx(width(once), rel=0.1)
    assert width(often) < width(once) / 2  # rows that differ tell more


def test_subsets_of_different_items_do() -> None:
    values = (np.random.default_rng(0).random(200) < 0.4).astype(float)
    apart = subset_interval([values] * 4, [numbered(200, str(n)) for n in range(4)])
    assert width(apart) == pytest.approx(width(mean_interval(values)) / 2, rel=0.15)


@pytest.mark.parametrize("shared", [True, False], ids=["shared items", "own items"])
@pytest.mark.parametrize("sizes", [(150, 150), (40, 300), (30, 60, 90)])
def test_subsets_agree_with_a_plain_bootstrap(sizes: tuple[int, ...], shared: bool) -> None:
    """Also where the subsets differ in size and in level."""
    rng = np.random.default_rng(5)
    values = [(rng.random(n) < level).astype(float) for n, level in zip(sizes, (0.2, 0.9, 0.5), strict=False)]
    ids = [numbered(n, "item" if shared else f"item of {at}") for at, n in enumerate(sizes)]
    agrees(subset_interval(values, ids), slow(values, ids))


def test_many_items_are_grouped_without_changing_the_width() -> None:
    rng = np.random.default_rng(0)
    values, ids = [rng.random(5000) < p for p in (0.3, 0.6)], [numbered(5000), numbered(5000)]
    lo, hi = subset_interval([v.astype(float) for v in values], ids)
    plain = np.mean(values, axis=0).std() / np.sqrt(5000)
    assert (hi - lo) / 2 == pytest.approx(1.96 * plain, rel=0.1)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_subsets_that_are_all_equal_are_as_certain_as_their_distinct_items(value: float) -> None:
    values, ids = [np.full(30, value), np.full(20, value)], [numbered(30), numbered(20)]
    assert subset_interval(values, ids) == mean_interval(np.full(30, value))
    assert width(subset_interval(values, ids)) > 0


def test_a_tiny_subset_that_is_not_drawn_does_no_harm() -> None:
    low, high = subset_interval([np.array([1.0]), np.arange(40) % 2.0], [["only"], numbered(40)])
    assert 0 <= low < high <= 1


# ── means of scores ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_mean_of_independent_scores_is_more_certain_than_each() -> None:
    assert combined_interval([0.3] * 4, [(0.2, 0.4)] * 4) == pytest.approx((0.25, 0.35))
    assert combined_interval([0.2, 0.5], [(0.2, 0.2), (0.5, 0.5)]) == pytest.approx((0.35, 0.35))
    assert combined_interval([0.3, 0.9], [(0.2, 0.4), (0.8, 1.0)], [1.0, 0.0]) == pytest.approx((0.2, 0.4))
    assert np.isnan(combined_interval([0.3, 0.5], [(0.2, 0.4), (np.nan, np.nan)])).all()  # a published one among them


PARTS = st.lists(st.tuples(*[st.floats(0, 1)] * 3).map(sorted), min_size=1, max_size=5)


@given(PARTS, st.data())
def test_a_mean_of_scores_lies_in_its_interval_and_on_their_scale(
    parts: list[list[float]], data: st.DataObject
) -> None:
    lows, values, highs = np.array(parts).T
    weights = np.array(data.draw(st.lists(st.floats(0.1, 1), min_size=len(parts), max_size=len(parts))))
    weights /= weights.sum()
    low, high = combined_interval(values.tolist(), [(low, high) for low, _, high in parts], weights.tolist())
    value = weights @ values
    assert weights @ lows - 1e-12 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= weights @ highs + 1e-12
    for side, reach in ((value - low, values - lows), (high - value, highs - values)):  # each side by itself
        assert side**2 == pytest.approx(((weights * reach) ** 2).sum(), abs=1e-9)


@given(st.lists(st.integers(0, 1), min_size=2, max_size=80))
def test_a_mean_of_one_score_has_that_scores_interval(outcomes: list[int]) -> None:
    """However lopsided: a category of one task is as sure as the task."""
    values = np.array(outcomes, float)
    own = mean_interval(values)
    assert combined_interval([float(values.mean())], [own]) == own


@pytest.mark.parametrize(("items", "truth"), [(72, 0.03), (72, 0.97), (200, 0.01), (24, 0.9)])
def test_nineteen_of_twenty_means_of_four_lopsided_scores_cover_the_truth(items: int, truth: float) -> None:
    rng, runs, covered = np.random.default_rng(0), 1000, 0
    for _ in range(runs):
        parts = (rng.random((4, items)) < truth).astype(float)
        low, high = combined_interval(parts.mean(axis=1).tolist(), [mean_interval(part) for part in parts])
        covered += low <= truth <= high
    assert covered / runs >= 0.91


def test_subsets_of_one_item_each() -> None:
    low, high = subset_interval([np.array([v]) for v in (0.0, 0.5, 1.0, 1.0)], [[name] for name in "abcd"])
    assert 0 <= low < 0.625 < high <= 1
    low, high = subset_interval([np.array([v]) for v in (0.0, 0.5, 1.0)], [["same"]] * 3)  # one item tells nothing
    assert low <= 0.5 <= high
