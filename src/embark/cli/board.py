"""`embark leaderboard`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from embark.cli.output import ProtocolName, ResultsFolder, print_table, say, some

if TYPE_CHECKING:
    from embark.results import TaskResult
    from embark.types import Task


def leaderboard(
    benchmark: Annotated[
        str, typer.Option("-b", "--benchmark", help="Benchmark name (see: embark benchmarks).")
    ] = "Pocket",
    protocol: ProtocolName = None,
    by_task: Annotated[bool, typer.Option("--by-task", help="One line a task, one column a model.")] = False,
    style: Annotated[str, typer.Option("--format", help="text, csv, json, markdown or latex.")] = "text",
    results: ResultsFolder = None,
) -> None:
    """Rank the models whose results are on disk.

    \b
    embark leaderboard
    embark leaderboard -b Pocket --by-task
    embark leaderboard -b 'MIEB(lite)' --protocol mteb2
    embark leaderboard --format markdown > board.md
    """
    from embark import settings
    from embark.analysis import table
    from embark.results import Results
    from embark.run import under
    from embark.tasks import TASKS, get_benchmark
    from embark.types import EmbarkError

    rows = under(protocol, TASKS.match(get_benchmark(benchmark).tasks))
    folder = settings.load(results=results).results
    found, stale = _current(rows, Results(folder).all())
    made = table.by_task(rows, found) if by_task else table.leaderboard(rows, found)
    if not any(row.cells for row in made.rows if not row.total):
        raise EmbarkError(f"There are no results for {benchmark} in {folder}. Make some: embark run -b '{benchmark}'")
    if stale:
        names = some(sorted({f"{result.task} of {result.model}" for result in stale}))
        say(f"left out, because scored under another protocol than the row has now (run again to compare): {names}")
    if style == "text":
        print_table(made)
    else:
        print(made.format(style))


def _current(tasks: Sequence[Task], results: Iterable[TaskResult]) -> tuple[list[TaskResult], list[TaskResult]]:
    """Results of these tasks that were made under their present protocols, and the others: unlike scores do not mix."""
    from embark.run import parts
    from embark.run.score import protocol_of

    expected = {(task.name, task.protocol): {protocol_of(task, *part) for part in parts(task)} for task in tasks}
    fresh: list[TaskResult] = []
    stale: list[TaskResult] = []
    for result in results:
        if (row := (result.task, result.protocol)) in expected:
            same = {record.protocol for record in result.records} == expected[row]
            (fresh if same else stale).append(result)
    return fresh, stale
