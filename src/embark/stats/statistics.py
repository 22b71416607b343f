"""95 % intervals of scores that are not plain means of items: correlations, clusterings, repeated runs.

Smooth statistics are resampled through their influence values (how much each item pushes the score): the score of a
resample is, to first order, the score plus the resampled mean influence. It costs one pass over the items, covers as
well as resampling the items themselves, and is centred on the score, where the plain bootstrap is not: resampling
repeats items, which looks like agreement and biases NMI upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from embark.evaluators.clustering import assignment, contingency, from_contingency
from embark.stats.intervals import REPLICATES, combined_interval, mean_interval, percentiles, subset_interval
from embark.types import Array, EmbarkError, Scores

BLOCKS = 512  # random blocks of items that are resampled as one: same variance and skew, and the cost stays the same
NO_SPREAD = 1e-12

Outcomes = Mapping[str, Array]


def interval(statistic: str, main: str, outcomes: Outcomes, seed: int = 0) -> tuple[float, float]:
    """Interval of the score `main`, which `statistic` computes from the outcomes; deterministic."""
    if statistic == "mean":
        return mean_interval(outcomes[main], seed)
    if statistic == "cluster_accuracy":
        return mean_interval(_placed(outcomes), seed)
    lo, hi = percentiles(replicates(statistic, main, outcomes, REPLICATES, seed))
    return _certain(statistic, main, outcomes, lo, hi) if hi - lo < NO_SPREAD else (lo, hi)


def replicates(statistic: str, main: str, outcomes: Outcomes, draws: int = REPLICATES, seed: int = 0) -> Array:
    """The score in `draws` resamples of the items."""
    if statistic not in STATISTICS:
        raise EmbarkError(f"Unknown statistic '{statistic}'; known: {', '.join(STATISTICS)}.")
    return STATISTICS[statistic](main, outcomes, draws, np.random.default_rng(seed))


def task_interval(
    parts: Sequence[Scores], ids: Sequence[Sequence[str]], intervals: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Interval of a task's mean over its parts, from their own: an item in several is resampled with all of them."""
    if len(parts) == 1:
        return intervals[0]
    if all(part.statistic == "mean" for part in parts):
        return subset_interval([part.outcomes[part.main] for part in parts], ids)
    return joint_interval(parts, intervals)


def joint_interval(parts: Sequence[Scores], intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Interval of the mean of several scores, such as a task's subsets, from their outcomes and their own intervals.

    Parts draw alike, so that those with the same items vary together; and it is no narrower than if they did not.
    """
    lo, hi = percentiles(np.mean([replicates(part.statistic, part.main, part.outcomes) for part in parts], axis=0))
    low, high = combined_interval([part.value for part in parts], intervals)
    return min(low, lo), max(high, hi)


# ── means ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    return _resampled(np.asarray(outcomes[main]), draws, rng)


def _runs(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    """Both the runs and the items are resampled, since both were drawn; slightly wide rather than too narrow."""
    runs = _run_columns(main, outcomes)
    counts = rng.multinomial(runs.shape[1], np.full(runs.shape[1], 1 / runs.shape[1]), size=draws)
    return np.asarray((_resampled(runs, draws, rng) * counts).sum(axis=1) / runs.shape[1])


def _run_columns(main: str, outcomes: Outcomes) -> Array:
    columns = [values for name, values in outcomes.items() if name.startswith(f"{main}_run")]
    if not columns:
        raise EmbarkError(
            f"The outcomes of '{main}' hold no runs: '{main}_run1', '{main}_run2'… are missing. A measure of all items "
            "together has no interval; choose one that items have (accuracy, lrap) as the main one."
        )
    return np.stack(columns, axis=1)


def _resampled(values: Array, draws: int, rng: np.random.Generator) -> Array:
    """Means over resampled items, for each column: (draws, …)."""
    order = rng.permutation(len(values)) if len(values) > BLOCKS else np.arange(len(values))
    starts = np.linspace(0, len(values), min(len(values), BLOCKS) + 1).astype(np.int64)
    total, size = np.add.reduceat(values[order], starts[:-1], axis=0, dtype=np.float64), np.diff(starts)
    drawn = rng.integers(len(size), size=(draws, len(size))) + len(size) * np.arange(draws)[:, None]
    # Six times faster than multinomial.
    counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.float64)
    return np.asarray(((counts @ total).T / (counts @ size)).T)


# ── correlations ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _pearson(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    x, y = _centred(outcomes["gold"]), _centred(outcomes["similarity"])
    return _correlation(x, y, x * y, x * x, y * y, draws, rng)


def _spearman(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    """An item counts with its own product of ranks and with what its presence adds to the ranks above it."""
    n = len(outcomes["gold_rank"])
    x, y = _centred(outcomes["gold_rank"]) / n, _centred(outcomes["similarity_rank"]) / n
    xy = x * y + _above(x, y) + _above(y, x)
    xx = x * x + 2 * _above(x, x)
    yy = y * y + 2 * _above(y, y)
    return _correlation(x, y, xy, xx, yy, draws, rng)


def _correlation(x: Array, y: Array, xy: Array, xx: Array, yy: Array, draws: int, rng: np.random.Generator) -> Array:
    """Resampled on Fisher's scale, where a correlation is nearly normal; xy, xx, yy are influences on the moments."""
    x_variance, y_variance = (x * x).mean(), (y * y).mean()
    scale = np.sqrt(x_variance * y_variance)
    r = (x * y).mean() / scale if scale > 0 else 0.0  # the evaluator's answer for a constant side
    if scale == 0 or 1 - abs(r) < NO_SPREAD:
        return np.full(draws, np.clip(r, -1, 1))
    influence = xy / scale - r / 2 * (xx / x_variance + yy / y_variance)
    moved = _resampled(influence - influence.mean(), draws, rng) / (1 - r**2)
    return np.asarray(np.tanh(np.arctanh(r) + moved))


def _centred(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    return np.asarray(values - values.mean())


def _above(rank: Array, weight: Array) -> Array:
    """For each item, the summed weights of items ranked above it and half of those level with it, over all items."""
    _, place = np.unique(rank, return_inverse=True)
    level = np.bincount(place, weight) / len(rank)
    return np.asarray((level.sum() - np.cumsum(level) + level / 2)[place])


# ── clusterings: the clusters stay as they are, the items are resampled ──────────────────────────────────────────────


def _nmi(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    table, row, column = contingency(outcomes["label"], outcomes["cluster"])
    nmi = from_contingency(table)["nmi"]
    logs = np.log(table.clip(1) / len(row))
    label = np.log(table.sum(1) / len(row))
    cluster = np.log(table.sum(0) / len(row))
    entropies = -(label[row] + cluster[column])
    if entropies.sum() <= 0:  # one label and one cluster
        return np.full(draws, nmi)
    shared = logs[row, column] + entropies
    influence = (2 * shared - nmi * entropies) / entropies.mean()
    return np.asarray((nmi + _resampled(influence - influence.mean(), draws, rng)).clip(0, 1))


def _ari(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    table, row, column = contingency(outcomes["label"], outcomes["cluster"])
    ari = from_contingency(table)["ari"]
    share = table / len(row)
    label, cluster = share.sum(1), share.sum(0)
    labels, clusters = (label**2).sum(), (cluster**2).sum()
    possible = (labels + clusters) / 2 - labels * clusters
    if possible <= 0:
        return np.full(draws, ari)
    d_chance = labels * cluster[column] + clusters * label[row]
    d_room = (label[row] + cluster[column]) / 2 - d_chance
    influence = 2 * (share[row, column] - d_chance - ari * d_room) / possible
    return np.asarray((ari + _resampled(influence - influence.mean(), draws, rng)).clip(-1, 1))


def _cluster_accuracy(main: str, outcomes: Outcomes, draws: int, rng: np.random.Generator) -> Array:
    return _resampled(_placed(outcomes), draws, rng)


def _placed(outcomes: Outcomes) -> Array:
    """Whether each item is in the cluster that was assigned to its label."""
    table, row, column = contingency(outcomes["label"], outcomes["cluster"])
    cluster_of = np.full(len(table), -1)
    labels, clusters = assignment(table)
    cluster_of[labels] = clusters
    return np.asarray((cluster_of[row] == column).astype(np.float64))


STATISTICS: dict[str, Callable[[str, Outcomes, int, np.random.Generator], Array]] = {
    "mean": _mean,
    "runs": _runs,
    "pearson": _pearson,
    "spearman": _spearman,
    "nmi": _nmi,
    "v_measure": _nmi,  # the same number: NMI with the arithmetic mean
    "ari": _ari,
    "cluster_accuracy": _cluster_accuracy,
}


def _certain(statistic: str, main: str, outcomes: Outcomes, lo: float, hi: float) -> tuple[float, float]:
    """Interval where nothing varies and a bootstrap would have no width: the exact binomial bound, if there is one.

    A perfect clustering is compared with one in which as many items as the bound allows are in random clusters.
    """
    if statistic == "runs":
        return mean_interval(_run_columns(main, outcomes).mean(axis=1))
    if statistic in ("pearson", "spearman") and abs(lo) > 1 - NO_SPREAD:  # two or three pairs always look so
        items = len(outcomes["gold"])
        bound = 2 * mean_interval(np.ones(items))[0] - 1 if items > 3 else -1.0
        return (bound, 1.0) if lo > 0 else (-1.0, -bound)
    if statistic in ("nmi", "v_measure", "ari") and lo > 1 - NO_SPREAD:
        table, row, _ = contingency(outcomes["label"], outcomes["cluster"])
        bound, _ = mean_interval(np.ones(len(row)))
        anywhere = np.outer(table.sum(1), table.sum(0)) / len(row)
        return float(from_contingency(bound * table + (1 - bound) * anywhere)[statistic]), 1.0
    return lo, hi
