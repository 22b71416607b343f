"""What mteb's releases score otherwise than a task states: their scores are not the task's.

Source: the code in the wheels of all 425 releases that the package index has from 1.33.0, the first with MIEB's
retrieval tasks, to 2.26.24; those on both sides of each edge were run. First results: Any2AnyRetrievalEvaluator.py in
mteb 1, _evaluators/retrieval_metrics.py in mteb 2. Texts of mixed items: _create_dataloaders.py. The scores that MIEB's
paper took are of 1.14.15 and 1.16.5, before both faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from embark.results import TaskResult
from embark.tables import Note
from embark.types import Task


class Fault(NamedTuple):
    """What mteb does otherwise than a row states: the first release that does so, and the first that is right again."""

    first: str
    right: str
    does: str  # in words
    changes: Callable[[Task, str], bool]  # whether it changes a measure of a row


class _Release(NamedTuple):
    """A release, in their order: a pre-release comes before its own."""

    numbers: tuple[int, ...]
    final: bool = True


def _is_hit_rate(measure: str) -> bool:
    from embark.evaluators.retrieval import HIT_RATES

    return measure.startswith((*HIT_RATES, "cv_recall"))  # the last is mteb's name of it up to 2.10.1


FAULTS = (
    Fault(
        "2.10.2", "2.12.22", "keeps every query's first result, most often the query itself, where the task drops it",
        lambda task, measure: bool(task.params.get("skip_first")) and _is_hit_rate(measure),
    ),
    Fault(
        "1", "2.12.22", "keeps every query's first result in all measures but hit rates, where the task drops it",
        lambda task, measure: task.params.get("skip_first") is True and not _is_hit_rate(measure),
    ),
    Fault(
        "2", "2.10.4", "leaves out the text of every item that has a picture and a text",
        lambda task, measure: task.mixed,
    ),
)  # fmt: skip
VERSION = re.compile(r"(?:^|-|, )v?(\d+(?:\.\d+)*)([.-]?(?:dev|a|b|rc))?")


def agrees(task: Task, version: str, measure: str) -> bool:
    """Whether mteb scores a measure as the row states; `version` is a release, or a range of them ("2.1.0-2.3.0")."""
    return not _faults(task, version, measure)


def fault(task: Task, version: str) -> str:
    """Why a score of these releases of mteb is not the row's, and what to do; empty if it is."""
    for first, right, does, _ in _faults(task, version, task.metric):
        return Note(f"mteb >={first},<{right} {does}", f"score it again with mteb {right} or newer, or with embark run")
    return ""


def fault_of(result: TaskResult, task: Task) -> str:
    """Why a result does not stand for the row, by the mteb that made it, and what to do; empty if it does."""
    if result.made_by != "mteb":
        return ""
    return next(filter(None, (fault(task, record.versions.get("mteb", "")) for record in result.records)), "")


def _faults(task: Task, version: str, measure: str) -> list[Fault]:
    """The faults that change a measure of a row in some of the releases that a text names (a file without is refused).

    A pre-release may be as the release before it, or already as its own.
    """
    named = [_Release(_numbers(release), not early) for release, early in VERSION.findall(version)]
    if not named:
        return []
    low, high = min(named), _Release(max(named).numbers)
    return [
        fault
        for fault in FAULTS
        if low < _Release(_numbers(fault.right)) and high >= _Release(_numbers(fault.first))
        if fault.changes(task, measure)
    ]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
