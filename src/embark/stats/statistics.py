"""What every item pushes a score: the statistics of outcomes, to first order.

A score is a mean of items, a rank correlation, a clustering's agreement, or the mean of such scores over several runs.
If item i counted w[i] times, the score would be, to first order, score + Σ (w[i] − 1) · push[i]. From the pushes follow
variances of scores and differences, whoever shares the items: see `shared`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from embark.evaluators.clustering import assignment, contingency, from_contingency
from embark.evaluators.pair_classification import thresholds
from embark.seams import STATISTICS as DECLARED
from embark.stats.intervals import NO_SPREAD, certain_interval
from embark.types import Array, EmbarkError, Scores

Outcomes = Mapping[str, Array]
OF_CLUSTERINGS = ("nmi", "v_measure", "ari", "cluster_accuracy")


@dataclass(frozen=True)
class Pushes:
    """A score on one split and subset: `runs` are the scores of its runs (one, where it has none), and `items` what
    each item pushes each of them, (runs, items).

    `refits` are deviations of the score, drawn at random, where other items would make other clusters.
    """

    runs: Array
    items: Array
    scale: str = "share"  # from 0 to 1; "signed": from −1; "correlation"
    refits: Array = field(default_factory=lambda: np.empty(0))

    @property
    def uniform(self) -> bool:
        """Whether all items have the same outcome, so that their spread tells nothing."""
        return bool((np.abs(self.items) < NO_SPREAD).all())

    @property
    def value(self) -> float:
        """The score: the mean over the runs."""
        return float(self.runs.mean())


def pushes(statistic: str, main: str, outcomes: Outcomes) -> Pushes:
    """What the items push the score `main`, which `statistic` computes from the outcomes."""
    if statistic not in STATISTICS:
        raise EmbarkError(f"Unknown statistic '{statistic}'; known: {', '.join(STATISTICS)}.")
    return STATISTICS[statistic](main, outcomes)


def check_score(scores: Scores) -> None:
    """Raise an error unless the main score is what its statistic makes of the outcomes."""
    value = pushes(scores.statistic, scores.main, scores.outcomes).value
    if not np.isclose(value, scores.value, rtol=1e-5, atol=1e-6):
        raise EmbarkError(
            f"The score '{scores.main}' is {scores.value:.6g}, but the statistic '{scores.statistic}' of its outcomes "
            f"is {value:.6g}: its evaluator broke its contract (see embark.seams.Evaluator)."
        )


def columns_of(statistic: str, main: str, outcomes: Outcomes) -> tuple[str, ...]:
    """The columns of outcomes that a statistic reads; none where it is unknown."""
    if statistic not in STATISTICS:
        return ()
    if statistic == "runs":
        return _numbered(f"{main}_run", outcomes)
    if statistic in OF_CLUSTERINGS:
        runs = _numbered("cluster_run", outcomes, least=0) or ("cluster",)
        return ("label", *runs, *_numbered("cluster_refit", outcomes, least=0))
    return tuple(column.format(main=main) for column in DECLARED[statistic])


def _numbered(name: str, outcomes: Outcomes, least: int = 1) -> tuple[str, ...]:
    """The columns of this name with the numbers 1, 2…; at least so many, whether they are in the outcomes or not."""
    count = least
    while f"{name}{count + 1}" in outcomes:
        count += 1
    return tuple(f"{name}{number + 1}" for number in range(count))


def certain(statistic: str, main: str, outcomes: Outcomes, items: int) -> tuple[float, float] | None:
    """The interval where the outcomes of so many independent items do not vary: the exact binomial bound, if any."""
    if statistic in ("pearson", "spearman"):
        if items <= 3:
            return -1.0, 1.0  # two or three pairs always look certain
        r = pushes(statistic, main, outcomes).value
        if abs(r) <= 1 - NO_SPREAD:
            return None
        bound = 2 * certain_interval(1.0, items)[0] - 1
        return (bound, 1.0) if r > 0 else (-1.0, -bound)
    if statistic == "average_precision":
        if pushes(statistic, main, outcomes).value < 1 - NO_SPREAD:
            return None
        return _perfect_precision(outcomes["gold"], items), 1.0
    if statistic in OF_CLUSTERINGS:
        tables = [contingency(outcomes["label"], cluster)[0] for cluster in _clusterings(outcomes)]
        if any(float(from_contingency(table)[statistic]) < 1 - NO_SPREAD for table in tables):
            return None
        return _perfect(statistic, tables[0], items, len(tables)), 1.0
    values = _values(statistic, main, outcomes)
    if np.ptp(values) > NO_SPREAD:
        return None
    return certain_interval(float(values.flat[0]), items, -1.0 if values.flat[0] < 0 else 0.0)


def _perfect_precision(gold: Array, items: int) -> float:
    """The lower end of an average precision of 1.

    As many pairs as the exact bound allows might be matches below all others, or others above all matches.
    """
    misplaced = len(gold) * (1 - certain_interval(1.0, items)[0])
    matches = float(np.sum(gold))
    below = min(misplaced, matches)
    rank = np.arange(1, matches + 1)
    others_above = float(np.mean(rank / (rank + min(misplaced, len(gold) - matches))))
    matches_below = 1 - below / matches * (1 - matches / len(gold))
    return min(matches_below, others_above)


def _perfect(statistic: str, table: Array, items: int, runs: int) -> float:
    """The lower end of a clustering that was perfect in every run.

    As many items as the exact bound allows might lie in random clusters, and in as many runs as it allows, the
    clusterer might have taken the two largest groups for one, as it does when it starts badly.
    """
    of_items, _ = certain_interval(1.0, items)
    of_runs, _ = certain_interval(1.0, runs)
    anywhere = np.outer(table.sum(1), table.sum(0)) / table.sum()
    low = float(from_contingency(of_items * table + (1 - of_items) * anywhere)[statistic])
    if runs == 1:  # nothing is known of other runs, as of clusterings that are not perfect
        return low
    largest = np.argsort(table.sum(0))[-2:]
    merged = np.column_stack([np.delete(table, largest, axis=1), table[:, largest].sum(axis=1)])
    return max(low - (1 - of_runs) * (1 - float(from_contingency(merged)[statistic])), 0.0)


# ── means ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(main: str, outcomes: Outcomes) -> Pushes:
    return _of_means(np.asarray(outcomes[main], np.float64)[None])


def _runs(main: str, outcomes: Outcomes) -> Pushes:
    return _of_means(_values("runs", main, outcomes))


def _of_means(values: Array) -> Pushes:
    means = values.mean(axis=1)
    return Pushes(
        means, (values - means[:, None]) / values.shape[1], "signed" if values.min(initial=0) < 0 else "share"
    )


def _values(statistic: str, main: str, outcomes: Outcomes) -> Array:
    """The outcomes of which the score is the mean: (runs, items)."""
    if statistic != "runs":
        return np.asarray(outcomes[main], np.float64)[None]
    columns = run_columns(main, outcomes)
    if not columns:
        raise EmbarkError(
            f"The outcomes of '{main}' hold no runs: '{main}_run1', '{main}_run2'… are missing. A measure of all items "
            "together has no interval; choose one that items have (accuracy, lrap) as the main one."
        )
    return np.stack(columns).astype(np.float64)


def run_columns(name: str, outcomes: Outcomes, kind: str = "run") -> list[Array]:
    """The columns name_run1, name_run2…"""
    columns: list[Array] = []
    while (column := f"{name}_{kind}{len(columns) + 1}") in outcomes:
        columns.append(np.asarray(outcomes[column]))
    return columns


# ── correlations ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _pearson(main: str, outcomes: Outcomes) -> Pushes:
    x, y = _centred(outcomes["gold"]), _centred(outcomes["similarity"])
    return _correlation(x, y, x * y, x * x, y * y)


def _spearman(main: str, outcomes: Outcomes) -> Pushes:
    """An item counts with its own product of ranks and with what its presence adds to the ranks above it."""
    n = len(outcomes["gold_rank"])
    x, y = _centred(outcomes["gold_rank"]) / n, _centred(outcomes["similarity_rank"]) / n
    xy = x * y + _above(x, y) + _above(y, x)
    xx = x * x + 2 * _above(x, x)
    yy = y * y + 2 * _above(y, y)
    return _correlation(x, y, xy, xx, yy)


def _correlation(x: Array, y: Array, xy: Array, xx: Array, yy: Array) -> Pushes:
    """xy, xx, yy are what each item adds to the moments."""
    x_variance, y_variance = (x * x).mean(), (y * y).mean()
    scale = np.sqrt(x_variance * y_variance)
    r = (x * y).mean() / scale if scale > 0 else 0.0  # the evaluator's answer for a constant side
    if scale == 0 or 1 - abs(r) < NO_SPREAD:
        return Pushes(np.array([np.clip(r, -1, 1)]), np.zeros((1, len(x))), "correlation")
    influence = xy / scale - r / 2 * (xx / x_variance + yy / y_variance)
    return Pushes(np.array([r]), (influence - influence.mean())[None] / len(x), "correlation")


def _centred(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    return np.asarray(values - values.mean())


def _above(rank: Array, weight: Array) -> Array:
    """For each item, the summed weights of items ranked above it and half of those level with it, over all items."""
    _, place = np.unique(rank, return_inverse=True)
    level = np.bincount(place, weight) / len(rank)
    return np.asarray((level.sum() - np.cumsum(level) + level / 2)[place])


# ── average precision ────────────────────────────────────────────────────────────────────────────────────────────────


def _average_precision(main: str, outcomes: Outcomes) -> Pushes:
    """A match counts with the precision at its own similarity; every pair, with what its presence does to the precision
    at the matches that are level with it or below.
    """
    gold = np.asarray(outcomes["gold"], np.float64)
    at = thresholds(gold, outcomes["similarity"])
    value = at.average_precision
    # At a threshold, one more pair changes the precision by (gold - precision) / accepted.
    rate = at.new_matches / at.accepted
    gain, loss = (np.cumsum(values[::-1])[::-1][at.of_pair] for values in (rate, rate * at.precision))
    influence = gold * (at.precision[at.of_pair] - value + gain) - loss
    return Pushes(np.array([value]), influence[None] / gold.sum())


# ── clusterings: one for each run ────────────────────────────────────────────────────────────────────────────────────


def _clusterings(outcomes: Outcomes) -> list[Array]:
    """The cluster of each item in every run."""
    return run_columns("cluster", outcomes)


def _nmi(main: str, outcomes: Outcomes) -> Pushes:
    return _over_runs(outcomes, _nmi_of_run, "nmi")


def _nmi_of_run(label: Array, cluster: Array) -> tuple[float, Array]:
    table, row, column = contingency(label, cluster)
    nmi = float(from_contingency(table)["nmi"])
    logs = np.log(table.clip(1) / len(row))
    by_label = np.log(table.sum(1) / len(row))
    by_cluster = np.log(table.sum(0) / len(row))
    entropies = -(by_label[row] + by_cluster[column])
    if entropies.sum() <= 0:  # one label and one cluster
        return nmi, np.zeros(len(row))
    shared = logs[row, column] + entropies
    return nmi, (2 * shared - nmi * entropies) / entropies.mean()


def _ari(main: str, outcomes: Outcomes) -> Pushes:
    return _over_runs(outcomes, _ari_of_run, "ari")


def _ari_of_run(label: Array, cluster: Array) -> tuple[float, Array]:
    table, row, column = contingency(label, cluster)
    ari = float(from_contingency(table)["ari"])
    share = table / len(row)
    by_label, by_cluster = share.sum(1), share.sum(0)
    labels, clusters = (by_label**2).sum(), (by_cluster**2).sum()
    possible = (labels + clusters) / 2 - labels * clusters
    if possible <= 0:
        return ari, np.zeros(len(row))
    d_chance = labels * by_cluster[column] + clusters * by_label[row]
    d_room = (by_label[row] + by_cluster[column]) / 2 - d_chance
    return ari, 2 * (share[row, column] - d_chance - ari * d_room) / possible


def _cluster_accuracy(main: str, outcomes: Outcomes) -> Pushes:
    values = _of_means(_placed(outcomes))
    return replace(values, refits=_refits(outcomes, "cluster_accuracy"))


def _placed(outcomes: Outcomes) -> Array:
    """Whether each item is in the cluster that was assigned to its label: (runs, items)."""
    placed = []
    for clusters in _clusterings(outcomes):
        table, row, column = contingency(outcomes["label"], clusters)
        cluster_of = np.full(len(table), -1)
        labels, columns = assignment(table)
        cluster_of[labels] = columns
        placed.append(cluster_of[row] == column)
    return np.stack(placed).astype(np.float64)


def _over_runs(outcomes: Outcomes, of_run: Callable[[Array, Array], tuple[float, Array]], measure: str) -> Pushes:
    runs = [of_run(outcomes["label"], clusters) for clusters in _clusterings(outcomes)]
    influence = np.stack([values for _, values in runs])
    influence -= influence.mean(axis=1, keepdims=True)
    values = np.array([value for value, _ in runs])
    scale = "signed" if measure == "ari" else "share"
    return Pushes(values, influence / influence.shape[1], scale, _refits(outcomes, measure))


def _refits(outcomes: Outcomes, measure: str) -> Array:
    """Half the difference that fits to either half of the items make: as far as other items would move the score, by
    moving the clusters.
    """
    columns = run_columns("cluster", outcomes, "refit")
    scores = [float(from_contingency(contingency(outcomes["label"], column)[0])[measure]) for column in columns]
    return np.asarray((np.array(scores[::2]) - np.array(scores[1::2])) / 2)


STATISTICS: dict[str, Callable[[str, Outcomes], Pushes]] = {
    "mean": _mean,
    "runs": _runs,
    "pearson": _pearson,
    "spearman": _spearman,
    "average_precision": _average_precision,
    "nmi": _nmi,
    "v_measure": _nmi,  # the same number: NMI with the arithmetic mean
    "ari": _ari,
    "cluster_accuracy": _cluster_accuracy,
}
