"""Maps of stored vectors: a few items of each side on the plane, by UMAP, t-SNE or the two main axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from embark.catalogue import UnknownName
from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.results.table import Row, Table, short
from embark.run.embedded_task import Embedded, Part, sample
from embark.studies.draw import color, marker
from embark.studies.geometry import first_label, part_of
from embark.studies.study import Study
from embark.types import Array, Classes, EmbarkError, Groups, Split

METHODS = ("umap", "tsne", "pca")
ITEMS = 500  # of a side
GROUPS = 7  # labels that get a colour; the others are grey
NEIGHBOURS = 15  # UMAP's, and those that trustworthiness asks about


@dataclass(frozen=True)
class Map:
    """Points on the plane, each in a group; `trust` is how far near points were near before (1 is best)."""

    model: str
    task: str
    method: str
    points: Array
    groups: Array
    of: dict[str, int]  # group → items it has in all
    trust: float


def map_of(task: Embedded, by: str = "side", method: str | None = None, subset: str | None = None) -> Map:
    """Where the items of a task lie, grouped by side or by label."""
    part = part_of(task, subset)
    grouped = _by_side(part) if by == "side" else _by_label(part, task.task.name)
    method = method or ("umap" if find_spec("umap") else "tsne")
    unit, groups, of = [], [], dict[str, int]()
    for side, names in grouped.items():
        rows = sample(len(names), ITEMS)
        unit.append(whole(take(part.vectors[side], rows), "cosine"))
        groups.append(names[rows])
        for name, count in zip(*np.unique(names, return_counts=True), strict=True):
            of[str(name)] = of.get(str(name), 0) + int(count)
    rows = np.concatenate(unit)
    points = plane(rows, method)
    return Map(task.model, task.task.name, method, points, np.concatenate(groups), of, _trust(rows, points))


def plane(unit: Array, method: str) -> Array:
    """Unit vectors on the plane, (n, 2); the same ones give the same map."""
    if method not in METHODS:
        raise UnknownName("method for maps", method, METHODS)
    if len(unit) < 5:
        raise EmbarkError(f"A map of {len(unit)} items shows nothing: it needs at least five.")
    start = _axes(unit)
    if method == "pca":
        return start
    if method == "tsne":
        from sklearn.manifold import TSNE

        start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4  # as its authors advise
        model = TSNE(2, perplexity=min(30.0, (len(unit) - 1) / 3), init=start, random_state=0)
        return np.asarray(model.fit_transform(unit))  # of unit vectors, distance ranks as cosine does
    try:
        from umap import UMAP
    except ImportError as error:
        raise EmbarkError("UMAP needs its library: pip install 'embark[maps]'; --method tsne needs none.") from error
    near = min(NEIGHBOURS, len(unit) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed costs its threads is what we want
        return np.asarray(UMAP(n_neighbors=near, metric="cosine", random_state=0).fit_transform(unit))


def study(found: Sequence[Map]) -> Study:
    """Maps of one task by several models, side by side."""
    first, rows = found[0], []
    for name in _order(first):
        shown = int((first.groups == name).sum())
        rows.append(Row((name, first.of[name], shown)))
    name = {"umap": "UMAP", "tsne": "t-SNE", "pca": "PCA (two main axes)"}[first.method]
    trust = ", ".join(f"{short(one.model)} {one.trust:.2f}" for one in found)
    notes = (
        f"{name} of unit vectors; at most {ITEMS} items a side, always the same ones.",
        f"Trustworthiness: {trust} (1: what is near on the map was near before).",
        *(("Distances between far groups, and the sizes of groups, mean little.",) if first.method != "pca" else ()),
    )
    wide = min(len(found), 2)
    high = -(-len(found) // wide)
    table = Table(("group", "items", "shown"), tuple(rows), notes)
    size = (7.0, 1.0 + high * (4.6 if wide == 1 else 3.2))
    return Study(f"{first.task}, {name}", table, partial(_draw, found=found, wide=wide), size)


def _by_side(part: Part) -> dict[str, Array]:
    return {
        side: np.full(len(found), f"{side} ({part.modalities[side]})", object) for side, found in part.vectors.items()
    }


def _by_label(part: Part, task: str) -> dict[str, Array]:
    """The items that have a label, by its name; all but the commonest labels are one group."""
    truth = part.truth
    match truth:
        case Groups() | Classes():
            side, label = "item", first_label(truth.label)
        case Split():
            side, label = "test", first_label(truth.test)
        case _:
            raise EmbarkError(f"The items of {task} have no labels; colour them by side.")
    count = np.bincount(label, minlength=len(truth.names))
    common = {int(at) for at in np.argsort(-count, kind="stable")[:GROUPS] if count[at]}
    rest = f"{int((count > 0).sum()) - len(common)} others"
    names = np.array([str(n) if at in common else rest for at, n in enumerate(truth.names)], object)
    return {side: names[label]}


def _axes(unit: Array) -> Array:
    """Places along the two main axes; signs are fixed, so that a map does not flip."""
    centred = (unit - unit.mean(axis=0)).astype(np.float64)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    found = np.zeros((len(unit), 2))
    found[:, : min(2, len(size))] = left[:, :2] * size[:2]
    return np.asarray(found * np.where(np.abs(found.max(axis=0)) < np.abs(found.min(axis=0)), -1, 1), np.float32)


def _trust(unit: Array, points: Array) -> float:
    from sklearn.manifold import trustworthiness

    return float(trustworthiness(unit, points, n_neighbors=min(NEIGHBOURS, (len(unit) - 1) // 2)))


def _order(found: Map) -> list[str]:
    """Groups, the largest first; the rest of them last."""
    return sorted(found.of, key=lambda name: (name.endswith(" others"), -found.of[name]))


def _draw(figure: Any, found: Sequence[Map], wide: int) -> None:
    panels = figure.subplots(-(-len(found) // wide), wide, squeeze=False)
    for axes, one in zip(panels.ravel(), found, strict=False):
        for number, name in enumerate(_order(one)):
            here = one.points[one.groups == name]
            grey = name.endswith(" others")
            look = {"color": "#bbbbbb" if grey else color(number), "marker": "." if grey else marker(number)}
            axes.scatter(*here.T, **look, s=9, alpha=0.75, linewidths=0, label=name, zorder=1 if grey else 2)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(short(one.model), fontsize=8)
    for axes in panels.ravel()[len(found) :]:
        axes.set_axis_off()
    handles = panels[0, 0].get_legend_handles_labels()
    longest = max(len(name) for name in handles[1])
    columns = max(1, min(4, 100 // (longest + 6)))
    figure.legend(*handles, loc="outside lower center", ncols=columns, fontsize=7, markerscale=2)
