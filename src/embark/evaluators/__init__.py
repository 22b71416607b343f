"""Evaluators: pure functions from truth and vectors to scores, one module per kind, which defines a `seams.Evaluator`.

The contract of an evaluator is the docstring of `embark.seams.Evaluator`. The functions here take its name, its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from threading import Lock
from typing import Any

from embark.registries import EVALUATORS
from embark.types import Array, EmbarkError, Scores, Task, Truth

OF_RUNS = ("similarity", "logit_scale", "memory")  # parameters that every run sets, whatever a row says
_IMPORTING = Lock()  # threads that import scikit-learn at once may see it half loaded


def version(kind: str, params: Mapping[str, Any]) -> int:
    """The version of an evaluator in fingerprints."""
    return EVALUATORS[kind].full_version(params)


def base(kind: str, params: Mapping[str, Any]) -> str:
    """The kind that does the scoring: that of the evaluator that this one calls, or itself."""
    evaluator = EVALUATORS[kind]
    return evaluator.base(params)[0].name if evaluator.base else kind


def full_params(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A row's parameters, completed by the evaluator's preset ones."""
    return {**EVALUATORS[kind].preset, **params}


def check(kind: str, params: Mapping[str, Any]) -> None:
    """Raise an error for a parameter, value or metric that an evaluator does not know."""
    EVALUATORS[kind].check(params)


def check_tasks(tasks: Iterable[Task]) -> None:
    """Raise an error for a parameter or metric that a task's evaluator does not know, before a model is loaded.

    A task whose evaluator is not installed is passed over: a run reports it.
    """
    for task in tasks:
        if task.evaluator in EVALUATORS:
            try:
                for name in OF_RUNS:
                    if name in task.params:
                        raise EmbarkError(f"No row sets the parameter '{name}': the model or the settings do.")
                EVALUATORS[task.evaluator].check({**task.params, "metric": task.metric})
            except EmbarkError as error:
                raise EmbarkError(f"Task {task.name} cannot be scored. {error}") from error


def narrow(kind: str, truth: Truth, params: Mapping[str, Any]) -> tuple[Truth, dict[str, Array]]:
    """The truth with its samples drawn, and by side a mask of the items that the score needs; no mask: all of them."""
    evaluator = EVALUATORS[kind]
    evaluator.check(params)
    return evaluator.narrow(truth, params) if evaluator.narrow else (truth, {})


def check_measure(kind: str, truth: Truth, params: Mapping[str, Any]) -> None:
    """Raise an error if the main measure is unknown, or has one value whatever the vectors are."""
    evaluator = EVALUATORS[kind]
    evaluator.check(params)
    if evaluator.constant is None or not (others := evaluator.constant(truth, params)):
        return
    value, possible = others
    advice = f"use {' or '.join(map(repr, possible))}" if possible else "there is nothing to choose from: add data"
    raise EmbarkError(f"'{evaluator.metric(params)}' is {value:g} for every model on data of this shape: {advice}.")


def evaluate(kind: str, truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Score one dataset's vectors against its truth."""
    evaluator = EVALUATORS[kind]
    evaluator.check(params)
    if not isinstance(truth, evaluator.truth):
        kinds = " or ".join(known.__name__ for known in evaluator.truth)
        raise EmbarkError(f"'{kind}' scores data whose truth is {kinds}, not {type(truth).__name__}.")
    with _IMPORTING:
        for name in evaluator.imports:
            import_module(name)
    scores = evaluator.evaluate(truth, vectors, params)
    evaluator.check_scores(scores, vectors, params)
    return scores
