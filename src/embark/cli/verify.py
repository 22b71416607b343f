"""`embark verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.options import (
    BatchSize,
    Format,
    Limit,
    LoadingOptions,
    ModelName,
    Plot,
    ProtocolName,
    RunSettings,
    Save,
    Select,
    TaskOptions,
)
from embark.cli.output import emit, limited, print_table, say, terminal_width


def verify(
    model: ModelName,
    *,
    tasks: TaskOptions,
    published_as: Annotated[
        str | None, typer.Option("--published-as", metavar="NAME", help="The model's name in the published tables.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="DIR", help="Results to compare with instead: mteb's, embark's…"),
    ] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Take scores from disk, and run nothing.")] = False,
    protocol: ProtocolName = None,
    limit: Limit = None,
    batch_size: BatchSize = None,
    loading: LoadingOptions,
    places: RunSettings,
    plot: Plot = None,
    save: Save = False,
    style: Format = "text",
    select: Select = None,
) -> None:
    """Hold a model's scores against the published ones: reproduced, or not, and the likely cause.

    Runs the tasks that have a published score, unless scores are on disk. Ends with status 0 if all that can be
    compared is reproduced, 1 if a score differs or a task failed, 3 if nothing can be compared.

    \b
    embark verify -m openai/clip-vit-base-patch32 -b 'MIEB(lite)' --limit 2000
    embark verify -m ./my-checkpoint --published-as org/model -b 'MIEB(lite)'
    embark verify -m org/model -b 'MIEB(lite)' --against mteb-results --stored --save
    """
    settings = places.settings()
    verification = embark.verify(
        model,
        tasks.required(),
        published_as=published_as,
        against=against,
        protocol=protocol,
        limit=limit,
        run=not stored,
        batch_size=batch_size,
        loading=loading.loading(),
        settings=settings,
    )
    if save:
        say(f"kept: {embark.site.save_report(verification, settings=settings)}")
    if plot is not None:
        verification.plot(plot)
        say(f"drawn: {plot}")
    if style == "text" and not select:
        sentence = verification.sentence()
        lines = escape.folded(sentence, terminal_width()) if limited() else [escape.terminal(sentence)]
        print("\n".join(lines), end="\n\n")
        print_table(verification.table())
    else:
        emit(verification.table(), style, verification.as_dict(), select)
    say(*verification.notes)
    raise typer.Exit(verification.status)
