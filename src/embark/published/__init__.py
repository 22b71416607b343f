"""The papers' tables as data, each with its source, and the cells in them that cannot be taken as printed.

Values are fractions, under the names of our tasks and rules. Every score carries the name of the protocol that made it:
"paper" is the one that a task's row reproduces, any other must not be compared with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embark import public
from embark.catalogue import check_name, group_values
from embark.results import NO_INTERVAL, Record, TaskResult
from embark.tasks import Tasks, choose_tasks
from embark.types import Task

if TYPE_CHECKING:  # public names that later rooms have: loaded at first use
    from embark.boards.rederive import check as check
else:
    __getattr__, __dir__ = public.names_of("published")

FAMILIES = {"MIEB": "mieb", "UniBench": "unibench", "MMEB-V3": "mmeb", "ARK": "ark"}
ERRATUM = "erratum "  # begins the footnote of an erratum that is about the number …
NOTE = "note "  # … or about the text, labels and data around it
OTHER_DATA = "other data"  # the effect of an erratum: right scores that may be compared with one another alone
DIGITS = 9  # behind the point, beyond which a published score was not rounded
_HERE = Path(__file__).parent


class Published(NamedTuple):
    """A printed or released score: a model on a task (and its split and subset), or an aggregate of a table."""

    table: str
    model: str
    revision: str
    name: str  # of a task, or of the aggregate
    kind: str  # task or aggregate
    metric: str
    split: str
    subset: str
    protocol: str
    value: float
    parts: int | None  # tasks that the table says an aggregate has


@dataclass(frozen=True)
class PrintedCell:
    """A cell of a table that an erratum is about: "*" is any model or name, None a value that is not known."""

    table: str
    model: str
    name: str
    published: float | None = None
    derived: float | None = None


@dataclass(frozen=True)
class Erratum:
    """A fault in published tables: what is wrong, the evidence for it, and the cells that have it.

    `effect`: "wrong" cells do not follow from their parts or are artefacts; "unlike" ones come from other data or
    another measure than the row's; so do those of "other data", which are right and comparable with one another;
    "note" is about the text or labels around the numbers.
    """

    id: str
    family: str
    effect: str
    what: str
    evidence: str
    source: str
    cells: tuple[PrintedCell, ...]

    @property
    def footnote(self) -> str:
        """The note below a table that shows such a cell."""
        return f"{NOTE if self.effect in ('note', OTHER_DATA) else ERRATUM}{self.id}: {self.what}"

    def concerns(self, table: str, model: str, name: str) -> bool:
        """Whether a cell is among its cells."""
        return any(
            cell.table == table and cell.model in ("*", model) and cell.name in ("*", name) for cell in self.cells
        )


@cache
def scores(family: str) -> tuple[Published, ...]:
    """Everything published for a family."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(_HERE / f"{_file(family)}.parquet").read().combine_chunks()  # read_table starts slowly
    return tuple(map(Published._make, zip(*(_listed(table[name]) for name in Published._fields), strict=True)))


def tables(family: str | None = None) -> dict[str, dict[str, Any]]:
    """Each table's title, paper, address, license and version."""
    out: dict[str, dict[str, Any]] = {}
    for source in _json("sources"):
        if family is None or source["family"] == family:
            facts = {key: value for key, value in source.items() if key != "tables"}
            out |= {name: {"title": title, **facts} for name, title in source["tables"].items()}
    return out


def overview(family: str | None = None) -> dict[str, dict[str, Any]]:
    """Each table's number of cells, title, paper, address, license and version."""
    families = FAMILIES if family is None else [family]
    cells = Counter(score.table for name in families for score in scores(name))
    return {table: {"cells": cells[table], **about} for name in families for table, about in tables(name).items()}


def cells(table: str, model: str | None = None) -> tuple[Published, ...]:
    """The cells of a table, or those of one model in it."""
    known = tables()
    check_name("published table", table, known, "`embark published list` lists them all.")
    of_table = [score for score in scores(known[table]["family"]) if score.table == table]
    if model is not None:
        check_name(f"model in {table}", model, {score.model for score in of_table})
    return tuple(score for score in of_table if model in (None, score.model))


class MllmScores(NamedTuple):
    """Scores of multimodal LLMs on benchmarks, by the vision encoder that they were built on; not fractions."""

    source: str
    scores: dict[str, dict[str, float]]  # measure → model of MIEB's tables → score
    near: tuple[str, ...]  # models of which the paper used another resolution


def mllm_scores() -> MllmScores:
    """Those of Cambrian-1, which MIEB's Figure 4 takes: encoders that are among MIEB's models."""
    data = json.loads((_HERE / "mllm.json").read_text(encoding="utf-8"))
    encoders = [encoder for encoder in data["encoders"] if encoder["model"]]
    by_measure = {
        measure: {encoder["model"]: encoder["scores"][place] for encoder in encoders}
        for place, measure in enumerate(data["measures"])
    }
    near = tuple(encoder["model"] for encoder in encoders if not encoder["same_checkpoint"])
    return MllmScores(f"{data['paper'].partition(':')[0]} ({data['url']})", by_measure, near)


@cache
def errata(family: str | None = None) -> tuple[Erratum, ...]:
    """The known faults of a family's tables, or of all."""
    if family is not None:
        _file(family)
    return tuple(
        Erratum(**{**row, "cells": tuple(PrintedCell(*cell) for cell in row["cells"])})
        for row in _json("errata")
        if family in (None, row["family"])
    )


def mark(model: str, name: str) -> tuple[str, ...]:
    """The ids of the errata that a model's published score on a task, or an aggregate of it, falls under."""
    printed = [table for family in FAMILIES for table in _printed(family).get((model, name), ())]
    return tuple(erratum.id for erratum in errata() if any(erratum.concerns(table, model, name) for table in printed))


def errata_of(score: Published) -> tuple[Erratum, ...]:
    """The errata that a cell falls under."""
    possible = _errata_of(_family_of(score.table), score.table, score.name)
    return tuple(erratum for erratum in possible if erratum.concerns(score.table, score.model, score.name))


@cache
def _family_of(table: str) -> str:
    return str(tables()[table]["family"])


def footnotes(score: Published) -> tuple[str, ...]:
    """The notes below a table that shows this score."""
    return tuple(erratum.footnote for erratum in errata_of(score))


def results(tasks: Tasks, protocol: str = "paper") -> list[TaskResult]:
    """Published scores on tasks as results: one per model and task.

    A result is the mean over splits and subsets. It has no interval, no outcomes and no fingerprint; its errata are its
    warnings.
    """
    return results_of_rows(choose_tasks(tasks), protocol)


def results_of_rows(tasks: Iterable[Task], protocol: str = "paper") -> list[TaskResult]:
    """Published scores on these rows, as `results` returns them."""
    rows = {task.name: task for task in tasks}
    families = dict.fromkeys(task.family for task in rows.values() if task.family in FAMILIES)
    languages = {name: (tuple(task.subsets.items()), task.languages) for name, task in rows.items()}
    return [
        _result(family, protocol, of_task, *languages[of_task.name])
        for family in families
        for of_task in _parts(family, protocol)
        if of_task.name in rows and rows[of_task.name].metric == of_task.metric
    ]


def comparable(result: TaskResult, task: Task) -> bool:
    """Whether a published score may stand beside scores of this row: the same protocol, data and measure."""
    effects = _effects(result, task)
    return result.protocol == task.protocol and not effects & {"unlike", OTHER_DATA}


def of_other_data(result: TaskResult, task: Task) -> bool:
    """Whether a published score is right, but of other data than the row's: comparable with published ones alone."""
    effects = _effects(result, task)
    return result.protocol == task.protocol and OTHER_DATA in effects and "unlike" not in effects


def is_wrong(result: TaskResult, task: Task) -> bool:
    """Whether an erratum says that a published score is an artefact, so that nobody can reproduce it."""
    return "wrong" in _effects(result, task)


def rounding(result: TaskResult, task: Task) -> float:
    """The most by which rounding can have moved a published score: half of the last digit that its table prints."""
    halves = _half_digits(task.family)
    tables = _printed(task.family).get((result.model, result.task), ())
    return max((halves.get((table, task.metric), 0.0) for table in tables), default=0.0)


def _effects(result: TaskResult, task: Task) -> set[str]:
    """The effects of the errata that a published score falls under."""
    model, name = result.model, result.task
    return {
        erratum.effect
        for table in _printed(task.family).get((model, name), ())
        for erratum in _errata_of(task.family, table, name)
        if erratum.concerns(table, model, name)
    }


class _OfTask(NamedTuple):
    """Whose scores, by what measure, on which task."""

    model: str
    revision: str
    name: str
    metric: str


@cache
def _parts(family: str, protocol: str) -> dict[_OfTask, list[Published]]:
    """The scores on splits and subsets of each task."""
    of_tasks = (score for score in scores(family) if score.kind == "task" and score.protocol == protocol)
    return group_values((_OfTask(score.model, score.revision, score.name, score.metric), score) for score in of_tasks)


@cache
def _result(
    family: str,
    protocol: str,
    of_task: _OfTask,
    subsets: tuple[tuple[str, tuple[str, ...]], ...],
    languages: tuple[str, ...],
) -> TaskResult:
    """The result of a model on a task whose subsets have these languages; `languages` are those of all."""
    parts = _parts(family, protocol)[of_task]
    first = parts[0]
    warnings = footnotes(first)
    by_subset = dict(subsets)
    records = tuple(
        Record(
            first.model, part.revision, first.name, part.split or "test", part.subset or "default",
            by_subset.get(part.subset, languages), part.metric, part.value, NO_INTERVAL, {part.metric: part.value},
            fingerprint="published", encoder="published", warnings=warnings,
        )
        for part in parts
    )  # fmt: skip
    value = sum(part.value for part in parts) / len(parts)
    return TaskResult(
        first.model, first.revision, first.name, "", records, value, NO_INTERVAL, 0.0,
        protocol=first.protocol, made_by="published",
    )  # fmt: skip


@cache
def _errata_of(family: str, table: str, name: str) -> tuple[Erratum, ...]:
    """The errata about cells of this name in a table, of any model."""
    return tuple(
        erratum
        for erratum in errata(family)
        if any(cell.table == table and cell.name in ("*", name) for cell in erratum.cells)
    )


@cache
def _printed(family: str) -> dict[tuple[str, str], list[str]]:
    """By model and name (of a task or an aggregate), the tables that print the score."""
    return group_values({((score.model, score.name), score.table) for score in scores(family)})


@cache
def _half_digits(family: str) -> dict[tuple[str, str], float]:
    """By table and measure of single tasks, half of the last digit that its values are printed with."""
    of_tasks = (score for score in scores(family) if score.kind == "task")
    values = group_values(((score.table, score.metric), score.value) for score in of_tasks)
    return {key: 0.5 * 10.0 ** -max(map(_decimals, of_table)) for key, of_table in values.items()}


def _decimals(value: float) -> int:
    """The digits behind the point of a fraction; percent were divided, so that the last bits are not its own."""
    digits = range(DIGITS)
    return next((count for count in digits if abs(round(value, count) - value) < 10.0**-DIGITS), DIGITS)


def _file(family: str) -> str:
    check_name("family with published tables", family, FAMILIES)
    return FAMILIES[family]


def _listed(column: Any) -> list[Any]:
    """A column's values. Texts are decoded by their few distinct values: twenty times faster than one by one."""
    if not hasattr(column.type, "value_type"):
        return list(column.to_pylist())
    [chunk] = column.chunks
    texts = chunk.dictionary.to_pylist()
    return [texts[index] for index in chunk.indices.to_pylist()]


@cache
def _json(name: str) -> list[dict[str, Any]]:
    return list(json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8")))
