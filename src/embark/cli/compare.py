"""`embark compare`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.complete import model_names, task_names
from embark.cli.options import Format, Plot, ScoreSettings, Select, TaskOptions
from embark.cli.output import emit, finish, limited, print_table, say, terminal_width

SHOWN_FLIPS = 20  # flipped items named each way


def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", autocompletion=model_names, help="A model with results: a name, name@revision, or folder."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", autocompletion=model_names, help="The model to compare it with.")],
    *,
    tasks: TaskOptions,
    show: Annotated[
        str | None,
        typer.Option(
            "--show", metavar="TASK", autocompletion=task_names, help="Name the items that only one of them gets right."
        ),
    ] = None,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="End with status 1 if A is worse, on a task or in the mean.")
    ] = False,
    margin: Annotated[
        float, typer.Option("--margin", min=0, metavar="POINTS", help="A loss that --fail-if-worse tolerates.")
    ] = 0.0,
    places: ScoreSettings,
    plot: Plot = None,
    style: Format = "text",
    select: Select = None,
) -> None:
    """Compare two models item by item: differences with intervals, and which of them are more than chance.

    Without -b and -t: on all tasks that both have results on, your own tasks, too. As a gate, A is the candidate: it
    fails on a task that is worse by more than chance (after Holm's correction), or if the mean of all tasks is.

    \b
    embark compare embark/pocket embark/handmade
    embark compare embark/pocket embark/random -b Pocket --format json
    embark compare embark/pocket embark/handmade --show PocketFlagZeroShot
    embark compare ./step-500 ./step-400 --tasks-file tasks.toml -t 'Pets*'
    embark compare ./candidate ./released --fail-if-worse --margin 0.5 --plot differences.svg
    """
    settings = places.settings()
    if show is not None:
        flips = embark.compare(a, b, replace(tasks, task=[show]).chosen(), settings=settings).flips(show)
        if style == "text":
            print("\n".join(map(escape.terminal, flips.lines(SHOWN_FLIPS))))
        else:
            emit(flips.table(), style, flips.as_dict())
        return
    comparison = embark.compare(a, b, tasks.chosen(), settings=settings)
    worse = comparison.worse(margin) if fail_if_worse else ()
    if plot is not None:
        comparison.plot(plot)
        say(f"drawn: {plot}")
    if style == "text" and not select:
        sentence = comparison.sentence()
        lines = escape.folded(sentence, terminal_width()) if limited() else [escape.terminal(sentence)]
        print("\n".join(lines), end="\n\n")
        print_table(comparison.table())
        print()
        print_table(comparison.categories_table())
    else:
        data = comparison.as_dict() | ({"worse": list(worse)} if fail_if_worse else {})
        emit(comparison.table(), style, data, select)
    of_all = len(comparison.pairs) + len(comparison.refused)
    where = f" on the {len(comparison.pairs)} of {of_all} tasks that can be compared" if comparison.refused else ""
    passed = f"passed: {a} is not worse than {b}{where} (a loss of {margin:g} allowed)"
    verdict = [f"worse: {line}" for line in worse] or [passed]
    finish(*comparison.notes, *(verdict if fail_if_worse else ()), failed=worse)
