"""A board whose scores lie on the ties of rounding, and the cells that the command line shows of a board."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from typer.testing import CliRunner

from embark.boards.leaderboards import Leaderboard, rank_models
from embark.cli import app
from embark.results import Record, TaskResult
from embark.tasks import TASKS

MODELS = 12
ROWS = [
    replace(next(iter(TASKS.values())), name=f"Tie{number}", family="Test", category=f"Kind {number % 3}", tags={})
    for number in range(24)
]
Cells = dict[tuple[str, str], str]  # the text of a cell by model and column


def tied_board(seed: int = 0) -> Leaderboard:
    """Models with intervals; scores and ends are at or beside a tie between two tenths of a point; some lack tasks."""
    random = Random(seed)

    def number() -> float:
        return random.choice([random.randrange(401) / 400, random.randrange(2001) / 2000, random.random()])

    def result(model: str, task: str) -> TaskResult:
        low, score, high = sorted(number() for _ in range(3))
        ends = (low, high)
        record = Record(model, "1", task, "test", "default", ("eng",), "accuracy", score, ends, {}, "paper", "embark")
        return TaskResult(model, "1", task, "1", (record,), score, ends, 0.0)

    results = [
        result(f"test/model{number:02}", row.name)
        for number in range(MODELS)
        for row in (ROWS if number < 8 else ROWS[:-1] if number < 10 else ROWS[:2])
    ]
    return rank_models(ROWS, results)


def shown_by(print_table: Callable[[bool], str], models: Sequence[str]) -> Cells:
    """The cells of a board as Markdown, by totals and groups, then by task; `models` as they follow one another."""
    cells: Cells = {}
    head, lines = _lines(print_table(False))
    for model, line in zip(models, lines, strict=True):
        cells |= {(model, name): text for name, text in zip(head, line, strict=True)}
    head, lines = _lines(print_table(True))
    for line in lines:
        for model, text in zip(models, line[3:], strict=True):
            cells.setdefault((model, line[0]), text)
    return {place: text.split(" ")[0] for place, text in cells.items() if text != "–"}


def on_the_command_line(name: str, models: Sequence[str]) -> Cells:
    """What `embark leaderboard -b NAME` prints, whole."""

    def printed(by_task: bool) -> str:
        words = ["leaderboard", "-b", name, "--wide", "--format", "markdown", *["--by-task"] * by_task]
        return CliRunner().invoke(app, words, catch_exceptions=False).stdout

    return shown_by(printed, models)


def of_board(board: Leaderboard) -> Cells:
    """The same of a board as a value."""
    models = [entry.model.model for entry in board.entries]
    return shown_by(lambda by_task: (board.tasks_table() if by_task else board.table()).format("markdown"), models)


def on_the_page(board: dict[str, Any]) -> Cells:
    """The text of every score in the page's data of a board."""
    names = [column["name"] for column in board["columns"]]
    places = [(model, name) for model in board["models"]["name"] for name in names]
    return {place: cell[1] for place, cell in zip(places, board["values"], strict=True) if cell}


def read(script: str) -> Any:
    """The data that a script of a page hands over."""
    return json.loads(script.removeprefix("embark(...").removesuffix(");\n"))[1]


def _lines(markdown: str) -> tuple[list[str], list[list[str]]]:
    """The head and the lines of a table without the headings of sections; bold is taken off names."""
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    rows = [[_plain(cell) for cell in line.strip("|").split(" | ")] for line in table]
    return rows[0], [row for row in rows[2:] if any(row[1:])]


def _plain(cell: str) -> str:
    return cell.strip().replace("\\", "").removeprefix("**").removesuffix("**")
