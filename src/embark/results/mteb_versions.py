"""What mteb's releases score otherwise than a task states: its scores by these versions are not the task's.

`skip_first` (five image retrieval tasks of MIEB): mteb's own tasks have stated it since 1.33.0, the first release that has
them, and their scores depend on the release. Source: the code in the wheels of all 425 releases from 1.33.0 to 2.26.24 that
the package index has (evaluation/evaluators/Image/Any2AnyRetrievalEvaluator.py, since 2.0.1 _evaluators/retrieval_metrics.py;
1.34.1 has neither). The scores that MIEB's paper took are by 1.14.15 and 1.16.5, of a branch, and drop it for hit rates.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal, NamedTuple

from embark.evaluators.retrieval import HIT_RATES
from embark.results import TaskResult
from embark.types import Task


class Since(NamedTuple):
    """From this release on, mteb applies this value of a parameter to the tasks that state it."""

    release: tuple[int, ...]
    value: Literal["hit_rate"] | bool
    does: str  # in words


SKIP_FIRST = (
    Since((0,), "hit_rate", "drops every query's first result for hit rates alone"),
    Since((2, 10, 2), False, "keeps every query's first result, most often the query itself, where the task drops it"),
    Since((2, 12, 22), True, "drops every query's first result for all measures"),
)
HITS = (*HIT_RATES, "cv_recall")  # the last is mteb's name of hit rates up to 2.10.1
NAMED = re.compile(r"(?:^|-|, )v?(\d+(?:\.\d+)*)([.-]?(?:dev|a|b|rc))?")


def agrees(task: Task, version: str, measure: str) -> bool:
    """Whether these releases of mteb score a measure as the row states; `version` is one, or a range ("2.1.0-2.3.0")."""
    return not _unlike(task, version, measure)


def fault(task: Task, version: str) -> str:
    """Why a score of these releases is not the row's, and what to do; empty if it is."""
    unlike = _unlike(task, version, task.metric)
    if not unlike:
        return ""
    place = SKIP_FIRST.index(unlike[0])
    since = f" since {_text(unlike[0])}" if place else ""
    until = f" before {_text(SKIP_FIRST[place + 1])}" if place + 1 < len(SKIP_FIRST) else ""
    newest = SKIP_FIRST[-1]
    mended = _skips(newest.value, task.metric) == _skips(task.params["skip_first"], task.metric)
    other = f"mteb {_text(newest)} or newer, or with " if mended else ""
    return f"mteb{since}{until} {unlike[0].does} (score it again with {other}embark run)"


def fault_of(result: TaskResult, task: Task) -> str:
    """Why a result does not stand for the row, by the mteb that made it, and what to do; empty if it does."""
    if result.made_by != "mteb":
        return ""
    return next(filter(None, (fault(task, record.versions.get("mteb", "")) for record in result.records)), "")


def _unlike(task: Task, version: str, measure: str) -> list[Since]:
    """What these releases do otherwise than the row states, as far as it changes a measure."""
    if not (stated := task.params.get("skip_first")):
        return []
    return [since for since in _applied(version) if _skips(since.value, measure) != _skips(stated, measure)]


def _applied(version: str) -> tuple[Since, ...]:
    """What the releases of a version text do: all there is where it names none.

    A pre-release may still do as the release before it, or already as its own.
    """
    named = [(_numbers(release), not early) for release, early in NAMED.findall(version)]
    if not named:
        return SKIP_FIRST
    starts = [(since.release, True) for since in SKIP_FIRST]
    last = (max(named)[0], True)
    return SKIP_FIRST[bisect_right(starts, min(named)) - 1 : bisect_right(starts, last)]


def _skips(value: Literal["hit_rate"] | bool, measure: str) -> bool:
    """Whether a measure is taken without the first result."""
    return value is True or (value == "hit_rate" and measure.startswith(HITS))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _text(since: Since) -> str:
    return ".".join(map(str, since.release))
