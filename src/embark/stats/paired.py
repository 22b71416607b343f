"""The difference of two scores on the same items, on a task or over tasks: its interval and p-value, which agree.

The test is Student's, with the variance that shared items and runs leave to the difference. Means of few items that
differ are tested by flipping signs, too, which is exact, and the larger p-value counts; where it is not significant,
the interval reaches zero. Their variance is raised by that of two more such items, as Bonett and Price do for shares:
three items that got better and none that got worse vary less than they could have.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from embark.stats.intervals import LEVEL, NO_SPREAD, certain_interval, quantile, two_sided
from embark.stats.shared import Evidence, Observations, Part
from embark.stats.statistics import Pushes, certain, pushes
from embark.types import Array

FLIPS = 10_000
MAGNITUDES = 128  # distinct sizes of a difference kept apart in the sign-flip test
FEWEST_FLIPS = 10  # flips as extreme as the data below which their number says too little, and Student's tail counts
MANY = 64  # items that differ from which on flips tell no more than Student's test
PAIRS = 4  # fewest pairs from which a difference of correlations can be told
ANYTHING = (-2.0, 2.0)  # the ends of a difference of correlations that nothing is known of


class Difference(NamedTuple):
    """a − b, its 95 % interval, and the two-sided p-value of no difference."""

    value: float
    low: float
    high: float
    p: float


class Contrast(NamedTuple):
    """Two scores on one split and subset of a task: the items, what they push either score, and how much it counts."""

    task: Hashable
    observations: Observations
    a: Pushes
    b: Pushes
    statistic: str
    weight: float

    @property
    def value(self) -> float:
        """What it adds to the difference."""
        return self.weight * (self.a.value - self.b.value)


def contrasts(task: Hashable, a: Sequence[Part], b: Sequence[Part]) -> list[Contrast]:
    """Two models' parts of a task, which stand on the same items row by row; all count alike."""
    return [
        Contrast(
            task,
            own.observations,
            pushes(own.statistic, own.main, own.outcomes),
            pushes(other.statistic, other.main, other.outcomes),
            own.statistic,
            1 / len(a),
        )
        for own, other in zip(a, b, strict=True)
    ]


def unpaired(task: Hashable, a: Sequence[Part], b: Sequence[Part]) -> list[Contrast]:
    """Two sides of a task that share no items: each against nothing."""
    out = []
    for own, other in zip(a, b, strict=True):
        first, second = (pushes(part.statistic, part.main, part.outcomes) for part in (own, other))
        weight = 1 / len(a)
        out += [
            Contrast(task, own.observations, first, _nothing(first), own.statistic, weight),
            Contrast(task, other.observations, _nothing(second), second, own.statistic, weight),
        ]
    return out


def difference(a: Sequence[Part], b: Sequence[Part]) -> Difference:
    """The difference of two means over parts, which stand on the same items row by row."""
    return task_difference(contrasts("", a, b), a, b)


def task_difference(parts: Sequence[Contrast], a: Sequence[Part], b: Sequence[Part]) -> Difference:
    """The difference of two scores on one task, from its contrasts."""
    value = sum(part.value for part in parts)
    items = max(part.observations.items for part in a)
    if a[0].statistic in ("pearson", "spearman") and items < PAIRS:
        return Difference(value, *ANYTHING, 1.0)
    return tested(parts) or _certain(value, a, b, items)


def mean_difference(tasks: Sequence[Sequence[Contrast]], alone: Sequence[Difference]) -> Difference | None:
    """The difference of two means over tasks, from their contrasts and from the differences on each task alone.

    Items that tasks share move them together. None where a task has too few pairs for its difference to be told.
    """
    if not tasks or any(task.low == ANYTHING[0] for task in alone):
        return None
    if len(tasks) == 1:
        return alone[0]
    over_tasks = tested([part._replace(weight=part.weight / len(tasks)) for task in tasks for part in task])
    if over_tasks is not None:
        return over_tasks
    value, low, high, _ = np.mean(alone, axis=0).tolist()  # nothing varies: as if all tasks erred together
    return Difference(value, low, high, 1.0 if low <= 0 <= high else max(task.p for task in alone))


def tested(parts: Sequence[Contrast]) -> Difference | None:
    """Student's test of a weighted sum of contrasts; None where nothing varies."""
    evidence = Evidence(2)
    for part in parts:
        evidence.add(part.task, part.observations, part.a, part.weight, 0)
        evidence.add(part.task, part.observations, part.b, part.weight, 1)
    variance, freedom = evidence.between(0, 1)
    if variance < NO_SPREAD**2:
        return None
    value = sum(part.value for part in parts)
    error = sqrt(variance)
    half = quantile(freedom) * error
    p = two_sided(value / error, freedom)
    if all(part.statistic == "mean" for part in parts):
        apart = _by_item(parts)
        if _few(apart):
            p = max(p, sign_flip(apart, p))
            half *= sqrt(1 + 2 / _effective(apart))
    low, high = value - half, value + half
    if p >= 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:
        p = 1 - LEVEL
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
    if extreme < FEWEST_FLIPS and tail < 2 * FEWEST_FLIPS / FLIPS:
        return max(tail, least)
    return max((1 + extreme) / (1 + FLIPS), least)


def _by_item(parts: Sequence[Contrast]) -> Array:
    """What each item adds to the difference, with all its appearances."""
    clusters, shares = [], []
    for part in parts:
        apart = part.a.items[0] - part.b.items[0]
        shares.append(part.weight * apart + part.value / len(apart))
        clusters.append(part.observations.cluster)
    _, place = np.unique(np.concatenate(clusters), return_inverse=True)
    return np.bincount(place, np.concatenate(shares))


def _few(differences: Array) -> bool:
    """Whether so few items differ, or one so much, that Student's test alone says too much."""
    squares = differences**2
    differing = np.count_nonzero(squares > squares.sum() * 1e-12)
    return bool(differing <= MANY or squares.max() >= squares.sum() / 20)


def _effective(differences: Array) -> float:
    """How many items of one size would differ as these do; no end of them where what each adds cancels out."""
    largest = float(np.abs(differences).max(initial=0))
    if not largest:
        return inf
    squares = (differences / largest) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def _nothing(values: Pushes) -> Pushes:
    """A score of zero that does not vary, on the same items."""
    return replace(values, runs=np.zeros_like(values.runs), items=np.zeros_like(values.items), refits=values.refits * 0)


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
