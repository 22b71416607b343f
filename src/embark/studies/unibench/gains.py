"""The gain from scale in each group of tasks, relative to the gain on a task of reference (UniBench, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, grouped
from embark.catalogue import check_name, counted
from embark.settings import Settings
from embark.studies.analysis import Analysis
from embark.studies.model_filter import FEWEST_MODELS, group_means, load_scores, sizes_of
from embark.studies.plotting import COLORS, GREY
from embark.tables import Row, Table, applicable, named, short, signed_points
from embark.tables.drawing import PAGE
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError

AGAINST = ("parameters", "data")
REFERENCES = ("UniBench/imagenet1k", "Imagenet1kZeroShot", "Imagenet1k")  # the first that has scores
DRAWS = 1_000


def gains(
    tasks: Tasks = None,
    *,
    against: str = "data",
    by: str | None = None,
    reference: str | None = None,
    models: Wanted = None,
    where: Sequence[str] = (),
    include: Include = "all",
    settings: Settings | None = None,
) -> Gains:
    """The gain of the most scaled models over the least scaled ones by group, relative to that of a `reference` task.

    `against` is data or parameters; groups are `by` capability, or by category where tasks have none; the reference is
    ImageNet where it is not named. `models` are names or patterns, `where` conditions on their cards:
    "architecture=vit", "data=400..2000" (millions).
    """
    matrix = load_scores(tasks, models, where, include, settings)
    capable = all("capability" in task.tags for task in matrix.tasks)
    return relative_gains(matrix, against, by or ("capability" if capable else "category"), reference)


@dataclass(frozen=True)
class Gain:
    """One group: the difference of its means at both ends of the scale, and both its ratios to the reference's.

    `ratio` is of the differences, as the paper has it; `slope_ratio` of the lines through all models, with its interval
    over other models. Gains are from 0 to 1.
    """

    group: str
    tasks: int
    gain: float
    ratio: float
    slope_ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Gains(Analysis):
    """Groups by what scale buys there, most first; the ends of the scale are models with their sizes in millions."""

    against: str
    by: str
    reference: str
    reference_gain: float
    groups: tuple[Gain, ...]
    least: tuple[str, ...]
    most: tuple[str, ...]
    sizes: tuple[float, float]
    models: int
    left_out: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Gain from scaling {self.against}, relative to {self.reference}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.2 + 0.2 * len(self.groups)

    def table(self) -> Table:
        """One line per group, that of the reference first."""
        rows = [Row((named(self.reference, 34), 1, signed_points(self.reference_gain), 1.0, None, None, None))]
        rows += [
            Row((g.group, g.tasks, signed_points(g.gain), g.ratio, g.slope_ratio, g.low, g.high), "groups")
            for g in self.groups
        ]
        low, high = self.sizes
        ends = f"{_ends(self.least)} ({low:,.0f} million) to {_ends(self.most)} ({high:,.0f} million)"
        notes = {
            f"gain: points of score from {ends}, {high / low:,.0f} times the {self.against}.": True,
            "ratio: of the gain to the reference's; by slope: of the lines through "
            f"{counted(self.models, 'model')}, with 95 % bounds over other models.": True,
            f"{self.reference} loses with scale here, so that ratios say little.": self.reference_gain < 0,
            f"Left out, not all of these models have their tasks: {', '.join(self.left_out)}.": self.left_out,
        }
        columns = (self.by, "tasks", "gain", "ratio", "by slope", "low", "high")
        return Table(columns, tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """The ratio of each group, with that of the slopes and its interval."""
        axes = figure.subplots()
        lines = np.arange(len(self.groups))
        axes.barh(lines, [g.ratio for g in self.groups], color=COLORS[4], height=0.6, label="gain between the ends")
        spread = [(g.slope_ratio - g.low, g.high - g.slope_ratio) for g in self.groups]
        axes.errorbar(
            [g.slope_ratio for g in self.groups], lines, xerr=np.array(spread).T.clip(0), fmt="o", ms=3.5,
            color="black", lw=0.8, label=f"slope over {self.models} models, 95 %",
        )  # fmt: skip
        axes.axvline(1, color=GREY, lw=0.8, ls="--", label=short(self.reference))
        axes.axvline(0, color="black", lw=0.6)
        axes.set_yticks(lines, [f"{g.group} ({g.tasks})" for g in self.groups])
        axes.invert_yaxis()
        axes.set_xlabel(f"gain from scaling {self.against}, as a share of the reference's; in brackets: tasks")
        figure.legend(loc="outside lower center", ncols=3)


def relative_gains(
    matrix: Matrix, against: str = "data", by: str = "capability", reference: str | None = None
) -> Gains:
    """Compare the models at both ends of the scale that have the reference; groups need all of them."""
    check_name("scale of models", against, AGAINST)
    known = [name for name in (reference,) if name] or [name for name in REFERENCES if name in matrix.names]
    if not known:
        raise EmbarkError(f"None of the tasks is ImageNet; name a reference, such as {matrix.names[0]}.")
    check_name("task of reference", known[0], matrix.names)
    sizes = sizes_of(matrix, against)
    scored = ~np.isnan(sizes) & ~np.isnan(matrix.values[:, matrix.names.index(known[0])])
    if scored.sum() < FEWEST_MODELS or np.ptp(sizes[scored]) == 0:
        raise EmbarkError(
            f"Gains need at least {FEWEST_MODELS} models of known and different {against} with a score on {known[0]}; "
            f"there are {int(scored.sum())}."
        )
    matrix, sizes = matrix.only(models=scored), sizes[scored]
    means = group_means(matrix, by)
    counts = {name: len(columns) for name, columns in grouped(matrix.tasks, by).items()}
    base = matrix.values[:, matrix.names.index(known[0])]
    lowest, highest = sizes == sizes.min(), sizes == sizes.max()
    base_gain = _gain(base, lowest, highest)
    if abs(base_gain) < 1e-9:
        raise EmbarkError(f"{known[0]} gains nothing from scale, so that nothing can be relative to it.")
    complete = {name: scores for name, scores in means.items() if not np.isnan(scores).any()}
    groups = []
    for name, scores in complete.items():
        gain = _gain(scores, lowest, highest)
        groups.append(Gain(name, counts[name], gain, gain / base_gain, *_slope_ratio(np.log10(sizes), scores, base)))
    if not groups:
        raise EmbarkError(f"No {by} has the scores of all {len(sizes)} models that have {known[0]}.")
    return Gains(
        against,
        by,
        known[0],
        base_gain,
        tuple(sorted(groups, key=lambda group: -group.ratio)),
        least=tuple(np.array(matrix.models, object)[lowest]),
        most=tuple(np.array(matrix.models, object)[highest]),
        sizes=(float(sizes.min()), float(sizes.max())),
        models=len(sizes),
        left_out=tuple(name for name in means if name not in complete),
        notes=matrix.notes,
    )


def _gain(scores: Array, lowest: Array, highest: Array) -> float:
    return float(scores[highest].mean() - scores[lowest].mean())


def _slope_ratio(x: Array, scores: Array, base: Array) -> tuple[float, float, float]:
    """The ratio of two slopes over the same models, and its 95 % interval by drawing models again."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(x), size=(DRAWS, len(x)))

    def slope(values: Array, rows: Array) -> Array:
        size = x[rows] - x[rows].mean(axis=-1, keepdims=True)
        return np.asarray((size * values[rows]).sum(axis=-1))

    everyone = np.arange(len(x))
    drawn = drawn[np.ptp(x[drawn], axis=1) > 0]
    ratios = slope(scores, drawn) / np.where(slope(base, drawn) == 0, np.nan, slope(base, drawn))
    low, high = np.nanquantile(ratios, (0.025, 0.975)).tolist()
    return float(slope(scores, everyone) / slope(base, everyone)), low, high


def _ends(models: Sequence[str]) -> str:
    return short(models[0]) if len(models) == 1 else f"the mean of {len(models)} models"
