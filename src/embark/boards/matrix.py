"""Scores as a matrix of models × tasks: what analyses of a whole field start from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embark.boards.rules import RULES
from embark.catalogue import UnknownName
from embark.results import TaskResult
from embark.stats.means import Who, by_model, names
from embark.types import Array, EmbarkError, Task


@dataclass(frozen=True)
class Matrix:
    """`values[i, j]` is the score of models[i] on tasks[j]; NaN where there is none."""

    models: tuple[str, ...]
    tasks: tuple[Task, ...]
    values: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks' names."""
        return tuple(task.name for task in self.tasks)

    def complete(self) -> Matrix:
        """The models that have a score on every task; an error where there are fewer than three."""
        whole = np.asarray(~np.isnan(self.values).any(axis=1))
        if whole.sum() < 3:
            raise EmbarkError(
                f"This needs at least three models with a score on all {len(self.tasks)} tasks; "
                f"there are {int(whole.sum())}. Choose fewer tasks, or add results."
            )
        return self.only(models=whole)

    def only(self, models: Array | None = None, tasks: Callable[[Task], bool] | None = None) -> Matrix:
        """Some models (a mask) and some tasks (a test)."""
        rows = np.flatnonzero(np.ones(len(self.models), bool) if models is None else models)
        columns = [at for at, task in enumerate(self.tasks) if tasks is None or tasks(task)]
        values = self.values[np.ix_(rows, np.array(columns, int))]
        return Matrix(tuple(self.models[at] for at in rows), tuple(self.tasks[at] for at in columns), values)


def matrix(tasks: Sequence[Task], results: Iterable[TaskResult]) -> Matrix:
    """The results of these rows, under their protocols; tasks that nobody did are left out.

    As on a leaderboard, every revision and source of a model has a row; only published scores join yours.
    """
    found = _joined(by_model(tasks, results))
    scores = [row[task.name].score if task.name in row else np.nan for row in found.values() for task in tasks]
    values = np.array(scores, np.float64).reshape(len(found), len(tasks))
    done = np.flatnonzero(~np.isnan(values).all(axis=0))
    return Matrix(_rows(list(found)), tuple(tasks[column] for column in done.tolist()), values[:, done])


def model_of(row: str) -> str:
    """The model that a row is about: its name without the revision and the source."""
    return re.sub(r"(@\S+)?( \(\w+\))?$", "", row)


def group_of(task: Task, by: str) -> str:
    """What a task counts under: its category, itself, or one of its tags (type, capability, domain…)."""
    if by in ("category", "task"):
        return task.category if by == "category" else task.name
    if by not in task.tags:
        raise UnknownName(f"grouping of {task.name}", by, ("category", "task", *task.tags))
    return task.tags[by]


def grouped(tasks: Sequence[Task], by: str) -> dict[str, list[int]]:
    """The columns of each group, groups in the order of the tasks."""
    groups: dict[str, list[int]] = {}
    for column, task in enumerate(tasks):
        groups.setdefault(group_of(task, by), []).append(column)
    return groups


def weights(tasks: Sequence[Task], rule: str) -> Array:
    """How much each task counts in the total that models with a score on all of them are ranked by."""
    totals = RULES[rule](tasks, dict.fromkeys((task.name for task in tasks), 0.0)).totals
    share = next(iter(totals.values())).weights
    return np.array([share[task.name] for task in tasks])


def _joined(found: Mapping[Who, dict[str, TaskResult]]) -> dict[Who, dict[str, TaskResult]]:
    """Published scores fill the gaps of yours, where you have one revision of the model: with several, whose?"""
    mine = Counter(model for model, _, made_by in found if made_by == "embark")
    printed = {model: row for (model, _, made_by), row in found.items() if made_by == "published" and mine[model] == 1}
    return {
        (model, revision, made_by): printed.get(model, {}) | row if made_by == "embark" else row
        for (model, revision, made_by), row in found.items()
        if made_by != "published" or model not in printed
    }


def _rows(found: Sequence[Who]) -> tuple[str, ...]:
    """Models' names as leaderboards have them, with the source of those that are not yours where there are several."""
    sources = Counter(model for model, _ in {(model, made_by) for model, _, made_by in found})
    return tuple(
        f"{name} ({made_by})" if sources[model] > 1 and made_by != "embark" else name
        for name, (model, _, made_by) in zip(names(found), found, strict=True)
    )
