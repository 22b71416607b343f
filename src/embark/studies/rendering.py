"""What it costs a model to read: scores on pairs of sentences as text, against the same pairs drawn as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from embark.boards.comparable_results import load_results, rows_of
from embark.catalogue import group_values, listed
from embark.results.exchange import UNKNOWN
from embark.results.table import Exact, Row, Score, Table, applicable, short
from embark.settings import Settings
from embark.studies.plotting import COLORS, label_points
from embark.studies.study import Study
from embark.tasks import TASKS, Tasks
from embark.tasks.text_sts import TWINS
from embark.types import Benchmark, EmbarkError


def rendering(
    benchmark: str | Benchmark | None = None,
    tasks: Tasks = None,
    *,
    own: bool = False,
    settings: Settings | None = None,
) -> Rendering:
    """Compare models' scores on visual STS with those on its text twins: of a benchmark, of tasks, or of all of them.

    Scores on pictures are the published ones and yours, or only your `own`; those on text are yours or imported.
    """
    everything = benchmark is None and tasks is None
    visual = [row for row in rows_of(benchmark, list(TWINS) if everything else tasks) if row.name in TWINS]
    if not visual:
        raise EmbarkError(f"None of these tasks has a text twin. Those with one: {listed(list(TWINS), len(TWINS))}.")
    rows = [*visual, *(TASKS[name] for name in dict.fromkeys(TWINS[task.name] for task in visual))]
    loaded = load_results(tasks=rows, published=not own, settings=settings)
    by_task = {  # yours count
        (result.model, result.task): result
        for result in sorted(loaded.results, key=lambda result: result.made_by == "embark")
    }
    costs = []
    for (model, name), result in by_task.items():
        text = by_task.get((model, TWINS.get(name, "")))
        if text is not None:
            scores = {(record.split, record.subset): record.score for record in text.records}
            of_parts = [scores[part] for part in TASKS[name].parts]
            costs.append(Cost(model, name, len(of_parts), fmean(of_parts), result.score))
    if not costs:
        raise EmbarkError(
            "No model has scores on a visual STS task and on its text twin. Make some, with a model that takes both: "
            f"embark run -m MODEL -t {visual[0].name} -t {TWINS[visual[0].name]}"
        )
    order = [task.name for task in visual]
    return Rendering(tuple(sorted(costs, key=lambda cost: (cost.model, order.index(cost.task)))), notes=loaded.notes)


class Cost(NamedTuple):
    """A model's score on a visual task, and its mean over the same splits and languages of the text twin."""

    model: str
    task: str
    parts: int
    text: float
    pictures: float


@dataclass(frozen=True)
class Rendering(Study):
    """The costs of rendering, by model and task."""

    costs: tuple[Cost, ...]

    @property
    def title(self) -> str:
        return "The same pairs of sentences as text and as pictures"

    def table(self) -> Table:
        """One row per model and visual task, and the model's mean."""
        rows = []
        for model, costs in group_values((cost.model, cost) for cost in self.costs).items():
            if len(costs) > 1:
                texts, pictures = [cost.text for cost in costs], [cost.pictures for cost in costs]
                costs = [*costs, Cost(model, "mean", sum(c.parts for c in costs), fmean(texts), fmean(pictures))]
            rows += [
                Row((model, cost.task, cost.parts, *_scores(cost), Exact(difference, f"{difference:+.1f}")))
                for cost in costs
                for difference in [100 * (cost.pictures - cost.text)]
            ]
        notes = {
            "The same pairs on both sides: means over the splits and languages of the visual task.": True,
            "Differences are in points; they have no interval here.": True,
        }
        return Table(("model", "task", "parts", "as text", "as pictures", "cost"), tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """Text across, pictures up; below the diagonal, rendering costs."""
        axes = figure.subplots()
        texts = np.array([100 * cost.text for cost in self.costs])
        pictures = np.array([100 * cost.pictures for cost in self.costs])
        axes.axline((0, 0), slope=1, color="#AAAAAA", lw=1)
        axes.plot(texts, pictures, "o", ms=4, color=COLORS[0], mew=0)
        axes.set(xlabel="as text (points)", ylabel="as pictures (points)")
        label_points(axes, texts, pictures, [f"{short(cost.model)}, {cost.task}" for cost in self.costs])


def _scores(cost: Cost) -> tuple[Score, Score]:
    return Score(cost.text, *UNKNOWN), Score(cost.pictures, *UNKNOWN)
