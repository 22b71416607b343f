"""The verdict on one task: our score beside the published one, and whether the one reproduces the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embark.results import TaskResult
from embark.stats.intervals import LEVEL
from embark.stats.reproduction import Tolerance
from embark.tables import Score
from embark.types import Task

Verdict = Literal["reproduced", "differs", "not comparable"]


@dataclass(frozen=True)
class Comparable:
    """Two scores of one task that may be compared, and how far apart a reproduction may be.

    `ours` is over the parts (splits, subsets) that the published score has, too.
    """

    result: TaskResult
    reference: TaskResult
    ours: Score
    tolerance: Tolerance
    p: float = 1.0  # of a difference as large, if it is a reproduction; after Holm's correction
    note: str = ""

    @property
    def difference(self) -> float:
        """Ours less the published score."""
        return self.ours.value - self.reference.score


@dataclass(frozen=True)
class TaskCheck:
    """A task's verdict: two scores, or why they cannot be compared. `failed`: the task was run, and got no score."""

    row: Task
    scores: Comparable | None = None
    why: str = ""
    failed: bool = False

    @property
    def verdict(self) -> Verdict:
        """Whether the published score is reproduced."""
        if self.scores is None:
            return "not comparable"
        return "differs" if self.scores.p < 1 - LEVEL else "reproduced"
