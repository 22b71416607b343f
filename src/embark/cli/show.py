"""`embark show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import embark
from embark import escape
from embark.cli.complete import everything
from embark.cli.options import Format, ScoreSettings, TasksOfOwn
from embark.cli.output import emit, finish, wrapped

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.declarations import Kind

WIDTH = 14  # of the names of facts


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=everything, help="A task, benchmark or model, also of your own; a checkpoint folder."
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="[NAME]", help="Columns and options of a reader; all readers.")
    ] = None,
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", metavar="[NAME]", help="Parameters of an evaluator; all evaluators.")
    ] = None,
    loader: Annotated[
        str | None, typer.Option("--loader", metavar="[NAME]", help="A loader of models; all loaders.")
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="[NAME]", help="A rule of benchmarks; all rules.")
    ] = None,
    study: Annotated[
        str | None, typer.Option("--study", metavar="[NAME]", help="Options of an analysis; all analyses.")
    ] = None,
    *,
    own: TasksOfOwn,
    places: ScoreSettings,
    style: Format = "text",
) -> None:
    """Show all that is known about one task, benchmark or model, published scores among it.

    A task's sample item is shown when its data is on this machine; nothing is downloaded. With an option, show what
    readers, evaluators, loaders, rules or analyses declare, those of plug-ins too.

    \b
    embark show PocketFlagZeroShot
    embark show embark/pocket
    embark show PetsRetrieval --tasks-file tasks.toml
    embark show --reader
    embark show --reader paired
    embark show --evaluator pairs
    embark show --rule mean-of-types
    """
    options: dict[Kind, str | None] = {
        "reader": reader, "evaluator": evaluator, "loader": loader, "rule": rule, "study": study,
    }  # fmt: skip
    chosen = [kind for kind, value in options.items() if value is not None]
    if (name is not None) + len(chosen) != 1:
        raise typer.BadParameter(f"give a name, or one of {', '.join(f'--{kind}' for kind in options)}")
    if name is None:
        declared = embark.seams.reference(chosen[0], options[chosen[0]])
        if declared.about and style == "text":
            for paragraph in f"{declared.name}: {declared.about}".split("\n\n"):
                print(f"{wrapped(' '.join(paragraph.split()), 0)}\n")
        if declared.entries or declared.rows or style != "text":
            emit(declared.table(), style)
        finish(*declared.notes)
        return
    facts = embark.show(name, rows=own.own(), settings=places.settings())
    if style != "text":
        emit(facts.table(), style, facts.as_dict(), local=True)
        return
    for fact, line in (row.cells for row in facts.table().rows):
        print(f"{fact:<{WIDTH}}{wrapped(escape.terminal(str(line)), WIDTH)}")
