"""The difference of two scores on the same items: its interval and p-value, which always agree.

The test is Student's, with the variance that shared items and runs leave to the difference. Means of few items that
differ are tested by flipping signs, too, which is exact, and the larger p-value counts; where it is not significant,
the interval reaches zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from embark.stats.intervals import LEVEL, NO_SPREAD, certain_interval, quantile, two_sided
from embark.stats.shared import Evidence, Part
from embark.stats.statistics import Pushes, certain, pushes
from embark.types import Array

FLIPS = 10_000
MAGNITUDES = 128  # distinct sizes of a difference kept apart in the sign-flip test
FEWEST = 10  # flips as extreme as the data below which their number says too little, and Student's tail counts
MANY = 64  # items that differ from which on flips tell no more than Student's test
PAIRS = 4  # fewest pairs from which a difference of correlations can be told


class Difference(NamedTuple):
    """a − b, its 95 % interval, and the two-sided p-value of no difference."""

    value: float
    low: float
    high: float
    p: float


def difference(a: Sequence[Part], b: Sequence[Part]) -> Difference:
    """The difference of two means over parts, which stand on the same items row by row."""
    pairs = [
        (pushes(own.statistic, own.main, own.outcomes), pushes(other.statistic, other.main, other.outcomes))
        for own, other in zip(a, b, strict=True)
    ]
    evidence = Evidence(2)
    for part, values in zip(a, pairs, strict=True):
        for model, of_model in enumerate(values):
            evidence.add("", part.observations, of_model, 1 / len(pairs), model)
    value = float(np.mean([own.value - other.value for own, other in pairs]))
    items = max(part.observations.items for part in a)
    variance, freedom = evidence.between(0, 1)
    if a[0].statistic in ("pearson", "spearman") and items < PAIRS:
        return Difference(value, -2.0, 2.0, 1.0)
    if variance < NO_SPREAD**2:
        return _certain(value, a, b, items)
    error = sqrt(variance)
    half = quantile(freedom) * error
    p = two_sided(value / error, freedom)
    if all(part.statistic == "mean" for part in a):
        p = max(p, _flipped(a, pairs, p))
    low, high = value - half, value + half
    if p >= 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(value, low, high, p)


def sign_flip(differences: Array, tail: float = 0.0, seed: int = 0) -> float:
    """Two-sided p-value of a sum of paired differences, if the sign of each were random.

    Flipping signs is drawing, for every size of a difference, how many are positive: the cost does not grow with the
    number of items. Sizes beyond `MAGNITUDES` are grouped by their root mean square, which keeps the null's variance.
    Beyond what so many flips can tell it is the `tail`, but not less than that of all differences having one sign.
    """
    scaled = np.asarray(differences, np.float64) / max(float(np.abs(differences).max(initial=0)), np.finfo(float).tiny)
    size, count = np.unique(np.abs(scaled).round(9), return_counts=True)
    size, count = size[size > 0], count[size > 0]
    if not len(size):
        return 1.0
    if len(size) > MAGNITUDES:
        parts = np.array_split(np.sort(np.abs(scaled[scaled != 0])), MAGNITUDES)
        size, count = np.array([np.sqrt((part**2).mean()) for part in parts]), np.array([len(part) for part in parts])
    positive = np.random.default_rng(seed).binomial(count, 0.5, size=(FLIPS, len(count)))
    null = np.abs((2 * positive - count) @ size)
    extreme = int(np.count_nonzero(null >= abs(scaled.sum()) - 1e-6))
    least = 2.0 ** (1 - int(count.sum()))
    if extreme < FEWEST and tail < 2 * FEWEST / FLIPS:
        return max(tail, least)
    return max((1 + extreme) / (1 + FLIPS), least)


def _flipped(a: Sequence[Part], pairs: Sequence[tuple[Pushes, Pushes]], tail: float) -> float:
    """The p-value by flipping the signs of items: an item with all its appearances."""
    clusters, shares = [], []
    for part, (own, other) in zip(a, pairs, strict=True):
        apart = own.items[0] - other.items[0]
        shares.append((apart + (own.value - other.value) / len(apart)) / len(pairs))
        clusters.append(part.observations.cluster)
    _, place = np.unique(np.concatenate(clusters), return_inverse=True)
    differences = np.bincount(place, np.concatenate(shares))
    squares = differences**2
    if np.count_nonzero(squares > squares.sum() * 1e-12) > MANY and squares.max() < squares.sum() / 20:
        return tail  # Student's p-value is as good
    return sign_flip(differences, tail)


def _certain(value: float, a: Sequence[Part], b: Sequence[Part], items: int) -> Difference:
    """Where nothing varies: the same outcomes, or a difference that is the same for every item."""
    if a[0].statistic in ("pearson", "spearman"):
        ends = [[certain(part.statistic, part.main, part.outcomes, items) for part in side] for side in (a, b)]
        own, other = (np.mean([end or (0.0, 0.0) for end in side], axis=0) for side in ends)
        low, high = float(min(own[0] - other[1], value)), float(max(own[1] - other[0], value))
    else:
        reach = certain_interval(0.0, items)[1]  # of the items that could differ, all in favour of one
        low, high = max(value - reach, -1.0), min(value + reach, 1.0)
    p = 1.0 if abs(value) < NO_SPREAD else 2.0 ** (1 - items)
    if p >= 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:
        p = 1 - LEVEL
    return Difference(value, low, high, min(p, 1.0))
