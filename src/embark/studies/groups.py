"""Models by groups of tasks: a heat map of all of them, and profiles of a few against the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.aggregate import Standing, standings
from embark.boards.comparable_results import Include, load_results
from embark.boards.matrix import DEFAULT_RULE, MIEB, group_of
from embark.catalogue import check_name, counted, match_words
from embark.settings import Settings
from embark.stats.means import grouped, mean, mean_score, names
from embark.studies.analysis import Analysis
from embark.studies.plotting import draw_heat, draw_series, legend_below
from embark.tables import Exact, Row, Score, Table, applicable, comparable, footnoted, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks, Wanted, chosen_benchmark
from embark.types import EmbarkError, Task

PARTIAL = "over {} of {} tasks"
BEST = 5  # models with a profile, where none is named


def heatmap(
    tasks: Tasks = None,
    *,
    by: str = "category",
    models: Wanted = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> Heatmap:
    """The mean score of every model in every group of tasks (default: on MIEB), models in the order of their totals.

    Groups are categories, or `by` type, capability, domain… or task; `models` are names or patterns.
    """
    field = load_field(tasks, by, include, settings)
    return Heatmap(by, field.groups, field.only(models).models, notes=field.notes)


def profile(
    tasks: Tasks = None,
    *,
    by: str = "category",
    models: Wanted = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> Profile:
    """Where models are strong and weak: their mean score in every group of tasks, its rank, and the field's median.

    `models` are names or patterns (default: the five best); the rest is as for `heatmap`.
    """
    field = load_field(tasks, by, include, settings)
    chosen = field.models[:BEST] if models is None else field.only(models).models
    left = len(field.models) - BEST if models is None else 0
    notes = (f"The {BEST} best of {len(field.models)} models; -m (models in Python) names others.",) if left > 0 else ()
    return Profile(by, field.groups, chosen, field.models, notes=(*field.notes, *notes))


@dataclass(frozen=True)
class GroupScores:
    """A model with its total and its mean score in each group that it has scores in."""

    model: str
    total: Score
    groups: Mapping[str, Score]


@dataclass(frozen=True)
class Field:
    """All models that have scores, best first; groups have the number of their tasks."""

    groups: Mapping[str, int]
    models: tuple[GroupScores, ...]
    notes: tuple[str, ...]

    def only(self, models: Wanted) -> Field:
        """The models of these names or patterns."""
        wanted = match_words("model with results", (model.model for model in self.models), models)
        chosen = tuple(model for model in self.models if wanted is None or model.model in wanted)
        return Field(self.groups, chosen, self.notes)


@dataclass(frozen=True)
class Heatmap(Analysis):
    """Models × groups of tasks."""

    by: str
    groups: Mapping[str, int]
    models: tuple[GroupScores, ...]

    @property
    def title(self) -> str:
        return f"Mean score by {self.by} (points)"

    @property
    def size(self) -> tuple[float, float]:
        return max(PAGE, 2.6 + 0.45 * (1 + len(self.groups))), 1.5 + 0.16 * len(self.models)

    def table(self) -> Table:
        """A row for each model, a column for each group."""
        rows = [Row((m.model, m.total, *(m.groups.get(group) for group in self.groups))) for m in self.models]
        sizes = ", ".join(f"{group} {count}" for group, count in self.groups.items())
        notes = {
            f"{counted(len(self.models), 'model')}, {counted(sum(self.groups.values()), 'task')}.": True,
            f"Tasks by {self.by}: {sizes}.": self.by != "task",
            "Means over other tasks than those of most models are not colored.": self._partial,
        }
        return footnoted(
            Table(("model", "total", *self.groups), tuple(rows), applicable(notes), models="rows"), PARTIAL
        )

    @property
    def _partial(self) -> bool:
        return any(score.partial for m in self.models for score in (m.total, *m.groups.values()))

    def draw(self, figure: Any) -> None:
        """The scores as colors and numbers; a rule parts the totals from the groups."""
        scores = [(m.total, *map(m.groups.get, self.groups)) for m in self.models]
        values = np.array([[100 * score.value if score else np.nan for score in line] for line in scores])
        colored = np.transpose([comparable(column) for column in zip(*scores, strict=True)])
        axes = figure.subplots()
        models = [short(m.model, 34) for m in self.models]
        draw_heat(axes, values, models, ["total", *self.groups], colored=colored)
        axes.axvline(0.5, color="white", lw=3)


@dataclass(frozen=True)
class Profile(Analysis):
    """A few models by group of tasks, against all models."""

    by: str
    groups: Mapping[str, int]
    models: tuple[GroupScores, ...]
    field: tuple[GroupScores, ...]

    @property
    def title(self) -> str:
        return f"Scores by {self.by}, among {counted(len(self.field), 'model')}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.8 + len(self.groups) * (0.2 + 0.12 * len(self.models))

    def table(self) -> Table:
        """A row for each group, under the name of each model."""
        rows = []
        for m in self.models:
            for group, count in self.groups.items():
                if (score := m.groups.get(group)) is not None:
                    values = self._values(group)
                    above = sum(value > score.value for value in values)
                    rank = Exact(None, "") if score.partial else Exact(1 + above, f"{1 + above} of {len(values)}")
                    median = Score(float(np.median(values)), np.nan, np.nan) if values else None
                    rows.append(Row((group, Exact(count, str(count)), score, median, rank), m.model))
        sizes = ", ".join(f"{group} {count}" for group, count in self.groups.items())
        notes = ("median: of all models that have every task of the group; rank: among them.", f"Tasks: {sizes}.")
        table = Table((self.by, "tasks", "score", "median", "rank"), tuple(rows), notes, models="rows")
        return footnoted(table, PARTIAL)

    def draw(self, figure: Any) -> None:
        """Scores with intervals in every group, over the range of all models and their median."""
        axes = figure.subplots()
        for row, group in enumerate(self.groups):
            values = 100 * np.array(self._values(group))
            if len(self.field) > len(self.models) and len(values):
                axes.barh(-row, np.ptp(values), left=values.min(), height=0.8, color="#EEEEEE", zorder=0)
                axes.vlines(np.median(values), -row - 0.4, -row + 0.4, color="#888888", lw=1, zorder=1)
        rows = {-row: group for row, group in enumerate(self.groups)}
        points = draw_series(
            axes,
            {
                short(m.model, 34): {row: m.groups[group] for row, group in rows.items() if group in m.groups}
                for m in self.models
            },
        )
        partial = [(100 * score.value, height) for height, score in points if score.partial]
        if partial:
            axes.plot(*zip(*partial, strict=True), "o", ms=2, color="white")
        if len(self.field) > len(self.models):
            axes.plot([], [], "|", color="#888888", ms=9, label="median of all")
        if partial:
            axes.plot([], [], "o", ms=4, mfc="white", color="#888888", ls="", label="over a part of the tasks")
        axes.set_yticks(range(0, -len(self.groups), -1), list(self.groups), fontsize=8)
        axes.grid(visible=False, axis="y")
        axes.set(xlabel="score (points)")
        axes.use_sticky_edges = False  # a bar that begins at the axis would seem to be cut
        axes.margins(x=0.04)
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])

    def _values(self, group: str) -> list[float]:
        """The scores of all models that have every task of a group."""
        return [m.groups[group].value for m in self.field if group in m.groups and not m.groups[group].partial]


def load_field(tasks: Tasks, by: str, include: Include, settings: Settings | None) -> Field:
    """All models with results on tasks, by groups of tasks."""
    tasks = MIEB if tasks is None else tasks
    benchmark = chosen_benchmark(tasks)
    loaded = load_results(tasks, include=include, settings=settings)
    rule = DEFAULT_RULE if benchmark is None else benchmark.rule
    return field_of(loaded.tasks, standings(loaded.tasks, loaded.results, rule), by, loaded.notes)


def field_of(tasks: Sequence[Task], models: Sequence[Standing], by: str, notes: tuple[str, ...] = ()) -> Field:
    """The models best first, those with most scores before the others, with the mean of each group of tasks."""
    scored = [task for task in tasks if any(task.name in model.tasks for model in models)]
    if not scored:
        raise EmbarkError("There are no scores for the chosen tasks. Make some: embark run -t TASK")
    check_name("grouping of tasks", by, {"category", "task"}.union(*(task.tags for task in scored)))
    tagged = [task for task in scored if by in {"category", "task", *task.tags}]
    groups = grouped(tagged, lambda task: group_of(task, by))
    labels = names([model.key for model in models])
    rows = [GroupScores(label, m.mean, _group_scores(m, groups)) for label, m in zip(labels, models, strict=True)]
    rows.sort(key=lambda m: (-len(m.total.over), sorted(m.total.over), -m.total.value))
    return Field({group: len(members) for group, members in groups.items()}, tuple(rows), notes)


def _group_scores(model: Standing, groups: Mapping[str, Sequence[str]]) -> dict[str, Score]:
    values = {task: score.value for task, score in model.tasks.items()}
    return {
        group: mean_score(mean(members, values), model.tasks, readings=model.readings)
        for group, members in groups.items()
        if any(task in values for task in members)
    }
