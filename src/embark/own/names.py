"""Tasks by name: the built-in ones, and the own ones that embark.toml of the working folder names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Unpack

from embark.catalogue import Catalogue
from embark.own.tasks_file import load_tasks, read_tasks
from embark.settings import FOLDER_FILE, folder_names, in_folder
from embark.tasks import TASKS, Choice, TaskFilters, Tasks, filter_tasks
from embark.types import Task


def get_tasks(tasks: Tasks = None, **filters: Unpack[TaskFilters]) -> list[Task]:
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


def tasks_among(names: Sequence[str], own: Sequence[Task]) -> list[Choice]:
    """Names and patterns with those that fit `own` tasks replaced by these; all own ones where no name fits any."""
    chosen: list[Choice] = []
    for name in names:
        chosen += [task for task in own if fnmatchcase(task.name, name)] or [name]
    return chosen if any(isinstance(choice, Task) for choice in chosen) else [*chosen, *own]
