"""The shape of a vector space: how even each side of a task is, how far its sides lie apart, which items are hubs.

All measures are of unit vectors. Large sides are sampled, always the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.evaluators.topk import topk
from embark.run.embedded_task import Embedded, EmbeddedPart, sample
from embark.run.models import Models
from embark.studies.analysis import Analysis
from embark.studies.plotting import color, log_axis
from embark.studies.stored_tasks import SharedArguments, one_stored_task
from embark.tables import Cell, Row, Table, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, Classes, EmbarkError, Gold, Groups, Matches, Qrels, Split, role_of

MOST_ITEMS = 5_000  # items of a side
GRID = 2_000  # items of a side that pairs are drawn from
NEIGHBORS = 10
FOLDS = 5
TEMPERATURE = 2.0  # of the uniformity, as Wang and Isola have it
SEPARATED = 1_000  # items of a side for the test whether a plane separates the sides


def geometry(model: Models, tasks: Tasks, *, subset: str | None = None, **shared: Unpack[SharedArguments]) -> Geometry:
    """Measure the shape of one task's vectors: modality gap, hubs, anisotropy, alignment and uniformity.

    `subset` is one of the task's subsets (the first).
    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    return Geometry(tuple(measure(embedded, subset) for embedded in one_stored_task(model, tasks, **shared)))


@dataclass(frozen=True)
class Shape:
    """How the vectors of one side fill their space."""

    side: str
    modality: str
    items: int  # that were measured
    of: int
    mean_cosine: float  # of two different items
    dimensions: float  # effective ones: the participation ratio of the variances
    isoscore: float
    uniformity: float
    variances: Array  # along the principal axes, largest first


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
class Relation:
    """How two sides lie to each other; a side without a partner is related to itself."""

    left: str
    right: str
    distance: float | None  # of the centers: the modality gap
    separable: float | None  # how often a plane tells the sides apart, on items it was not fitted to
    alignment: float | None
    matching: Array  # cosines of pairs that belong together
    any_pair: Array  # cosines of arbitrary pairs
    hubs: Hubs

    @property
    def arrow(self) -> str:
        """Both sides by name."""
        return f"{self.left} → {self.right}"


@dataclass(frozen=True)
class ModelGeometry:
    """One task as one model embedded it."""

    model: str
    task: str
    subset: str
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Geometry(Analysis):
    """One task as several models embedded it, side by side."""

    models: tuple[ModelGeometry, ...]

    @property
    def title(self) -> str:
        first = self.models[0]
        return f"Geometry of {first.task}{'' if first.subset == 'default' else f', {first.subset}'}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 0.9 + 1.8 * len(self.models)

    def table(self) -> Table:
        """One line per measure, one column per model."""
        rows: list[Row] = []
        first = self.models[0]
        for number, side in enumerate(first.shapes):
            items = f"{side.items:,} of {side.of:,}" if side.items < side.of else f"{side.of:,}"
            section = f"{side.side} ({side.modality}, {items} items)"
            rows += [
                Row((name, *(getattr(model.shapes[number], field) for model in self.models)), section)
                for name, field in SHAPE_ROWS.items()
            ]
        for number, relation in enumerate(first.relations):
            measures = _relation_rows([model.relations[number] for model in self.models])
            rows += [Row((name, *cells), relation.arrow) for name, cells in measures.items() if set(cells) != {None}]
        return Table(("measure", *(short(model.model) for model in self.models)), tuple(rows), NOTES)

    def draw(self, figure: Any) -> None:
        """A line of panels a model: cosines, variance kept by the first axes, popularity of the right side."""
        panels = figure.subplots(len(self.models), 3, squeeze=False, sharex="col", sharey="col")
        for (cosines, axes, popularity), model in zip(panels, self.models, strict=True):
            relation = model.relations[0]
            _draw_cosines(cosines, relation)
            cosines.set_title(short(model.model), fontsize=8, loc="left")
            _draw_variances(axes, [shape for shape in model.shapes if shape.side == role_of(shape.side)])
            _draw_popularity(popularity, relation)
        lowest = min(
            float(values.min(initial=1))
            for model in self.models
            for values in (model.relations[0].matching, model.relations[0].any_pair)
        )
        panels[0, 0].set_xlim(max(-1, lowest - 0.05), 1)
        for panel in panels[:-1].ravel():
            panel.set_xlabel("")
        for panel in panels[1:].ravel():
            if panel.get_legend():
                panel.get_legend().remove()
        for panel in panels[:, 1:].ravel():
            log_axis(panel, np.geomspace(1, panel.get_xlim()[1]))
            panel.set_xlim(left=1)
        log_axis(panels[0, 2], np.geomspace(*panels[0, 2].get_ylim()), "y")


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


def measure(task: Embedded, subset: str | None = None) -> ModelGeometry:
    """The shape of the task's sides and their relations, in one of its subsets (the first)."""
    part = part_of(task, subset)
    unit = {
        side: whole(take(vectors, sample(len(vectors), MOST_ITEMS)), "cosine") for side, vectors in part.vectors.items()
    }
    shapes = tuple(shape(unit[side], side, part.modalities[side], len(part.vectors[side])) for side in part.vectors)
    relations = tuple(_relation(part, unit, *pairs) for pairs in _pairs(part))
    return ModelGeometry(task.model, task.task.name, part.subset, shapes, relations)


def shape(unit: Array, side: str = "", modality: str = "", of: int | None = None) -> Shape:
    """The measures of some unit vectors, (n, dim)."""
    variances = _variances(unit)
    dimensions = participation(variances)
    dim = unit.shape[1]
    isoscore = (dimensions - 1) / (dim - 1) if dim > 1 else 1.0
    return Shape(
        side, modality, len(unit), of or len(unit), mean_cosine(unit), dimensions, isoscore, uniformity(unit), variances
    )


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
    n = len(unit)
    if n < 2:
        return 0.0
    total = 0.0
    for start in range(0, n, 1_000):
        square = 2 - 2 * (unit[start : start + 1_000] @ unit.T).astype(np.float64)
        total += float(np.exp(-TEMPERATURE * square.clip(0)).sum())
    own = np.einsum("nd,nd->n", unit, unit, dtype=np.float64)  # 1, but for a vector that is zero
    total -= float(np.exp(-TEMPERATURE * (2 - 2 * own).clip(0)).sum())
    return float(np.log(total / (n * (n - 1))))


def separable(left: Array, right: Array) -> float | None:
    """How often a plane tells held-out items of two sides apart; items that are equal stay in one fold."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    items = min(len(left), len(right), SEPARATED)
    if items < FOLDS:
        return None
    rows = np.concatenate([side[sample(len(side), items)] for side in (left, right)]).astype(np.float64)
    is_right = np.repeat([0, 1], items)
    equal = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    if equal.max() + 1 < FOLDS:
        return None
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    plane = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    return float(np.mean(cross_val_score(plane, rows, is_right, groups=equal, cv=folds)))


def hubs(left: Array, right: Array, k: int = NEIGHBORS) -> Hubs:
    """Neighbours of the left items on the right; where both are the same matrix, an item is not its own neighbour."""
    same = left is right
    items = len(right)
    k = max(1, min(k, items // 10))
    nearest, _ = topk(left, right, min(k + same, items))
    if same:
        itself = nearest == np.arange(len(nearest))[:, None]
        itself[~itself.any(axis=1), -1] = True  # an equal vector took its place
        nearest = nearest[~itself].reshape(len(nearest), -1)
    times = np.bincount(nearest.ravel(), minlength=items)
    apart = times - times.mean()
    spread = float(np.sqrt((apart**2).mean()))
    skewness = float((apart**3).mean()) / spread**3 if spread > 0 else 0.0
    # By chance, times are binomial.
    tries = len(left) - same
    p = nearest.shape[1] / max(items - same, 1)
    binomial_spread = np.sqrt(tries * p * (1 - p))
    by_chance = float((1 - 2 * p) / binomial_spread) if binomial_spread > 0 else 0.0
    return Hubs(k, times, skewness, by_chance, float((times == 0).mean()), float((1 - p) ** tries))


def _variances(unit: Array) -> Array:
    """Along the principal axes, largest first."""
    centered = (unit - unit.mean(axis=0, dtype=np.float64)).astype(np.float64)
    small = centered if len(centered) >= centered.shape[1] else centered.T
    values = np.linalg.eigvalsh(small.T @ small)[::-1].clip(0) / len(unit)
    return np.asarray(np.pad(values, (0, unit.shape[1] - len(values))))


# ── sides and pairs ──────────────────────────────────────────────────────────────────────────────────────────────────


def part_of(task: Embedded, subset: str | None = None) -> EmbeddedPart:
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


def matches(part: EmbeddedPart) -> tuple[str, str, Array, Array]:
    """Two sides, and positions on them that belong together: left[i] with right[i]."""
    truth = part.truth
    match truth:
        case Qrels():
            relevant = truth.grade > 0
            return "query", "document", truth.query[relevant], truth.document[relevant]
        case Classes():
            first_of_class = np.unique(np.sort(truth.prompt), return_index=True)[1]
            prompt_of_class = np.argsort(truth.prompt, kind="stable")[first_of_class]
            label = first_label(truth.label)
            return "item", "prompt", np.arange(len(label)), prompt_of_class[label]
        case Matches():
            count = min(truth.image.shape[1], truth.text.shape[1])
            return "image", "text", truth.image[:, :count].ravel(), truth.text[:, :count].ravel()
        case Gold():
            similar = (truth.score >= np.quantile(truth.score, 0.75)) & (truth.score > truth.score.min())
            return "left", "right", truth.left[similar], truth.right[similar]
        case Split():
            return "test", "train", *_with_same_label(first_label(truth.test), first_label(truth.train))
        case Groups():
            order = np.argsort(truth.label, kind="stable")
            same = np.flatnonzero(truth.label[order][1:] == truth.label[order][:-1])
            return "item", "item", order[same], order[same + 1]


def _with_same_label(left: Array, right: Array) -> tuple[Array, Array]:
    """Each left item with one right item of its label; those without any are left out."""
    labels, first, count = np.unique(np.sort(right), return_index=True, return_counts=True)
    order = np.argsort(right, kind="stable")
    number = np.searchsorted(labels, left).clip(max=len(labels) - 1)
    known = np.flatnonzero(labels[number] == left)
    number = number[known]
    return known, order[first[number] + known % count[number]]


def _pairs(part: EmbeddedPart) -> list[tuple[str, str, Array, Array]]:
    """The task's own pair of sides, then each corrupted side with the clean one."""
    rows = {side: np.arange(len(vectors)) for side, vectors in part.vectors.items() if side != role_of(side)}
    return [matches(part), *((role_of(side), side, every_row, every_row) for side, every_row in rows.items())]


def _relation(
    part: EmbeddedPart, unit: dict[str, Array], left: str, right: str, left_rows: Array, right_rows: Array
) -> Relation:
    pairs = sample(len(left_rows), MOST_ITEMS)
    a = whole(take(part.vectors[left], left_rows[pairs]), "cosine")
    b = whole(take(part.vectors[right], right_rows[pairs]), "cosine")
    alignment = float(((a - b).astype(np.float64) ** 2).sum(axis=1).mean()) if len(a) else None
    x = unit[left]
    y = unit[right]
    items = min(len(x), len(y), GRID)
    grid = x[sample(len(x), items)] @ y[sample(len(y), items)].T
    same = left == right
    return Relation(
        left,
        right,
        distance=None if same else float(np.linalg.norm(x.mean(axis=0) - y.mean(axis=0))),
        separable=None if same else separable(x, y),
        alignment=alignment,
        matching=np.einsum("nd,nd->n", a, b),
        any_pair=grid[~np.eye(items, dtype=bool)] if same else grid.ravel(),
        hubs=hubs(x, y),
    )


def _relation_rows(relations: Sequence[Relation]) -> dict[str, list[Cell]]:
    """The measures of one relation, a value for each model."""
    return {
        "distance of centres": [relation.distance for relation in relations],
        "separable": [relation.separable for relation in relations],
        "cosine of matches": [_mean(relation.matching) for relation in relations],
        "cosine of any pair": [_mean(relation.any_pair) for relation in relations],
        "alignment": [relation.alignment for relation in relations],
        f"skewness of {relations[0].hubs.k}-occurrence": [relation.hubs.skewness for relation in relations],
        "skewness by chance": [relation.hubs.skewness_by_chance for relation in relations],
        "anti-hubs": [relation.hubs.anti for relation in relations],
        "anti-hubs by chance": [relation.hubs.anti_by_chance for relation in relations],
    }


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_cosines(axes: Any, relation: Relation) -> None:
    for number, (name, values) in enumerate((("matches", relation.matching), ("any pair", relation.any_pair))):
        if len(values):
            axes.hist(
                values, bins=np.linspace(-1, 1, 81), density=True, label=name,
                color=color(number), histtype="stepfilled", alpha=0.5,
            )  # fmt: skip
    axes.set(xlabel=f"cosine, {relation.arrow}", ylabel="density")
    axes.legend(fontsize=7)


def _draw_variances(axes: Any, shapes: Sequence[Shape]) -> None:
    for number, side in enumerate(shapes):
        explained = 100 * np.cumsum(side.variances) / max(float(side.variances.sum()), 1e-300)
        axes.plot(np.arange(1, len(explained) + 1), explained, color=color(2 + number), label=side.side)
    log_axis(axes, np.arange(1, 1 + max((len(side.variances) for side in shapes), default=1)))
    axes.set(ylim=(0, 102), xlabel="principal axes", ylabel="variance kept (%)")
    axes.legend(fontsize=7)


def _draw_popularity(axes: Any, relation: Relation) -> None:
    times = relation.hubs.times
    counts = np.arange(1, max(2, int(times.max()) + 1))
    shares = [100 * float((times >= count).mean()) for count in counts]
    axes.plot(counts, shares, color=color(5), drawstyle="steps-post")
    log_axis(axes, counts)
    log_axis(axes, [share for share in shares if share], "y")
    axes.set(
        xlabel=f"among the {relation.hubs.k} nearest\nat least so often",
        ylabel=f"share of side {relation.right} (%)",
    )
