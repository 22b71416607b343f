"""What a report is about: models, their board, and all results that may stand beside theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from embark.boards.comparable_results import ResultSet
from embark.boards.leaderboards import Entry, Leaderboard
from embark.results import TaskResult
from embark.stats.means import names
from embark.tables import Score, in_points
from embark.types import Task

BESIDE = 4  # models side by side in a table of scores with intervals …
WITHOUT = 6  # … and in one of scores without


@dataclass(frozen=True)
class Reported:
    """The models of a report: `board` ranks them, `loaded` has all results on its tasks.

    `name` is that of the benchmark, or what the tasks are called where there is none; `absent` are models without a
    score.
    """

    name: str
    is_benchmark: bool
    loaded: ResultSet
    board: Leaderboard
    absent: Sequence[str]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines of the board."""
        return self.board.entries

    @property
    def labels(self) -> list[str]:
        """The models' names, with revisions where one has several."""
        return names([entry.model.key for entry in self.entries])

    @property
    def labelled(self) -> list[tuple[str, Entry]]:
        """The lines of the board with the models' names."""
        return list(zip(self.labels, self.entries, strict=True))

    @property
    def results(self) -> list[TaskResult]:
        """The results behind the board."""
        return [result for entry in self.entries for result in entry.model.results.values()]

    @property
    def own(self) -> list[tuple[str, Entry]]:
        """Models whose scores are yours, with their names: those have outcomes of items."""
        return [(label, entry) for label, entry in self.labelled if entry.model.key[2] == "embark"]

    @property
    def scored(self) -> list[Task]:
        """Tasks that any of the models has a score on."""
        return [task for task in self.board.tasks if any(task.name in entry.model.tasks for entry in self.entries)]

    @property
    def certain(self) -> str:
        """What captions say of scores: that they have intervals, if any has."""
        known = any(isfinite(entry.model.mean.low) for entry in self.entries)
        return ", with 95 % intervals" if known else ""

    def chunks(self) -> Iterator[tuple[str, Leaderboard]]:
        """The board in pieces of so many models as stand side by side, and what a caption says of each."""
        most = BESIDE if self.certain else WITHOUT
        pieces = [self.entries[start : start + most] for start in range(0, len(self.entries), most)]
        for number, entries in enumerate(pieces):
            first = number * most + 1
            part = f" Models {first} to {first + len(entries) - 1} of {len(self.entries)}." if len(pieces) > 1 else ""
            yield part, replace(self.board, entries=entries)


def points(score: Score) -> str:
    """A score in words, with its interval."""
    value = f"{in_points(score.value)} points"
    if not isfinite(score.low + score.high):
        return f"{value} (no interval)"
    return f"{value} (95 % interval {in_points(score.low)} to {in_points(score.high)})"
