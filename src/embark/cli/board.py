"""`embark leaderboard`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark.catalogue import listed
from embark.cli.options import (
    Families,
    Format,
    Include,
    MaxParams,
    Modalities,
    ModelPatterns,
    ProtocolName,
    ScoreSettings,
    Select,
    TaskOptions,
    Types,
)
from embark.cli.output import emit, say, terminal_width

SHOWN_MODELS = 20  # models shown on a terminal
BESIDE = 5  # of them side by side


def leaderboard(
    model: ModelPatterns = None,
    *,
    tasks: TaskOptions,
    protocol: ProtocolName = None,
    include: Include = "all",
    family: Families = None,
    type: Types = None,
    modality: Modalities = None,
    max_params: MaxParams = None,
    comparable: Annotated[
        bool, typer.Option("--comparable", help="Only tasks that all these models have scores on.")
    ] = False,
    zero_shot_only: Annotated[
        bool, typer.Option("--zero-shot-only", help="Without scores on data that a model was trained on.")
    ] = False,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="NAME", help="Another rule: median-of-types, mean-of-categories…")
    ] = None,
    weigh_by: Annotated[
        str | None, typer.Option("--weigh-by", metavar="MODEL", help="Weigh tasks by what this model lacks in them.")
    ] = None,
    borda: Annotated[bool, typer.Option("--borda", help="Rank by Borda points over tasks.")] = False,
    by_task: Annotated[bool, typer.Option("--by-task", help="One line per task, one column per model.")] = False,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="N", help="So many models (default: 20, or 5 by task).")
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="All models and columns, however wide.")] = False,
    style: Format = "text",
    select: Select = None,
    places: ScoreSettings,
) -> None:
    """Rank models by a benchmark's own rule: the published ones and yours, with rank intervals and ties.

    Without -b and -t: the tasks that embark.toml of this folder names, else the pocket benchmark; with --include
    own all tasks that you have results on.

    \b
    embark leaderboard -b MMEB-V3 --comparable
    embark leaderboard -b 'MIEB(lite)' --type encoder --max-params 500M --top 10
    embark leaderboard -b 'MIEB(eng)' --by-task -m '*EVA02*'
    embark leaderboard -t 'Holiday*' --format latex --select 'model,mean,*retrieval' > board.tex
    """
    board = embark.leaderboard(
        tasks.chosen(),
        protocol=protocol,
        include=include,  # type: ignore[arg-type]
        models=model,
        families=family,
        types=type,
        modalities=modality,
        max_parameters=max_params,
        comparable=comparable,
        zero_shot_only=zero_shot_only,
        rule=rule,
        weigh_by=weigh_by,
        borda=borda,
        settings=places.settings(),
    )
    say(*board.notes)
    many = len(board.entries)
    top = top or (many if wide or style != "text" else BESIDE if by_task else SHOWN_MODELS)
    table = board.tasks_table(top) if by_task else board.table(top)
    if style == "text" and not (wide or by_task or select):
        narrow = board.table(top, terminal_width())
        if hidden := [name for name in table.columns if name not in (*narrow.columns, "source")]:
            say(f"--wide shows more columns: {listed(hidden)}")
        table = narrow
    emit(table, style, columns=select)
    if top < many:
        say(f"{top} of {many} models are shown; --top {many} shows all, as --wide and the other formats do")
