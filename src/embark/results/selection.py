"""The rows that `tasks=` chooses: built-in tasks, those of embark.toml, and own tasks that results on disk know."""

from __future__ import annotations

from embark.own.names import folder_tasks, tasks_here
from embark.results import Results
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
from embark.tasks import Tasks, choose_tasks, task_names
from embark.types import Task


def select_tasks(tasks: Tasks = None, protocol: str | None = None, settings: Settings | None = None) -> list[Task]:
    """Rows as `choose_tasks` has them; None is all tasks of embark.toml, else the pocket benchmark.

    Results are read only where a name is a pattern, or neither built in nor of embark.toml.
    """
    if tasks is None:
        tasks = folder_tasks() or None
    known = tasks_here()
    if not all(name in known for name in task_names(tasks)):
        settings = settings or load_settings()
        known = known_tasks(Results(settings.results).all(), settings.home)
    return choose_tasks(tasks, protocol, known)
