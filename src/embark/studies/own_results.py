"""The results of your own runs, whose outcomes of items some studies need."""

from __future__ import annotations

from dataclasses import replace

from embark.boards.comparable_results import ResultSet, load_results
from embark.catalogue import match_words
from embark.settings import Settings
from embark.tasks import Tasks, Wanted
from embark.types import EmbarkError


def own_results(tasks: Tasks, models: Wanted = None, settings: Settings | None = None) -> ResultSet:
    """The results on disk of chosen tasks and models, which are names or patterns; none is an error."""
    loaded = load_results(tasks, include="own", settings=settings)
    if not loaded.results:
        raise EmbarkError(
            "There are no results of these tasks on disk; scores of samples (--limit) do not count. Make some: "
            "embark run -t TASK"
        )
    wanted = match_words("model with results", {result.model for result in loaded.results}, models)
    return replace(
        loaded, results=tuple(result for result in loaded.results if wanted is None or result.model in wanted)
    )
