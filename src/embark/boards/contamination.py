"""Scores on data of a model's training, where its card states its training sets and a task is over one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embark.boards.cards import card_of
from embark.catalogue import counted, listed
from embark.results import TaskResult
from embark.tables import Note, applicable
from embark.tasks import BENCHMARKS, TASKS
from embark.tasks.data_sets import shared
from embark.types import ModelCard, Task

TRAINED = "the model was trained on "  # how the footnote of a task's score begins
IN_PART = Note("in part not zero-shot: the model was trained on data of some tasks", "--zero-shot-only leaves them out")


def footnotes(result: TaskResult, task: Task) -> tuple[str, ...]:
    """The footnote of a score, if the model was trained on the task's data."""
    names = shared(training_sets(result) or (), task)
    return (TRAINED + ", ".join(names),) if names else ()


def training_sets(result: TaskResult) -> tuple[str, ...] | None:
    """The training sets of a result's model, from its card in the catalogue, else from that beside its scores."""
    card = card_of(result)
    return card.trained_on if card else None


def zero_shot(results: Sequence[TaskResult], tasks: Sequence[Task]) -> tuple[list[TaskResult], tuple[str, ...]]:
    """The results on data that their models were not trained on, as far as that is stated, and notes on the others."""
    rows = {task.name: task for task in tasks}
    zero_shot_results: list[TaskResult] = []
    left_out: list[TaskResult] = []
    for result in results:
        trained = result.task in rows and footnotes(result, rows[result.task])
        (left_out if trained else zero_shot_results).append(result)
    silent = sorted({result.model for result in zero_shot_results if training_sets(result) is None})
    scores = f"{counted(len(left_out), 'score')} of {counted(len({result.model for result in left_out}), 'model')}"
    notes = {
        f"left out, because the model was trained on the task's data: {scores}": left_out,
        f"included, although their training data is unknown: {listed(silent)}": silent,
    }
    return zero_shot_results, applicable(notes)


def shares(card: ModelCard) -> Mapping[str, str]:
    """For each benchmark, how many of its tasks are over data that a model was not trained on."""
    if card.trained_on is None:
        return {"all benchmarks": "training data unknown"}
    out = {}
    for benchmark in BENCHMARKS.values():
        seen = [name for task in TASKS.match(benchmark.tasks) for name in shared(card.trained_on, task)[:1]]
        if seen:
            whole = len(benchmark.tasks)
            out[benchmark.name] = f"{whole - len(seen)} of {whole} tasks; trained on {listed([*dict.fromkeys(seen)])}"
    return out | {"other benchmarks" if out else "all benchmarks": "all tasks, as far as is known"}
