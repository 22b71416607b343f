"""Tasks that rank models alike: correlations of tasks over models, and clusters of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, load_matrix
from embark.catalogue import check_name
from embark.evaluators.sts import correlation as correlation_of
from embark.settings import Settings
from embark.stats.shared import Observations, part_interval
from embark.studies.analysis import Analysis
from embark.studies.plotting import SMALL_POINTS, color, legend_below, marker, short_task
from embark.tables import Row, Table, applicable, named, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, EmbarkError

CORRELATIONS = ("spearman", "pearson")
METHODS = ("hierarchical", "umap")
THRESHOLD = 0.8  # mean correlation at which clusters are joined
NO_CLUSTER = 0  # the number of tasks that are in no cluster
PAIRS = 10
BOTH = 36  # tasks that are named below the heat map, too
NAMED_TASKS = 60  # tasks that a page has room to name; of more, clusters are named
LABELLED = 3  # tasks of a cluster that is named
SEED = 42
OVER_MODELS = "95 % over other models, no narrower than Fisher's interval"  # of `agreement`


def correlate(
    tasks: Tasks = None,
    *,
    correlation: str = "spearman",
    method: str = "hierarchical",
    threshold: float = THRESHOLD,
    include: Include = "all",
    settings: Settings | None = None,
) -> TaskCorrelations:
    """Correlate the tasks of a benchmark over models, and cluster them.

    `correlation` is spearman or pearson. `method` is hierarchical (clusters are joined down to a mean correlation of
    `threshold`) or umap (with HDBSCAN).
    """
    return correlate_tasks(load_matrix(tasks, include=include, settings=settings), correlation, method, threshold)


@dataclass(frozen=True)
class Agreement:
    """A correlation over n models with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class TaskCorrelations(Analysis):
    """Tasks × tasks: their correlations, the order of the dendrogram's leaves, and the cluster number of each task."""

    matrix: Matrix
    correlation: str
    method: str
    values: Array
    order: Array
    clusters: Array
    threshold: float = THRESHOLD
    positions: Array | None = None  # of the tasks on the UMAP plane
    constant: tuple[str, ...] = ()  # tasks that were left out, because all models have the same score

    @property
    def title(self) -> str:
        models, tasks = self.matrix.values.shape
        return f"{self.correlation.capitalize()} correlation of {tasks} tasks over {models} models"

    @property
    def size(self) -> tuple[float, float]:
        named = BOTH < len(self.matrix.tasks) <= NAMED_TASKS  # line by line, which takes room
        return (PAGE, 5.2 if self.positions is not None else 7.6 if named else 6.2)

    def table(self, pairs: int = PAIRS) -> Table:
        """Each task with its nearest one, cluster by cluster; then the `pairs` strongest and lowest pairs."""
        rows: list[Row] = []
        others = self.values - 2 * np.eye(len(self.values))
        for number in sorted(set(self.clusters.tolist()), key=lambda number: (number == NO_CLUSTER, number)):
            members = [task for task in self.order if self.clusters[task] == number]
            section = self._section(number, members)
            rows += [self._row(task, int(others[task].argmax()), section) for task in members]
        first, second = np.triu_indices(len(self.values), 1)
        values = self.values[first, second]
        strongest = np.argsort(-values, kind="stable")
        shown = min(pairs, len(strongest) // 2)
        for section, order in (("strongest pairs", strongest), ("lowest pairs", strongest[::-1])):
            rows += [self._row(int(first[pair]), int(second[pair]), section) for pair in order[:shown]]
        clustering = (
            "UMAP and HDBSCAN" if self.method == "umap" else f"average linkage, joined at mean r ≥ {self.threshold:g}"
        )
        large = len(self.matrix.tasks) > NAMED_TASKS and self.positions is None
        notes = (
            f"{self.correlation.capitalize()} r over {len(self.matrix.models)} models that have every task; "
            f"low and high: {OVER_MODELS}.",
            f"Clusters: {clustering}. There, each task stands with its nearest.",
            *applicable({f"Drawn: clusters of {LABELLED} tasks or more by number, size and main category.": large}),
            f"All {len(values):,} pairs: median r {np.median(values):.2f}, "
            f"{100 * (values > 0.9).mean():.0f} % above 0.9, {100 * (values < 0).mean():.0f} % below 0.",
            *applicable({f"Left out, with one score for all models: {', '.join(self.constant)}.": self.constant}),
        )
        return Table(("task", "with", "r", "low", "high"), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """A heat map with a box round each cluster, or the tasks on the UMAP plane."""
        if self.positions is None:
            self._draw_heat_map(figure)
        else:
            self._draw_plane(figure, self.positions)

    def _row(self, task: int, other: int, section: str) -> Row:
        names, scores = self.matrix.names, self.matrix.values
        r = agreement(scores[:, task], scores[:, other], self.correlation)
        return Row((named(names[task], 36), named(names[other], 36), r.value, r.low, r.high), section)

    def _section(self, number: int, members: Sequence[int]) -> str:
        categories = Counter(self.matrix.tasks[task].category for task in members).most_common()
        counts = ", ".join(f"{count} {category}" for category, count in categories[:3])
        name = "in no cluster" if number == NO_CLUSTER else f"cluster {number}"
        return f"{name}: {counts}{', …' if len(categories) > 3 else ''}"

    def _draw_heat_map(self, figure: Any) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch, Rectangle

        tasks = [self.matrix.tasks[task] for task in self.order]
        categories = list(dict.fromkeys(task.category for task in self.matrix.tasks))
        strip, axes = figure.subplots(1, 2, width_ratios=[1, 60], sharey=True)
        image = axes.imshow(
            self.values[np.ix_(self.order, self.order)],
            cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest", aspect="auto",
        )  # fmt: skip
        bands = [[to_rgb(color(categories.index(task.category)))] for task in tasks]
        strip.imshow(bands, aspect="auto", interpolation="nearest")
        every = len(tasks) <= NAMED_TASKS
        labels = {place: short_task(task.name) for place, task in enumerate(tasks)} if every else self._cluster_labels()
        strip.set_yticks(list(labels), list(labels.values()), fontsize=7 if len(tasks) <= 30 else SMALL_POINTS)
        strip.set_xticks([])
        below = labels if len(tasks) <= BOTH else {}
        axes.set_xticks(list(below), list(below.values()), rotation=90)
        axes.tick_params(left=False, labelleft=False)
        for panel in (strip, axes):
            panel.grid(False)
            panel.spines[:].set_visible(False)
        for number in sorted(set(self.clusters.tolist()) - {NO_CLUSTER}):
            members = np.flatnonzero(self.clusters[self.order] == number)  # side by side: a branch of the tree
            corner = (members[0] - 0.5, members[0] - 0.5)
            axes.add_patch(Rectangle(corner, len(members), len(members), fill=False, lw=1, clip_on=False))
        figure.colorbar(image, ax=axes, shrink=0.5, label=f"{self.correlation.capitalize()} r", pad=0.01)
        legend_below(figure, categories, [Patch(color=color(number)) for number in range(len(categories))])

    def _cluster_labels(self) -> dict[float, str]:
        """Names of the clusters of several tasks at their middle, for more tasks than can be named one by one."""
        labels = {}
        for number in sorted(set(self.clusters.tolist()) - {NO_CLUSTER}):
            places = np.flatnonzero(self.clusters[self.order] == number)
            if len(places) >= LABELLED:
                [(category, _)] = Counter(
                    self.matrix.tasks[self.order[place]].category for place in places
                ).most_common(1)
                labels[float(places.mean())] = f"{number}: {len(places)} tasks, {short(category, 22)}"
        return labels

    def _draw_plane(self, figure: Any, positions: Array) -> None:
        axes = figure.subplots()
        for number, category in enumerate(dict.fromkeys(task.category for task in self.matrix.tasks)):
            rows = [row for row, task in enumerate(self.matrix.tasks) if task.category == category]
            look = {"color": color(number), "marker": marker(number), "edgecolor": "white", "lw": 0.4}
            axes.scatter(*positions[rows].T, s=22, label=category, **look)
        for number in sorted(set(self.clusters.tolist()) - {NO_CLUSTER}):
            members = positions[self.clusters == number]
            top = (float(np.median(members[:, 0])), float(members[:, 1].max()))
            axes.annotate(
                f"cluster {number}", top, (0, 6), textcoords="offset points", fontsize=8, ha="center",
                bbox={"fc": "white", "ec": "none", "pad": 0.5, "alpha": 0.7},
            )  # fmt: skip
        axes.set(xlabel="UMAP 1 (no unit)", ylabel="UMAP 2 (no unit)")
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])


def correlate_tasks(
    matrix: Matrix, correlation: str = "spearman", method: str = "hierarchical", threshold: float = THRESHOLD
) -> TaskCorrelations:
    """Correlations and clusters of tasks over the models that have them all; constant tasks are left out."""
    from scipy.cluster.hierarchy import average, fcluster, leaves_list
    from scipy.spatial.distance import squareform

    check_name("way to cluster", method, METHODS)
    matrix = matrix.complete()
    constant = tuple(
        name for name, spread in zip(matrix.names, np.ptp(matrix.values, axis=0), strict=True) if not spread
    )
    matrix = matrix.only(tasks=lambda task: task.name not in constant)
    if len(matrix.tasks) < 3:
        raise EmbarkError("Correlations between tasks need at least three tasks with scores that differ.")
    values = correlations(matrix.values, correlation)
    tree = average(squareform(1 - values, checks=False))
    order = leaves_list(tree)
    positions = None
    if method == "umap":
        positions = _umap_positions(matrix.values, correlation)
        clusters = _hdbscan_clusters(positions)
    else:
        clusters = fcluster(tree, 1 - threshold, criterion="distance")
    numbers = _by_size(clusters, order)
    return TaskCorrelations(
        matrix, correlation, method, values, order, numbers, threshold, positions, constant, notes=matrix.notes
    )


def agreement(x: Array, y: Array, correlation: str = "spearman") -> Agreement:
    """Correlation of two columns over models, with its interval over other models; no narrower than Fisher's."""
    from scipy.stats import rankdata

    check_name("correlation", correlation, CORRELATIONS)
    n = len(x)
    ranks = rankdata(x), rankdata(y)
    value = correlation_of(*ranks) if correlation == "spearman" else correlation_of(x, y)
    if n <= 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Agreement(value, -1.0, 1.0, n)
    outcomes = {"gold": x, "similarity": y, "gold_rank": ranks[0], "similarity_rank": ranks[1]}
    low, high = part_interval(correlation, correlation, outcomes, Observations.apart(n))
    # Few models look alike by luck more often than their spread shows.
    half = 1.96 * np.sqrt((1.06 if correlation == "spearman" else 1.0) / (n - 3))
    middle = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    return Agreement(
        value, min(low, value, float(np.tanh(middle - half))), max(high, value, float(np.tanh(middle + half))), n
    )


def correlations(values: Array, correlation: str = "spearman") -> Array:
    """The correlation of every pair of columns; 0 with a constant one."""
    from scipy.stats import rankdata

    check_name("correlation", correlation, CORRELATIONS)
    columns = np.asarray(rankdata(values, axis=0) if correlation == "spearman" else values, np.float64)
    columns = columns - columns.mean(axis=0)
    length = np.linalg.norm(columns, axis=0)
    columns = np.divide(columns, length, out=np.zeros_like(columns), where=length > 1e-12)
    matrix = np.clip(columns.T @ columns, -1, 1)
    np.fill_diagonal(matrix, 1)
    return np.asarray(matrix)


def _umap_positions(values: Array, correlation: str) -> Array:
    """Tasks on the plane, by the scores (or ranks) of their models."""
    try:
        from umap import UMAP
    except ImportError as error:
        raise EmbarkError("This way to cluster needs umap-learn: pip install 'embark-bench[maps]'") from error
    from scipy.stats import rankdata

    columns = (rankdata(values, axis=0) if correlation == "spearman" else values).T
    neighbors = min(15, len(columns) - 1)
    layout = UMAP(n_neighbors=neighbors, min_dist=0.0, metric="correlation", random_state=SEED, n_jobs=1)
    return np.asarray(layout.fit_transform(columns))


def _hdbscan_clusters(positions: Array) -> Array:
    from sklearn.cluster import HDBSCAN

    smallest = max(2, min(5, len(positions) // 5))
    return np.asarray(HDBSCAN(min_cluster_size=smallest, min_samples=2, copy=True).fit(positions).labels_) + 1


def _by_size(clusters: Array, order: Array) -> Array:
    """Clusters numbered from the largest; equal ones in the order of the leaves. A task alone is in no cluster."""
    sizes = Counter(number for number in clusters[order].tolist() if number != NO_CLUSTER)
    numbers = {cluster: number for number, (cluster, size) in enumerate(sizes.most_common(), 1) if size > 1}
    return np.array([numbers.get(cluster, NO_CLUSTER) for cluster in clusters.tolist()])
