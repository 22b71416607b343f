"""The rule of reproduction keeps its level among true reproductions, and finds planted differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.stats.intervals import holm, mean_interval
from embark.stats.reproduction import (
    EXACT,
    REDRAWN,
    Tolerance,
    assumed_error,
    mean_tolerance,
    standard_error,
    tolerance,
)
from embark.types import Array

SIZES = [(100, 100), (2_000, 2_000), (100, 1_000), (2_000, 10_000)]  # items of ours, and of the published score
FAMILIES = 150
TASKS = 20


def p_value(rng: np.random.Generator, right: float, ours: int, published: int, worse: float = 0.0) -> float:
    """Of a reproduction on so many of the items, after REDRAWN of the outcomes changed; `worse` of them are lost."""
    outcomes = (rng.random(published) < right).astype(float)
    printed = round(float(outcomes.mean()), 3)
    redrawn = rng.random(published) < REDRAWN
    outcomes[redrawn] = rng.random(int(redrawn.sum())) < right
    outcomes[rng.choice(np.flatnonzero(outcomes == 1), int(worse * published), replace=False)] = 0
    sample = outcomes if ours == published else rng.choice(outcomes, ours, replace=False)
    return judged(sample, printed, ours / published)


def judged(sample: Array, printed: float, share: float) -> float:
    value = float(sample.mean())
    error = standard_error(value, mean_interval(sample), printed)
    return tolerance(error, len(sample), rounding=0.0005, sampled=share).p_value(value - printed)


@pytest.mark.parametrize(
    ("right", "ours", "published"),
    [
        pytest.param(right, *size, marks=() if right == quick else pytest.mark.slow)
        for size, quick in zip(SIZES, (0.1, 0.9, 0.9, 0.5), strict=True)
        for right in (0.1, 0.5, 0.9)
    ],
)
def test_twenty_true_reproductions_rarely_differ(right: float, ours: int, published: int) -> None:
    """At most 5 % of benchmarks of 20 tasks have a false "differs"; simulated: 0 to 5 %."""
    rng = np.random.default_rng(0)
    families = [holm([p_value(rng, right, ours, published) for _ in range(TASKS)]) for _ in range(FAMILIES)]
    false = np.mean([min(family) < 0.05 for family in families])
    assert false <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / FAMILIES)


@pytest.mark.parametrize(
    ("ours", "published", "worse", "power"),
    [(2_000, 2_000, 0.02, 0.99), (2_000, 10_000, 0.05, 0.99), (2_000, 10_000, 0.02, 0.4), (100, 1_000, 0.2, 0.8)],
)
def test_planted_differences_are_found(ours: int, published: int, worse: float, power: float) -> None:
    """One task alone: two points are found in a full run, five with --limit 2000."""
    rng = np.random.default_rng(1)
    assert np.mean([p_value(rng, 0.5, ours, published, worse) < 0.05 for _ in range(200)]) >= power


def test_the_same_score_is_reproduced_and_rounding_is_no_difference() -> None:
    exact = tolerance(0.0, 0)
    assert exact == Tolerance(EXACT, 0.0)
    assert exact.p_value(EXACT) == 1
    assert exact.p_value(-2 * EXACT) == 0
    assert tolerance(0.0, 0, rounding=0.005).p_value(0.004) == 1
    assert exact.allowed == EXACT


@given(st.floats(1e-4, 0.1), st.integers(1, 10_000), st.floats(0.01, 1))
def test_a_difference_is_allowed_exactly_if_it_does_not_differ_by_itself(
    error: float, items: int, share: float
) -> None:
    allowed = tolerance(error, items, sampled=share)
    assert allowed.p_value(0.999 * allowed.allowed) > 0.05
    assert allowed.p_value(1.001 * allowed.allowed) < 0.05


def test_a_sample_may_be_further_away_than_the_whole() -> None:
    allowed = [tolerance(0.01, 100, sampled=share).allowed for share in (0.01, 0.5, 1.0)]
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[0] > 4 * (allowed[2] - 0.01)


def test_runs_widen_and_one_published_run_widens_more() -> None:
    runs = np.random.default_rng(0).normal(0.5, 0.02, 10)
    plain = tolerance(0.001, 1_000)
    of_ten, of_one = (tolerance(0.001, 1_000, runs=runs, published_runs=count) for count in (10, 1))
    assert plain.allowed < of_ten.allowed < of_one.allowed
    assert of_one.error == pytest.approx(np.sqrt(runs.var(ddof=1) * 1.1), rel=0.01)
    assert of_one.freedom == pytest.approx(9, rel=0.01)
    assert tolerance(0.001, 1_000, runs=np.array([0.5])) == plain


def test_one_clustering_in_twenty_is_outside() -> None:
    """A published score of one run, ours of ten."""
    rng = np.random.default_rng(2)
    outside = []
    for _ in range(1_000):
        ours, printed = rng.normal(0.5, 0.02, 10), float(rng.normal(0.5, 0.02))
        allowed = tolerance(0.001, 1_000, runs=ours, published_runs=1)
        outside.append(allowed.p_value(float(ours.mean()) - printed) < 0.05)
    assert 0.02 <= np.mean(outside) <= 0.07


def test_errors_are_those_of_the_side_that_the_published_score_is_on() -> None:
    assert standard_error(0.9, (0.7, 0.95), 0.8) == pytest.approx(0.2 / 1.96, rel=1e-3)
    assert standard_error(0.9, (0.7, 0.95), 0.99) == pytest.approx(0.05 / 1.96, rel=1e-3)
    assert np.isnan(standard_error(0.9, (float("nan"), float("nan")), 0.8))
    assert assumed_error(0.5, 100) == 0.05
    assert assumed_error(0.6, 103, correlation=True) == pytest.approx(0.064)


def test_the_mean_holds_for_tasks_that_move_together() -> None:
    mean = mean_tolerance([Tolerance(0.001, 0.01), Tolerance(0.002, 0.03)])
    assert mean == Tolerance(0.0015, 0.02)
