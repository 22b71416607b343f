"""`embark fetch`: the data of tasks, beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from embark.cli.output import AsJson, Home, print_columns, print_json, say, some
from embark.cli.run import BenchmarkName, TaskNames, TasksFile, chosen_tasks

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.data.fetch import Hub
    from embark.types import Task

COLUMNS = ("files", "bytes", "present", "missing")


def fetch(
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
    from embark.data.fetch import Hub
    from embark.run import resolve_tasks
    from embark.settings import load_settings

    if not (benchmark or task or tasks_file):
        raise typer.BadParameter("give a benchmark (-b) or tasks (-t)")
    problems: dict[str, list[str]] = {}  # by reason
    hub = Hub(load_settings(home, offline=offline or None))
    rows = [row for row in resolve_tasks(chosen_tasks(benchmark, task, None, tasks_file)) if _from_hub(row)]
    for row in rows:
        if why := _get(row, hub, dry_run or hub.offline):
            problems.setdefault(why, []).append(row.name)
    found = _counted(hub)
    if not rows:
        say("nothing to fetch: the data of these tasks is here already")
    total: dict[str, Any] = {name: sum(line[name] for line in found) for name in COLUMNS}
    if as_json:
        print_json(
            {"datasets": found, "total": total, "problems": [{"tasks": t, "why": w} for w, t in problems.items()]}
        )
    elif found:
        shown = [[line["dataset"], line["revision"][:12], *(f"{line[name]:,}" for name in COLUMNS)] for line in found]
        shown.append(["all", "", *(f"{total[name]:,}" for name in COLUMNS)])
        print_columns(["dataset", "revision", *COLUMNS], shown, right=COLUMNS)
        if dry_run:
            say("These are the files that rows tell of; readers may open more of them, such as media that rows name.")
    for why, names in problems.items():
        say(f"failed: {some(names)}: {why}")
    if problems:
        raise typer.Exit(1)


def _from_hub(task: Task) -> bool:
    """The pocket benchmark comes with the package, and a folder is here already."""
    from embark.data.fetch import is_local

    return not task.reader.startswith("pocket") and not is_local(task.source.id)


def _get(task: Task, hub: Hub, dry: bool) -> str:
    """Have a task's files here, or only find out which they are; what went wrong, if anything did."""
    from embark.data import readers
    from embark.run import parts
    from embark.types import EmbarkError

    try:
        for source, files in readers.needed_files(task, hub):
            if dry:
                hub.opened.setdefault((source.id, source.revision), {}).update((file.path, file) for file in files)
            else:
                hub.get_all(source.id, source.revision, [file.path for file in files])
        for part in () if dry else parts(task):
            readers.read(task, *part, hub)
    except EmbarkError as error:
        return str(error)
    return ""


def _counted(hub: Hub) -> list[dict[str, Any]]:
    """One line a dataset and revision."""
    lines = []
    for (id, revision), files in sorted(hub.opened.items()):
        here = sum(file.size for file in files.values() if hub.has(id, revision, file))
        size = sum(file.size for file in files.values())
        counts = {"files": len(files), "bytes": size, "present": here, "missing": size - here}
        lines.append({"dataset": id, "revision": revision, **counts})
    return lines
