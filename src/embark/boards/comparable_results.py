"""The results that may stand on one board: published ones and those on disk, made under the rows' own protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from embark import published
from embark.models import MODELS
from embark.results import Results, TaskResult
from embark.run.score import fingerprint_of
from embark.tasks import TASKS, under_protocol
from embark.types import Benchmark, Task


def rows_of(benchmark: Benchmark, protocol: str | None) -> list[Task]:
    """The benchmark's rows, as one of their protocols has them, or as one that only papers know."""
    rows = TASKS.match(benchmark.tasks)
    if protocol not in (None, "paper") and protocol in {score.protocol for score in printed(benchmark)}:
        return [replace(row, protocol=protocol) for row in rows]
    return under_protocol(protocol, rows)


def printed(benchmark: Benchmark) -> tuple[published.Published, ...]:
    """Everything published for the benchmark's family."""
    return published.scores(benchmark.family) if benchmark.family in published.FAMILIES else ()


def published_results(benchmark: Benchmark, rows: Sequence[Task]) -> tuple[list[TaskResult], list[TaskResult]]:
    """Published scores under the names of the models' cards: those that may stand beside scores of these rows, and
    those of the same protocol that may not, for other data or another measure.
    """
    by_name = {row.name: row for row in rows}
    names = {alias: card.name for card in MODELS.values() if (alias := card.aliases.get(benchmark.family))}
    protocols = dict.fromkeys(["paper", *(row.protocol for row in rows)])
    fit, unlike = [], []
    for result in (found for each in protocols for found in published.results(benchmark.name, each)):
        if published.comparable(result, by_name[result.task]):
            fit.append(replace(result, model=names.get(result.model, result.model)))
        elif result.protocol == by_name[result.task].protocol:
            unlike.append(result)
    return fit, unlike


def own_results(rows: Sequence[Task], folder: Path) -> tuple[list[TaskResult], list[TaskResult]]:
    """Results on disk: those made under these rows' present protocols, and those that are stale."""
    wanted = {(row.name, row.protocol) for row in rows}
    found = [result for result in Results(folder).all() if (result.task, result.protocol) in wanted]
    done = {result.task for result in found if result.made_by == "embark"}
    expected = {row.name: {fingerprint_of(row, *part) for part in row.parts} for row in rows if row.name in done}
    stale = [
        result
        for result in found
        if result.made_by == "embark" and {record.fingerprint for record in result.records} != expected[result.task]
    ]
    return [result for result in found if result not in stale], stale
