"""`embark card` and `embark push`: scores for a model's card, and results for the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark import escape
from embark.catalogue import counted
from embark.cli.complete import choices
from embark.cli.options import Format, ModelWithResults, ProtocolName, ScoreSettings, TaskOptions
from embark.cli.output import emit, say


def card(
    model: ModelWithResults,
    *,
    tasks: TaskOptions,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            metavar="NAME",
            autocompletion=choices("hub", "mteb"),
            help="hub (by task) or mteb (by split and subset).",
        ),
    ] = "hub",
    readme: Annotated[
        Path | None,
        typer.Option("--readme", metavar="FILE", help="Put them into this card, between marks; all else stays."),
    ] = None,
    protocol: ProtocolName = None,
    style: Format = "text",
    places: ScoreSettings,
) -> None:
    """Write the scores section of a model card: the hub's model-index metadata, and a table with intervals.

    \b
    embark card -m embark/pocket
    embark card -m embark/pocket -b Pocket --readme my-model/README.md
    embark card -m embark/pocket --layout mteb
    """
    settings = places.settings()
    section = embark.exchange.card(model, tasks.chosen(), layout=layout, protocol=protocol, settings=settings)  # type: ignore[arg-type]
    say(*section.notes)
    if readme is not None:
        section.write(readme)
        print(f"scores of {escape.terminal(section.model)} on {counted(len(section.results), 'task')} to {readme}")
    elif style == "text":
        print(str(section), end="")
    else:
        emit(section.table(), style, section.model_index())


def push(
    repo: Annotated[str, typer.Argument(metavar="REPO", help="A repository of the hub: organization/name.")],
    model: ModelWithResults,
    *,
    tasks: TaskOptions,
    repo_type: Annotated[
        str, typer.Option("--repo-type", metavar="TYPE", help="Of the repository: dataset or model.")
    ] = "dataset",
    outcomes: Annotated[bool, typer.Option("--outcomes", help="What became of every item, too.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Make a private repository if there is none.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Upload; without it, only show what would be.")] = False,
    style: Format = "text",
    places: ScoreSettings,
) -> None:
    """Upload a model's results to the hub, in one commit. Without --yes: show what would be uploaded.

    Results on your own data go along only if -t names them. The token is HF_TOKEN, or that of `hf auth login`.

    \b
    embark push my-org/scores -m embark/pocket
    embark push my-org/scores -m embark/pocket --create --yes
    """
    options = {"repo_type": repo_type, "outcomes": outcomes, "create": create, "upload": yes}
    pushed = embark.exchange.push(model, repo, tasks.chosen(), settings=places.settings(), **options)  # type: ignore[arg-type]
    emit(pushed.table(), style)
    say(*pushed.notes, pushed.sentence() + ("" if yes else " Nothing was uploaded: add --yes."))
