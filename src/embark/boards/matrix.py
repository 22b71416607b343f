"""Scores as a matrix of models × tasks: what analyses of a whole field start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embark.boards.cards import card_of
from embark.boards.comparable_results import Include, load_results
from embark.boards.rules import RULES, summarize
from embark.catalogue import check_name, group_values, listed
from embark.models import MODELS
from embark.published import ERRATUM
from embark.results import TaskResult
from embark.settings import Settings
from embark.stats.means import ModelKey, by_model, names
from embark.tables import Columnar, Note, applicable
from embark.tasks import Tasks, chosen_benchmark
from embark.types import Array, EmbarkError, ModelCard, Task

MIEB = "MIEB(Multilingual)"  # the default: the benchmark with the most published scores
DEFAULT_RULE = "mean-of-categories"


@dataclass(frozen=True)
class Matrix(Columnar):
    """`values[i, j]` is the score of models[i] on tasks[j]; NaN where there is none.

    `models` are the names of rows; `model_keys` are the model, revision and source behind each name. `rule` turns the
    scores of a model into its total; `notes` tell which scores were left out. `own_cards` are those that stand beside
    the scores of models that are not in the catalogue.
    """

    models: tuple[str, ...]
    tasks: tuple[Task, ...]
    values: Array
    rule: str = DEFAULT_RULE
    notes: tuple[str, ...] = ()
    model_keys: tuple[ModelKey, ...] = ()
    own_cards: Mapping[ModelKey, ModelCard] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cards(self) -> dict[str, ModelCard]:
        """The cards of those models that have one, by the names of their rows."""
        keys = self.model_keys or [(model, "", "") for model in self.models]
        cards = {row: MODELS.get(key[0]) or self.own_cards.get(key) for row, key in zip(self.models, keys, strict=True)}
        return {row: card for row, card in cards.items() if card is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks' names."""
        return tuple(task.name for task in self.tasks)

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """A line per model: its name, then its score on each task."""
        lines = zip(self.models, self.values.tolist(), strict=True)
        return ["model", *self.names], [[model, *scores] for model, scores in lines]

    @property
    def weights(self) -> Array:
        """The weight of each task in the total of models that have a score on all tasks."""
        return weights(self.tasks, self.rule)

    @property
    def complete_rows(self) -> Array:
        """Which models have a score on every task, as a mask."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    def complete(self) -> Matrix:
        """The models that have a score on every task; an error where there are fewer than three."""
        complete = self.complete_rows
        if complete.sum() < 3:
            raise EmbarkError(
                f"This needs at least three models with a score on all {len(self.tasks)} tasks; "
                f"there are {int(complete.sum())}. Choose fewer tasks, or add results."
            )
        return self.only(models=complete)

    def only(self, models: Array | None = None, tasks: Callable[[Task], bool] | None = None) -> Matrix:
        """The matrix of some models, by a mask, and some tasks, by a test."""
        rows = np.flatnonzero(np.ones(len(self.models), bool) if models is None else models)
        columns = [column for column, task in enumerate(self.tasks) if tasks is None or tasks(task)]
        return replace(
            self,
            models=tuple(self.models[row] for row in rows),
            model_keys=tuple(self.model_keys[row] for row in rows) if self.model_keys else (),
            tasks=tuple(self.tasks[column] for column in columns),
            values=self.values[np.ix_(rows, np.array(columns, int))],
        )


def load_matrix(
    tasks: Tasks = None,
    *,
    include: Include = "all",
    settings: Settings | None = None,
) -> Matrix:
    """The scores on tasks (by default on MIEB): the published ones and yours, or with `include` only those of one kind.

    Where a model has a published score and yours, yours counts.
    """
    tasks = MIEB if tasks is None else tasks
    benchmark = chosen_benchmark(tasks)
    loaded = load_results(tasks, include=include, settings=settings)
    scores = matrix(loaded.tasks, loaded.results)
    if not scores.tasks:
        if benchmark is None:
            raise EmbarkError("There are no scores for the chosen tasks. Make some: embark run -t TASK")
        raise EmbarkError(f"There are no scores for {benchmark.name}. Make some: embark run -b '{benchmark.name}'")
    rule = DEFAULT_RULE if benchmark is None else benchmark.rule
    return replace(scores, rule=rule, notes=(*loaded.notes, *_notes(scores, loaded.results)))


def matrix(tasks: Sequence[Task], results: Iterable[TaskResult]) -> Matrix:
    """The scores of these rows, under their protocols; tasks without any score are left out.

    As on a leaderboard, every revision and source of a model has a row; only published scores are merged with yours.
    """
    scores = _fill_gaps(by_model(tasks, results))
    values = np.array(
        [row[task.name].score if task.name in row else np.nan for row in scores.values() for task in tasks], np.float64
    ).reshape(len(scores), len(tasks))
    scored = np.flatnonzero(~np.isnan(values).all(axis=0))
    columns = tuple(tasks[column] for column in scored.tolist())
    cards = {key: card_of(next(iter(row.values()))) for key, row in scores.items() if key[0] not in MODELS}
    own_cards = {key: card for key, card in cards.items() if card is not None}
    return Matrix(_rows(list(scores)), columns, values[:, scored], model_keys=tuple(scores), own_cards=own_cards)


def group_of(task: Task, by: str) -> str:
    """The group of a task: its category, the task itself, or one of its tags (type, capability, domain…)."""
    if by in ("category", "task"):
        return task.category if by == "category" else task.name
    check_name(f"grouping of {task.name}", by, ("category", "task", *task.tags))
    return task.tags[by]


def grouped(tasks: Sequence[Task], by: str) -> dict[str, list[int]]:
    """The columns of each group, groups in the order of the tasks."""
    return group_values((group_of(task, by), column) for column, task in enumerate(tasks))


def weights(tasks: Sequence[Task], rule: str) -> Array:
    """The weight of each task in the total of models that have a score on all tasks."""
    totals = summarize(RULES[rule], tasks, dict.fromkeys((task.name for task in tasks), 0.0)).totals
    share = next(iter(totals.values())).weights
    return np.array([share.get(task.name, 0.0) for task in tasks])


def _notes(scores: Matrix, results: Sequence[TaskResult]) -> tuple[str, ...]:
    """Notes on published scores that are known to be wrong, and on those that your scores replace."""
    published = [result for result in results if result.made_by == "published"]
    wrong = sum(any(mark.startswith(ERRATUM) for mark in result.warnings) for result in published)
    own = {result.model for result in results if result.made_by != "published"}
    both = sorted({result.model for result in published} & own & {*scores.models})
    notes = {
        Note(
            f"{wrong} of the published scores are known to be wrong, but used as printed", "embark published errata"
        ): wrong,
        f"your own scores are used instead of the published ones: {listed(both)}": both,
    }
    return applicable(notes)


def _fill_gaps(scores: Mapping[ModelKey, dict[str, TaskResult]]) -> dict[ModelKey, dict[str, TaskResult]]:
    """Your scores with gaps filled by published ones, if you have a single revision of the model.

    With several revisions, it is not known which of them the published scores belong to. Published scores that an
    import has all of are left out, so that the model does not count twice.
    """
    revisions = Counter(model for model, _, made_by in scores if made_by == "embark")
    published = {
        model: row for (model, _, made_by), row in scores.items() if made_by == "published" and revisions[model] == 1
    }
    imported = [(key[0], row) for key, row in scores.items() if key[2] not in ("embark", "published")]

    def counts(model: str, made_by: str, row: dict[str, TaskResult]) -> bool:
        again = model in published or any(model == other and row.keys() <= more.keys() for other, more in imported)
        return made_by != "published" or not again

    return {
        (model, revision, made_by): published.get(model, {}) | row if made_by == "embark" else row
        for (model, revision, made_by), row in scores.items()
        if counts(model, made_by, row)
    }


def _rows(model_keys: Sequence[ModelKey]) -> tuple[str, ...]:
    """Models' names as on leaderboards; where a model has several sources, with the source if it is not you."""
    sources = Counter(model for model, _ in {(model, made_by) for model, _, made_by in model_keys})
    return tuple(
        f"{name} ({made_by})" if sources[model] > 1 and made_by != "embark" else name
        for name, (model, _, made_by) in zip(names(model_keys), model_keys, strict=True)
    )
