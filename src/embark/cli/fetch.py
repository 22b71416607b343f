"""`embark fetch` and `embark check`: the data of tasks, beforehand, and whether it is what their rows say."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark.cli.options import Format, ScoreSettings, StoreSettings, TaskOptions
from embark.cli.output import emit, finish


def fetch(
    *,
    tasks: TaskOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is here and what is missing, and stop.")] = False,
    places: StoreSettings,
    style: Format = "text",
) -> None:
    """Get the data of tasks beforehand, so that a run needs no network.

    Only the files of the tasks' splits are downloaded; what breaks off goes on where it stopped. Each task is then
    read once, as a run would, so that anything wrong with the data shows now. HF_TOKEN opens gated datasets.

    \b
    embark fetch -b 'MIEB(eng)' --dry-run
    embark fetch -t 'UniBench/*'
    """
    report = embark.fetch(tasks.required(), dry_run=dry_run, settings=places.settings())
    if report.datasets or style != "text":
        emit(report.table(), style, report.as_dict(), local=True)
    finish(*report.notes, failed=report.problems)


def check(
    *,
    tasks: TaskOptions,
    places: ScoreSettings,
    style: Format = "text",
) -> None:
    """Hold the rows of tasks against the hub, without downloading the data.

    Listings, the footers of Parquet files and the first rows of others tell whether the revision exists, files and
    columns are found, rows are as many as stated, classes are in order, ids occur once and the license is the same.
    Megabytes are read, by ranges. The exit status is 1 where anything differs.

    \b
    embark check -b 'MIEB(lite)'
    embark check -t 'UniBench/*' --format csv
    """
    report = embark.tasks.check(tasks.required(), settings=places.settings())
    emit(report.table(), style, local=True)
    finish(*report.notes, failed=report.differences)
