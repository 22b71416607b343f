"""`embark vectors`: stored vectors as a file, and vectors from a file scored without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embark
from embark import escape
from embark.catalogue import Catalogue, counted
from embark.cli.grammar import Command
from embark.cli.output import (
    Format,
    Home,
    Offline,
    Precision,
    ProtocolName,
    ResultsFolder,
    Select,
    StoredPrecision,
    StorePlace,
    Trust,
    emit,
    finish,
    say,
)
from embark.cli.run import TasksFile

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.types import Task

app = typer.Typer(
    help="Vectors of a task to a file, and from a file to scores.", no_args_is_help=True, rich_markup_mode=None
)
TaskName = Annotated[str, typer.Option("-t", "--task", metavar="NAME", help="Task name.")]


@app.command("export", cls=Command)
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".parquet, or .npy (with a .jsonl file of ids).")],
    model: Annotated[str, typer.Option("-m", "--model", metavar="NAME", help="Model whose vectors are stored.")],
    task: TaskName,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")] = False,
    dtype: Precision = None,
    stored_dtype: StoredPrecision = None,
    trust: Trust = None,
    offline: Offline = False,
    style: Format = "text",
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> None:
    """Write a task's vectors: split, subset, side, id, hash of the content, and the vector as float32.

    \b
    embark vectors export -m embark/pocket -t PocketNameToImage names.parquet
    embark vectors export -m embark/pocket -t PocketNameToImage names.npy --embed
    """
    written = embark.exchange.export_vectors(
        model,
        _task(task, tasks_file),
        file,
        protocol=protocol,
        embed=embed,
        loading=embark.Loading(dtype=dtype, trust=trust, stored_dtype=stored_dtype),
        settings=embark.load_settings(home, results, offline=offline or None, store=store),
    )
    say(*written.notes)
    if style != "text":
        emit(written.table(), style)
        return
    sides = ", ".join(f"{count:,} {side}" for side, count in written.sides.items())
    count = counted(sum(written.sides.values()), "vector")
    print(escape.terminal(f"{count} of dimension {written.dim} to {file} ({sides})"))


@app.command("import", cls=Command)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".parquet with columns id and vector, or .npy.")],
    task: TaskName,
    ids: Annotated[
        Path | None, typer.Option("--ids", metavar="FILE", help="Ids of a .npy (default: its .jsonl), .csv, .txt…")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The model's name in results (default: imported/FILE).")
    ] = None,
    similarity: Annotated[str, typer.Option("--similarity", help="cosine or dot.")] = "cosine",
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    offline: Offline = False,
    style: Format = "text",
    select: Select = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
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
        _task(task, tasks_file),
        ids=ids,
        name=name,
        similarity=similarity,  # type: ignore[arg-type]
        protocol=protocol,
        settings=embark.load_settings(home, results, offline=offline or None, store=store),
    )
    emit(run.table(), style, {"results": long_table(run.results)}, select)
    result = run.results[0]
    finish(f"kept as {result.model}, revision {result.revision}, in {run.folder}", *run.notes)


def _task(name: str, tasks_file: Path | None) -> Any:
    """A task by its name, in a file of own tasks where there is one."""
    if tasks_file is None:
        return name
    own: list[Task] = embark.load_tasks(tasks_file)
    return Catalogue(f"task in {tasks_file}", own, lambda task: task.name)[name]
