"""The outcomes of items of your own runs: the loader of the studies that need them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from embark.boards.comparable_results import ResultSet, load_results
from embark.catalogue import listed
from embark.results import TaskResult
from embark.settings import Settings
from embark.studies.model_filter import results_of
from embark.tasks import Tasks, Wanted
from embark.types import Array, EmbarkError

T = TypeVar("T")


def load_outcomes(tasks: Tasks, models: Wanted = None, settings: Settings | None = None) -> ResultSet:
    """The results on disk of chosen tasks and models, which are names or patterns; none is an error."""
    loaded = load_results(tasks, include="own", settings=settings)
    if not loaded.results:
        raise EmbarkError(
            "There are no results of these tasks on disk; scores of samples (--limit) do not count. Make some: "
            "embark run -t TASK"
        )
    return replace(loaded, results=results_of(models, loaded.results))


def columns_of(result: TaskResult) -> dict[str, Array]:
    """The outcomes of a result's items by column; empty where they cannot be read, as those of imported results."""
    try:
        table = result.outcomes()
    except (EmbarkError, OSError, ValueError):
        return {}
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def read_outcomes(
    read: Callable[[TaskResult], T | None],
    facts: str,
    evaluators: str,
    tasks: Tasks,
    models: Wanted,
    settings: Settings | None,
) -> tuple[tuple[T, ...], tuple[str, ...]]:
    """The value that `read` makes of each result, without None, and notes on the results that were left out.

    `facts` and `evaluators` name what the outcomes must hold, and the tasks whose outcomes do.
    """
    loaded = load_outcomes(tasks, models, settings)
    values = [(result, read(result)) for result in loaded.results]
    known = tuple(value for _, value in values if value is not None)
    if not known:
        raise EmbarkError(f"No result on disk has the {facts} of its items: only {evaluators} tasks do. Run one first.")
    absent = [f"{result.task} of {result.model}" for result, value in values if value is None]
    notes = (f"left out, as the outcomes have no {facts}: {listed(absent, 3)}",) if absent and tasks else ()
    return known, (*loaded.notes, *notes)
