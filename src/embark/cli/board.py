"""`embark leaderboard`."""

from __future__ import annotations

from typing import Annotated

import typer

from embark.cli.output import ResultsFolder, print_table


def leaderboard(
    benchmark: Annotated[
        str, typer.Option("-b", "--benchmark", help="Benchmark name (see: embark benchmarks).")
    ] = "Pocket",
    by_task: Annotated[bool, typer.Option("--by-task", help="One line a task, one column a model.")] = False,
    style: Annotated[str, typer.Option("--format", help="text, csv, json, markdown or latex.")] = "text",
    results: ResultsFolder = None,
) -> None:
    """Rank the models whose results are on disk.

    \b
    embark leaderboard
    embark leaderboard -b Pocket --by-task
    embark leaderboard --format markdown > board.md
    """
    from embark import settings
    from embark.analysis import table
    from embark.results import Results
    from embark.tasks import TASKS, get_benchmark
    from embark.types import EmbarkError

    rows = TASKS.match(get_benchmark(benchmark).tasks)
    folder = settings.load(results=results).results
    found = list(Results(folder).all())
    made = table.by_task(rows, found) if by_task else table.leaderboard(rows, found)
    if not any(row.cells for row in made.rows if not row.total):
        raise EmbarkError(f"There are no results for {benchmark} in {folder}. Make some: embark run -b '{benchmark}'")
    if style == "text":
        print_table(made)
    else:
        print(made.format(style))
