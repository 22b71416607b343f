"""The outcome of an evaluation: scores, tasks without one, and how much was computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embark import results
from embark.catalogue import counted, group_values, listed
from embark.engine.progress import span
from embark.results import TaskResult
from embark.stats.means import score_table
from embark.tables import Table, Tabular, applicable, by_column
from embark.types import EmbarkError, Task


@dataclass(frozen=True)
class Skipped:
    """A task that got no score, and why: `kind` is "not applicable", "not available" or "failed"."""

    model: str
    task: str
    kind: str
    why: str


def skipped_notes(skipped: Iterable[Skipped]) -> tuple[str, ...]:
    """One line per reason and model, with the tasks that it holds for."""

    def reason(skip: Skipped) -> tuple[str, str, str]:
        """Kind, model and text; the same one for several tasks is one reason."""
        return skip.kind, "" if skip.kind == "not available" else skip.model, skip.why.replace(skip.task, "{task}")

    notes = []
    for (kind, model, why), tasks in group_values((reason(skip), skip.task) for skip in skipped).items():
        names = list(dict.fromkeys(tasks))
        why = why.replace("{task}", names[0] if len(names) == 1 else "each")
        notes.append(f"{kind}: {listed(names)}{f' for {model}' if model else ''}: {why}")
    return tuple(notes)


@dataclass(repr=False)
class Run(Tabular):
    """The outcome of an evaluation: results, skipped tasks, and how much was computed."""

    tasks: list[Task]
    results: list[TaskResult] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0  # scores computed now; the others were on disk
    distinct: int = 0  # items of these scores, over all models
    embedded: int = 0
    damaged: int = 0  # stored vectors that did not match their checksums, and were embedded again
    seconds: float = 0.0
    predicted: float | None = None  # seconds; None where no plan of the last day was about just this run
    folder: Path | None = None  # where the results are
    warnings: list[str] = field(default_factory=list)  # about results on disk

    @property
    def items(self) -> int:
        """The number of items of the scored tasks, over all models."""
        return self._count("items")

    @property
    def unique(self) -> int:
        """The number of distinct items, each of which is embedded once. An upper bound where `exact` is false."""
        return self.distinct if self._all_computed else self._count("unique")

    @property
    def exact(self) -> bool:
        """Whether all items that scores share are known: all were computed now, or there is one for each model."""
        scores = [(result.model, result.revision) for result in self.results for record in result.records]
        return self._all_computed or len(scores) == len(set(scores))

    @property
    def _all_computed(self) -> bool:
        return self.computed == len(self.results)

    @property
    def reuse(self) -> float:
        """How many times an embedded item is used."""
        return self.items / self.unique if self.unique else 1.0

    def _count(self, name: str) -> int:
        return sum(record.counts.get(name, 0) for result in self.results for record in result.records)

    def __repr__(self) -> str:
        models = counted(len({(result.model, result.revision) for result in self.results}), "model")
        scores = f"{counted(len(self.results), 'score')} of {models} on {counted(len(self.tasks), 'task')}"
        return f"<Run: {'; '.join((scores, *skipped_notes(self.skipped)))}>"

    def table(self) -> Table:
        """Tasks × models, each score with its 95 % interval, and the mean of the categories' means; below them, the
        tasks that got no score.
        """
        table = score_table(self.tasks, self.results)
        return replace(table, notes=(*table.notes, *skipped_notes(self.skipped)))

    def summary(self) -> tuple[str, ...]:
        """What the run took, in sentences."""
        place = f" in {self.folder}" if self.folder else ""
        sentences = {
            f"Embedded {counted(self.embedded, 'item')} in a run of {self.seconds:.1f} s; "
            f"{counted(self.computed, 'score')} computed, {len(self.results) - self.computed} already on "
            f"disk{place}.": True,
            f"The plan predicted {span(self.predicted or 0)}; it took {span(self.seconds)}.": self.predicted,
            f"{counted(self.damaged, 'stored vector')} did not match their checksums and were embedded again; "
            "see: embark store check": self.damaged,
            f"The tasks use {self.items:,} items, {self.unique:,} of them distinct: each is embedded once and serves "
            f"{self.reuse:.2f} times.": self.exact and self.unique,
        }
        return applicable(sentences)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The tasks that got no score, with the reason (tasks with the same share a line); warnings about results; the
        size of own data that say nothing about it: a file cut off between two lines cannot be told in another way.
        """
        sizes = {
            result.task: sum(record.counts.get("items", 0) for record in result.records)
            for result in self.results
            if result.row and not result.row.rows and not result.sampled
        }
        counts = [f"Own data: {listed([f'{task} has {size:,} items' for task, size in sizes.items()])}."] * bool(sizes)
        return (*skipped_notes(self.skipped), *self.warnings, *counts)

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """One row per (model, task, split, subset)."""
        return by_column(results.long_table(self.results), results.LONG_COLUMNS)


class NothingScored(EmbarkError):
    """No task could be scored, and something failed; `run` is what there is to say about it."""

    def __init__(self, run: Run) -> None:
        notes = skipped_notes(skip for skip in run.skipped if skip.kind == "failed")
        super().__init__("\n".join(["Nothing could be scored.", *notes]))
        self.run = run
