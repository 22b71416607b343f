"""Imports results of other tools, and exports yours for mteb."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from embark import published
from embark.boards.mteb_versions import fault_of
from embark.catalogue import check_name, counted, group_values, listed, match_words
from embark.exchange.tools import (
    Tool,
    read_results,
    tool_of,
    write_mteb,
)
from embark.field_types import checked
from embark.models import MODELS
from embark.results import Results, TaskResult
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Score, Table
from embark.tasks import Tasks, Wanted, choose_tasks, under_protocol
from embark.types import EmbarkError, Task

logger = logging.getLogger("embark")
FEW = 8  # refused files that are named
WRITERS = 16  # files at once, because each waits for the disk


@dataclass(frozen=True)
class Imported(Noted):
    """The imported results, their folder, and the files that were refused, each with the reason."""

    results: tuple[TaskResult, ...]
    refused: dict[Path, str]
    folder: Path

    def table(self) -> Table:
        """One row per result."""
        rows = [
            Row((result.model, result.revision, result.task, Score(result.score, *result.interval), result.protocol))
            for result in self.results
        ]
        return Table(("model", "revision", "task", "score", "protocol"), tuple(rows))

    def sentence(self) -> str:
        """The import in words."""
        models = counted(len({result.model for result in self.results}), "model")
        protocols = ", ".join(sorted({result.protocol for result in self.results}))
        return f"{counted(len(self.results), 'result')} of {models} to {self.folder} (protocol {protocols})"


def import_results(
    folder: Path | str,
    *,
    tool: Tool | None = None,
    model: str | None = None,
    revision: str = "main",
    protocol: str | None = None,
    settings: Settings | None = None,
) -> Imported:
    """Take in scores that mteb, MMEB's or UniBench's code made; leaderboards show them beside yours, as theirs.

    mteb's files tell the model and, by their version, the protocol; for MMEB's, `model` and `protocol` do ("paper", if
    MMEB-V3's code made them); UniBench's frames (a folder, or aggregate.f alone) tell the model, and are the paper's.
    Without a `tool`, the files tell which one made them. A file that is no result of a known task, or only a part of
    one, is refused with the reason. A score of an mteb that scored its task otherwise than the row states is marked
    and stays off boards, with a note that says what to do.
    """
    folder = Path(folder)
    if not (folder.is_dir() or (folder.is_file() and tool in (None, "unibench"))):
        raise EmbarkError(f"There is no folder {folder}.")
    settings = settings or load_settings()
    results = Results(settings.results)
    tasks = known_tasks(results.all(), settings.home)
    tool = tool or tool_of(folder)
    if tool == "mmeb":
        if model is None or protocol is None:
            raise EmbarkError(
                "MMEB's score files name neither model nor release: give the model (--model) and the protocol "
                "(--protocol paper, if MMEB-V3's code made them)."
            )
        check_name("protocol of MMEB", protocol, {"paper", *(score.protocol for score in published.scores("MMEB-V3"))})
    read = read_results(tool, folder, tasks, model or "", revision, protocol or "")
    if tool == "unibench":
        read.results = [_with_errata(result) for result in read.results]
    root = folder if folder.is_dir() else folder.parent
    reasons = [f"{path.relative_to(root)}: {why}" for path, why in read.refused.items()]
    if not read.results:
        why = f": {listed(reasons, FEW)}" if reasons else ""
        raise EmbarkError(f"{folder} holds no results of known tasks{why}.")
    with ThreadPoolExecutor(WRITERS) as pool:
        written = tuple(pool.map(lambda result: results.write(result, None), read.results))
    more = [f"left out: {len(reasons) - FEW} files more"] if len(reasons) > FEW else []
    notes = (*results.notes, *_marked(written, tasks), *(f"left out: {reason}" for reason in reasons[:FEW]), *more)
    return Imported(written, read.refused, results.root, notes=notes)


@checked
def export_mteb(
    out: Path | str,
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    protocol: str | None = None,
    settings: Settings | None = None,
) -> list[TaskResult]:
    """Write your results where mteb.ResultCache(out) looks: results/<org>__<model>/<revision>/<Task>.json in it.

    They are of all tasks and models, or of the chosen ones; `models` are names or patterns. One protocol at a time,
    because mteb knows one result per task: the paper's, or another for tasks that have it. A folder that is named
    "results" is written to itself: mteb finds it from the folder above.
    """
    settings = settings or load_settings()
    results = Results(settings.results)
    own = [result for result in results.all() if result.made_by == "embark"]
    for note in results.notes:
        logger.warning("%s", note)
    known = known_tasks(own, settings.home)
    rows = list(known.values()) if tasks is None else choose_tasks(tasks, known=known)
    protocols = {task.name: task.protocol for task in under_protocol(protocol, rows)}
    if tasks is None:
        protocols = {result.task: "paper" for result in own} | protocols
    wanted = match_words("model with results", {result.model for result in own}, models)
    chosen = [
        result
        for result in own
        if result.protocol == protocols.get(result.task) and (wanted is None or result.model in wanted)
    ]
    if not chosen:
        raise EmbarkError(f"There are no results of yours under that protocol in {results.root}. Make some: embark run")
    target = mteb_cache(out) / "results"
    if target.resolve() == results.root.resolve():
        raise EmbarkError(f"{target} is the results folder itself: mteb finds the scores there. Name another folder.")
    return write_mteb(chosen, MODELS, target)


def mteb_cache(folder: Path | str) -> Path:
    """The folder that mteb.ResultCache takes to load what `export_mteb` has written to `folder`."""
    folder = Path(folder)
    return folder.parent if folder.name == "results" else folder


def _marked(results: Sequence[TaskResult], tasks: Mapping[str, Task]) -> list[str]:
    """Notes on the results that boards leave out for the version of mteb that made them, by the reason."""
    rows = {(result.task, result.protocol): tasks[result.task].under(result.protocol) for result in results}
    by_reason = group_values((fault_of(result, rows[result.task, result.protocol]), result) for result in results)
    by_reason.pop("", None)
    return [
        f"kept off boards: {counted(len(marked), 'result')}, because {why}: "
        + listed([f"{result.task} of {result.model}" for result in marked], FEW)
        for why, marked in by_reason.items()
    ]


def _with_errata(result: TaskResult) -> TaskResult:
    """A result of UniBench's, with the known faults of its task as notes: frames do not tell when they were made."""
    notes = tuple(
        erratum.footnote
        for erratum in published.errata("UniBench")
        if any(cell.model == "*" and cell.name == result.task for cell in erratum.cells)
    )
    records = tuple(replace(record, warnings=(*record.warnings, *notes)) for record in result.records)
    return replace(result, records=records)
