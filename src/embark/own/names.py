"""Tasks by name: the built-in ones, and the own ones that embark.toml of the working folder names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Unpack

from embark.catalogue import Catalogue
from embark.own.tasks_file import load_tasks, read_tasks
from embark.settings import FOLDER_FILE, folder_names, in_folder
from embark.tasks import TASKS, TaskFilters, Tasks, Wanted, choose_tasks, filter_tasks
from embark.types import Task


def get_tasks(tasks: Wanted = None, **filters: Unpack[TaskFilters]) -> list[Task]:
    """Tasks by name and property, also those that embark.toml of the working folder names.

    `filters` are evaluators, families, categories, capabilities, languages, modalities, licenses and max_items; each
    but the last may be one value or several, and a glob. `evaluators` are retrieval, zeroshot… A task passes
    `languages` with any of its languages ("eng" is any script of English), `modalities` when it needs no others, and
    `max_items` when it is known to embed no more.
    """
    return filter_tasks(tasks_here(), tasks, **filters)


def folder_tasks() -> list[Task]:
    """The tasks that embark.toml of the working folder names: those of its [[task]] tables, and of its tasks file."""
    names = folder_names()
    own = read_tasks(Path(FOLDER_FILE), names["task"]) if "task" in names else []
    return own + (load_tasks(in_folder(names["tasks"], "'tasks'")) if "tasks" in names else [])


def tasks_here(more: Iterable[Task] = ()) -> Catalogue[Task]:
    """The built-in tasks, those of embark.toml, and of `more` those whose names are not among them."""
    own = folder_tasks()
    names = {task.name for task in own}
    return TASKS.with_rows([*own, *(task for task in more if task.name not in names)])


def tasks_to_run(tasks: Tasks = None, protocol: str | None = None) -> list[Task]:
    """Rows as `choose_tasks` has them; None is all tasks of embark.toml, else the pocket benchmark."""
    own = folder_tasks()
    return choose_tasks(own or None if tasks is None else tasks, protocol, TASKS.with_rows(own))


def tasks_among(names: Sequence[str] | None, own: Sequence[Task]) -> list[Task]:
    """The rows that names and patterns choose: each among `own` tasks where it fits any, else among all others.

    All own ones where no name fits any of them.
    """
    chosen: list[Task] = []
    for name in names or ():
        fitting = [task for task in own if fnmatchcase(task.name, name)]
        chosen += fitting or choose_tasks(name, known=tasks_here())
    return chosen if any(task in own for task in chosen) else [*chosen, *own]
