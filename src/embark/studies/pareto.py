"""What a point of score costs: the models that no other beats in both score and size, dimension or time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, weights
from embark.catalogue import UnknownName
from embark.results import TaskResult
from embark.results.table import Exact, Row, Score, Table, short
from embark.studies.draw import COLORS, label, some
from embark.studies.study import Study
from embark.types import Array, EmbarkError, ModelCard

UNITS = {"parameters": "parameters (millions)", "dim": "dimension", "time": "seconds for 1,000 items"}
KNOWN = {"parameters": "number of parameters", "dim": "dimension", "time": "time"}


@dataclass(frozen=True)
class Front:
    """Models with their costs and totals, cheapest first, and which of them no other beats."""

    against: str
    models: tuple[str, ...]
    cost: Array
    score: Array
    best: Array
    tasks: int
    unknown: tuple[str, ...]

    def study(self) -> Study:
        """The front first, then the models behind it; a scatter with the front as a stair."""
        rows = []
        for front, section in ((True, "on the front"), (False, "beaten by another")):
            for at in np.flatnonzero(self.best == front):
                score = Score(float(self.score[at]), np.nan, np.nan)
                cost = float(self.cost[at])
                rows.append(Row((self.models[at], score, Exact(cost, _amount(cost))), section))
        notes = [
            f"Totals over {self.tasks} tasks, of models that have them all; {UNITS[self.against]}: lower is better."
        ]
        if self.against == "time":
            notes.append("Times were measured on the machines that embedded: compare them only where it was one.")
        if self.unknown:
            notes.append(f"Left out, {self.against} not known: {some(self.unknown)}.")
        table = Table(("model", "total", UNITS[self.against]), tuple(rows), tuple(notes), models="rows")
        return Study(f"Score against {self.against}", table, self._draw, (7.5, 5.0))

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        x, y = self.cost, 100 * self.score
        axes.plot(x[~self.best], y[~self.best], "o", ms=4, color="#AAAAAA", mew=0, label="beaten by another")
        axes.step(x[self.best], y[self.best], where="post", color=COLORS[0], lw=1)
        axes.plot(x[self.best], y[self.best], "o", ms=5, color=COLORS[0], label="on the front")
        if x.max() > 4 * x.min() > 0:
            axes.set_xscale("log")
        axes.set_xlabel(UNITS[self.against])
        axes.set_ylabel(f"total over {self.tasks} tasks (points)")
        axes.margins(x=0.12, y=0.08)
        axes.legend(loc="lower right", fontsize=8)
        label(axes, x[self.best], y[self.best], [short(self.models[at]) for at in np.flatnonzero(self.best)])


def pareto(matrix: Matrix, costs: Mapping[str, float], rule: str, against: str = "parameters") -> Front:
    """The front over the models that have every task and whose cost is known."""
    _check(against)
    whole = matrix.only(models=np.asarray(~np.isnan(matrix.values).any(axis=1)))
    if not whole.models:
        most = int((~np.isnan(matrix.values)).sum(axis=1).max(initial=0))
        raise EmbarkError(
            f"No model has a score on all {len(matrix.tasks)} tasks, as a total needs; the most is {most}."
        )
    cost = np.array([costs.get(model, np.nan) for model in whole.models], float)
    known = np.flatnonzero(~np.isnan(cost))
    if not len(known):
        raise EmbarkError(f"No model with a score on every task has a known {KNOWN[against]}.")
    score = whole.values @ weights(whole.tasks, rule)
    order = known[np.lexsort((-score[known], cost[known]))]
    unknown = tuple(model for model, value in zip(whole.models, cost, strict=True) if np.isnan(value))
    best = front(cost[order], score[order])
    models = tuple(whole.models[at] for at in order)
    return Front(against, models, cost[order], score[order], best, len(whole.tasks), unknown)


def front(cost: Array, score: Array) -> Array:
    """Which points no other beats: none is as cheap and as good, and better in one of the two."""
    no_worse = (cost[None] <= cost[:, None]) & (score[None] >= score[:, None])
    better = (cost[None] < cost[:, None]) | (score[None] > score[:, None])
    return np.asarray(~(no_worse & better).any(axis=1))


def sizes(cards: Mapping[str, ModelCard], against: str) -> dict[str, float]:
    """Parameters (in millions) or dimensions, from the cards."""
    _check(against)
    scale = 1e6 if against == "parameters" else 1.0
    found = {model: getattr(card, against) for model, card in cards.items()}
    return {model: value / scale for model, value in found.items() if value}


def times(results: Iterable[TaskResult]) -> dict[str, float]:
    """Seconds to embed 1,000 items, by model and by revision, from results whose items were embedded in one run."""
    spent: dict[str, tuple[float, float]] = {}
    for result in results:
        for record, name in product(result.records, (result.model, f"{result.model}@{result.revision}")):
            seconds, items = spent.get(name, (0.0, 0.0))
            new = record.counts.get("embedded", 0)
            spent[name] = (seconds + record.timings.get("embed", 0.0) * bool(new), items + new)
    return {model: 1000 * seconds / items for model, (seconds, items) in spent.items() if items and seconds}


def _check(against: str) -> None:
    if against not in UNITS:
        raise UnknownName("cost", against, UNITS)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
