"""95 % bootstrap intervals of means over items, also where the same items stand in several subsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embark.types import Array

REPLICATES = 2_000
LEVEL = 0.95
BINS = 512  # values or items kept apart when resampling; more are grouped, which costs no visible precision


def mean_interval(values: Array, seed: int = 0) -> tuple[float, float]:
    """Interval of a mean of items; deterministic.

    Resampling items is drawing counts of distinct values, so the cost does not grow with the number of items.
    """
    values = np.asarray(values, np.float64)
    distinct, count = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return _certain(float(distinct[0]), len(values))
    if len(distinct) > BINS:
        parts = np.array_split(np.sort(values), BINS)
        distinct, count = np.array([p.mean() for p in parts]), np.array([len(p) for p in parts])
    draws = np.random.default_rng(seed).multinomial(len(values), count / count.sum(), size=REPLICATES)
    return percentiles(draws @ distinct / len(values))


def subset_interval(values: Sequence[Array], ids: Sequence[Sequence[str]], seed: int = 0) -> tuple[float, float]:
    """Interval of the mean of subset means, where an item may be in several subsets (one picture, many languages).

    Items are resampled with all their appearances, so that correlated subsets do not make the interval too narrow.
    """
    if len(values) == 1 and len(set(ids[0])) == len(ids[0]):
        return mean_interval(values[0], seed)
    flat = np.concatenate(values)
    names, owner = np.unique(np.concatenate([np.asarray(i, dtype=np.str_) for i in ids]), return_inverse=True)
    if (flat == flat[0]).all():
        return _certain(float(flat[0]), len(names))
    subset = np.repeat(np.arange(len(values)), [len(v) for v in values])
    sums: Array = np.zeros((len(names), len(values)))
    counts: Array = np.zeros_like(sums)
    np.add.at(sums, (owner, subset), flat)
    np.add.at(counts, (owner, subset), 1)
    rng = np.random.default_rng(seed)
    if len(names) > BINS:  # random groups of items, resampled as one: the same variance at a fixed cost
        group = rng.permutation(len(names)) % BINS
        sums, counts = _grouped(sums, group), _grouped(counts, group)
    draws = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=REPLICATES).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a tiny subset may not be drawn at all: the others decide
        return percentiles(np.nanmean((draws @ sums) / (draws @ counts), axis=1))


def combined_interval(
    values: Sequence[float], intervals: Sequence[tuple[float, float]], weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """Interval of a mean of independent scores, from their own intervals.

    Each side is combined by itself, because scores near an end of the scale are lopsided.
    """
    share = np.full(len(values), 1 / len(values)) if weights is None else np.asarray(weights, np.float64)
    lows, highs = np.array(intervals, np.float64).T
    middle = np.asarray(values, np.float64)
    below = share * np.maximum(middle - lows, 0)
    above = share * np.maximum(highs - middle, 0)
    # From the ends for fully dependent scores, so that the interval of a single score is exactly its own.
    low = share @ np.minimum(lows, middle) + (below.sum() - np.linalg.norm(below))
    high = share @ np.maximum(highs, middle) - (above.sum() - np.linalg.norm(above))
    return float(low), float(high)


def percentiles(draws: Array) -> tuple[float, float]:
    """The 95 % interval of resampled values."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _grouped(matrix: Array, group: Array) -> Array:
    return np.stack([np.bincount(group, column) for column in matrix.T], axis=1)


def _certain(value: float, items: int) -> tuple[float, float]:
    """Interval where all outcomes are equal and a bootstrap would have no width.

    The exact binomial bound gives the share of other items that could differ; their values may be anywhere on the
    scale.
    """
    bound = float(((1 - LEVEL) / 2) ** (1 / items))
    least = min(value, 0.0 if value >= 0 else -1.0)
    most = max(value, 1.0)
    return bound * value + (1 - bound) * least, bound * value + (1 - bound) * most
