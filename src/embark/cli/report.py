"""`embark report`."""

from __future__ import annotations

from pathlib import Path

import embark
from embark import escape
from embark.cli.options import Include, ModelPatterns, OutFolder, ProtocolName, ScoreSettings, TaskOptions
from embark.cli.output import say


def report(
    model: ModelPatterns = None,
    *,
    tasks: TaskOptions,
    out: OutFolder = Path("report"),
    include: Include = "all",
    protocol: ProtocolName = None,
    places: ScoreSettings,
) -> None:
    """Write a paper-like report of scores: report.html (one file), report.md and report.tex, with figures and tables.

    It has leaderboards, scores with intervals, paired comparisons, errata, statistics and the protocol of each task,
    from results on disk and published scores. No model runs: where a score is missing, it says which command makes it.
    Without -b and -t: all tasks that you have results on; without -m: your models.

    \b
    embark report -b Pocket -o report
    embark report -b Pocket -m embark/pocket -m embark/handmade -o report
    embark report -b 'MIEB(lite)' -m me/model -m '*siglip*'
    """
    whole = embark.report(
        tasks.chosen(),
        models=model,
        protocol=protocol,
        include=include,  # type: ignore[arg-type]
        settings=places.settings(),
    )
    paths = whole.write(out)
    say(*whole.notes, *(f"make them: {command}" for command in whole.missing))
    print(f"The report is {escape.terminal(str(paths[0]))}, with report.md, report.tex, figures and tables beside it.")
