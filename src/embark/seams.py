"""The seams: what anybody may add to embark, as frozen values. Ours and those of plug-ins stand in the same registries.

    Reader     source rows → items and truth          embark.data.readers.READERS
    Evaluator  vectors and truth → scores             embark.evaluators.EVALUATORS
    Loader     a card → a model                       embark.models.LOADERS
    Rule       task scores → a benchmark's table      embark.boards.rules.RULES
    Study      scores or vectors → a table and figure embark.studies.STUDIES

A value says all that embark wants to know about it; nothing is looked up in its module. What it declares is checked
when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from embark.types import Option, Scores, Truth

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Evaluator:
    """How vectors and a truth become scores.

    `evaluate(truth, vectors, params)` is a pure function; `vectors` holds one matrix for each side of the data set.
    """

    name: str
    about: str  # what it measures, as `embark show` prints it
    truth: tuple[type[Truth], ...]  # the kinds of truth that it takes
    evaluate: Callable[[Any, Mapping[str, Any], Params], Scores]
    version: int = 1  # part of every fingerprint: raised when a score can change
    params: Mapping[str, Option] = field(default_factory=dict)  # that a row may set, besides the common ones
    preset: Params = field(default_factory=dict)  # values of parameters that a row does not set


@dataclass(frozen=True)
class Reader:
    """How the rows of a source become items and the truth about them.

    `read(task, split, subset, hub)` returns a `Dataset`.
    """

    name: str
    about: str  # what data it reads, as `embark show` prints it
    read: Callable[..., Any]
    evaluators: tuple[str, ...] = ()  # that its truth is for
    version: int = 1  # part of every fingerprint: raised when items or truth can change
    columns: Mapping[str, str] | None = None  # by role: what the column holds; None: a reader of one benchmark
    options: Mapping[str, Option] | None = None  # that a row may set; None: a reader of one benchmark
