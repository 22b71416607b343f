"""The seam of rules: what one declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from embark.seams.checks import are_texts
from embark.types import EmbarkError, Task

if TYPE_CHECKING:  # names in annotations: a seam imports no later room
    from embark.results import TaskResult
    from embark.results.table import Score
    from embark.stats.means import Mean

Average: TypeAlias = "Callable[[Sequence[str], Mapping[str, float]], Mean]"  # of tasks, with their scores
SecondAxis: TypeAlias = (
    "Callable[[Sequence[Task], Mapping[str, TaskResult]], tuple[dict[str, Score], dict[str, Score]]]"
)


@dataclass(frozen=True)
class Subtotal:
    """One more total of a rule: over all groups but these."""

    name: str
    without: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
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

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise EmbarkError(f"The rule {self.name!r} is declared wrongly: {fault}.")

    def _faults(self) -> Iterator[str]:
        """A text for each declaration that cannot be used, or would change nothing."""
        for name in ("name", "about", "total"):
            if not (isinstance(getattr(self, name), str) and getattr(self, name).strip()):
                yield f"its `{name}` must be a text"
        if not (self.by and are_texts(self.by) and are_texts(self.without)):
            yield f"its `by` and `without` must be tuples of names, not {self.by!r} and {self.without!r}"
        for name in ("average", "second_axis"):
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                yield f"its `{name}` must be a function, not {getattr(self, name)!r}"
        if not isinstance(self.weights, Mapping | None):
            yield f"its `weights` must map tasks to numbers, not {self.weights!r}"
        if not isinstance(self.subtotal, Subtotal | None):
            yield f"its `subtotal` must be an embark.seams.Subtotal, not {self.subtotal!r}"
        if self.over not in ("groups", "tasks"):
            yield f"its total is over groups or tasks, not {self.over!r}"
        unused = ("average", "weights", "zeros_without") if self.over == "groups" else ("subtotal",)
        for name in unused:
            if getattr(self, name) is not None:
                yield f"a total over {self.over} has no `{name}`"
        if self.weights is not None and (self.average or self.zeros_without):
            yield "a weighted mean has no `average` and no `zeros_without`"

    def __str__(self) -> str:
        return self.name
