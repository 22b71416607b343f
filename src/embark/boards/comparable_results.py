"""The results that may be compared on one board: published ones and those on disk, under the rows' own protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal, get_args

from embark import published as papers
from embark.boards.mteb_versions import fault_of
from embark.catalogue import Catalogue, UnknownName, check_name, counted, group_values, listed
from embark.field_types import checked
from embark.models import MODELS
from embark.own.names import tasks_here
from embark.protocol import fingerprint_of
from embark.results import LONG_COLUMNS, Results, TaskResult, long_table, mark_commits
from embark.results.task_rows import NO_TASK, PLUG_IN, known_tasks, without_task
from embark.settings import Settings, load_settings
from embark.tables import Note, Noted, Row, Score, Table, by_column, footnoted, without_advice
from embark.tasks import Tasks, choose_tasks, under_protocol
from embark.types import Task

Include = Literal["all", "own", "published"]  # which results: of both kinds, from the results folder, from papers
INCLUDE = get_args(Include)
COLUMNS = ("model", "revision", "task", "split", "subset", "metric", "score", "protocol", "source")
OUTDATED = "scored under another protocol, or on other data, than the row has now (run again to compare)"


@dataclass(frozen=True)
class ResultSet(Noted):
    """Results that may be compared, the rows of their tasks, and notes on what was left out."""

    tasks: tuple[Task, ...]
    results: tuple[TaskResult, ...]

    def table(self) -> Table:
        """One row per record: a model on one split and subset of a task."""
        rows = [
            Row(
                (result.model, result.revision, result.task, record.split, record.subset, record.metric,
                 Score(record.score, *record.interval, marks=record.warnings), result.protocol, result.made_by)
            )
            for result in self.results
            for record in result.records
        ]  # fmt: skip
        return footnoted(Table(COLUMNS, tuple(rows)))

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """One row per record, with fingerprints, counts and warnings."""
        return by_column(long_table(self.results), LONG_COLUMNS)


@checked
def load_results(
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> ResultSet:
    """The results on tasks (names, patterns, benchmarks, rows; your own tasks, too) that may stand together.

    They are the published ones and those in the results folder, yours and imported ones, or with `include` only "own"
    or "published" ones: each under the protocol that its row has now, or that `protocol` names. Without tasks, all
    tasks that have a result.
    """
    check_name("choice of results", include, INCLUDE)
    settings = settings or load_settings()
    stored = Results(settings.results)
    on_disk = list(stored.all()) if include != "published" else []
    known = known_tasks(on_disk, settings.home)
    rows = rows_of(tasks, protocol, known)
    current, left_out = own_results(rows, on_disk)
    if tasks is None:
        left_out |= {NO_TASK: without_task(on_disk, known)}
    printed, unlike = published_results(rows, {result.task for result in current}) if include != "own" else ([], [])
    results = (*printed, *mark_commits(current))
    if tasks is None:
        scored = {result.task for result in results}
        rows = [row for row in rows if row.name in scored]
    return ResultSet(tuple(rows), results, notes=(*stored.notes, *_notes(unlike, left_out, current)))


def rows_of(tasks: Tasks = None, protocol: str | None = None, known: Catalogue[Task] | None = None) -> list[Task]:
    """The chosen rows, or all known ones, as one of their protocols has them, or one of papers."""
    known = tasks_here() if known is None else known
    rows = list(known.values()) if tasks is None else choose_tasks(tasks, known=known)
    if protocol not in (None, "paper") and protocol in {score.protocol for score in printed_scores(rows)}:
        return [replace(row, protocol=protocol) for row in rows]
    return under_protocol(protocol, rows)


def printed_scores(rows: Sequence[Task]) -> list[papers.Published]:
    """Everything published for the families of these rows."""
    families = dict.fromkeys(row.family for row in rows)
    return [score for family in families if family in papers.FAMILIES for score in papers.scores(family)]


def published_results(rows: Sequence[Task], scored: Collection[str] = ()) -> tuple[list[TaskResult], list[TaskResult]]:
    """Published scores that may be compared with scores of these rows, and those that may not.

    The latter have the same protocol, but come from other data or another measure. The former are under the names of
    the models' cards. `scored` are the tasks that own scores exist of: of others, published scores on other data than
    the row's stay, as they can be compared with one another.
    """
    by_name = {row.name: row for row in rows}
    cards = {(family, alias): card.name for card in MODELS.values() for family, alias in card.aliases.items()}
    comparable: list[TaskResult] = []
    unlike: list[TaskResult] = []
    for protocol in dict.fromkeys(["paper", *(row.protocol for row in rows)]):
        for result in papers.results_of_rows(rows, protocol):
            row = by_name[result.task]
            if papers.comparable(result, row) or (row.name not in scored and papers.of_other_data(result, row)):
                comparable.append(replace(result, model=cards.get((row.family, result.model), result.model)))
            elif result.protocol == row.protocol:
                unlike.append(result)
    return comparable, unlike


def own_results(
    rows: Sequence[Task], results: Sequence[TaskResult]
) -> tuple[list[TaskResult], dict[str, list[TaskResult]]]:
    """The results on disk that stand for these rows under their present protocols, and the others, by the reason."""
    wanted = {(row.name, row.protocol): row for row in rows}
    of_rows = [result for result in results if (result.task, result.protocol) in wanted]
    scored = {result.task for result in of_rows if result.made_by == "embark"}
    expected: dict[str, set[str]] = {}
    unknown: dict[str, str] = {}
    for row in rows:
        if row.name in scored:
            try:
                expected[row.name] = {fingerprint_of(row, *part) for part in row.parts}
            except UnknownName as error:  # of a reader or an evaluator
                unknown[row.name] = f"{error.missing}{PLUG_IN}"

    def why_not(result: TaskResult) -> str:
        if result.made_by != "embark":
            return fault_of(result, wanted[result.task, result.protocol])
        if result.task in unknown:
            return unknown[result.task]
        fingerprints = {record.fingerprint for record in result.records}
        # Beside a paper's scores of the same stages, what must be the same is the row without them.
        plain = {record.loaded.get("stages", {}).get("row") for record in result.records}
        return "" if expected[result.task] in (fingerprints, plain) else OUTDATED

    left_out = group_values((why_not(result), result) for result in of_rows)
    return left_out.pop("", []), left_out


def _notes(
    unlike: Sequence[TaskResult], left_out: Mapping[str, Sequence[TaskResult]], current: Sequence[TaskResult]
) -> tuple[str, ...]:
    """Notes on the results that were left out, each with the reason, and on those of other pixels."""
    models = Counter(result.task for result in unlike)
    reasons: dict[str, str] = {
        Note("the paper had other data or another measure", "embark published errata"): listed(
            [f"{task} of {counted(count, 'model')}" for task, count in models.items()]
        ),
        **{why: _names(results) for why, results in left_out.items()},
        "the score is not a number": _names([result for result in current if isnan(result.score)]),
    }
    absent = [
        Note(f"left out, because {without_advice(why)}: {names}", why.advice if isinstance(why, Note) else "")
        for why, names in reasons.items()
        if names
    ]
    cuda = {result.model for result in current if any(record.loaded.get("pixels") for record in result.records)}
    pixels = f"JPEGs decoded and resized on a GPU, not by Pillow: {listed(sorted(cuda))}"
    return (*absent, *[pixels] * bool(cuda))


def _names(results: Sequence[TaskResult]) -> str:
    return listed(sorted({f"{result.task} of {result.model}" for result in results}))
