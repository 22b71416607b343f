"""Ranks with their uncertainty: 95 % rank intervals and tie groups, from resampled totals.

All models of a ranking are resampled alike, so what is hard for all of them moves none of their ranks. Where the
outcomes of single items are on disk, items are resampled: what other items of the same tasks would have said. Otherwise
tasks are, each with its weight in the total: what other tasks of the same kind would have said. That is the harder
question, and its intervals are the wider ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, isfinite, log1p, sqrt
from zlib import crc32

import numpy as np

from embark.results import TaskResult
from embark.results.table import letters
from embark.stats.compare import replicates_of
from embark.stats.intervals import LEVEL, REPLICATES
from embark.types import Array, EmbarkError

DRAWS = 500  # of the items: ranks are coarse, and every score is resampled
FEWEST = 5  # tasks of equal weight below which resampling them says nothing


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


def places(totals: Array, draws: Array | None, freedom: float = np.inf) -> list[Place]:
    """From totals (models,) and their resamples (draws, models); `freedom` are the degrees of freedom of the t-tests.

    A tie group is the best model left and those right after it, as many as cannot be told apart: from the last one up,
    models leave while any two in the group differ significantly (paired t-tests with the resampled spread, corrected
    for the number of pairs). So models that are equal are parted in at most 5 % of cases, though the best of them was
    picked by its score. A rank's interval is that of the resamples, and covers its tie group, since resamples alone are
    too sure of the order of models that hardly differ.
    """
    rank = _ranks(totals[None])[0]
    if draws is None or not len(totals):
        return [Place(place) for place in rank.tolist()]
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(_ranks(draws), ends, axis=0, method="closest_observation").astype(int)
    order = np.argsort(-totals, kind="stable")
    ties = [""] * len(totals)
    start = 0
    p = _p_values(totals[order], draws[:, order], freedom)
    for group, end in enumerate(_ends(p)):
        members = order[start:end]
        low[members] = np.minimum(low[members], rank[members].min())
        high[members] = np.maximum(high[members], rank[members].max())
        for model in members:
            ties[model] = letters(group).upper()
        start = end
    return [Place(*place) for place in zip(rank.tolist(), low.tolist(), high.tolist(), ties, strict=True)]


def over_tasks(values: Array, weights: Array, seed: int = 0) -> Array:
    """Totals in resamples of the tasks: (draws, models), from scores and weights (models, tasks); no score is NaN."""
    tasks = values.shape[1]
    counts = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), size=REPLICATES)
    weighted = weights * np.nan_to_num(values)
    above, below = counts @ weighted.T, counts @ weights.T
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1), weighted.sum(axis=1)))


def freedom(weights: Array) -> float:
    """Degrees of freedom of a weighted mean over tasks: as many equal weights as would vary like these, less one."""
    share = weights / weights.sum(axis=1, keepdims=True)
    return float((1 / (share**2).sum(axis=1)).min(initial=np.inf)) - 1


def over_items(results: Sequence[Mapping[str, TaskResult]], weights: Sequence[Mapping[str, float]]) -> Array | None:
    """Totals in resamples of the items: (draws, models); None where some outcomes are not on disk."""
    if any(
        result.path is None or result.made_by != "embark"
        for results_by_task in results
        for result in results_by_task.values()
    ):
        return None
    totals = np.zeros((DRAWS, len(results)))
    try:
        for model, (results_by_task, share) in enumerate(zip(results, weights, strict=True)):
            for task in results_by_task.keys() & share.keys():  # one seed per task: models resample the same items
                totals[:, model] += share[task] * replicates_of(results_by_task[task], DRAWS, crc32(task.encode()))
    except EmbarkError:
        return None
    return totals


def points(values: Array) -> Array:
    """Borda points of each model on each task, (models, tasks): one for every model below and half for every tie.

    A missing score (NaN) gets none.
    """
    below = (values[:, None] > values).sum(axis=1)
    ties = (values[:, None] == values).sum(axis=1)
    return np.where(np.isnan(values), 0.0, below + (ties - 1) / 2)


def _ranks(totals: Array) -> Array:
    """One more than the number of models above, row by row."""
    ranks = np.ones(totals.shape, int)
    for model, column in enumerate(totals.T):
        ranks[:, model] += (totals > column[:, None]).sum(axis=1)
    return ranks


def _p_values(totals: Array, draws: Array, freedom: float) -> Array:
    """The p-value of the difference of every two models."""
    spread = np.stack([(draws - column[:, None]).std(axis=0) for column in draws.T])
    if isfinite(freedom):
        spread *= sqrt((freedom + 1) / freedom)  # a bootstrap divides by n, where n - 1 is due
    difference = np.abs(totals[:, None] - totals)
    t = np.divide(difference, spread, out=np.where(difference > 0, np.inf, 0.0), where=spread > 0)
    return np.array([_two_sided(value, freedom) for value in t.ravel().tolist()]).reshape(t.shape)


def _ends(p: Array) -> list[int]:
    """Where the tie groups end, in the order of the models."""
    ends = [0]
    while (start := ends[-1]) < len(p):
        end = len(p)
        while (few := end - start) > 1 and p[start:end, start:end].min() * few * (few - 1) / 2 < 1 - LEVEL:
            end -= 1
        ends.append(end)
    return ends[1:]


def _two_sided(t: float, freedom: float) -> float:
    """The p-value of a t statistic, by Wallace's normal approximation: from four degrees of freedom never too small
    by more than rounding, and to 0.001.
    """
    if not isfinite(t * freedom):
        return erfc(t / sqrt(2))
    return erfc((8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom) / 2))
