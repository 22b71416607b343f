"""`embark show`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.output import Format, Home, ResultsFolder, emit, finish, wrapped
from embark.cli.run import Folder, TasksFile, own_rows

WIDTH = 14  # of the names of facts


def show(
    name: Annotated[
        str | None, typer.Argument(help="A task, benchmark or model, also of your own; a checkpoint folder.")
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="[NAME]", help="Columns and options of a reader; all readers.")
    ] = None,
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", metavar="[NAME]", help="Parameters of an evaluator; all evaluators.")
    ] = None,
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
    embark show --reader
    embark show --reader paired
    embark show --evaluator pairs
    """
    if (name is not None) + (reader is not None) + (evaluator is not None) != 1:
        raise typer.BadParameter("give a name, --reader or --evaluator")
    if name is None:
        declared = embark.reference("evaluator" if reader is None else "reader", reader or evaluator)
        if declared.about and style == "text":
            for paragraph in f"{declared.name}: {declared.about}".split("\n\n"):
                print(f"{wrapped(' '.join(paragraph.split()), 0)}\n")
        if declared.entries or declared.rows or style != "text":
            emit(declared.table(), style)
        finish(*declared.notes)
        return
    facts = embark.show(name, tasks=own_rows(folder, tasks_file), settings=embark.load_settings(home, results))
    if style != "text":
        emit(facts.table(), style, facts.as_dict(), local=True)
        return
    for fact, line in (row.cells for row in facts.table().rows):
        print(f"{fact:<{WIDTH}}{wrapped(escape.terminal(str(line)), WIDTH)}")
