"""`embark report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.output import BenchmarkName, Names, ProtocolName, ResultsFolder, TaskNames, say
from embark.cli.run import Folder, TasksFile, named_tasks


def report(
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    model: Annotated[
        Names, typer.Option("-m", "--model", metavar="NAME", help="Names, name@revision or patterns (default: yours).")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder to write it to.")] = Path("report"),
    own: Annotated[bool, typer.Option("--own", help="Without published scores.")] = False,
    protocol: ProtocolName = None,
    results: ResultsFolder = None,
) -> None:
    """Write a paper-like report of scores: report.html (one file), report.md and report.tex, with figures and tables.

    It has leaderboards, scores with intervals, paired comparisons, errata, statistics and the protocol of each task,
    from results on disk and published scores. No model runs: where a score is missing, it says which command makes it.
    Without -b and -t: all tasks that you have results on.

    \b
    embark report -b Pocket -o report
    embark report -b Pocket -m embark/pocket -m embark/handmade -o report
    embark report -b 'MIEB(lite)' -m me/model -m '*siglip*'
    """
    settings = embark.load_settings(results=results)
    tasks = named_tasks(task, folder, tasks_file)
    whole = embark.report(benchmark, tasks, models=model, protocol=protocol, published=not own, settings=settings)
    paths = whole.write(out)
    say(*whole.notes, *(f"make them: {command}" for command in whole.missing))
    print(f"The report is {escape.terminal(str(paths[0]))}, with report.md, report.tex, figures and tables beside it.")
