"""Tasks with their stored vectors, by the names of models and tasks: what analyses of vectors start from."""

from __future__ import annotations

from collections.abc import Iterable

from embark.catalogue import listed
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results import Results
from embark.results.task_rows import known_tasks
from embark.run.embedded_task import Embedded
from embark.run.stored_vectors import Stored
from embark.settings import Settings, load_settings
from embark.tasks import Tasks, choose_tasks
from embark.types import EmbarkError, Task

Models = str | Encoder | Iterable[str | Encoder]
HOW_TO_EMBED = "add --embed to this command, or embed=True in Python"


def models_and_tasks(
    model: Models,
    tasks: Tasks,
    protocol: str | None = None,
    embed: bool = False,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> list[tuple[Stored, Task]]:
    """The stored vectors of every model with every chosen row: built-in tasks, and own ones that results know."""
    settings = settings or load_settings()
    rows = choose_tasks(tasks, protocol, known_tasks(Results(settings.results).all()))
    models = list(model) if isinstance(model, Iterable) and not isinstance(model, str) else [model]
    stores = [Stored(name, settings, embedding=embed, loading=loading, show_progress=show_progress) for name in models]
    return [(stored, row) for stored in stores for row in rows]


def stored_tasks(
    model: Models,
    tasks: Tasks,
    protocol: str | None = None,
    embed: bool = False,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> list[Embedded]:
    """Every chosen task as every model embedded it; what is not stored is embedded if `embed`, else an error."""
    pairs = models_and_tasks(model, tasks, protocol, embed, loading, settings, show_progress)
    return [stored.task(row) for stored, row in pairs]


def one_stored_task(
    model: Models,
    task: str | Task,
    protocol: str | None = None,
    embed: bool = False,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> list[Embedded]:
    """One task as every model embedded it."""
    pairs = models_and_tasks(model, [task], protocol, embed, loading, settings, show_progress)
    if len(names := dict.fromkeys(row.name for _, row in pairs)) > 1:
        raise EmbarkError(f"This analysis takes one task, and '{task}' names {len(names)}: {listed(list(names), 3)}.")
    return [stored.task(row) for stored, row in pairs]
