"""Clustering: how well clusters of the vectors agree with the groups of the items.

The published protocol is MiniBatchKMeans on the raw vectors, which can collapse clusters. The scores of a full k-means
(`sound_…`) and both inertias are reported beside it, so that a bad fit of the clusterer is not taken for a bad model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from embark.evaluators.similarity import whole
from embark.evaluators.threads import blas_threads
from embark.metrics import main_measure
from embark.types import Array, EmbarkError, Groups, Scores

VERSION = 1
PARAMS = {"batch_size": int, "seed": int}
STARTS = 10  # largest number of starts of the full k-means; the best start counts
WORK = 2e9  # limit of starts × items × dimensions × clusters, to take seconds; there is always one start
ROUNDING = 1e-6  # scatter below this share of the sum of squared lengths counts as zero
SLACK = 0.2  # how much worse than the full k-means the published one may be before it is called a bad fit


def evaluate(truth: Groups, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Agreement of clusters with groups. Parameters: batch_size, seed, metric."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    items = whole(vectors["item"], "dot")
    labels = np.unique(truth.label)
    _check(truth, len(items), len(labels))
    seed = params.get("seed", 42)
    published = _fit(
        MiniBatchKMeans(len(labels), batch_size=params.get("batch_size", 500), n_init="auto", random_state=seed), items
    )
    starts = int(np.clip(WORK // (items.size * len(labels)), 1, STARTS))
    sound = _fit(KMeans(len(labels), n_init=starts, random_state=seed), items)
    table, *_ = contingency(truth.label, published.labels_)
    sound_table, *_ = contingency(truth.label, sound.labels_)
    values = {name: float(value) for name, value in from_contingency(table).items()}
    main = main_measure(params, "nmi", values, "Clustering")
    metrics = values | {f"sound_{name}": float(value) for name, value in from_contingency(sound_table).items()}
    metrics |= {"inertia": float(published.inertia_), "sound_inertia": float(sound.inertia_)}
    scatter = float(items.var(axis=0, dtype=np.float64).sum() * len(items))
    scatter = scatter if scatter > ROUNDING * float(np.square(items, dtype=np.float64).sum()) else 0.0
    return Scores(
        metrics,
        main,
        "item",
        np.arange(len(items)),
        {"label": truth.label, "cluster": published.labels_.astype(np.int64)},
        statistic=main,
        counts={"items": len(items), "groups": len(labels), "clusters": table.shape[1]},
        warnings=_warnings(metrics, main, table.shape[1], len(labels), scatter),
    )


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


def _fit(model: Any, items: Array) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # One thread: sums are then made in one order whatever the machine, and a busy machine does not stall on OpenMP.
    # Fewer distinct items than clusters raise a ConvergenceWarning, which `_warnings` reports in its own words.
    with blas_threads(1, ConvergenceWarning), threadpool_limits(1, user_api="openmp"):
        return model.fit(items)


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
    comparison = f"a full k-means gives {main} {metrics[f'sound_{main}']:.4f} instead of {metrics[main]:.4f}."
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
