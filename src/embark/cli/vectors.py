"""`embark vectors`: stored vectors as a file, and vectors from a file scored without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import embark
from embark import escape
from embark.catalogue import Catalogue, counted
from embark.cli.complete import choices, task_names
from embark.cli.grammar import Command, Group
from embark.cli.options import (
    Embed,
    Format,
    LoadingOptions,
    ModelName,
    ProtocolName,
    Select,
    StoreSettings,
    TasksOfOwn,
    expanded,
)
from embark.cli.output import emit, finish, say

app = typer.Typer(
    cls=Group,
    help="Vectors of a task to a file, and from a file to scores.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TaskName = Annotated[str, typer.Option("-t", "--task", metavar="NAME", autocompletion=task_names, help="Task name.")]


@app.command("export", cls=Command)
@expanded
def export(
    model: ModelName,
    task: TaskName,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help=".parquet, or .npy (with a .jsonl file of ids).")
    ],
    *,
    own: TasksOfOwn,
    protocol: ProtocolName = None,
    embed: Embed = False,
    loading: LoadingOptions,
    places: StoreSettings,
    style: Format = "text",
) -> None:
    """Write a task's vectors: split, subset, side, id, hash of the content, and the vector as float32.

    \b
    embark vectors export -m embark/pocket -t PocketNameToImage -o names.parquet
    embark vectors export -m embark/pocket -t PocketNameToImage -o names.npy --embed
    """
    written = embark.exchange.export_vectors(
        model,
        _task(task, own),
        out,
        protocol=protocol,
        embed=embed,
        loading=loading.loading(),
        settings=places.settings(),
    )
    say(*written.notes)
    if style != "text":
        emit(written.table(), style)
        return
    sides = ", ".join(f"{count:,} {side}" for side, count in written.sides.items())
    count = counted(sum(written.sides.values()), "vector")
    print(escape.terminal(f"{count} of dimension {written.dim} to {out} ({sides})"))


@app.command("import", cls=Command)
@expanded
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".parquet with columns id and vector, or .npy.")],
    task: TaskName,
    ids: Annotated[
        Path | None, typer.Option("--ids", metavar="FILE", help="Ids of a .npy (default: its .jsonl), .csv, .txt…")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The model's name in results (default: imported/FILE).")
    ] = None,
    similarity: Annotated[
        str,
        typer.Option("--similarity", metavar="NAME", autocompletion=choices("cosine", "dot"), help="cosine or dot."),
    ] = "cosine",
    *,
    own: TasksOfOwn,
    protocol: ProtocolName = None,
    places: StoreSettings,
    style: Format = "text",
    select: Select = None,
) -> None:
    """Score vectors that were made elsewhere, without a model; every item of the task needs one.

    Ids are those of the task's items, as an export writes them. Columns side, split and subset tell apart equal ids.

    \b
    embark vectors import mine.parquet -t PocketNameToImage --as me/my-model
    embark vectors import mine.npy --ids mine.csv -t PocketNameToImage --similarity dot
    """
    from embark.results import long_table

    run = embark.exchange.import_vectors(
        file,
        _task(task, own),
        ids=ids,
        name=name,
        similarity=similarity,  # type: ignore[arg-type]
        protocol=protocol,
        settings=places.settings(),
    )
    emit(run.table(), style, {"results": long_table(run.results)}, select)
    result = run.results[0]
    finish(f"kept as {result.model}, revision {result.revision}, in {run.folder}", *run.notes)


def _task(name: str, own: TasksOfOwn) -> Any:
    """A task by its name, among own ones where there are some."""
    rows = own.own()
    return Catalogue("task among your own", rows, lambda task: task.name)[name] if rows else name
