"""The numbers behind the plots of a board: fronts of score against cost, trends, correlations, languages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from embark.boards.leaderboards import Leaderboard
from embark.boards.matrix import Matrix, matrix
from embark.boards.rules import RULES
from embark.site.scripts import Points, points
from embark.studies.correlate import correlate_tasks
from embark.studies.languages import by_language
from embark.studies.pareto import UNITS, pareto_front, sizes
from embark.studies.scaling import fit_scaling
from embark.tables import Score, comparable, rounded, without_advice
from embark.types import EmbarkError

ENOUGH_MODELS = 8  # models that correlations of tasks are drawn from
MODELS = 8  # whose scores by language are drawn


def plot_data(board: Leaderboard, times: Mapping[str, float]) -> dict[str, Any]:
    """By plot, what it draws; a plot that the board has not enough scores for is None or empty.

    `times` are seconds for 1,000 items, by model.
    """
    results = [result for entry in board.entries for result in entry.model.results.values()]
    scores = matrix(board.tasks, results)
    if str(board.rule) in RULES:
        scores = replace(scores, rule=str(board.rule))
    data: dict[str, Any] = {"pareto": {}, "scaling": [], "correlation": None, "languages": None}
    for cost in UNITS:
        with suppress(EmbarkError):
            data["pareto"][cost] = _front(scores, times, cost)
    with suppress(EmbarkError):
        data["scaling"] = [
            {
                "group": trend.group,
                "models": list(trend.models),
                "sizes": trend.sizes.tolist(),
                "scores": [points(score) for score in trend.scores.tolist()],
                **{name: _slope(getattr(trend, name)) for name in ("slope", "low", "high")},
                "level": 100 * trend.level,
            }
            for trend in fit_scaling(scores, scores.cards).trends
        ]
    if scores.complete_rows.sum() >= ENOUGH_MODELS:
        with suppress(EmbarkError):
            data["correlation"] = _correlation(scores)
    with suppress(EmbarkError):
        data["languages"] = _languages(board)
    return data


def _slope(value: float) -> tuple[float, str]:
    """Points for ten times the parameters, in full and as people read them."""
    return float(value), rounded(value, sign=True)


def _front(scores: Matrix, times: Mapping[str, float], cost: str) -> dict[str, Any]:
    front = pareto_front(scores, times if cost == "time" else sizes(scores.cards, cost), cost)
    return {
        "unit": UNITS[cost],
        "models": list(front.models),
        "costs": front.costs.tolist(),
        "scores": [points(score) for score in front.scores.tolist()],
        "front": front.unbeaten.tolist(),
        "notes": list(map(without_advice, front.table().notes)),
    }


def _correlation(scores: Matrix) -> dict[str, Any]:
    analysis = correlate_tasks(scores)
    order = analysis.order
    return {
        "tasks": [analysis.matrix.names[number] for number in order.tolist()],
        "values": [round(100 * value) for value in analysis.values[order][:, order].ravel().tolist()],
        "clusters": analysis.clusters[order].tolist(),
    }


def _languages(board: Leaderboard) -> dict[str, Any]:
    analysis = by_language({entry.model.key: entry.model.results for entry in board.entries})
    models = list(analysis.models[:MODELS])
    task = "" if len(analysis.tasks) > 1 else analysis.tasks[0]
    rows = {language: scores for (name, language), scores in analysis.scores.items() if name == task}

    def shown(score: Score | None) -> Points:
        return points(score.value) if score else None

    def row(language: str, scores: Mapping[str, Score]) -> dict[str, Any]:
        cells = [scores.get(name) for name in models]
        compared = zip(cells, comparable(cells), strict=True)
        return {
            "language": language,
            "scores": [shown(cell) for cell in cells],
            # how many of the tasks a mean is over that is not compared with the others of the row
            "covered": ["" if cell is None or rival else cell.covered for cell, rival in compared],
        }

    return {"models": models, "rows": [row(language, scores) for language, scores in rows.items()]}
