"""Score against cost: the models that no other beats in both score and size, dimension or time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, load_matrix
from embark.catalogue import check_name, counted, listed
from embark.results import Results, TaskResult
from embark.settings import Settings, load_settings
from embark.studies.analysis import Analysis
from embark.studies.model_filter import fact
from embark.studies.plotting import COLORS, amount, label_points, log_axis
from embark.tables import Exact, Row, Score, Table, applicable, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, EmbarkError, ModelCard

UNITS = {
    "parameters": "parameters (millions)",
    "dim": "dimension",
    "time": "seconds for 1,000 items",
    "price": "US dollars for a million tokens",
}
COSTS = {"parameters": "number of parameters", "dim": "dimension", "time": "time", "price": "price"}


def pareto(
    tasks: Tasks = None,
    *,
    against: str = "parameters",
    include: Include = "all",
    settings: Settings | None = None,
) -> ParetoFront:
    """Find the models that no other beats in both total score and cost.

    The cost, `against`, is parameters, dim or price, from the models' cards, or time, that your own runs took to embed.
    """
    settings = settings or load_settings()
    matrix = load_matrix(tasks, include=include, settings=settings)
    costs = embedding_times(Results(settings.results).all()) if against == "time" else sizes(matrix.cards, against)
    return pareto_front(matrix, costs, against)


@dataclass(frozen=True)
class ParetoFront(Analysis):
    """Models with their costs and totals, cheapest first, and which of them no other beats."""

    against: str
    models: tuple[str, ...]
    costs: Array
    scores: Array
    unbeaten: Array
    tasks: int
    unknown: tuple[str, ...]  # models without a known cost

    @property
    def title(self) -> str:
        return f"Score against {COSTS[self.against]}"

    size = (PAGE, 4.2)

    def table(self) -> Table:
        """The models on the front, then those that another beats."""
        cells = [
            (model, Score(float(score), np.nan, np.nan), Exact(float(cost), amount(cost)))
            for model, score, cost in zip(self.models, self.scores, self.costs, strict=True)
        ]
        rows = [
            Row(cells[row], section)
            for unbeaten, section in ((True, "on the front"), (False, "beaten by another"))
            for row in np.flatnonzero(self.unbeaten == unbeaten)
        ]
        unit = UNITS[self.against]
        timed = self.against == "time"
        models = counted(len(self.models), "model")
        notes = {
            f"Totals over {self.tasks} tasks, of {models} that have them all; {unit}: lower is better.": True,
            "Times were measured on the machines that embedded: compare them only where it was one.": timed,
            f"Left out, {self.against} not known: {listed([*map(short, self.unknown)], 3)}.": self.unknown,
        }
        return Table(("model", "total", unit), tuple(rows), applicable(notes), models="rows")

    def draw(self, figure: Any) -> None:
        """Models as points, with the front as a stair."""
        axes = figure.subplots()
        costs, scores, unbeaten = self.costs, 100 * self.scores, self.unbeaten
        axes.plot(costs[~unbeaten], scores[~unbeaten], "o", ms=4, color="#AAAAAA", mew=0, label="beaten by another")
        axes.step(costs[unbeaten], scores[unbeaten], where="post", color=COLORS[0], lw=1)
        axes.plot(costs[unbeaten], scores[unbeaten], "o", ms=5, color=COLORS[0], label="on the front")
        if costs.max() > 4 * costs.min() > 0:
            log_axis(axes, costs)
        axes.set(xlabel=UNITS[self.against], ylabel=f"total over {self.tasks} tasks (points)")
        axes.margins(x=0.14, y=0.08)
        axes.legend(loc="lower right")
        front = np.column_stack([costs[unbeaten], scores[unbeaten]])
        names = [short(self.models[row]) for row in np.flatnonzero(unbeaten)]
        beaten = np.column_stack([costs, scores])[~unbeaten]
        label_points(axes, front[:, 0], front[:, 1], names, beaten, _stair(front))


def pareto_front(matrix: Matrix, costs: Mapping[str, float], against: str = "parameters") -> ParetoFront:
    """The front over the models that have every task and whose cost is known."""
    check_name("cost", against, UNITS)
    complete = matrix.only(models=matrix.complete_rows)
    if not complete.models:
        most = int((~np.isnan(matrix.values)).sum(axis=1).max(initial=0))
        raise EmbarkError(
            f"No model has a score on all {len(matrix.tasks)} tasks, as a total needs; the most is {most}."
        )
    cost = np.array([costs.get(model, np.nan) for model in complete.models], float)
    known = np.flatnonzero(~np.isnan(cost))
    if not len(known):
        raise EmbarkError(f"No model with a score on every task has a known {COSTS[against]}.")
    score = complete.values @ complete.weights
    order = known[np.lexsort((-score[known], cost[known]))]
    return ParetoFront(
        against,
        models=tuple(complete.models[row] for row in order),
        costs=cost[order],
        scores=score[order],
        unbeaten=on_front(cost[order], score[order]),
        tasks=len(complete.tasks),
        unknown=tuple(model for model, value in zip(complete.models, cost, strict=True) if np.isnan(value)),
        notes=matrix.notes,
    )


def on_front(cost: Array, score: Array) -> Array:
    """Which points no other beats: none is as cheap and as good, and better in one of the two."""
    no_worse = (cost[None] <= cost[:, None]) & (score[None] >= score[:, None])
    better = (cost[None] < cost[:, None]) | (score[None] > score[:, None])
    return np.asarray(~(no_worse & better).any(axis=1))


def sizes(cards: Mapping[str, ModelCard], against: str) -> dict[str, float]:
    """Parameters (in millions), dimensions or prices, from the cards that know them."""
    check_name("cost", against, UNITS)
    return {model: value for model, card in cards.items() if (value := fact(card, against))}


def embedding_times(results: Iterable[TaskResult]) -> dict[str, float]:
    """Seconds to embed 1,000 items, by model and by revision, from results whose items were embedded in one run."""
    spent: dict[str, tuple[float, float]] = {}
    for result in results:
        for record, name in product(result.records, (result.model, f"{result.model}@{result.revision}")):
            seconds, items = spent.get(name, (0.0, 0.0))
            embedded = record.counts.get("embedded", 0)
            spent[name] = (seconds + record.timings.get("embed", 0.0) * bool(embedded), items + embedded)
    return {model: 1000 * seconds / items for model, (seconds, items) in spent.items() if items and seconds}


def _stair(front: Array) -> Array:
    """The corners of a line that goes across, then up, from each point to the next."""
    corners = np.repeat(front, 2, axis=0)
    return np.column_stack([corners[1:, 0], corners[:-1, 1]])
