"""Ranks with their uncertainty: 95 % rank intervals and tie groups, from paired differences.

What is hard for all models moves none of their ranks. Where the outcomes of single items are on disk, the question is
what other items of the same tasks would have said (see `shared`). Otherwise it is what other kinds of tasks would have
said: tasks of one kind favour the same models, so they do not count as independent; the kinds do. That is the harder
question, and its intervals are the wider ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from embark.stats.intervals import LEVEL, holm
from embark.stats.outcomes import Readings
from embark.stats.shared import Evidence
from embark.tables import letters
from embark.types import Array, EmbarkError

FEWEST_KINDS = 6  # kinds of tasks; fewer could not part any models at 5 %
FLIPS = 2048


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


class Spread(Protocol):
    """How uncertain the differences of every two totals are."""

    def apart(self, totals: Array, model: int) -> Array:
        """Which models differ significantly from this one, corrected for their number."""

    def ends(self, totals: Array, order: Array) -> list[int]:
        """Where the tie groups end, in this order of the models."""

    @property
    def identical(self) -> Array:
        """Which models would not differ on anything else, either: (models, models)."""


def places(totals: Array, spread: Spread | None) -> list[Place]:
    """The places of models with these totals.

    A tie group is the best model left and those right after it, as many as cannot be told apart: from the last one up,
    models leave while any two in the group differ significantly, corrected for the number of pairs. If all models are
    equal, any are parted on at most 5 % of boards, however many there are, if the spread is right. Two equal models
    among others are parted more often, because the others decide where a group ends. A rank lies below as many models
    as are significantly better, and above as many as are worse (corrected for all other models); its interval covers
    its tie group.
    """
    better = (totals[:, None] < totals - 1e-15).sum(axis=1)
    rank = better + 1
    if spread is None or not len(totals):
        return [Place(place) for place in rank.tolist()]
    same = (np.abs(totals[:, None] - totals) < 1e-12) & spread.identical
    low, high = np.empty(len(totals), int), np.empty(len(totals), int)
    for model in range(len(totals)):
        apart = spread.apart(totals, model)
        above = totals > totals[model]
        low[model] = 1 + (apart & above).sum()
        high[model] = len(totals) - (apart & ~above).sum() - (same[model].sum() - 1)
    order = np.argsort(-totals, kind="stable")
    ties = [""] * len(totals)
    start = 0
    for group, end in enumerate(spread.ends(totals, order)):
        members = order[start:end]
        low[members] = np.minimum(low[members], rank[members].min())
        high[members] = np.maximum(high[members], rank[members].max())
        for model in members:
            ties[model] = letters(group).upper()
        start = end
    return [Place(*place) for place in zip(rank.tolist(), low.tolist(), high.tolist(), ties, strict=True)]


# ── over items ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ItemSpread(NamedTuple):
    """Variances of the differences of every two totals, (models, models), and their degrees of freedom: t-tests with
    the corrections of Holm and Bonferroni.
    """

    variance: Array
    freedom: Array

    @property
    def identical(self) -> Array:
        """Models whose differences do not vary."""
        return np.asarray(self.variance < 1e-24)

    def apart(self, totals: Array, model: int) -> Array:
        """Which models differ significantly from this one."""
        others = np.arange(len(totals)) != model
        apart = np.zeros(len(totals), bool)
        apart[others] = np.array(holm(self._p(totals)[model, others].tolist())) < 1 - LEVEL
        return apart

    def ends(self, totals: Array, order: Array) -> list[int]:
        """Where the tie groups end."""
        p = self._p(totals)[np.ix_(order, order)]
        ends = [0]
        while (start := ends[-1]) < len(p):
            end = len(p)
            while (few := end - start) > 1 and p[start:end, start:end].min() * few * (few - 1) / 2 < 1 - LEVEL:
                end -= 1
            ends.append(end)
        return ends[1:]

    def _p(self, totals: Array) -> Array:
        """The p-value of the difference of every two models."""
        from scipy.special import ndtr, stdtr

        error = np.sqrt(np.maximum(self.variance, 0))
        difference = np.abs(totals[:, None] - totals)
        difference = np.where(difference < 1e-12, 0, difference)
        t = np.divide(difference, error, out=np.where(difference > 0, np.inf, 0.0), where=error > 1e-12)
        finite = np.isfinite(self.freedom)
        freedom = np.where(finite, np.maximum(self.freedom, 1.0), 1.0)
        return np.asarray(2 * np.where(finite, stdtr(freedom, -t), ndtr(-t)))


def over_items(models: Sequence[Readings], weights: Sequence[Mapping[str, float]]) -> ItemSpread | None:
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
    return ItemSpread(variance[:-1, :-1], freedom[:-1, :-1])


# ── over kinds of tasks ──────────────────────────────────────────────────────────────────────────────────────────────


class KindSpread:
    """What every kind of tasks contributes to every total, (models, kinds).

    If two models are equal, each kind might as well have favoured the other one: all signs of the differences are
    flipped, kind by kind, and a difference counts if flips rarely make the largest one as large. That is exact for
    differences that are symmetric about zero, whatever their variances, and, since all pairs are flipped together, it
    need not be corrected for the number of pairs any further.
    """

    def __init__(self, contributions: Array) -> None:
        kinds = contributions.shape[1]
        squares = ((contributions[:, None] - contributions) ** 2).sum(axis=2)
        pairs = squares[np.triu_indices(len(contributions), 1)]
        # By chance a few kinds may say nearly the same of two models: as if another one had said what is usual.
        usual = np.quantile(pairs, 0.25, method="lower") if len(pairs) else 0.0
        self._scale = np.sqrt(squares + usual / (kinds - 1))
        self._flipped = contributions @ _signs(kinds).T  # the totals that flips would make; the first are the real ones
        self.identical = squares < 1e-24

    def apart(self, totals: Array, model: int) -> Array:
        """Which models differ significantly from this one: step by step, from the one that differs most."""
        differences = self._between(model, np.arange(len(totals)))
        order = np.argsort(-differences[:, 0], kind="stable")
        largest = np.maximum.accumulate(differences[order[::-1]], axis=0)[::-1]  # of each and all that differ less
        p = np.maximum.accumulate(_share_above(largest))
        apart = np.zeros(len(totals), bool)
        apart[order] = p < 1 - LEVEL
        return apart

    def ends(self, totals: Array, order: Array) -> list[int]:
        """Where the tie groups end."""
        ends = [0]
        while (start := ends[-1]) < len(order):
            largest = np.zeros((len(order) - start, self._flipped.shape[1]))  # in a group that ends with each
            for place in range(1, len(largest)):
                others = order[start : start + place]
                largest[place] = np.maximum(largest[place - 1], self._between(order[start + place], others).max(axis=0))
            together = np.flatnonzero(_share_above(largest) >= 1 - LEVEL)
            ends.append(start + int(together[-1]) + 1)
        return ends[1:]

    def _between(self, model: int, others: Array) -> Array:
        """The differences from other models under all flips, in units of what they vary: (others, flips)."""
        scale = np.maximum(self._scale[model, others], 1e-12)
        return np.asarray(np.abs(self._flipped[others] - self._flipped[model]) / scale[:, None])


def over_kinds(values: Array, weights: Array, kinds: Sequence[Hashable]) -> KindSpread | None:
    """The spread of totals over kinds of tasks, from scores and weights (models, tasks) and each task's kind.

    None where the kinds are too few to tell.
    """
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    member = np.zeros((len(kinds), len(numbers)))
    member[np.arange(len(kinds)), [numbers[kind] for kind in kinds]] = 1
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    counted = ((share @ member) > 0).sum(axis=1)  # a median counts one or two
    if not len(values) or counted.min() < FEWEST_KINDS:
        return None
    scored = ~np.isnan(values)
    usual = np.where(scored, values, 0).sum(axis=0) / np.maximum(scored.sum(axis=0), 1)
    # What all models find hard is no difference, also where some have no score on it.
    return KindSpread((share * np.where(scored, values - usual, 0)) @ member)


def _signs(kinds: int) -> Array:
    """All ways to flip so many signs, but for their opposites, or many random ones: (ways, kinds); first the real."""
    if 2 ** (kinds - 1) <= FLIPS:
        numbers = np.arange(2 ** (kinds - 1))[:, None]
        return 1.0 - 2.0 * ((numbers >> np.arange(kinds)) & 1)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(FLIPS, kinds))
    signs[0] = 1
    return signs


def _share_above(values: Array) -> Array:
    """For every row, the share of flips that reach the first, real one."""
    return np.asarray((values >= values[:, :1] * (1 - 1e-9) - 1e-15).mean(axis=1))


def points(values: Array) -> Array:
    """Borda points of each model on each task, (models, tasks): one for every model below and half for every tie.

    A missing score (NaN) gets none.
    """
    below = (values[:, None] > values).sum(axis=1)
    ties = (values[:, None] == values).sum(axis=1)
    return np.where(np.isnan(values), 0.0, below + (ties - 1) / 2)
