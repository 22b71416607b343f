"""`embark show`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.output import Format, Home, ResultsFolder, emit, wrapped
from embark.cli.run import Folder, TasksFile, own_rows

WIDTH = 14  # of the names of facts


def show(
    name: Annotated[str, typer.Argument(help="A task, benchmark or model, also of your own; a checkpoint folder.")],
    folder: Folder = None,
    tasks_file: TasksFile = None,
    style: Format = "text",
    home: Home = None,
    results: ResultsFolder = None,
) -> None:
    """Show all that is known about one task, benchmark or model, published scores among it.

    A task's sample item is shown when its data is on this machine; nothing is downloaded.

    \b
    embark show PocketFlagZeroShot
    embark show embark/pocket
    embark show PetsRetrieval --tasks-file tasks.toml
    """
    facts = embark.show(name, tasks=own_rows(folder, tasks_file), settings=embark.load_settings(home, results))
    if style != "text":
        emit(facts.table(), style, facts.as_dict())
        return
    for fact, line in (row.cells for row in facts.table().rows):
        print(f"{fact:<{WIDTH}}{wrapped(escape.terminal(str(line)), WIDTH)}")
