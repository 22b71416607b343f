"""Fetches the data of tasks beforehand, so that a run needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embark import readers
from embark.catalogue import counted, listed
from embark.engine.progress import progress
from embark.field_types import checked
from embark.hub import Hub
from embark.hub.listing import is_local
from embark.results.selection import select_tasks
from embark.run.crash_log import CrashLog
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Table, applicable, by_column
from embark.tasks import Tasks
from embark.types import EmbarkError, Task

NOTHING = "nothing to fetch: the data of these tasks is here already"
ONLY_ROWS = "These are the files that the rows list; readers may open more files, such as media named in the data."


@dataclass(frozen=True)
class FetchedDataset:
    """The files of one dataset at one revision, and how many of their bytes are on this machine."""

    dataset: str
    revision: str
    files: int
    bytes: int
    present: int

    @property
    def missing(self) -> int:
        """Bytes that are still to be fetched."""
        return self.bytes - self.present


@dataclass(frozen=True)
class FetchReport(Noted):
    """What was fetched, or would be; `problems` are the tasks whose data could not be had, by reason."""

    datasets: tuple[FetchedDataset, ...]
    problems: dict[str, list[str]]

    def rows(self) -> list[dict[str, Any]]:
        """One row per dataset."""
        return [{**vars(dataset), "missing": dataset.missing} for dataset in self.datasets]

    def total(self) -> dict[str, int]:
        """The sums over datasets."""
        return {name: sum(row[name] for row in self.rows()) for name in ("files", "bytes", "present", "missing")}

    def table(self) -> Table:
        """Datasets × files and bytes, and their sums."""
        columns = ("dataset", "revision", "files", "bytes", "present", "missing")
        rows = [
            Row((data.dataset, data.revision[:12], data.files, data.bytes, data.present, data.missing))
            for data in self.datasets
        ]
        rows.append(Row(("all", "", *self.total().values()), total=True))
        return Table(columns, tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "datasets": self.rows(),
            "total": self.total(),
            "problems": [{"tasks": tasks, "why": why} for why, tasks in self.problems.items()],
        }

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """`rows` as columns."""
        return by_column(self.rows())


@checked
def fetch(
    tasks: Tasks, *, dry_run: bool = False, settings: Settings | None = None, show_progress: bool = True
) -> FetchReport:
    """Have the data of tasks on this machine: the files of their splits are downloaded, and each task is read once.

    `dry_run` finds out what is here and what is missing, and downloads nothing; so do settings that are offline.
    """
    settings = settings or load_settings()
    hub = Hub(settings, lambda title, total: progress(title, total, show_progress, "bytes"))
    only_look = dry_run or hub.offline
    chosen = [task for task in select_tasks(tasks, None, settings) if from_hub(task)]
    problems: dict[str, list[str]] = {}
    log = CrashLog(settings)
    for task in chosen:
        try:
            _list_files(task, hub) if only_look else _download_and_read(task, hub)
        except Exception as error:  # it costs this task's data, not that of the others
            problems.setdefault(log.reason(error, f"fetching {task.name}"), []).append(task.name)
    if not only_look:
        for id, revision in hub.opened:
            hub.terms(id, revision)  # which a fetch that was stopped lacks
    notes = applicable({NOTHING: not chosen, ONLY_ROWS: dry_run and hub.opened})
    failures = [f"failed: {listed(names)}: {why}" for why, names in problems.items()]
    return FetchReport(_datasets(hub), problems, notes=(*notes, *failures))


def require_data(tasks: Sequence[Task], hub: Hub) -> None:
    """An error that lists the tasks whose files are not on this machine, for a run that must do without the hub."""
    if missing := [task.name for task in tasks if from_hub(task) and not _is_here(task, hub)]:
        names = " ".join(f"-t '{name}'" for name in missing)
        raise EmbarkError(
            f"Offline, and the data of {counted(len(missing), 'task')} is not on this machine: {listed(missing)}. "
            f"Get it beforehand: embark fetch {names}"
        )


def _is_here(task: Task, hub: Hub) -> bool:
    """Whether all files that the task's row tells of are on this machine."""
    try:
        needed = readers.needed_files(task, hub)
        return all(hub.has(source.id, source.revision, file) for source, files in needed for file in files)
    except EmbarkError:  # nobody knows which files they are
        return False
    except Exception:  # what is here is damaged, which reading it will tell
        return True


def from_hub(task: Task) -> bool:
    """Whether a task's data is on the hub: that of Pocket comes with the package, and a folder is on this machine."""
    return not task.reader.startswith("pocket") and not is_local(task.source.id)


def _list_files(task: Task, hub: Hub) -> None:
    for source, files in readers.needed_files(task, hub):
        hub.opened.setdefault((source.id, source.revision), {}).update((file.path, file) for file in files)


def download(task: Task, hub: Hub) -> None:
    """Have the files of a task on this machine, as far as its row tells which they are."""
    for source, files in readers.needed_files(task, hub):
        hub.get_all(source.id, source.revision, [file.path for file in files])


def _download_and_read(task: Task, hub: Hub) -> None:
    download(task, hub)
    for split, subset in task.parts:
        readers.read(task, split, subset, hub)


def _datasets(hub: Hub) -> tuple[FetchedDataset, ...]:
    return tuple(
        FetchedDataset(
            id,
            revision,
            files=len(files),
            bytes=sum(file.size for file in files.values()),
            present=sum(file.size for file in files.values() if hub.has(id, revision, file)),
        )
        for (id, revision), files in sorted(hub.opened.items())
    )
