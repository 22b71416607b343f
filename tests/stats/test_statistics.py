"""Intervals of correlations, clusterings and runs: they cover, and they spread as resampling the items does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from embark.evaluators.clustering import contingency, from_contingency
from embark.evaluators.sts import correlation
from embark.stats.intervals import mean_interval
from embark.stats.shared import Observations, part_interval
from embark.stats.statistics import STATISTICS, pushes
from embark.types import Array, EmbarkError


def interval(statistic: str, main: str, outcomes: dict[str, Array]) -> tuple[float, float]:
    """Of items that are all different."""
    return part_interval(statistic, main, outcomes, Observations.apart(len(next(iter(outcomes.values())))))


def deviation(statistic: str, main: str, outcomes: dict[str, Array]) -> float:
    """The standard error by the pushes of the items."""
    return float(np.sqrt((pushes(statistic, main, outcomes).items.mean(axis=0) ** 2).sum()))


def related(n: int, rho: float, rng: np.random.Generator) -> dict[str, Array]:
    x = rng.normal(size=n)
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)
    return {"gold": x, "similarity": y, "gold_rank": rankdata(x), "similarity_rank": rankdata(y)}


def clustered(n: int, groups: int, right: float, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    label, chance = rng.integers(0, groups, (2, n))
    return {"label": label, "cluster_run1": np.where(rng.random(n) < right, groups - label, chance)}


def repeated(n: int, *means: float, seed: int = 0) -> dict[str, Array]:
    draws = np.random.default_rng(seed).random((len(means), n))
    return {f"accuracy_run{i}": (draw < mean) * 1.0 for i, (draw, mean) in enumerate(zip(draws, means, strict=True), 1)}


def width(found: tuple[float, float]) -> float:
    return found[1] - found[0]


def slowly(outcomes: dict[str, Array], score: Callable[[dict[str, Array]], float], draws: int = 400) -> Array:
    """Resample the items and score them again."""
    rng, n = np.random.default_rng(1), len(next(iter(outcomes.values())))
    return np.array([score({k: v[at] for k, v in outcomes.items()}) for at in rng.integers(0, n, (draws, n))])


# ── correlations ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("statistic", "rho"), [("spearman", 0.0), ("spearman", 0.6), ("spearman", 0.9), ("pearson", 0.6)]
)
def test_intervals_cover_the_correlation_they_estimate(statistic: str, rho: float) -> None:
    true = 6 / np.pi * np.arcsin(rho / 2) if statistic == "spearman" else rho
    rng = np.random.default_rng(5)
    found = np.array([interval(statistic, "x", related(200, rho, rng)) for _ in range(200)])
    assert 0.90 <= ((found[:, 0] <= true) & (true <= found[:, 1])).mean() <= 0.98


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("statistic", ["spearman", "pearson"])
def test_correlations_spread_as_resampled_pairs_do(statistic: str, ties: bool) -> None:
    outcomes = related(300, 0.7, np.random.default_rng(2))
    x, y = (np.round(outcomes[k]) if ties else outcomes[k] for k in ("gold", "similarity"))
    outcomes = {"gold": x, "similarity": y, "gold_rank": rankdata(x), "similarity_rank": rankdata(y)}
    ranked = rankdata if statistic == "spearman" else np.asarray
    slow = slowly(outcomes, lambda o: correlation(ranked(o["gold"]), ranked(o["similarity"])))
    assert deviation(statistic, "x", outcomes) == pytest.approx(slow.std(), rel=0.15)


@pytest.mark.parametrize("pairs", [2, 3, 4, 9, 1000])
def test_a_perfect_correlation_is_not_certain(pairs: int) -> None:
    x = np.arange(float(pairs))
    same = {"gold": x, "similarity": x, "gold_rank": x + 1, "similarity_rank": x + 1}
    low, high = interval("spearman", "x", same)
    assert (low, high) == interval("pearson", "x", same)
    assert high == 1
    assert low == -1 if pairs <= 3 else low < 0.99 ** (9 / pairs)
    assert interval("spearman", "x", same | {"similarity_rank": pairs - x}) == (-1, -low)


def test_a_constant_similarity_has_the_evaluators_zero() -> None:
    x = np.arange(9.0)
    same = {"gold": x, "similarity": np.ones(9), "gold_rank": x + 1, "similarity_rank": np.full(9, 5.0)}
    assert interval("pearson", "x", same) == interval("spearman", "x", same) == (0, 0)


# ── average precision ────────────────────────────────────────────────────────────────────────────────────────────────


def ranked(n: int, share: float, distance: float, rng: np.random.Generator) -> dict[str, Array]:
    gold = (rng.random(n) < share) * 1.0
    return {"gold": gold, "similarity": rng.normal(size=n) + distance * gold}


def precision(outcomes: dict[str, Array]) -> float:
    return float(average_precision_score(outcomes["gold"], outcomes["similarity"]))


@pytest.mark.parametrize(("n", "share", "distance"), [(100, 0.5, 1.0), (400, 0.1, 1.5), (200, 0.5, 3.0)])
def test_intervals_cover_the_average_precision_they_estimate(n: int, share: float, distance: float) -> None:
    rng = np.random.default_rng(6)
    true = precision(ranked(200_000, share, distance, rng))
    found = np.array([interval("average_precision", "x", ranked(n, share, distance, rng)) for _ in range(600)])
    assert 0.90 <= ((found[:, 0] <= true) & (true <= found[:, 1])).mean() <= 0.98


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_spreads_as_resampled_pairs_do(ties: bool) -> None:
    outcomes = ranked(300, 0.3, 1.0, np.random.default_rng(3))
    outcomes["similarity"] = np.round(outcomes["similarity"], 0 if ties else 9)
    slow = slowly(outcomes, precision)
    assert deviation("average_precision", "x", outcomes) == pytest.approx(slow.std(), rel=0.15)


@pytest.mark.parametrize(("pairs", "matches"), [(4, 2), (100, 50), (1000, 5), (1000, 500), (1000, 995)])
def test_a_perfect_average_precision_is_not_certain(pairs: int, matches: int) -> None:
    gold = (np.arange(pairs) < matches) * 1.0
    low, high = interval("average_precision", "x", {"gold": gold, "similarity": gold})
    assert high == 1
    assert 0 < low < 1 - 1 / pairs
    assert low > 0.9 or min(pairs, matches) <= 50


# ── clusterings ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("statistic", ["nmi", "v_measure", "ari", "cluster_accuracy"])
@pytest.mark.parametrize(("items", "groups", "right"), [(400, 5, 0.8), (3000, 20, 0.5)])
def test_clusterings_spread_as_resampled_tables_do(statistic: str, items: int, groups: int, right: float) -> None:
    outcomes = clustered(items, groups, right)
    table, *_ = contingency(outcomes["label"], outcomes["cluster_run1"])
    value = float(from_contingency(table)[statistic])
    draws = np.random.default_rng(1).multinomial(items, table.ravel() / items, size=2000).reshape(-1, *table.shape)
    slow = from_contingency(draws)[statistic]
    fast = deviation(statistic, statistic, outcomes)
    assert fast == pytest.approx(slow.std(), rel=0.1)
    low, high = interval(statistic, statistic, outcomes)
    assert low < value < high
    assert pushes(statistic, statistic, outcomes).value == pytest.approx(value)


def test_a_perfect_clustering_is_not_certain() -> None:
    for items in (20, 2000):
        outcomes = clustered(items, 2, 1.0)
        for statistic in ("nmi", "v_measure", "ari", "cluster_accuracy"):
            low, high = interval(statistic, statistic, outcomes)
            assert high == 1
            assert (0.3 if items == 20 else 0.97) < low < 1
    once = clustered(2000, 2, 1.0)
    tenfold = {"label": once["label"]} | {f"cluster_run{run}": once["cluster_run1"] for run in range(1, 11)}
    assert interval("nmi", "nmi", tenfold)[0] < 0.8  # another seed might have failed
    refits = {f"cluster_refit{number}": clustered(2000, 2, 0.9, number)["cluster_run1"] for number in (1, 2)}
    assert interval("nmi", "nmi", tenfold | refits)[0] < 0.8  # nor is it where fits to half of the items differ
    alone = {"label": np.zeros(9), "cluster_run1": np.zeros(9)}
    assert pushes("nmi", "nmi", alone).value == pushes("ari", "ari", alone).value == 1


@given(st.integers(0, 1000))
def test_cluster_names_do_not_matter_and_bounds_hold(seed: int) -> None:
    outcomes = clustered(30, 3, 0.3, seed)
    renamed = outcomes | {"cluster_run1": outcomes["cluster_run1"] * 10 + 5}
    for statistic in ("nmi", "ari", "cluster_accuracy"):
        found = interval(statistic, statistic, outcomes)
        assert found == interval(statistic, statistic, renamed)
        assert -1 <= found[0] <= found[1] <= 1


# ── runs and means ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_that_differ_widen_the_interval() -> None:
    alike, apart = repeated(500, 0.6, 0.6, 0.6, 0.6), repeated(500, 0.4, 0.5, 0.7, 0.8)
    assert width(interval("runs", "accuracy", apart)) > 2 * width(interval("runs", "accuracy", alike))
    low, high = interval("runs", "accuracy", apart)
    assert low < np.mean(list(apart.values())) < high


def test_one_run_is_a_mean() -> None:
    outcomes = repeated(500, 0.6) | {"other": np.zeros(500)}
    assert interval("runs", "accuracy", outcomes) == pytest.approx(mean_interval(outcomes["accuracy_run1"]), abs=0.01)
    right = {"accuracy_run1": np.ones(30), "accuracy_run2": np.ones(30)}
    assert interval("runs", "accuracy", right) == mean_interval(np.ones(30))


def test_runs_cover_the_mean_over_runs_and_items() -> None:
    rng, hits = np.random.default_rng(3), 0
    for seed in range(200):
        low, high = interval("runs", "accuracy", repeated(200, *rng.normal(0.6, 0.03, size=5), seed=seed))
        hits += low <= 0.6 <= high
    assert 0.90 <= hits / 200 <= 1.0


def test_means_are_left_to_mean_interval() -> None:
    values = np.random.default_rng(0).random(900)
    assert interval("mean", "x", {"x": values}) == mean_interval(values)
    assert deviation("mean", "x", {"x": values}) == pytest.approx(values.std() / 30)


# ── all ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("statistic", list(STATISTICS))
def test_the_answer_of_many_items_does_not_vary(statistic: str) -> None:
    n = 100_000
    outcomes = related(n, 0.5, np.random.default_rng(0)) | clustered(n, 100, 0.6) | repeated(n, 0.5, 0.6, 0.7)
    if statistic == "average_precision":
        outcomes["gold"] = outcomes["gold"] > 0
    found = interval(statistic, "accuracy_run1" if statistic == "mean" else "accuracy", outcomes)
    assert found == interval(statistic, "accuracy_run1" if statistic == "mean" else "accuracy", outcomes)
    assert 0 < width(found) < (0.5 if statistic == "runs" else 0.02)  # three runs tell little


def test_unknown_statistics_and_missing_runs_are_errors() -> None:
    with pytest.raises(EmbarkError, match="Unknown statistic 'median'; known: mean, runs, pearson"):
        interval("median", "x", {"x": np.ones(3)})
    with pytest.raises(EmbarkError, match="'accuracy_run1', 'accuracy_run2'… are missing"):
        interval("runs", "accuracy", {"accuracy": np.ones(3)})
