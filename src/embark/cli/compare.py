"""`embark compare`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.output import BenchmarkName, Format, ResultsFolder, TaskNames, emit, print_table, say
from embark.cli.run import Folder, TasksFile, named_tasks

SHOWN = 20  # flipped items named each way


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A model with results: a name, name@revision, or folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The model to compare it with.")],
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    show: Annotated[
        str | None, typer.Option("--show", metavar="TASK", help="Name the items that only one of them gets right.")
    ] = None,
    style: Format = "text",
    results: ResultsFolder = None,
) -> None:
    """Compare two models item by item: differences with intervals, and which of them are more than chance.

    Without -b and -t: on all tasks that both have results on, your own tasks, too.

    \b
    embark compare embark/pocket embark/handmade
    embark compare embark/pocket embark/random -b Pocket --format json
    embark compare embark/pocket embark/handmade --show PocketFlagZeroShot
    embark compare ./step-500 ./step-400 --tasks-file tasks.toml -t 'Pets*'
    """
    settings = embark.load_settings(results=results)
    if show is not None:
        flips = embark.compare(a, b, tasks=named_tasks([show], folder, tasks_file), settings=settings).flips(show)
        if style == "text":
            print("\n".join(map(escape.terminal, flips.lines(SHOWN))))
        else:
            emit(flips.table(), style, flips.as_dict())
        return
    comparison = embark.compare(a, b, benchmark, named_tasks(task, folder, tasks_file), settings=settings)
    if style == "text":
        print_table(comparison.table())
        print()
        print_table(comparison.categories_table())
        print(f"\n{escape.terminal(comparison.sentence())}")
    else:
        emit(comparison.table(), style, comparison.as_dict())
    say(*comparison.notes)
