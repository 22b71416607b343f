"""Published scores side by side: models × the tasks of a column of MIEB's Table 22, or × the languages of one task.

These are the values of the paper's tables by task (Tables 9, 10 and 12 to 20), which were found equal to the public
results; the public results are what ships.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from embark import published
from embark.catalogue import check_name, counted, group_values
from embark.results import NO_INTERVAL, Record, TaskResult
from embark.tables import Noted, Row, Score, Table, first, footnoted
from embark.tasks import TASKS, get_benchmark
from embark.types import EmbarkError, Task

BENCHMARK = "MIEB(Multilingual)"
TABLE_NUMBERS = {"MIEB Coarse Linear Probing": " (Table 16)"}  # of those whose number in the paper is known here

VIEWS = "The paper's Tables 9, 10 and 12 to 20 are views by name, as 'MIEB Clustering': embark published list."


@dataclass(frozen=True)
class PublishedView(Noted):
    """Published scores of models on some columns, best mean first; None where a model has no score."""

    name: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Score | None, ...]]

    def table(self, top: int | None = None) -> Table:
        """One row per model: the mean, and every column."""
        means = {model: fmean(s.value for s in scores if s) for model, scores in self.rows.items() if any(scores)}
        rows = [Row((model, self._mean(model, means[model]), *self.rows[model])) for model in self._ranked(means)]
        table = Table(("model", "mean", *self.columns), tuple(first(rows, top)), models="rows")
        return footnoted(table, "over {} of {} columns")

    def _ranked(self, means: Mapping[str, float]) -> list[str]:
        """Models with all columns first, best first."""
        return sorted(means, key=lambda model: (None in self.rows[model], -means[model]))

    def _mean(self, model: str, value: float) -> Score:
        scored = [score for score in self.rows[model] if score]
        marks = dict.fromkeys(m for score in scored for m in score.marks if m.startswith(published.ERRATUM))
        return Score(value, *NO_INTERVAL, len(scored), len(self.columns), tuple(marks))


def views() -> dict[str, tuple[Task, ...]]:
    """The tasks of each view of MIEB's scores: a view for each column of Table 22."""
    tasks = TASKS.match(get_benchmark(BENCHMARK).tasks)
    groups = group_values((task.tags["column"], task) for task in tasks)
    return {f"MIEB {column}": tuple(of_column) for column, of_column in groups.items()}


def titles() -> dict[str, str]:
    """What each view shows."""
    return {
        name: f"Main scores of 48 models on {counted(len(tasks), 'task')}{TABLE_NUMBERS.get(name, '')}"
        for name, tasks in views().items()
    }


def published_view(name: str, model: str | None = None) -> PublishedView:
    """A view by its name, or the published scores on a task by split and language; of all models, or of one."""
    known = views()
    hint = VIEWS if name.startswith("MIEB Table") else ""
    check_name("published table, view or task", name, [*published.tables(), *known, *TASKS], hint)
    tasks = known.get(name) or (TASKS[name],)
    results = group_values((result.model, result) for result in published.results(tasks))
    if not results:
        raise EmbarkError(f"No scores on {name} are published under the paper's protocol.")
    if model is not None:
        check_name(f"model in {name}", model, results)
        results = {model: results[model]}
    if name in known:
        columns = tuple(task.name for task in tasks)
        rows = {model: _by_task(columns, of_model) for model, of_model in results.items()}
    else:
        several = len(tasks[0].source.splits) > 1
        records = {model: {_part(r, several): r for r in of_model[0].records} for model, of_model in results.items()}
        columns = tuple(dict.fromkeys(part for parts in records.values() for part in parts))
        rows = {model: tuple(map(_score, map(parts.get, columns))) for model, parts in records.items()}
    return PublishedView(name, columns, rows)


def _by_task(columns: Sequence[str], results: Sequence[TaskResult]) -> tuple[Score | None, ...]:
    scores = {result.task: Score(result.score, *result.interval, marks=result.warnings) for result in results}
    return tuple(map(scores.get, columns))


def _part(record: Record, several_splits: bool) -> str:
    return f"{record.split}, {record.subset}" if several_splits else record.subset


def _score(record: Record | None) -> Score | None:
    return None if record is None else Score(record.score, *record.interval, marks=record.warnings)
