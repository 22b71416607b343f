"""A leaderboard as columns of numbers: models × (totals, groups, tasks), with ranks, ties and footnotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.boards.leaderboards import Entry, Leaderboard
from embark.boards.rules import summarize
from embark.site.scripts import Points, points
from embark.stats.means import names
from embark.tables import Score, comparable, without_advice


def board_data(name: str, board: Leaderboard) -> dict[str, Any]:
    """What the page shows of a leaderboard. Cells go model by model; `marks` and `covered` (how many of its tasks a
    mean is over, where means differ in that) are by number of a cell.

    `apart` are the cells of means over other tasks than the others of their column: they are compared with nothing.
    """
    columns = _columns(board)
    lines = [_cells(entry, columns) for entry in board.entries]
    cells = [cell for line in lines for cell in line]
    compared = list(zip(*(comparable(column) for column in zip(*lines, strict=True)), strict=True))
    apart = [not cell for line in compared for cell in line]
    footnotes = list(dict.fromkeys(mark for cell in cells if cell for mark in cell.marks))
    numbers = {mark: number for number, mark in enumerate(footnotes)}
    return {
        "name": name,
        "rule": str(board.rule),
        "resampled": board.resampled,
        "notes": [without_advice(note) for note in (*board.notes, *board.table().notes)],
        "columns": columns,
        "models": _models(board.entries),
        "values": [points(cell.value) if cell else None for cell in cells],
        "low": _unless_empty([points(cell.low) if cell else None for cell in cells]),
        "high": _unless_empty([points(cell.high) if cell else None for cell in cells]),
        "marks": {
            number: [numbers[mark] for mark in cell.marks] for number, cell in enumerate(cells) if cell and cell.marks
        },
        "covered": {
            number: cell.covered
            for number, cell in enumerate(cells)
            if cell and (cell.partial or (apart[number] and cell.over))
        },
        "apart": [number for number, cell in enumerate(cells) if cell and apart[number]],
        "footnotes": list(map(without_advice, footnotes)),
    }


def _unless_empty(numbers: list[Points]) -> list[Points] | None:
    """None in place of a list without any number."""
    return numbers if any(numbers) else None


def _columns(board: Leaderboard) -> list[dict[str, Any]]:
    """The totals of the rule, its groups, and its tasks with the groups that they are in."""
    whole_rule = summarize(board.rule, board.tasks, {task.name: 0.0 for task in board.tasks})
    models = [entry.model for entry in board.entries]
    totals = dict.fromkeys([*whole_rule.totals, *(name for model in models for name in model.totals)])
    groups = dict.fromkeys([*whole_rule.groups, *(name for model in models for name in model.categories)])
    scored = {name for model in models for name in model.tasks}
    return [
        *({"name": name, "kind": "total"} for name in totals),
        *({"name": name, "kind": "group"} for name in groups),
        *(
            {
                "name": task.name,
                "kind": "task",
                "metric": task.metric,
                "chance": points(task.chance),
                "groups": [name for name, mean in whole_rule.groups.items() if task.name in mean.weights],
            }
            for task in board.tasks
            if task.name in scored
        ),
    ]


def _cells(entry: Entry, columns: Sequence[dict[str, Any]]) -> list[Score | None]:
    scores = {"total": entry.model.totals, "group": entry.model.categories, "task": entry.model.tasks}
    return [scores[column["kind"]].get(column["name"]) for column in columns]


def _models(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """The models of the lines by column: names, sources, and places; a model without enough scores has no place."""
    models = [entry.model for entry in entries]
    places = [entry.place for entry in entries]
    return {
        "label": names([(model.model, model.revision, model.source) for model in models]),
        "name": [model.model for model in models],
        "revision": [model.revision for model in models],
        "source": [model.source for model in models],
        "rank": [place and place.rank for place in places],
        "low": [place and place.low for place in places],
        "high": [place and place.high for place in places],
        "tie": [place.tie if place else "" for place in places],
        "tasks": [len(model.tasks) for model in models],
        "covered": [model.mean.covered for model in models],
    }
