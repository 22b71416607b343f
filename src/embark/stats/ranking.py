"""Ranks with their uncertainty: 95 % rank intervals and tie groups, from the variances of paired differences.

What is hard for all models moves none of their ranks. Where the outcomes of single items are on disk, the variances
are those over items: what other items of the same tasks would have said (see `shared`). Otherwise they are those over
groups of like tasks: what other kinds of tasks would have said. Tasks of one kind favour the same models, so they do
not count as independent; the kinds do. That is the harder question, and its intervals are the wider ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from embark.results.table import letters
from embark.stats.compare import holm
from embark.stats.intervals import LEVEL
from embark.stats.outcomes import Readings
from embark.stats.shared import Evidence
from embark.types import Array, EmbarkError

FEWEST = 5  # groups of tasks of equal weight below which they say nothing about others


@dataclass(frozen=True)
class Place:
    """A model's rank, the 95 % interval of it, and its tie group: A holds the best."""

    rank: int
    low: int | None = None
    high: int | None = None
    tie: str = ""

    @property
    def interval(self) -> str:
        """The interval as text: 2–5, 3, or nothing."""
        if self.low is None:
            return ""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Spread(NamedTuple):
    """Variances of the differences of every two totals, (models, models), and their degrees of freedom."""

    variance: Array
    freedom: Array


def places(totals: Array, spread: Spread | None) -> list[Place]:
    """The places of models with these totals.

    A tie group is the best model left and those right after it, as many as cannot be told apart: from the last one up,
    models leave while any two in the group differ significantly (paired t-tests, corrected for the number of pairs). So
    models that are equal are parted in at most 5 % of cases, however many there are, if the variances are right; though
    the best of them was picked by its score. A rank lies below as many models as are significantly better, and above as
    many as are worse (Holm's correction over all other models); its interval covers its tie group.
    """
    better = (totals[:, None] < totals - 1e-15).sum(axis=1)
    rank = better + 1
    if spread is None or not len(totals):
        return [Place(place) for place in rank.tolist()]
    p = _p_values(totals, spread)
    same = (np.abs(totals[:, None] - totals) < 1e-12) & (spread.variance < 1e-24)  # on other items, too
    low, high = np.empty(len(totals), int), np.empty(len(totals), int)
    for model in range(len(totals)):
        others = np.arange(len(totals)) != model
        apart = np.array(holm(p[model, others].tolist())) < 1 - LEVEL
        above = totals[others] > totals[model]
        low[model] = 1 + (apart & above).sum()
        high[model] = len(totals) - (apart & ~above).sum() - same[model, others].sum()
    order = np.argsort(-totals, kind="stable")
    ties = [""] * len(totals)
    start = 0
    for group, end in enumerate(_ends(p[np.ix_(order, order)])):
        members = order[start:end]
        low[members] = np.minimum(low[members], rank[members].min())
        high[members] = np.maximum(high[members], rank[members].max())
        for model in members:
            ties[model] = letters(group).upper()
        start = end
    return [Place(*place) for place in zip(rank.tolist(), low.tolist(), high.tolist(), ties, strict=True)]


def over_tasks(values: Array, weights: Array, groups: Sequence[Hashable]) -> Spread | None:
    """The spread of totals over groups of like tasks, from scores and weights (models, tasks) and each task's group.

    No score is NaN. None where the groups are too few to tell.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    member = np.zeros((len(groups), len(numbers)))
    member[np.arange(len(groups)), [numbers[group] for group in groups]] = 1
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    filled = np.nan_to_num(values)
    totals = (share * filled).sum(axis=1)
    count = 1 / ((share @ member) ** 2).sum(axis=1)
    if not len(values) or count.min() < FEWEST - 1e-9:
        return None
    push = (share * (filled - totals[:, None])) @ member * np.sqrt(count / (count - 1))[:, None]
    variance = ((push[:, None] - push) ** 2).sum(axis=2)
    return Spread(variance, np.minimum(count[:, None], count) - 1)


def over_items(models: Sequence[Readings], weights: Sequence[Mapping[str, float]]) -> Spread | None:
    """The spread of totals over items, the same for all models; None where some outcomes are not on disk."""
    if not models or not all(model.on_disk for model in models):
        return None
    evidence = Evidence(len(models))
    try:
        for number, (model, share) in enumerate(zip(models, weights, strict=True)):
            model.add(evidence, share, number)
    except EmbarkError:
        return None
    variance, freedom = evidence.differences
    return Spread(variance[:-1, :-1], freedom[:-1, :-1])


def points(values: Array) -> Array:
    """Borda points of each model on each task, (models, tasks): one for every model below and half for every tie.

    A missing score (NaN) gets none.
    """
    below = (values[:, None] > values).sum(axis=1)
    ties = (values[:, None] == values).sum(axis=1)
    return np.where(np.isnan(values), 0.0, below + (ties - 1) / 2)


def _p_values(totals: Array, spread: Spread) -> Array:
    """The p-value of the difference of every two models."""
    from scipy.special import ndtr, stdtr

    error = np.sqrt(np.maximum(spread.variance, 0))
    difference = np.abs(totals[:, None] - totals)
    difference = np.where(difference < 1e-12, 0, difference)
    t = np.divide(difference, error, out=np.where(difference > 0, np.inf, 0.0), where=error > 1e-12)
    finite = np.isfinite(spread.freedom)
    freedom = np.where(finite, np.maximum(spread.freedom, 1.0), 1.0)
    return np.asarray(2 * np.where(finite, stdtr(freedom, -t), ndtr(-t)))


def _ends(p: Array) -> list[int]:
    """Where the tie groups end, in the order of the models."""
    ends = [0]
    while (start := ends[-1]) < len(p):
        end = len(p)
        while (few := end - start) > 1 and p[start:end, start:end].min() * few * (few - 1) / 2 < 1 - LEVEL:
            end -= 1
        ends.append(end)
    return ends[1:]
