"""The field by groups of tasks: its mean, the best and the worst model, and how far they differ in scale.

UniBench's Tables 1 (by type) and 5 (by capability), for any set of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, grouped
from embark.settings import Settings
from embark.studies.analysis import Analysis
from embark.studies.model_filter import fact, group_means, load_scores
from embark.studies.plotting import COLORS
from embark.tables import Exact, Note, Row, Table, applicable, named, points, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError

OVERALL = "Overall"


def extremes(
    tasks: Tasks = None,
    *,
    by: str = "category",
    models: Wanted = None,
    where: Sequence[str] = (),
    include: Include = "all",
    settings: Settings | None = None,
) -> Extremes:
    """The mean over models, the best and the worst of them in every group of tasks, and the ratio of their scales.

    `models` are names or patterns, `where` conditions on their cards: "architecture=vit", "data=400..2000" (millions).
    """
    return group_extremes(load_scores(tasks, models, where, include, settings), by)


@dataclass(frozen=True)
class Extreme:
    """A group of tasks over the models that have all of them; ratios are best to worst, None where not known."""

    group: str
    tasks: int
    models: int
    mean: float
    best: str
    best_score: float
    worst: str
    worst_score: float
    data_ratio: float | None
    parameters_ratio: float | None


@dataclass(frozen=True)
class Extremes(Analysis):
    """Groups in the order of the tasks, then all of them."""

    by: str
    groups: tuple[Extreme, ...]
    left_out: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Mean, best and worst model by {self.by}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.0 + 0.24 * len(self.groups)

    def table(self) -> Table:
        """One line per group, as in the paper's tables."""
        rows = [
            Row(
                (
                    g.group, g.models, points(g.mean), named(g.best, 26), points(g.best_score), _times(g.data_ratio),
                    _times(g.parameters_ratio), points(g.worst_score), named(g.worst, 26),
                ),
                total=g.group == OVERALL,
            )
            for g in self.groups
        ]  # fmt: skip
        notes = {
            Note(
                "mean: over the models that have all tasks of the group, each the mean of its tasks.", column="mean"
            ): True,
            "data, size: training examples and parameters of the best model, as a multiple of the worst one's.": True,
            f"{OVERALL}: the mean of the groups, of models that have them all.": True,
            f"Left out, no model has all of their tasks: {', '.join(self.left_out)}.": self.left_out,
        }
        columns = (self.by, "models", "mean", "best model", "best", "data ×", "size ×", "worst", "worst model")
        return Table(columns, tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """A line per group from the worst to the best model, with the mean."""
        axes = figure.subplots()
        lines = np.arange(len(self.groups))
        worst, mean, best = 100 * np.array([(g.worst_score, g.mean, g.best_score) for g in self.groups]).T
        axes.hlines(lines, worst, best, color="#BBBBBB", lw=2)
        looks = {"worst": (worst, "v", COLORS[3]), "mean": (mean, "o", "black"), "best": (best, "^", COLORS[0])}
        for name, (values, look, tint) in looks.items():
            axes.plot(values, lines, look, color=tint, label=name)
        for line, g in enumerate(self.groups):
            axes.annotate(short(g.best, 24), (best[line], line), (6, 0), textcoords="offset points", va="center")
        axes.set_yticks(lines, [f"{g.group} (n = {g.models})" for g in self.groups])
        axes.invert_yaxis()
        axes.margins(x=0.05)
        axes.set_xlim(right=axes.get_xlim()[1] + 0.3 * np.ptp(axes.get_xlim()))  # room for names
        axes.set_xlabel("score (points); n: models")
        figure.legend(loc="outside lower center", ncols=3)


def group_extremes(matrix: Matrix, by: str = "category") -> Extremes:
    """The extremes of every group, and of the mean over groups."""
    if len(matrix.models) < 2:
        raise EmbarkError(f"The best and the worst model are told of two or more; there is only {matrix.models[0]}.")
    columns = grouped(matrix.tasks, by)
    means = group_means(matrix, by)
    scored = {name: scores for name, scores in means.items() if not np.isnan(scores).all()}
    if not scored:
        raise EmbarkError(
            f"No model has all tasks of any {by}. Group by task (--by task, or by='task' in Python), or add results."
        )
    groups = [_extreme(matrix, name, len(columns[name]), scores) for name, scores in scored.items()]
    overall = np.mean([*scored.values()], axis=0)
    if len(scored) > 1 and not np.isnan(overall).all():
        groups.append(_extreme(matrix, OVERALL, len(matrix.tasks), overall))
    left_out = tuple(name for name in means if name not in scored)
    return Extremes(by, tuple(groups), left_out, notes=matrix.notes)


def _extreme(matrix: Matrix, name: str, tasks: int, scores: Array) -> Extreme:
    known = np.flatnonzero(~np.isnan(scores))
    best = matrix.models[known[scores[known].argmax()]]
    worst = matrix.models[known[scores[known].argmin()]]
    ratios = [_ratio(matrix, best, worst, scale) for scale in ("data", "parameters")]
    values = scores[known]
    ends = (best, float(values.max()), worst, float(values.min()))
    return Extreme(name, tasks, len(known), float(values.mean()), *ends, *ratios)


def _ratio(matrix: Matrix, best: str, worst: str, scale: str) -> float | None:
    ends = [fact(matrix.cards.get(model), scale) for model in (best, worst)]
    return ends[0] / ends[1] if all(ends) else None


def _times(value: float | None) -> Exact | None:
    return None if value is None else Exact(value, f"{value:.3g}")
