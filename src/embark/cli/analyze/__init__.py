"""`embark analyze`: what the scores and the stored vectors tell, as a table and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embark.cli.output import print_table, say, some

if TYPE_CHECKING:
    from embark.boards.matrix import Matrix
    from embark.studies.study import Study

app = typer.Typer(name="analyze", no_args_is_help=True, rich_markup_mode=None, add_completion=False)

OnBenchmark = Annotated[str, typer.Option("-b", "--benchmark", help="Benchmark name (see: embark benchmarks).")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .svg, .pdf or .png.")]
Style = Annotated[str, typer.Option("--format", help="Of the table: text, csv, json, markdown or latex.")]
Own = Annotated[bool, typer.Option("--own", help="Only your own results, without the published ones.")]


@app.callback()
def start() -> None:
    """What scores and stored vectors tell: each analysis prints a table and draws a plot (--plot FILE).

    Scores are the published ones and yours; vectors are those in the store, so nothing is embedded again.
    """


def present(study: Study, style: str, plot: Path | None) -> None:
    """Draw the plot where one is asked for, and print the table."""
    if plot is not None:  # first: whoever reads the table may stop reading
        study.save(plot)
        say(f"drawn: {plot}")
    if style == "text":
        print_table(study.table)
    else:
        print(study.table.format(style))


def scores(benchmark: str, results: Path | None = None, own: bool = False) -> Matrix:
    """Models × tasks of a benchmark, as leaderboards have them, but with yours in place of published scores; what is
    known to be wrong in those is said.
    """
    from embark.boards.comparable_results import load_results
    from embark.boards.matrix import matrix
    from embark.published import ERRATUM
    from embark.settings import load_settings
    from embark.types import EmbarkError

    loaded = load_results(benchmark, published=not own, settings=load_settings(results=results))
    rows = loaded.tasks
    printed = [result for result in loaded.results if result.made_by == "published"]
    mine = [result for result in loaded.results if result.made_by != "published"]
    if not loaded.results:
        raise EmbarkError(f"There are no scores for {benchmark}. Make some: embark run -b '{benchmark}'")
    for note in loaded.notes:
        say(note)
    if bad := sum(any(mark.startswith(ERRATUM) for mark in result.warnings) for result in printed):
        say(f"{bad} of the published scores are known to be wrong and stand as printed (embark published errata)")
    made = matrix(rows, [*printed, *mine])
    both = {result.model for result in printed} & {result.model for result in mine}
    if joined := sorted(both & {*made.models}):
        say(f"yours count where there are published scores, too: {some(joined)}")
    return made
