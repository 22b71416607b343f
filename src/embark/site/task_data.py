"""The tasks of the page: the row in words, its fingerprints, and the faults known of its published scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embark.boards.facts import fingerprints, known_errata, row_facts
from embark.redaction import public_row
from embark.site.model_data import fact_lines
from embark.site.scripts import points
from embark.types import Task

SHOWN_ENTRIES = 12  # entries of a list of labels, templates or languages that are shown
SENTENCES = ("notes", "sizes", "instructions", "shown", "variants")  # facts that take a line for each entry


def task_data(tasks: Iterable[Task]) -> dict[str, dict[str, Any]]:
    """By task: what the leaderboards do not tell of it."""
    return {task.name: _row(task) for task in tasks}


def _row(task: Task) -> dict[str, Any]:
    facts = {name: fact for name, fact in row_facts(public_row(task)).items() if name != "notes"}
    errata = [
        {"id": erratum.id, "effect": erratum.effect, "what": erratum.what, "evidence": erratum.evidence}
        for erratum in known_errata(task)
    ]
    return {
        "family": task.family,
        "category": task.category,
        "metric": task.metric,
        "chance": points(task.chance),
        "modalities": list(task.modalities),
        "facts": [(name, line) for name, fact in facts.items() for line in _lines(name, fact)],
        "fingerprints": list(fingerprints(task).items()),
        "notes": list(task.notes),
        "errata": errata,
    }


def _lines(name: str, fact: Any) -> list[str]:
    lines = fact_lines(fact)
    if name in SENTENCES:
        return lines
    more = f", … ({len(lines):,} in all)" if len(lines) > SHOWN_ENTRIES else ""
    return [", ".join(lines[:SHOWN_ENTRIES]) + more] if lines else []
