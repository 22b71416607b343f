"""The shape of a vector space: how even each side of a task is, how far its sides lie apart, which items are hubs.

All measures are of unit vectors. Large sides are sampled, always the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.evaluators.topk import topk
from embark.results.table import Cell, Row, Table, short
from embark.run.embedded_task import Embedded, Part, sample
from embark.studies.draw import color
from embark.studies.study import Study
from embark.types import Array, Classes, EmbarkError, Gold, Groups, Matches, Qrels, Split, role_of

MOST = 5_000  # items of a side
NEIGHBOURS = 10
FOLDS = 5
TEMPERATURE = 2.0  # of the uniformity, as Wang and Isola have it
FINE = 1_000  # items of a side that a plane is fitted to


@dataclass(frozen=True)
class Shape:
    """How one side fills its space."""

    side: str
    modality: str
    items: int  # looked at
    of: int
    mean_cosine: float  # of two different items
    dimensions: float  # effective ones: the participation ratio of the variances
    isoscore: float
    uniformity: float
    variances: Array  # along the principal axes, largest first


@dataclass(frozen=True)
class Relation:
    """How two sides lie to each other; a side without a partner is related to itself."""

    left: str
    right: str
    distance: float | None  # of the centres: the modality gap
    separable: float | None  # how often a plane tells the sides apart, on items it was not fitted to
    alignment: float | None
    matching: Array  # cosines of pairs that belong together
    any_pair: Array  # cosines of arbitrary pairs
    hubs: Hubs


@dataclass(frozen=True)
class Hubs:
    """How often each item of the right side is among the k nearest of an item of the left."""

    k: int
    times: Array
    skewness: float
    skewness_by_chance: float
    anti: float  # share that is nobody's neighbour
    anti_by_chance: float


@dataclass(frozen=True)
class Geometry:
    """One task as one model sees it."""

    model: str
    task: str
    subset: str
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]


def geometry(task: Embedded, subset: str | None = None) -> Geometry:
    """The shape of the task's sides and their relations, in one of its subsets (the first)."""
    part = part_of(task, subset)
    unit = {side: whole(take(found, sample(len(found), MOST)), "cosine") for side, found in part.vectors.items()}
    shapes = tuple(shape(unit[side], side, part.modalities[side], len(found)) for side, found in part.vectors.items())
    relations = tuple(_relation(part, unit, *pair) for pair in _pairs(part))
    return Geometry(task.model, task.task.name, part.subset, shapes, relations)


def study(found: Sequence[Geometry]) -> Study:
    """Models side by side; all of one task."""
    first, rows = found[0], []
    for at, side in enumerate(first.shapes):
        seen = f"{side.items:,} of {side.of:,}" if side.items < side.of else f"{side.of:,}"
        section = f"{side.side} ({side.modality}, {seen} items)"
        for name, field in SHAPE_ROWS.items():
            rows.append(Row((name, *(getattr(one.shapes[at], field) for one in found)), section))
    for at, pair in enumerate(first.relations):
        for name, cells in _relation_rows([one.relations[at] for one in found]):
            rows.append(Row((name, *cells), _arrow(pair)))
    where = f"{first.task}{'' if first.subset == 'default' else f', {first.subset}'}"
    table = Table(("measure", *(short(one.model) for one in found)), tuple(rows), NOTES)
    return Study(f"Geometry of {where}", table, partial(_draw, found=found), (7.0, 0.6 + 2.5 * len(found)))


SHAPE_ROWS = {
    "mean cosine": "mean_cosine",
    "effective dimensions": "dimensions",
    "IsoScore": "isoscore",
    "uniformity": "uniformity",
}
NOTES = (
    "mean cosine: of two different items; 0 in an even space (anisotropy).",
    "effective dimensions: participation ratio of the principal variances; IsoScore: it on a scale 0–1.",
    "Both come out too low where there are not many more items than dimensions.",
    "uniformity: log of the mean of exp(-2 distance²) over pairs; lower is more even.",
    "distance of centres: the modality gap. separable: by a plane, on held-out items; 0.5 is chance.",
    "alignment: mean squared distance of pairs that belong together; lower is better.",
    "skewness of k-occurrence: how unequally the places among the k nearest are shared (hubness).",
    "anti-hubs: share of items that are nobody's neighbour. By chance: were neighbours drawn by lot.",
)


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shape(unit: Array, side: str = "", modality: str = "", of: int | None = None) -> Shape:
    """The measures of some unit vectors, (n, dim)."""
    variances = _variances(unit)
    ratio = participation(variances)
    dim = unit.shape[1]
    score = (ratio - 1) / (dim - 1) if dim > 1 else 1.0
    even = uniformity(unit)
    return Shape(side, modality, len(unit), of or len(unit), mean_cosine(unit), ratio, score, even, variances)


def mean_cosine(unit: Array) -> float:
    """Over all pairs of different rows; needs no matrix of them."""
    n = len(unit)
    total = unit.sum(axis=0, dtype=np.float64)
    own = float(np.einsum("nd,nd->", unit, unit, dtype=np.float64))
    return float((total @ total - own) / (n * (n - 1))) if n > 1 else 1.0


def participation(variances: Array) -> float:
    """(Σλ)² / Σλ²: how many dimensions of equal variance would be as even.

    IsoScore's formula comes down to (this - 1) / (dim - 1).
    """
    squares = float((variances**2).sum())
    return float(variances.sum()) ** 2 / squares if squares > 0 else 1.0


def uniformity(unit: Array) -> float:
    """log E exp(-2 |x - y|²) over pairs of different rows."""
    n, total = len(unit), 0.0
    if n < 2:
        return 0.0
    own = np.einsum("nd,nd->n", unit, unit, dtype=np.float64)  # 1, but for a vector that is zero
    for start in range(0, n, 1_000):
        square = 2 - 2 * (unit[start : start + 1_000] @ unit.T).astype(np.float64)
        total += float(np.exp(-TEMPERATURE * square.clip(0)).sum())
    total -= float(np.exp(-TEMPERATURE * (2 - 2 * own).clip(0)).sum())
    return float(np.log(total / (n * (n - 1))))


def separable(left: Array, right: Array) -> float | None:
    """How often a plane tells held-out items of two sides apart; items that are equal stay in one fold."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    few = min(len(left), len(right), FINE)
    left, right = (side[sample(len(side), few)] for side in (left, right))
    if few < FOLDS:
        return None
    rows, side = np.concatenate([left, right]).astype(np.float64), np.repeat([0, 1], few)
    same = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    if same.max() + 1 < FOLDS:
        return None
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    plane = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    return float(np.mean(cross_val_score(plane, rows, side, groups=same, cv=folds)))


def hubs(left: Array, right: Array, k: int = NEIGHBOURS) -> Hubs:
    """Neighbours of the left items on the right; where both are the same matrix, an item is not its own neighbour."""
    itself, items = left is right, len(right)
    k = max(1, min(k, items // 10))
    near, _ = topk(left, right, min(k + itself, items))
    if itself:
        own = near == np.arange(len(near))[:, None]
        own[~own.any(axis=1), -1] = True  # an equal vector took its place
        near = near[~own].reshape(len(near), -1)
    times = np.bincount(near.ravel(), minlength=items)
    apart = times - times.mean()
    spread = float(np.sqrt((apart**2).mean()))
    skewness = float((apart**3).mean()) / spread**3 if spread > 0 else 0.0
    tries, p = len(left) - itself, near.shape[1] / max(items - itself, 1)  # by chance, times are binomial
    spread = np.sqrt(tries * p * (1 - p))
    by_chance = float((1 - 2 * p) / spread) if spread > 0 else 0.0
    return Hubs(k, times, skewness, by_chance, float((times == 0).mean()), float((1 - p) ** tries))


def _variances(unit: Array) -> Array:
    """Along the principal axes, largest first."""
    centred = (unit - unit.mean(axis=0, dtype=np.float64)).astype(np.float64)
    small = centred if len(centred) >= centred.shape[1] else centred.T
    values = np.linalg.eigvalsh(small.T @ small)[::-1].clip(0) / len(unit)
    return np.asarray(np.pad(values, (0, unit.shape[1] - len(values))))


# ── sides and pairs ──────────────────────────────────────────────────────────────────────────────────────────────────


def part_of(task: Embedded, subset: str | None = None) -> Part:
    """The part of that subset, or the first."""
    for part in task.parts:
        if subset in (None, part.subset):
            return part
    raise EmbarkError(
        f"{task.task.name} has no subset '{subset}', but {', '.join(part.subset for part in task.parts)}."
    )


def first_label(label: Array) -> Array:
    """The first label of each item."""
    return label if label.ndim == 1 else label.argmax(axis=1)


def matches(part: Part) -> tuple[str, str, Array, Array]:
    """Two sides, and positions on them that belong together: left[i] with right[i]."""
    truth = part.truth
    match truth:
        case Qrels():
            good = truth.grade > 0
            return "query", "document", truth.query[good], truth.document[good]
        case Classes():
            of_class = np.argsort(truth.prompt, kind="stable")[np.unique(np.sort(truth.prompt), return_index=True)[1]]
            label = first_label(truth.label)
            return "item", "prompt", np.arange(len(label)), of_class[label]
        case Matches():
            few = min(truth.image.shape[1], truth.text.shape[1])
            return "image", "text", truth.image[:, :few].ravel(), truth.text[:, :few].ravel()
        case Gold():
            good = truth.score >= np.quantile(truth.score, 0.75)
            return "left", "right", truth.left[good], truth.right[good]
        case Split():
            return "test", "train", *_of_one_label(first_label(truth.test), first_label(truth.train))
        case Groups():
            order = np.argsort(truth.label, kind="stable")
            same = np.flatnonzero(truth.label[order][1:] == truth.label[order][:-1])
            return "item", "item", order[same], order[same + 1]


def _of_one_label(left: Array, right: Array) -> tuple[Array, Array]:
    """Each left item with one right item of its label; those without any are left out."""
    names, first, count = np.unique(np.sort(right), return_index=True, return_counts=True)
    order, place = np.argsort(right, kind="stable"), np.searchsorted(names, left).clip(max=len(names) - 1)
    known = np.flatnonzero(names[place] == left)
    place = place[known]
    return known, order[first[place] + known % count[place]]


def _pairs(part: Part) -> list[tuple[str, str, Array, Array]]:
    """The task's own pair of sides, then each corrupted side with the clean one."""
    variants = [side for side in part.vectors if side != role_of(side)]
    every = {side: np.arange(len(part.vectors[side])) for side in variants}
    return [matches(part), *((role_of(side), side, every[side], every[side]) for side in variants)]


def _relation(part: Part, unit: dict[str, Array], left: str, right: str, one: Array, other: Array) -> Relation:
    both = sample(len(one), MOST)
    a = whole(take(part.vectors[left], one[both]), "cosine")
    b = whole(take(part.vectors[right], other[both]), "cosine")
    x, y = unit[left], unit[right]
    few = min(len(x), len(y), 2_000)
    grid = x[sample(len(x), few)] @ y[sample(len(y), few)].T
    apart = None if left == right else float(np.linalg.norm(x.mean(axis=0) - y.mean(axis=0)))
    alignment = float(((a - b).astype(np.float64) ** 2).sum(axis=1).mean()) if len(a) else None
    plane = None if left == right else separable(x, y)
    cosines = np.einsum("nd,nd->n", a, b)
    any_pair = grid[~np.eye(few, dtype=bool)] if left == right else grid.ravel()
    return Relation(left, right, apart, plane, alignment, cosines, any_pair, hubs(x, y))


def _relation_rows(found: Sequence[Relation]) -> list[tuple[str, list[Cell]]]:
    rows: dict[str, list[Cell]] = {
        "distance of centres": [one.distance for one in found],
        "separable": [one.separable for one in found],
        "cosine of matches": [float(one.matching.mean()) if len(one.matching) else None for one in found],
        "cosine of any pair": [float(one.any_pair.mean()) if len(one.any_pair) else None for one in found],
        "alignment": [one.alignment for one in found],
        f"skewness of {found[0].hubs.k}-occurrence": [one.hubs.skewness for one in found],
        "skewness by chance": [one.hubs.skewness_by_chance for one in found],
        "anti-hubs": [one.hubs.anti for one in found],
        "anti-hubs by chance": [one.hubs.anti_by_chance for one in found],
    }
    return [(name, cells) for name, cells in rows.items() if any(cell is not None for cell in cells)]


def _arrow(pair: Relation) -> str:
    return f"{pair.left} → {pair.right}"


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw(figure: Any, found: Sequence[Geometry]) -> None:
    """A line of panels a model: cosines, variance kept by the first axes, popularity of the right side."""
    panels = figure.subplots(len(found), 3, squeeze=False)
    for (cosines, axes, popular), one in zip(panels, found, strict=True):
        pair = one.relations[0]
        for number, (name, values) in enumerate((("matches", pair.matching), ("any pair", pair.any_pair))):
            if len(values):
                look = {"color": color(number), "histtype": "stepfilled", "alpha": 0.5}
                cosines.hist(values, bins=np.linspace(-1, 1, 81), density=True, label=name, **look)
        low = min(float(values.min(initial=1)) for values in (pair.matching, pair.any_pair))
        cosines.set_xlim(max(-1, low - 0.05), 1)
        cosines.set(xlabel=f"cosine, {_arrow(pair)}", ylabel="density")
        cosines.set_title(short(one.model), fontsize=8, loc="left")
        for number, side in enumerate(each for each in one.shapes if each.side == role_of(each.side)):
            kept = 100 * np.cumsum(side.variances) / max(float(side.variances.sum()), 1e-300)
            axes.plot(np.arange(1, len(kept) + 1), kept, color=color(2 + number), label=side.side)
        axes.set(xscale="log", ylim=(0, 102), xlabel="principal axes", ylabel="variance kept (%)")
        times = pair.hubs.times
        most = np.arange(1, max(2, int(times.max()) + 1))
        popular.plot(most, [100 * float((times >= at).mean()) for at in most], color=color(5), drawstyle="steps-post")
        popular.set(xscale="log", yscale="log", ylabel=f"share of side {pair.right} (%)")
        popular.set_xlabel(f"among the {pair.hubs.k} nearest\nat least so often")
        for panel in (cosines, axes):
            panel.legend(fontsize=7)
    for panel in panels.ravel():
        panel.xaxis.label.set_size(8)
        panel.yaxis.label.set_size(8)
        panel.tick_params(labelsize=7)
