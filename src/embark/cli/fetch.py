"""`embark fetch`: the data of tasks, beforehand."""

from __future__ import annotations

from typing import Annotated

import typer

from embark.cli.output import AsJson, Home, print_json, print_table, say, some
from embark.cli.run import BenchmarkName, TaskNames, TasksFile, chosen_tasks


def fetch_(
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    tasks_file: TasksFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is here and what is missing, and stop.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Like --dry-run, without asking the hub.")] = False,
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Get the data of tasks beforehand, so that a run needs no network.

    Only the files of the tasks' splits are downloaded; what breaks off goes on where it stopped. Each task is then
    read once, as a run would, so that anything wrong with the data shows now. HF_TOKEN opens gated datasets.

    \b
    embark fetch -b 'MIEB(eng)' --dry-run
    embark fetch -t 'UniBench/*'
    """
    from embark.run.fetching import fetch
    from embark.settings import load_settings

    if not (benchmark or task or tasks_file):
        raise typer.BadParameter("give a benchmark (-b) or tasks (-t)")
    settings = load_settings(home, offline=offline or None)
    report = fetch(chosen_tasks(benchmark, task, None, tasks_file), dry_run=dry_run, settings=settings)
    if as_json:
        print_json(report.as_dict())
    elif report.datasets:
        print_table(report.table())
    for note in report.notes:
        say(note)
    for why, names in report.problems.items():
        say(f"failed: {some(names)}: {why}")
    if report.problems:
        raise typer.Exit(1)
