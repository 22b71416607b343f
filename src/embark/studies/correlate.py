"""Which tasks tell the same story: correlations of tasks over models, and clusters of tasks that rank models alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix
from embark.catalogue import UnknownName
from embark.evaluators.sts import correlation
from embark.results.table import Row, Table, named
from embark.stats.statistics import interval
from embark.studies.draw import brief, color
from embark.studies.study import Study
from embark.types import Array, EmbarkError

KINDS = ("spearman", "pearson")
METHODS = ("hierarchical", "umap")
THRESHOLD = 0.8  # mean correlation at which clusters are joined
ALONE = 0  # the number of tasks that are in no cluster
PAIRS = 10
SEED = 42


@dataclass(frozen=True)
class Agreement:
    """A correlation over n models with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


def agreement(x: Array, y: Array, kind: str = "spearman") -> Agreement:
    """Correlation of two columns over models, the models resampled; no narrower than Fisher's interval."""
    from scipy.stats import rankdata

    if kind not in KINDS:
        raise UnknownName("correlation", kind, KINDS)
    n, rank = len(x), (rankdata(x), rankdata(y))
    value = correlation(*rank) if kind == "spearman" else correlation(x, y)
    if n <= 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Agreement(value, -1.0, 1.0, n)
    low, high = interval(
        kind, kind, {"gold": x, "similarity": y, "gold_rank": rank[0], "similarity_rank": rank[1]}, seed=SEED
    )
    # Few models look alike by luck more often than resampling them shows.
    half = 1.96 * np.sqrt((1.06 if kind == "spearman" else 1.0) / (n - 3))
    middle = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    return Agreement(
        value, min(low, value, float(np.tanh(middle - half))), max(high, value, float(np.tanh(middle + half))), n
    )


def correlations(values: Array, kind: str = "spearman") -> Array:
    """Of every pair of columns; 0 with a constant one."""
    from scipy.stats import rankdata

    if kind not in KINDS:
        raise UnknownName("correlation", kind, KINDS)
    columns = np.asarray(rankdata(values, axis=0) if kind == "spearman" else values, np.float64)
    columns = columns - columns.mean(axis=0)
    length = np.linalg.norm(columns, axis=0)
    columns = np.divide(columns, length, out=np.zeros_like(columns), where=length > 1e-12)
    found = np.clip(columns.T @ columns, -1, 1)
    np.fill_diagonal(found, 1)
    return np.asarray(found)


@dataclass(frozen=True)
class Correlated:
    """Tasks × tasks: their correlations, the order of the dendrogram's leaves, and a cluster number for each task."""

    matrix: Matrix
    kind: str
    method: str
    values: Array
    order: Array
    cluster: Array
    threshold: float = THRESHOLD
    positions: Array | None = None  # on a map, where the clusters were found on one
    constant: tuple[str, ...] = ()  # tasks that were left out, since they rank no models

    def study(self, pairs: int = PAIRS) -> Study:
        """Each task with its nearest, cluster by cluster; the strongest and lowest pairs; a heat map or a map."""
        title = f"{self.kind.capitalize()} correlation of {len(self.matrix.tasks)} tasks"
        title += f" over {len(self.matrix.models)} models"
        many = len(self.matrix.tasks)
        side = max(7.0, 0.115 * many + 2.5)
        if self.positions is not None:
            return Study(title, self._table(pairs), self._map, (9.0, 6.5))
        return Study(title, self._table(pairs), self._heat, (side, side - 1))

    def _table(self, pairs: int) -> Table:
        rows: list[Row] = []
        apart = self.values - 2 * np.eye(len(self.values))
        for number in sorted(set(self.cluster.tolist()), key=lambda c: (c == ALONE, c)):
            members = [at for at in self.order if self.cluster[at] == number]
            section = self._about(number, members)
            rows += [self._row(at, int(apart[at].argmax()), section) for at in members]
        first, second = np.triu_indices(len(self.values), 1)
        by_strength = np.argsort(-self.values[first, second], kind="stable")
        shown = min(pairs, len(by_strength) // 2)
        for section, chosen in (
            ("strongest pairs", by_strength[:shown]), ("lowest pairs", by_strength[::-1][:shown])
        ):  # fmt: skip
            rows += [self._row(int(first[at]), int(second[at]), section) for at in chosen]
        between = self.values[first, second]
        how = "UMAP and HDBSCAN" if self.method == "umap" else f"average linkage, joined at mean r ≥ {self.threshold:g}"
        notes = [
            f"{self.kind.capitalize()} r over {len(self.matrix.models)} models that have every task; "
            "low and high: 95 %, models resampled.",
            f"Clusters: {how}. There, each task stands with its nearest.",
            f"All {len(between):,} pairs: median r {np.median(between):.2f}, "
            f"{100 * (between > 0.9).mean():.0f} % above 0.9, {100 * (between < 0).mean():.0f} % below 0.",
        ]
        if self.constant:
            notes.append(f"Left out, with one score for all models: {', '.join(self.constant)}.")
        return Table(("task", "with", "r", "low", "high"), tuple(rows), tuple(notes))

    def _row(self, at: int, other: int, section: str) -> Row:
        names, scores = self.matrix.names, self.matrix.values
        found = agreement(scores[:, at], scores[:, other], self.kind)
        return Row((named(names[at], 36), named(names[other], 36), found.value, found.low, found.high), section)

    def _about(self, number: int, members: Sequence[int]) -> str:
        kinds = Counter(self.matrix.tasks[at].category for at in members).most_common()
        said = ", ".join(f"{count} {kind}" for kind, count in kinds[:3]) + (", …" if len(kinds) > 3 else "")
        return f"{'in no cluster' if number == ALONE else f'cluster {number}'}: {said}"

    def _heat(self, figure: Any) -> None:
        from matplotlib.patches import Patch, Rectangle

        tasks, order = self.matrix.tasks, self.order
        kinds = list(dict.fromkeys(task.category for task in tasks))
        strip, axes = figure.subplots(1, 2, width_ratios=[1, 60], sharey=True)
        image = axes.imshow(
            self.values[np.ix_(order, order)], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest", aspect="auto"
        )
        bands = np.array([[kinds.index(tasks[at].category)] for at in order])
        strip.imshow(_painted(bands), aspect="auto", interpolation="nearest")
        size = 6 if len(tasks) > 40 else 7
        strip.set_yticks(range(len(order)), [brief(tasks[at].name) for at in order], fontsize=size)
        strip.set_xticks([])
        axes.set_xticks(range(len(order)), [brief(tasks[at].name) for at in order], fontsize=size, rotation=90)
        axes.tick_params(left=False, labelleft=False)
        for one in (strip, axes):
            one.grid(False)
            for spine in one.spines.values():
                spine.set_visible(False)
        for number in sorted(set(self.cluster.tolist()) - {ALONE}):
            first, *others = np.flatnonzero(self.cluster[order] == number)  # side by side: a branch of the tree
            side = 1 + len(others)
            axes.add_patch(Rectangle((first - 0.5, first - 0.5), side, side, fill=False, lw=1, clip_on=False))
        figure.colorbar(image, ax=axes, shrink=0.5, label=f"{self.kind.capitalize()} r", pad=0.01)
        handles = [Patch(color=color(at), label=kind) for at, kind in enumerate(kinds)]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(kinds)), fontsize=8)

    def _map(self, figure: Any) -> None:
        assert self.positions is not None
        axes, tasks = figure.subplots(), self.matrix.tasks
        for at, kind in enumerate(dict.fromkeys(task.category for task in tasks)):
            rows = [row for row, task in enumerate(tasks) if task.category == kind]
            axes.scatter(*self.positions[rows].T, s=22, color=color(at), label=kind, edgecolor="white", lw=0.4)
        for number in sorted(set(self.cluster.tolist()) - {ALONE}):
            members = self.positions[self.cluster == number]
            above = (float(np.median(members[:, 0])), float(members[:, 1].max()))
            axes.annotate(
                f"cluster {number}", above, (0, 6), textcoords="offset points", fontsize=8, ha="center",
                bbox={"fc": "white", "ec": "none", "pad": 0.5, "alpha": 0.7},
            )  # fmt: skip
        axes.set_xlabel("UMAP 1 (no unit)")
        axes.set_ylabel("UMAP 2 (no unit)")
        figure.legend(loc="outside lower center", ncols=4, fontsize=8)


def correlate(
    matrix: Matrix, kind: str = "spearman", method: str = "hierarchical", threshold: float = THRESHOLD
) -> Correlated:
    """Correlate tasks over the models that have them all, and find the clusters; constant ones are left out."""
    from scipy.cluster.hierarchy import average, fcluster, leaves_list
    from scipy.spatial.distance import squareform

    if method not in METHODS:
        raise UnknownName("way to cluster", method, METHODS)
    matrix = matrix.complete()
    constant = tuple(
        name for name, spread in zip(matrix.names, np.ptp(matrix.values, axis=0), strict=True) if not spread
    )
    matrix = matrix.only(tasks=lambda task: task.name not in constant)
    if len(matrix.tasks) < 3:
        raise EmbarkError("Correlations between tasks need at least three tasks with scores that differ.")
    values = correlations(matrix.values, kind)
    tree = average(squareform(1 - values, checks=False))
    order = leaves_list(tree)
    if method == "umap":
        positions, cluster = _on_a_map(matrix.values, kind)
    else:
        positions, cluster = None, fcluster(tree, 1 - threshold, criterion="distance")
    return Correlated(matrix, kind, method, values, order, _numbered(cluster, order), threshold, positions, constant)


def _on_a_map(values: Array, kind: str) -> tuple[Array, Array]:
    """Tasks as vectors of their models' scores (or ranks), laid out by UMAP and clustered there by HDBSCAN."""
    try:
        from umap import UMAP
    except ImportError as error:
        raise EmbarkError("This way to cluster needs umap-learn: pip install 'embark[maps]'") from error
    from scipy.stats import rankdata
    from sklearn.cluster import HDBSCAN

    columns = (rankdata(values, axis=0) if kind == "spearman" else values).T
    near = min(15, len(columns) - 1)
    layout = UMAP(n_neighbors=near, min_dist=0.0, metric="correlation", random_state=SEED, n_jobs=1)
    positions = np.asarray(layout.fit_transform(columns))
    found = HDBSCAN(min_cluster_size=max(2, min(5, len(columns) // 5)), min_samples=2, copy=True).fit(positions)
    return positions, np.asarray(found.labels_) + 1


def _numbered(cluster: Array, order: Array) -> Array:
    """Clusters numbered from the largest; those of one size as they come in the order of leaves. One is no cluster."""
    sizes = Counter(number for number in cluster[order].tolist() if number != ALONE)
    new = {number: at for at, (number, size) in enumerate(sizes.most_common(), 1) if size > 1}
    return np.array([new.get(number, ALONE) for number in cluster.tolist()])


def _painted(numbers: Array) -> Array:
    """Group numbers as an image of their colours."""
    red_green_blue = [[int(color(at)[i : i + 2], 16) / 255 for i in (1, 3, 5)] for at in range(int(numbers.max()) + 1)]
    return np.array(red_green_blue)[numbers]
