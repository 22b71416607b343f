"""`embark run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import embark
from embark.cli.options import (
    BatchSize,
    DataOptions,
    Format,
    Limit,
    LoadingOptions,
    ModelNames,
    ProtocolName,
    RunSettings,
    Select,
    StageOptions,
    Words,
)
from embark.cli.output import beside_stderr, emit, finish, say

As = Annotated[Words, typer.Option("--as", metavar="NAME", help="The name of the model in results and tables.")]
Rescore = Annotated[bool, typer.Option("--rescore", help="Compute scores again from the stored vectors.")]
Evict = Annotated[bool, typer.Option("--evict", help="Delete what was downloaded after its last task.")]


def run(
    model: ModelNames = None,
    names: As = None,
    *,
    tasks: DataOptions,
    protocol: ProtocolName = None,
    limit: Limit = None,
    rescore: Rescore = False,
    batch_size: BatchSize = None,
    evict: Evict = False,
    loading: LoadingOptions,
    stages: StageOptions,
    places: RunSettings,
    style: Format = "text",
    select: Select = None,
) -> None:
    """Evaluate models over tasks: by default those of embark.toml, else Pocket.

    \b
    embark run -m embark/pocket -t 'Pocket*ZeroShot' --engine ray
    embark run -m ./step-500/model --as mine/step-500 -b 'MIEB(lite)' --limit 100
    embark run -m embark/pocket --folder holiday-photos --kind retrieval
    embark run -m embark/pocket --dataset owner/name --columns image=img,text=caption
    """
    from embark.results import long_table
    from embark.run import NothingScored

    settings = places.settings()
    made = tasks.made(settings)
    try:
        report = embark.evaluate(
            model or None,
            tasks.chosen([*made, *tasks.of_file()]),
            protocol=protocol,
            settings=settings,
            limit=limit,
            rescore=rescore,
            batch_size=batch_size,
            loading=loading.loading(),
            stages=stages.stages(),
            evict=evict,
            name=names or None,
        )
    except NothingScored as failed:
        report = failed.run
    table = report.table()
    if report.results or style != "text":
        data = {"results": long_table(report.results), "skipped": [vars(skip) for skip in report.skipped]}
        emit(table, style, data, select)
    on_screen = table.notes if report.results and style == "text" and beside_stderr() else ()
    notes = [note for note in report.notes if note not in on_screen]
    say(*report.summary(), *notes, *_rows(made))
    finish(failed=any(skip.kind == "failed" for skip in report.skipped))


def _rows(tasks: Sequence[embark.types.Task]) -> list[str]:
    """The rows of a folder's tasks as TOML, and the notes on what no task was made of."""
    if not tasks:
        return []
    notes = dict.fromkeys(note for task in tasks for note in task.notes)
    lines = "\n".join(embark.tasks.to_toml(task) for task in tasks).splitlines()
    return [*notes, "To keep or change these tasks, save their rows for embark run --tasks-file FILE:", "", *lines]
