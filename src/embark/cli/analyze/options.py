"""What the commands of `embark analyze` share: their options, and how a study is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embark.cli.output import print_table, say

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.studies.study import Study

OnBenchmark = Annotated[
    str | None, typer.Option("-b", "--benchmark", help="Benchmark name (default: MIEB(Multilingual)).")
]
OnTasks = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Instead, tasks by name or pattern, also your own.")
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .svg, .pdf or .png.")]
Style = Annotated[str, typer.Option("--format", help="Of the table: text, csv, json, markdown or latex.")]
Own = Annotated[bool, typer.Option("--own", help="Only your own results, without the published ones.")]


def present(study: Study, style: str, plot: Path | None) -> None:
    """Print the notes and the table of a study, and draw its plot into a file where one is wanted."""
    for note in study.notes:
        say(note)
    if plot is not None:  # first: whoever reads the table may stop reading
        study.plot(plot)
        say(f"drawn: {plot}")
    if style == "text":
        print_table(study.table())
    else:
        print(study.table().format(style))
