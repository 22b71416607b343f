"""Clustering: how well clusters of the vectors agree with the groups of the items.

The published protocol is one fit of MiniBatchKMeans on the raw vectors. Another seed gives another score, so the score
is the mean over several seeds, and the published fit, that of the first seed, is reported beside it (`published_…`).
The clusterer can collapse clusters: the scores of a full k-means (`sound_…`) and both inertias are reported, too, so
that a bad fit is not taken for a bad model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from embark.evaluators.similarity import whole
from embark.evaluators.threads import blas_threads
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Groups, Option, Scores

PARAMS = {
    "batch_size": Option(int, "Of MiniBatchKMeans, as the paper has it."),
    "seed": Option(int, "The seed of the first run (42)."),
    "runs": Option(int, "The seeds over which the score is averaged (10)."),
}
RUNS = 10  # seeds over which the score is averaged
REFITS = 5  # runs that are fitted again to both halves of the items: how much other items would move the clusters
STARTS = 10  # largest number of starts of the full k-means; the best start counts
WORK = 2e9  # limit of starts × items × dimensions × clusters, to take seconds; there is always one start
ROUNDING = 1e-6  # scatter below this share of the sum of squared lengths counts as zero
SLACK = 0.2  # how much worse than the full k-means the published one may be before it is called a bad fit


def evaluate(truth: Groups, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Agreement of clusters with groups, the mean over runs. Parameters: batch_size, seed (of the first run), runs,
    metric.
    """
    from sklearn.cluster import KMeans

    items = whole(vectors["item"], "dot")
    labels = np.unique(truth.label)
    _check(truth, len(items), len(labels))
    seed = params.get("seed", 42)
    runs = params.get("runs", RUNS)
    if runs < 1:
        raise EmbarkError(f"The parameter 'runs' must be at least 1, not {runs}.")
    starts = int(np.clip(WORK // (items.size * len(labels)), 1, STARTS))
    with _one_thread():
        fits = _fits(items, len(labels), seed, runs, params.get("batch_size", 500))
        clusters = _columns(items, fits, seed)
        sound = KMeans(len(labels), n_init=starts, random_state=seed).fit(items)
    published = fits[0]
    of_runs = [_measures(truth.label, fit.labels_) for fit in fits]
    values = {name: float(np.mean([measures[name] for measures in of_runs])) for name in of_runs[0]}
    main = CLUSTERING.metric(params)
    metrics = values | {f"published_{name}": value for name, value in of_runs[0].items()}
    metrics |= {f"sound_{name}": value for name, value in _measures(truth.label, sound.labels_).items()}
    metrics |= {"inertia": float(published.inertia_), "sound_inertia": float(sound.inertia_)}
    scatter = float(items.var(axis=0, dtype=np.float64).sum() * len(items))
    scatter = scatter if scatter > ROUNDING * float(np.square(items, dtype=np.float64).sum()) else 0.0
    filled = len(np.unique(published.labels_))
    return Scores(
        metrics,
        main,
        "item",
        np.arange(len(items)),
        {"label": truth.label} | clusters,
        statistic=CLUSTERING.statistic(main),
        counts={"items": len(items), "groups": len(labels), "clusters": filled, "runs": runs},
        warnings=_warnings(metrics, main, filled, len(labels), scatter),
    )


def clusterings(items: Array, groups: int, seed: int, runs: int = RUNS, batch_size: int = 500) -> dict[str, Array]:
    """The cluster of each item in every run and every refit of the published clusterer, as columns of outcomes."""
    with _one_thread():
        return _columns(items, _fits(items, groups, seed, runs, batch_size), seed)


def _fits(items: Array, groups: int, seed: int, runs: int, batch_size: int) -> list[Any]:
    from sklearn.cluster import MiniBatchKMeans

    models = [
        MiniBatchKMeans(groups, batch_size=batch_size, n_init="auto", random_state=seed + run) for run in range(runs)
    ]
    return [model.fit(items) for model in models]


def _columns(items: Array, fits: Sequence[Any], seed: int) -> dict[str, Array]:
    """cluster_run1… of the runs; cluster_refit1 and 2 of the first run, fitted again to either half of the items, and
    so on. The halves are the same for every model.
    """
    from sklearn.base import clone

    columns = {f"cluster_run{number}": fit.labels_.astype(np.int32) for number, fit in enumerate(fits, 1)}
    if len(items) < 2 * fits[0].n_clusters:
        return columns
    for run, fit in enumerate(fits[:REFITS]):
        order = np.random.default_rng([seed, run]).permutation(len(items))
        for half, rows in enumerate(np.array_split(order, 2), 1):
            again = clone(fit).set_params(init=fit.cluster_centers_, n_init=1).fit(items[rows])
            columns[f"cluster_refit{2 * run + half}"] = again.predict(items).astype(np.int32)
    return columns


def _measures(label: Array, cluster: Array) -> dict[str, float]:
    return {name: float(value) for name, value in from_contingency(contingency(label, cluster)[0]).items()}


def contingency(label: Array, cluster: Array) -> tuple[Array, Array, Array]:
    """How many items of each label are in each cluster, (labels, clusters), and each item's row and column."""
    labels, row = np.unique(label, return_inverse=True)
    clusters, column = np.unique(cluster, return_inverse=True)
    counts = np.bincount(row * len(clusters) + column, minlength=len(labels) * len(clusters))
    return counts.reshape(len(labels), len(clusters)), row, column


def from_contingency(table: Array) -> dict[str, Array]:
    """Every measure of a (labels, clusters) table, or of each of a batch of them, (tables, labels, clusters).

    Two partitions without any information (one group each) agree perfectly. A batch shares one assignment of clusters
    to labels for the accuracy, the best for the tables' sum.
    """
    table = np.asarray(table, np.float64)
    items = table.sum((-2, -1))
    by_label = table.sum(-1)
    by_cluster = table.sum(-2)

    entropy = _entropy(by_label, items) + _entropy(by_cluster, items)
    shared = entropy - _entropy(table.reshape(*table.shape[:-2], -1), items)
    informed = entropy > 0
    nmi = np.where(informed, 2 * shared / np.where(informed, entropy, 1), 1.0).clip(0, 1)

    in_both = _pairs(table).sum((-2, -1))
    in_label = _pairs(by_label).sum(-1)
    in_cluster = _pairs(by_cluster).sum(-1)
    chance = in_label * in_cluster / np.maximum(_pairs(items), 1)
    possible = (in_label + in_cluster) / 2 - chance
    ari = np.where(possible > 0, (in_both - chance) / np.where(possible > 0, possible, 1), 1.0)

    row, column = assignment(table.reshape(-1, *table.shape[-2:]).sum(0))
    return {
        "nmi": nmi,
        "v_measure": nmi.copy(),
        "ari": ari,
        "cluster_accuracy": table[..., row, column].sum(-1) / items,
    }


def assignment(table: Array) -> tuple[Array, Array]:
    """The one-to-one assignment of clusters to labels with the most items right: rows and columns of the table."""
    from scipy.optimize import linear_sum_assignment

    return cast("tuple[Array, Array]", linear_sum_assignment(table, maximize=True))


def _check(truth: Groups, items: int, labels: int) -> None:
    if not items:
        raise EmbarkError("There are no items to cluster.")
    if len(truth.label) != items:
        raise EmbarkError(f"There are {len(truth.label)} labels for {items} items to cluster.")
    if labels == 1:
        raise EmbarkError(f"All {items} items have the same label: there are no groups to find.")
    if labels == items:
        raise EmbarkError(f"Each of the {items} items has a label of its own: there are no groups to find.")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums are then made in one order whatever the machine, and a busy machine does not stall on OpenMP.

    Fewer distinct items than clusters raise a ConvergenceWarning, which `_warnings` reports in its own words.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with blas_threads(1, ConvergenceWarning), threadpool_limits(1, user_api="openmp"):
        yield


def _warnings(metrics: Mapping[str, float], main: str, clusters: int, groups: int, scatter: float) -> tuple[str, ...]:
    """Warnings where the published clustering is much worse than the full k-means, by filled clusters or by fit.

    Inertia alone hides a bad fit in many dimensions, where most scatter is within the groups whatever the clusters; so
    the share of the scatter that the clusters explain is compared too.
    """
    if not scatter:
        return ("all items have the same vector: there is nothing to cluster",)
    warnings = []
    inertia = metrics["inertia"]
    best = metrics["sound_inertia"]
    score, sound = metrics[f"published_{main}"], metrics[f"sound_{main}"]
    comparison = f"a full k-means gives {main} {sound:.4f} instead of {score:.4f}."
    if clusters < groups:
        warnings.append(f"MiniBatchKMeans collapsed: it fills {clusters} of {groups} clusters; {comparison}")
    rounding = 1e-5 * scatter
    if inertia > (1 + SLACK) * best + rounding or scatter - inertia < (1 - SLACK) * (scatter - best) - rounding:
        warnings.append(
            f"MiniBatchKMeans fits badly: it explains {1 - inertia / scatter:.1%} of the scatter "
            f"where {1 - best / scatter:.1%} is possible; {comparison}"
        )
    return tuple(warnings)


def _entropy(counts: Array, items: Array) -> Array:
    """The entropy of the counts along the last axis, in nats."""
    share = counts / items[..., None]
    return np.asarray(-(share * np.log(np.where(share > 0, share, 1))).sum(-1))


def _pairs(counts: Array) -> Array:
    """How many pairs can be drawn from each count."""
    return np.asarray(counts * (counts - 1) / 2)


CLUSTERING = Evaluator(
    "clustering",
    (__doc__ or "").strip(),
    (Groups,),
    evaluate,
    measures={name: name for name in ("nmi", "v_measure", "ari", "cluster_accuracy")},  # each is its own statistic
    main="nmi",
    version=2,
    params=PARAMS,
    imports=("sklearn.cluster",),
)
