"""Every two of one's own models, task by task: differences with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isfinite
from typing import Any

from embark.results import TaskResult
from embark.site.scripts import points, signed
from embark.stats.compare import Comparison, compare_results
from embark.stats.gate import Tally
from embark.tables import p_value
from embark.types import Task

MOST_MODELS = 8  # models that are compared with each other


def comparisons_data(models: Mapping[str, Sequence[TaskResult]], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """The comparisons of every two models, by their labels; those without a task in common are left out."""
    pairs = combinations(list(models.items())[:MOST_MODELS], 2)
    return [
        _comparison(a, b, comparison)
        for (a, of_a), (b, of_b) in pairs
        if (comparison := compare_results(of_a, of_b, tasks)).pairs
    ]


def _comparison(a: str, b: str, comparison: Comparison) -> dict[str, Any]:
    pairs = comparison.pairs
    return {
        "a": a,
        "b": b,
        "sentence": comparison.sentence(),
        "tasks": {
            "task": [pair.task for pair in pairs],
            "category": [pair.category for pair in pairs],
            **{name: [points(getattr(pair, name)) for pair in pairs] for name in ("a", "b")},
            **{name: [signed(getattr(pair, name)) for pair in pairs] for name in ("difference", "low", "high")},
            "holm": [_p(pair.holm) for pair in pairs],
            "verdict": [pair.verdict for pair in pairs],
            "items": [pair.items for pair in pairs],
        },
        "categories": [(name, _tally(tally)) for name, tally in comparison.categories.items()],
        "total": _tally(comparison.total),
        "refused": list(comparison.refused.items()),
    }


def _p(value: float) -> str:
    """A p-value as the command line shows it; nothing where there is none."""
    cell = p_value(value) if isfinite(value) else None
    return cell.text if cell else ""


def _tally(tally: Tally) -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in ("wins", "ties", "losses")}
    return counts | {name: signed(getattr(tally, name)) for name in ("difference", "low", "high")}
