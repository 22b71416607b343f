"""What the commands of `embark analyze` share: their options, and how a study is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embark.cli.output import emit, say

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.studies.study import Study

OnBenchmark = Annotated[
    str | None, typer.Option("-b", "--benchmark", help="Benchmark name (default: MIEB(Multilingual)).")
]
OnTasks = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Instead, tasks by name or pattern, also your own.")
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .svg, .pdf or .png.")]
Own = Annotated[bool, typer.Option("--own", help="Only your own results, without the published ones.")]


def present(study: Study, style: str, plot: Path | None) -> None:
    """Print the notes and the table of a study, and draw its plot into a file where one is wanted."""
    say(*study.notes)
    if plot is not None:  # first: whoever reads the table may stop reading
        study.plot(plot)
        say(f"drawn: {plot}")
    emit(study.table(), style)
