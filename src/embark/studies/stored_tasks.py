"""Tasks with their stored vectors, by the names of models and tasks, for analyses of vectors."""

from __future__ import annotations

from typing import TypedDict, Unpack

from embark.catalogue import listed
from embark.models import Loading
from embark.results.selection import select_tasks
from embark.run.embedded_task import Embedded
from embark.run.models import Models, choose_models
from embark.run.stored_vectors import Stored
from embark.settings import Settings, load_settings
from embark.tasks import Tasks
from embark.types import EmbarkError, Task

HOW_TO_EMBED = "add --embed to this command, or embed=True in Python"


class SharedArguments(TypedDict, total=False):
    """The keyword arguments that all analyses of stored vectors share; `models_and_tasks` has their defaults."""

    protocol: str | None  # score as this protocol does where it differs from the paper
    embed: bool  # embed what is not stored, instead of refusing
    loading: Loading | None  # of models that are given by name
    settings: Settings | None
    show_progress: bool


def models_and_tasks(
    model: Models,
    tasks: Tasks,
    *,
    protocol: str | None = None,
    embed: bool = False,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> list[tuple[Stored, Task]]:
    """The stored vectors of every model with every chosen row: built-in tasks, and own ones that results know."""
    settings = settings or load_settings()
    rows = select_tasks(tasks, protocol, settings)
    encoders = choose_models(model, loading, settings)
    stores = [Stored(encoder, settings, embedding=embed, show_progress=show_progress) for encoder in encoders]
    return [(stored, row) for stored in stores for row in rows]


def stored_tasks(model: Models, tasks: Tasks, **shared: Unpack[SharedArguments]) -> list[Embedded]:
    """Every chosen task as every model embedded it; what is not stored is embedded if `embed`, else an error."""
    return [stored.task(row) for stored, row in models_and_tasks(model, tasks, **shared)]


def one_stored_task(model: Models, tasks: Tasks, **shared: Unpack[SharedArguments]) -> list[Embedded]:
    """One task as every model embedded it; several tasks are an error."""
    pairs = models_and_tasks(model, tasks, **shared)
    if len(names := dict.fromkeys(row.name for _, row in pairs)) > 1:
        raise EmbarkError(f"This analysis takes one task, and {len(names)} were chosen: {listed(list(names), 3)}.")
    return [stored.task(row) for stored, row in pairs]
