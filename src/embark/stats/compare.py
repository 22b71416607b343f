"""Two models on the same items: what differs, how surely, and on which items.

Only scores of one protocol are compared, item by item. A mean of items gets a bootstrap interval and a sign-flip test;
a statistic of all items together (a rank correlation, NMI) is resampled with the same items for both models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import erfc, sqrt
from typing import TypeAlias

import numpy as np

from embark.results import TaskResult
from embark.stats.intervals import LEVEL, REPLICATES, percentiles, subset_interval
from embark.stats.statistics import STATISTICS, replicates
from embark.types import Array, EmbarkError, Task

FLIPS = 10_000
MAGNITUDES = 128  # distinct sizes of a difference kept apart in the sign-flip test
KEYS = ("split", "subset", "id")

Columns: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class Pair:
    """Two scores on one task, and their difference with its 95 % interval and p-values (alone, and among all tasks)."""

    task: str
    category: str
    a: float
    b: float
    low: float
    high: float
    p: float
    items: int
    holm: float = 1.0

    @property
    def difference(self) -> float:
        """a − b."""
        return self.a - self.b

    @property
    def verdict(self) -> str:
        """What it means for a: win, tie or loss."""
        return "tie" if self.holm >= 1 - LEVEL else "win" if self.difference > 0 else "loss"


@dataclass(frozen=True)
class Tally:
    """Verdicts over several tasks, and the mean of their differences."""

    wins: int
    ties: int
    losses: int
    difference: float


@dataclass(frozen=True)
class Comparison:
    """Every task that can be compared, and why the others cannot."""

    pairs: tuple[Pair, ...]
    refused: Mapping[str, str]

    @property
    def categories(self) -> dict[str, Tally]:
        """One tally a category, in the order of the tasks."""
        names = dict.fromkeys(pair.category for pair in self.pairs)
        return {name: _tally([pair for pair in self.pairs if pair.category == name]) for name in names}

    @property
    def total(self) -> Tally:
        """All tasks, each counting once."""
        return _tally(self.pairs)


class NotComparable(EmbarkError):
    """Two results that must not be compared; the message says why."""


def compare(a: Sequence[TaskResult], b: Sequence[TaskResult], tasks: Sequence[Task]) -> Comparison:
    """Model a against model b on every task that either of them has; deterministic."""
    pairs, refused = [], {}
    for task in tasks:
        one, other = _result(a, task), _result(b, task)
        if one or other:
            try:
                pairs.append(_pair(task, one, other))
            except NotComparable as error:
                refused[task.name] = str(error)
    corrected = holm([pair.p for pair in pairs])
    return Comparison(tuple(replace(pair, holm=p) for pair, p in zip(pairs, corrected, strict=True)), refused)


def flips(a: Sequence[TaskResult], b: Sequence[TaskResult], task: Task) -> tuple[list[str], list[str]]:
    """Items that only a gets right, and those that only b does.

    Right is an outcome of 1; where outcomes are not right or wrong, a first hit at rank 1.
    """
    one, other, _ = _aligned(_result(a, task), _result(b, task))
    right_a, right_b = _right(one, task), _right(other, task)
    several = len(np.unique(one["subset"])) > 1
    names = np.array(
        [f"{s}/{i}" if several else i for s, i in zip(one["subset"], one["id"], strict=True)], dtype=object
    )
    return names[right_a & ~right_b].tolist(), names[right_b & ~right_a].tolist()


def replicates_of(result: TaskResult, draws: int, seed: int = 0) -> Array:
    """The score of a result in resamples of its items; results with the same items and seed share the draws."""
    try:
        table = result.outcomes().sort_by([(key, "ascending") for key in KEYS])
    except (OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return _replicates(statistic_of(result, columns), result.metric, columns, _parts(columns), draws, seed)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of any false verdict among them stays at the level."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return [float(value) for value in corrected]


def sign_flip(differences: Array, seed: int = 0) -> float:
    """Two-sided p-value of a sum of paired differences, were each as likely to have the other sign.

    Flipping signs is drawing, for every size of a difference, how many are positive: the cost does not grow with the
    number of items. Sizes beyond `MAGNITUDES` are grouped by their root mean square, which keeps the null's variance.
    """
    scaled = np.asarray(differences, np.float64) / max(float(np.abs(differences).max(initial=0)), np.finfo(float).tiny)
    size, count = np.unique(np.abs(scaled).round(9), return_counts=True)
    size, count = size[size > 0], count[size > 0]
    if len(size) > MAGNITUDES:
        parts = np.array_split(np.sort(np.abs(scaled[scaled != 0])), MAGNITUDES)
        size, count = np.array([np.sqrt((part**2).mean()) for part in parts]), np.array([len(part) for part in parts])
    positive = np.random.default_rng(seed).binomial(count, 0.5, size=(FLIPS, len(count)))
    null = np.abs((2 * positive - count) @ size)
    return float((1 + np.count_nonzero(null >= abs(scaled.sum()) - 1e-6)) / (1 + FLIPS))


def _pair(task: Task, a: TaskResult | None, b: TaskResult | None) -> Pair:
    one, other, part = _aligned(a, b)
    assert a is not None
    assert b is not None
    statistic = statistic_of(a, one)
    if statistic == "mean":
        low, high, p = mean_difference(one[a.metric] - other[a.metric], one["id"], part)
    else:
        drawn = _replicates(statistic, a.metric, one, part) - _replicates(statistic, a.metric, other, part)
        low, high = percentiles(drawn)
        # A normal tail with the bootstrap's spread: counting draws could not get below 1 in 1,000, which Holm's
        # correction over a large benchmark would always turn into a tie.
        p = erfc(abs(a.score - b.score) / (sqrt(2) * max(float(drawn.std()), 1e-300)))
    return Pair(task.name, task.category, a.score, b.score, low, high, p, len(np.unique(one["id"])))


def statistic_of(result: TaskResult, columns: Columns) -> str:
    """What makes a result's score of its outcomes: as recorded, or for older records, as the outcomes tell."""
    if recorded := result.records[0].statistic:
        return recorded
    metric = result.metric
    if f"{metric}_run1" in columns:
        return "runs"
    names = [name for name in (metric, metric.rpartition("_")[2]) if name in STATISTICS]
    if not names and metric not in columns:
        raise NotComparable(f"its items have no outcome that {metric} could be computed from")
    return names[0] if names else "mean"


def _replicates(
    statistic: str, metric: str, columns: Columns, part: Array, draws: int = REPLICATES, seed: int = 0
) -> Array:
    """The score in resamples of the items. One seed for all: models, and parts with the same items, share the draws."""
    parts = [{name: values[part == p] for name, values in columns.items()} for p in np.unique(part)]
    return np.asarray(np.mean([replicates(statistic, metric, each, draws, seed) for each in parts], axis=0))


def mean_difference(difference: Array, ids: Array, part: Array) -> tuple[float, float, float]:
    """Interval and p-value of the mean over parts of mean differences; an item counts with all its appearances."""
    sizes = np.bincount(part)
    share = np.bincount(np.unique(ids, return_inverse=True)[1], difference / sizes[part])
    sign = -1.0 if share.sum() < 0 else 1.0  # so that b against a is the mirror image, draws and all
    rows = [part == p for p in range(len(sizes))]
    low, high = subset_interval([sign * difference[at] for at in rows], [ids[at] for at in rows])
    if not difference.any():
        low = -high  # no item differs: either could still be the better one
    return (low, high, sign_flip(share)) if sign > 0 else (-high, -low, sign_flip(share))


def _aligned(a: TaskResult | None, b: TaskResult | None) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """The outcomes of both, row by row the same item, and the part (split, subset) that each row belongs to."""
    if a is None or b is None:
        raise NotComparable(f"only {(a or b).model} has a score")  # type: ignore[union-attr]
    mine, theirs = ({(r.split, r.subset): r.fingerprint for r in result.records} for result in (a, b))
    if mine != theirs:
        raise NotComparable("the scores were made under other protocols")
    try:
        tables = [result.outcomes().sort_by([(key, "ascending") for key in KEYS]) for result in (a, b)]
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    if not tables[0].select(KEYS).equals(tables[1].select(KEYS)):
        raise NotComparable("the models were scored on other items (some were left out)")
    one, other = ({name: table[name].to_numpy() for name in table.column_names} for table in tables)
    return one | {"id": one["id"].astype(np.str_)}, other, _parts(one)


def _parts(columns: Columns) -> Array:
    """The part (split and subset) that each row belongs to, as a number."""
    keys = list(zip(columns["split"], columns["subset"], strict=True))
    numbers = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.int64)


def _right(columns: Columns, task: Task) -> Array:
    values = columns.get(task.metric)
    if values is not None and np.isin(values, (0, 1)).all():
        return np.asarray(values == 1)
    if "rank" in columns:
        return np.asarray(columns["rank"] == 1)
    raise NotComparable(f"The items of {task.name} are not right or wrong, so none can flip.")


def _result(results: Sequence[TaskResult], task: Task) -> TaskResult | None:
    of_task = (result for result in results if (result.task, result.protocol) == (task.name, task.protocol))
    return next(of_task, None)


def _tally(pairs: Sequence[Pair]) -> Tally:
    verdicts = [pair.verdict for pair in pairs]
    mean = float(np.mean([pair.difference for pair in pairs])) if pairs else 0.0
    return Tally(verdicts.count("win"), verdicts.count("tie"), verdicts.count("loss"), mean)
