"""What the commands of `embark analyze` share: their options, and how a study is printed."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embark
from embark.cli.output import emit, say

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.settings import Settings
    from embark.studies.analysis import Analysis

OnBenchmark = Annotated[
    str | None, typer.Option("-b", "--benchmark", help="Benchmark name (default: MIEB(Multilingual)).")
]
OnTasks = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Instead, tasks by name or pattern, also your own.")
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .svg, .pdf or .png.")]
Own = Annotated[bool, typer.Option("--own", help="Only your own results, without the published ones.")]


def present(
    study: Analysis, style: str, plot: Path | None, columns: list[str] | None = None, keep: Settings | None = None
) -> None:
    """Print the notes and the table of a study, draw its plot into a file, and keep it in the results of `keep`."""
    say(*study.notes)
    if keep is not None:
        say(f"kept: {embark.save_report(study, settings=keep)}")
    if plot is not None:  # first: whoever reads the table may stop reading
        study.plot(plot)
        say(f"drawn: {plot}")
    emit(study.table(), style, columns=columns)


def with_shared(name: str, declared: Callable[..., None], run: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that `declared` has, then the keyword-only ones of `run`, and the help of `declared`.

    It calls `run` with its name, those of the declared options that are not None, and the shared ones.
    """
    own = signature(declared, eval_str=True).parameters
    of_run = signature(run, eval_str=True).parameters.values()
    shared = [option for option in of_run if option.kind == option.KEYWORD_ONLY]

    def command(**options: Any) -> None:
        values = {option: options.pop(option) for option in own}
        run(name, {option: value for option, value in values.items() if value is not None}, **options)

    command.__doc__ = declared.__doc__
    command.__signature__ = Signature([*own.values(), *shared])  # type: ignore[attr-defined]
    return command
