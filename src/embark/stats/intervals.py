"""95 % intervals from a score, its variance and the degrees of freedom of that variance.

Shares (means of outcomes between 0 and 1, NMI) get Wilson's interval, with as many trials as the variance stands for:
it stays on the scale, is lopsided near an end, and covers well for few items. Correlations are taken on Fisher's scale,
differences are symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, isfinite, sqrt, tanh

import numpy as np

from embark.types import Array

LEVEL = 0.95
NO_SPREAD = 1e-12


def quantile(freedom: float) -> float:
    """How many standard errors a 95 % interval reaches to each side: Student's t."""
    from scipy.special import ndtri, stdtrit

    end = (1 + LEVEL) / 2
    return float(stdtrit(max(freedom, 1.0), end) if isfinite(freedom) else ndtri(end))


def two_sided(t: float, freedom: float) -> float:
    """The p-value of a t statistic."""
    from scipy.special import ndtr, stdtr

    if not isfinite(t):
        return 0.0
    return float(2 * (stdtr(max(freedom, 1.0), -abs(t)) if isfinite(freedom) else ndtr(-abs(t))))


def share_interval(
    value: float, variance: float, freedom: float, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Interval of a score on the scale from `low` to `high`, by Wilson's formula with the trials that would give such a
    variance.
    """
    width = high - low
    share = min(max((value - low) / width, 0.0), 1.0)
    possible = share * (1 - share)
    if possible <= 0 or variance <= 0:
        return value, value
    q = quantile(freedom)
    # q² over the number of trials; never fewer than one.
    shrink = min(q * q * variance / (width * width * possible), q * q)
    middle = (share + shrink / 2) / (1 + shrink)
    half = sqrt(shrink * possible + shrink * shrink / 4) / (1 + shrink)
    return low + width * max(middle - half, 0.0), low + width * min(middle + half, 1.0)


def correlation_interval(r: float, variance: float, freedom: float) -> tuple[float, float]:
    """Interval of a correlation on Fisher's scale, where it is nearly normal."""
    if 1 - abs(r) < NO_SPREAD or variance <= 0:
        return r, r
    half = quantile(freedom) * sqrt(variance) / (1 - r * r)
    return tanh(atanh(r) - half), tanh(atanh(r) + half)


def certain_interval(value: float, items: int, least: float = 0.0) -> tuple[float, float]:
    """Interval where all outcomes are equal and nothing can be estimated from their spread.

    The exact binomial bound gives the share of other items that could differ; their values may be anywhere on the
    scale, from `least` to 1.
    """
    bound = float(((1 - LEVEL) / 2) ** (1 / max(items, 1)))
    return bound * value + (1 - bound) * min(value, least), bound * value + (1 - bound) * max(value, 1.0)


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


def wider(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """The interval that holds both."""
    return min(first[0], second[0]), max(first[1], second[1])


def mean_interval(values: Array) -> tuple[float, float]:
    """Interval of a mean of independent items."""
    values = np.asarray(values, np.float64)
    items = len(values)
    value = float(values.mean())
    least = -1.0 if values.min() < 0 else 0.0
    if np.ptp(values) == 0:
        return certain_interval(value, items, least)
    return share_interval(value, float(values.var(ddof=1)) / items, items - 1, least)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values, which controls the chance of any false rejection among them."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return [float(value) for value in corrected]
