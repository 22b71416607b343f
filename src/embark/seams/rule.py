"""The seam of rules: what one declares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from embark.field_types import misfits
from embark.seams.checks import Declared
from embark.types import MODALITIES, Task

if TYPE_CHECKING:  # names in annotations: a seam imports no later room
    from embark.results import TaskResult
    from embark.stats.means import Mean
    from embark.tables import Score

Average: TypeAlias = Callable[[Sequence[str], Mapping[str, float]], "Mean"]  # of tasks, with their scores
SecondAxis: TypeAlias = Callable[
    [Sequence[Task], Mapping[str, "TaskResult"]], tuple[dict[str, "Score"], dict[str, "Score"]]
]


@dataclass(frozen=True)
class Subtotal:
    """One more total of a rule: over all groups but these."""

    name: str
    without: tuple[str, ...]


@dataclass(frozen=True)
class Rule(Declared):
    """How a model's scores become the columns and totals of a benchmark's table; `boards.rules.summarize` applies it.

    Columns are groups of tasks, `by` category or tags. Models are ranked by the `total`: the mean of the groups' means
    by the first of these, or the `average` over tasks. Tasks of the group `zeros_without` count as zero for a model
    that lacks that modality; a second total, with a star, leaves them out.
    """

    name: str
    about: str  # what its totals are, as `embark show` prints it
    by: tuple[str, ...] = ("category",)
    over: Literal["groups", "tasks"] = "groups"
    total: str = "mean"
    average: Average | None = None  # of the tasks that have a score; None: their mean
    weights: Mapping[str, float] | None = None  # how much each task counts in a total over tasks; None: all alike
    subtotal: Subtotal | None = None  # of a rule over groups
    zeros_without: str | None = None  # of a rule over tasks
    second_axis: SecondAxis | None = None  # more groups and totals, of a model's results
    without: tuple[str, ...] = ()  # tasks that do not count

    NAMES: ClassVar[tuple[str, str]] = (".+", "one line")  # rules that are made name models, too

    def faults(self) -> Iterator[str]:
        """A message for each field that would change nothing, and for a number or a name that no total could use."""
        if not (self.by and self.total.strip()):
            yield "its `by` and `total` must not be empty"
        unused = ("average", "weights", "zeros_without") if self.over == "groups" else ("subtotal",)
        for name in unused:
            if getattr(self, name) is not None:
                yield f"a total over {self.over} has no `{name}`"
        if self.weights is not None and (self.average or self.zeros_without):
            yield "a weighted mean has no `average` and no `zeros_without`"
        if not all(0 <= weight < math.inf for weight in (self.weights or {}).values()):
            yield "its `weights` must be numbers from 0"
        if self.zeros_without not in (None, *MODALITIES):
            yield f"its `zeros_without` must be one of {', '.join(MODALITIES)}, not '{self.zeros_without}'"
        if self.subtotal:
            yield from misfits(self.subtotal)
            if self.subtotal.name.strip() in ("", self.total) or not self.subtotal.without:
                yield "its `subtotal` must have a name other than the total's, and groups that it is `without`"

    def __str__(self) -> str:
        return self.name
