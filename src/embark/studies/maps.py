"""Maps of stored vectors: a few items of each side on the plane, by UMAP, t-SNE or the two main axes."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Unpack

import numpy as np

from embark.catalogue import check_name
from embark.engine.progress import progress
from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.run.embedded_task import Embedded, EmbeddedPart, sample
from embark.run.models import Models
from embark.studies.analysis import Analysis
from embark.studies.geometry import first_label, part_of
from embark.studies.plotting import SMALL_POINTS, color, label_points, legend_below, marker, panels_across, subplots
from embark.studies.stored_tasks import SharedArguments, one_stored_task
from embark.tables import Row, Table, applicable, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, Classes, EmbarkError, Groups, Split

METHODS = {"umap": "UMAP", "tsne": "t-SNE", "pca": "PCA (two main axes)"}
GROUPINGS = ("side", "label")
ITEMS = 500  # of a side
LABELS = 12  # labels that get a color and a marker; the others are grey
IN_LEGEND = 8  # groups that a legend names; of more, the names stand on the map
OTHERS = " others"  # the end of the name of the group of all other labels
REST = {"color": "#bbbbbb", "marker": ".", "zorder": 1}  # the look of that group
NEIGHBORS = 15  # UMAP's, and those that trustworthiness asks about


def map(
    model: Models,
    tasks: Tasks,
    *,
    by: str = "side",
    method: str | None = None,
    subset: str | None = None,
    **shared: Unpack[SharedArguments],
) -> Maps:
    """Lay out one task's vectors on the plane, in groups `by` side or label.

    `method` is umap, tsne or pca (by default umap where it is installed, else tsne); `subset` is one of the task's
    subsets (the first).
    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    _check(by, method)
    stored = one_stored_task(model, tasks, **shared)
    layouts = []
    with progress("laying out maps", len(stored), shared.get("show_progress", True), "maps") as advance:
        for embedded in stored:
            layouts.append(lay_out(embedded, by, method, subset))
            advance(1)
    return Maps(tuple(layouts))


@dataclass(frozen=True)
class ModelMap:
    """Points on the plane, each in a group; `trust` is how far near points were near before (1 is best)."""

    model: str
    task: str
    method: str
    points: Array
    groups: Array
    sizes: dict[str, int]  # group → items it has in all
    trust: float

    @property
    def group_names(self) -> list[str]:
        """Groups, the largest first; all other labels last."""
        return sorted(self.sizes, key=lambda name: (name.endswith(OTHERS), -self.sizes[name]))


@dataclass(frozen=True)
class Maps(Analysis):
    """Maps of one task by several models, side by side."""

    models: tuple[ModelMap, ...]

    @property
    def title(self) -> str:
        return f"{self.models[0].task}, {METHODS[self.models[0].method]}"

    @property
    def size(self) -> tuple[float, float]:
        rows, columns = self._panels
        return (5.0, 4.8) if columns == 1 and rows == 1 else (PAGE, 1.0 + 3.2 * rows)

    def table(self) -> Table:
        """One line per group: its items, and how many of them are shown."""
        first = self.models[0]
        rows = [Row((name, first.sizes[name], int((first.groups == name).sum()))) for name in first.group_names]
        trust = ", ".join(f"{short(model.model)} {model.trust:.2f}" for model in self.models)
        notes = {
            f"{METHODS[first.method]} of unit vectors; at most {ITEMS} items per side, always the same ones.": True,
            f"Trustworthiness: {trust} (1: what is near on the map was near before).": True,
            "Distances between far groups, and the sizes of groups, mean little.": first.method != "pca",
        }
        return Table(("group", "items", "shown"), tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """One panel per model, one color per group."""
        panels = subplots(figure, self._panels, len(self.models))
        for axes, model in zip(panels, self.models, strict=True):
            for number, name in enumerate(model.group_names):
                colored = {"color": color(number), "marker": marker(number), "zorder": 2}
                style = REST if name.endswith(OTHERS) else colored
                points = model.points[model.groups == name]
                axes.scatter(*points.T, **style, s=9, alpha=0.75, linewidths=0, label=name)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(True)
            axes.set_title(f"{short(model.model)}, n = {len(model.points):,}, trust {model.trust:.2f}")
        legend_below(figure, *panels[0].get_legend_handles_labels()[::-1])
        for axes, model in zip(panels, self.models, strict=True):
            if len(model.group_names) > IN_LEGEND:
                named = [name for name in model.group_names if not name.endswith(OTHERS)]
                middles = np.array([_middle(model.points[model.groups == name]) for name in named])
                names = [short(name, 24) for name in named]
                label_points(axes, middles[:, 0], middles[:, 1], names, model.points, size=SMALL_POINTS, drop=True)

    @property
    def _panels(self) -> tuple[int, int]:
        """Rows and columns of panels."""
        return panels_across(len(self.models), 2)


def lay_out(task: Embedded, by: str = "side", method: str | None = None, subset: str | None = None) -> ModelMap:
    """The items of a task on the plane, grouped by side or by label."""
    from sklearn.manifold import trustworthiness

    _check(by, method)
    part = part_of(task, subset)
    names_of = _sides(part) if by == "side" else _labels(part, task.task.name)
    method = method or ("umap" if find_spec("umap") else "tsne")
    rows = {side: sample(len(names), ITEMS) for side, names in names_of.items()}
    unit = np.concatenate([whole(take(part.vectors[side], chosen), "cosine") for side, chosen in rows.items()])
    groups = np.concatenate([names_of[side][chosen] for side, chosen in rows.items()])
    sizes = Counter(name for names in names_of.values() for name in sorted(names))
    points = plane(unit, method)
    trust = float(trustworthiness(unit, points, n_neighbors=min(NEIGHBORS, (len(unit) - 1) // 2)))
    return ModelMap(task.model, task.task.name, method, points, groups, sizes, trust)


def plane(unit: Array, method: str) -> Array:
    """Unit vectors on the plane, (n, 2); the same vectors give the same map."""
    if len(unit) < 5:
        raise EmbarkError(f"A map of {len(unit)} items shows nothing: it needs at least five.")
    start = _main_axes(unit)
    if method == "pca":
        return start
    if method == "tsne":
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits

        start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4  # as its authors advise
        model = TSNE(2, perplexity=min(30.0, (len(unit) - 1) / 3), init=start, random_state=0)
        with threadpool_limits(1, "openmp"):  # on a busy machine its threads wait for each other, ten times as long
            return np.asarray(model.fit_transform(unit))  # of unit vectors, distance ranks as cosine does
    try:
        from umap import UMAP
    except ImportError as error:
        raise EmbarkError("UMAP needs umap-learn: pip install 'embark-bench[maps]'; tsne needs nothing.") from error
    neighbors = min(NEIGHBORS, len(unit) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed costs its threads is what we want
        return np.asarray(UMAP(n_neighbors=neighbors, metric="cosine", random_state=0).fit_transform(unit))


def _middle(points: Array) -> Array:
    """The point that is nearest to all others: a middle that lies among none of them would mislead."""
    apart = np.linalg.norm(points[:, None] - points, axis=2).sum(axis=1)
    return np.asarray(points[int(apart.argmin())])


def _check(by: str, method: str | None) -> None:
    check_name("grouping of a map", by, GROUPINGS)
    if method is not None:
        check_name("method for maps", method, METHODS)


def _sides(part: EmbeddedPart) -> dict[str, Array]:
    """The items of every side, by the side's name."""
    return {
        side: np.full(len(vectors), f"{side} ({part.modalities[side]})", object)
        for side, vectors in part.vectors.items()
    }


def _labels(part: EmbeddedPart, task: str) -> dict[str, Array]:
    """The items that have a label, by its name; all but the commonest labels are one group."""
    truth = part.truth
    match truth:
        case Groups() | Classes():
            side, label = "item", first_label(truth.label)
        case Split():
            side, label = "test", first_label(truth.test)
        case _:
            raise EmbarkError(f"The items of {task} have no labels; group them by side.")
    count = np.bincount(label, minlength=len(truth.names))
    present = int((count > 0).sum())
    colored = present if present <= LABELS + 1 else LABELS  # a single other one would be no group
    common = {int(number) for number in np.argsort(-count, kind="stable")[:colored]}
    others = f"{present - colored}{OTHERS}"
    names = np.array([str(name) if number in common else others for number, name in enumerate(truth.names)], object)
    return {side: names[label]}


def _main_axes(unit: Array) -> Array:
    """Places along the two main axes; signs are fixed, so that a map does not flip."""
    centered = (unit - unit.mean(axis=0)).astype(np.float64)
    left, size, _ = np.linalg.svd(centered, full_matrices=False)
    places = np.zeros((len(unit), 2))
    places[:, : min(2, len(size))] = left[:, :2] * size[:2]
    flipped = np.abs(places.max(axis=0)) < np.abs(places.min(axis=0))
    return np.asarray(places * np.where(flipped, -1, 1), np.float32)
