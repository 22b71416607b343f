"""Clustering: do items of one group fall together?

The published protocol is MiniBatchKMeans on the raw vectors, which can collapse clusters. A full k-means stands beside
it (`sound_…`, and both inertias), so that a bad fit of the clusterer is not taken for a bad model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark.evaluators.similarity import whole
from embark.evaluators.threads import blas_threads
from embark.types import Array, EmbarkError, Groups, Scores

VERSION = 1
PARAMS = {"batch_size": int, "seed": int}
RUNS = 10  # starts of the full k-means, of which the best counts …
WORK = 2e9  # … or fewer, down to one: starts × items × dimensions × clusters stay below this (seconds, not minutes)
ROUNDING = 1e-6  # of what the items measure in all: less scatter than that is none
SLACK = 0.2  # how much worse than the full k-means the published one may be before it is called a bad fit


def evaluate(truth: Groups, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Agreement of clusters with groups. Parameters: batch_size, seed, metric."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    items, labels = whole(vectors["item"], "dot"), np.unique(truth.label)
    _check(truth, len(items), len(labels))
    seed, batch = params.get("seed", 42), params.get("batch_size", 500)
    published = _fit(MiniBatchKMeans(len(labels), batch_size=batch, n_init="auto", random_state=seed), items)
    runs = int(np.clip(WORK // (items.size * len(labels)), 1, RUNS))
    sound = _fit(KMeans(len(labels), n_init=runs, random_state=seed), items)
    table, *_ = contingency(truth.label, published.labels_)
    sound_table, *_ = contingency(truth.label, sound.labels_)
    values = {name: float(value) for name, value in from_contingency(table).items()}
    main = params.get("metric", "nmi")
    if main not in values:
        raise EmbarkError(f"Clustering has no measure '{main}'; it has {', '.join(values)}.")
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
        warnings=_doubts(metrics, main, table.shape[1], len(labels), scatter),
    )


def contingency(label: Array, cluster: Array) -> tuple[Array, Array, Array]:
    """How many items of each label are in each cluster, (labels, clusters), and each item's row and column."""
    names, row = np.unique(label, return_inverse=True)
    found, column = np.unique(cluster, return_inverse=True)
    cells = np.bincount(row * len(found) + column, minlength=len(names) * len(found))
    return cells.reshape(len(names), len(found)), row, column


def from_contingency(table: Array) -> dict[str, Array]:
    """Every measure of a (labels, clusters) table, or of each of a batch of them, (tables, labels, clusters).

    Two partitions without any information (one group each) agree perfectly. A batch shares one assignment of clusters
    to labels for the accuracy, the best for the tables' sum.
    """
    table = np.asarray(table, np.float64)
    items = table.sum((-2, -1))
    by_label, by_cluster = table.sum(-1), table.sum(-2)

    entropy = _entropy(by_label, items) + _entropy(by_cluster, items)
    shared = entropy - _entropy(table.reshape(*table.shape[:-2], -1), items)
    informed = entropy > 0
    nmi = np.where(informed, 2 * shared / np.where(informed, entropy, 1), 1.0).clip(0, 1)

    together, labels, clusters = _pairs(table).sum((-2, -1)), _pairs(by_label).sum(-1), _pairs(by_cluster).sum(-1)
    chance = labels * clusters / np.maximum(_pairs(items), 1)
    room = (labels + clusters) / 2 - chance
    ari = np.where(room > 0, (together - chance) / np.where(room > 0, room, 1), 1.0)

    row, column = assignment(table.reshape(-1, *table.shape[-2:]).sum(0))
    accuracy = table[..., row, column].sum(-1) / items
    return {"nmi": nmi, "v_measure": nmi.copy(), "ari": ari, "cluster_accuracy": accuracy}


def assignment(table: Array) -> tuple[Array, Array]:
    """The one-to-one assignment of clusters to labels that puts most items right, as rows and columns of the table."""
    from scipy.optimize import linear_sum_assignment

    row, column = linear_sum_assignment(table, maximize=True)
    return row, column


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
    # Fewer distinct items than clusters are a ConvergenceWarning: `_doubts` says it.
    with blas_threads(1, ConvergenceWarning), threadpool_limits(1, user_api="openmp"):
        return model.fit(items)


def _doubts(metrics: Mapping[str, float], main: str, clusters: int, asked: int, scatter: float) -> tuple[str, ...]:
    """What the published clustering did badly.

    Inertia alone hides it in many dimensions, where most scatter is within the groups whatever one does; so what the
    clusters explain of the scatter is compared too.
    """
    found, best = metrics["inertia"], metrics["sound_inertia"]
    beside = f"a full k-means gives {main} {metrics[f'sound_{main}']:.4f} instead of {metrics[main]:.4f}."
    if not scatter:
        return ("all items have the same vector: there is nothing to cluster",)
    doubts = []
    if clusters < asked:
        doubts.append(f"MiniBatchKMeans collapsed: it fills {clusters} of {asked} clusters; {beside}")
    rounding = 1e-5 * scatter
    if found > (1 + SLACK) * best + rounding or scatter - found < (1 - SLACK) * (scatter - best) - rounding:
        share = f"explains {1 - found / scatter:.1%} of the scatter where {1 - best / scatter:.1%} is possible"
        doubts.append(f"MiniBatchKMeans fits badly: it {share}; {beside}")
    return tuple(doubts)


def _entropy(counts: Array, items: Array) -> Array:
    """Of the last axis, in nats."""
    share = counts / items[..., None]
    return np.asarray(-(share * np.log(np.where(share > 0, share, 1))).sum(-1))


def _pairs(counts: Array) -> Array:
    return np.asarray(counts * (counts - 1) / 2)
