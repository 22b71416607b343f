"""Holds the rows of tasks against what the hub has: listings, Parquet footers and first rows; nothing is downloaded.

For each task: its revision exists, its files are found, they have the columns that its reader needs, as many rows as
the row states, the class names of the row in its order, ids that occur once, and the license.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from embark import readers
from embark.catalogue import listed
from embark.engine.progress import progress
from embark.field_types import checked
from embark.hub import Hub
from embark.readers.layout import card_head, is_table
from embark.readers.remote import TableHead, table_head
from embark.results.selection import select_tasks
from embark.run.crash_log import CrashLog
from embark.run.fetching import from_hub
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Table, by_column
from embark.tasks import Tasks
from embark.types import EmbarkError, Source, Task

CHECKS = ("revision", "files", "columns", "rows", "classes", "ids", "license")
MEDIA = re.compile(r"(.*_)?(image|video|audio)|images")  # names of columns of media, in rows of tasks
CONNECTIONS = 8
CARD = 1 << 16  # bytes of a dataset's card, of which the head is wanted

Check = Literal["revision", "files", "columns", "rows", "classes", "ids", "license"]


@dataclass(frozen=True)
class RowFinding:
    """What one check of a task found: `agrees` is None where the files or the row do not tell."""

    task: str
    check: Check
    agrees: bool | None
    text: str = ""


@dataclass(frozen=True)
class CheckReport(Noted):
    """The findings about all tasks, in their order."""

    findings: tuple[RowFinding, ...]

    @property
    def differences(self) -> tuple[RowFinding, ...]:
        """The findings that do not agree."""
        return tuple(finding for finding in self.findings if finding.agrees is False)

    def table(self) -> Table:
        """Tasks × checks: whether the row and the hub agree."""
        cells: dict[str, dict[str, str]] = {}
        words = {True: "agrees", False: "DIFFERS", None: "–"}
        for finding in self.findings:
            cells.setdefault(finding.task, {})[finding.check] = words[finding.agrees]
        rows = [Row((task, *(verdicts.get(check, "") for check in CHECKS))) for task, verdicts in cells.items()]
        return Table(("task", *CHECKS), tuple(rows))

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """One row per task and check."""
        return by_column([vars(finding) for finding in self.findings])


@checked
def check(tasks: Tasks, *, settings: Settings | None = None, show_progress: bool = True) -> CheckReport:
    """Hold the rows of tasks against the hub's listings, the footers of their files and their first rows.

    Megabytes are read by ranges, and nothing is stored but the listings. A hub that cannot be reached is an error.
    """
    settings = settings or load_settings()
    if settings.offline:
        raise EmbarkError("A check needs the hub, but embark is offline: unset EMBARK_OFFLINE and HF_HUB_OFFLINE.")
    hub = Hub(settings)
    log = CrashLog(settings)
    chosen = [task for task in select_tasks(tasks, None, settings) if from_hub(task)]

    def examine(task: Task) -> list[RowFinding]:
        try:
            return list(_findings(task, hub))
        except Exception as error:
            return [RowFinding(task.name, "files", False, log.reason(error, f"checking {task.name}"))]

    findings: list[RowFinding] = []
    with (
        progress("checking", len(chosen), show_progress, "tasks") as advance,
        ThreadPoolExecutor(CONNECTIONS) as pool,
    ):
        for of_task in pool.map(examine, chosen):
            findings += of_task
            advance(1)
    if hub.unreachable:
        raise hub.unreachable  # which says nothing about the rows
    notes = [f"{finding.task}: {finding.check}: {finding.text}" for finding in findings if finding.agrees is False]
    differing = len({finding.task for finding in findings if finding.agrees is False})
    summary = f"{len(chosen) - differing:,} of {len(chosen):,} tasks agree with the hub."
    if not chosen:
        summary = "None of these tasks has its data on the hub: there is nothing to check."
    return CheckReport(tuple(findings), notes=(*notes, summary))


def _findings(task: Task, hub: Hub) -> Iterator[RowFinding]:
    source = task.source
    try:
        hub.files(source.id, source.revision)
    except EmbarkError as error:
        yield RowFinding(task.name, "revision", False, str(error))
        return
    yield RowFinding(task.name, "revision", True)
    try:
        needed = readers.needed_files(task, hub)
        heads = {
            file.path: head
            for of, files in needed
            for file in files
            if is_table(file.path) and (head := table_head(hub, of, file))
        }
    except EmbarkError as error:
        yield RowFinding(task.name, "files", False, str(error))
        return
    yield RowFinding(task.name, "files", True)
    tables = readers.tables(task, hub)
    checks: dict[Check, Callable[[], str | None]] = {
        "columns": lambda: _columns(task, tables, heads),
        "rows": lambda: _rows(task, tables, heads),
        "classes": lambda: _classes(task, heads.values(), hub),
        "ids": lambda: _ids(task, tables, heads),
        "license": lambda: _license(source, hub),
    }
    for name, problem_of in checks.items():
        problem = problem_of()
        yield RowFinding(task.name, name, None if problem is None else not problem, problem or "")


def _columns(task: Task, tables: Sequence[readers.TableFiles], heads: Mapping[str, TableHead]) -> str | None:
    """The columns that the row names and files lack, and columns of media that hold something else."""
    if not task.columns or not heads:
        return None
    problems = []
    others: dict[str, None] = {}
    for role, column in ((role, name.strip()) for role, names in task.columns.items() for name in names.split(",")):
        paths = [file.path for table in tables if role in table.roles for file in table.files if file.path in heads]
        wrong = [problem for path in paths if (problem := _column(task, role, column, heads[path]))]
        if not paths:  # some file has it
            wrong = [_column(task, role, column, head) for head in heads.values()]
            wrong = [] if "" in wrong else wrong
        if wrong:
            problems.append(wrong[0])
            others |= dict.fromkeys(name for path in paths or heads for name in heads[path].columns)
    return "; ".join(problems + [f"the files have {listed(sorted(others))}"] * bool(problems))


def _column(task: Task, role: str, column: str, head: TableHead) -> str:
    """What is wrong with a column of the row in a file."""
    names = readers.stored_columns(task, role, column, head.columns)
    if not names:
        return f"there is no column '{column}' ({role})"
    if MEDIA.fullmatch(role) and not names & {*head.media}:
        return f"column '{column}' holds {listed(sorted(head.columns[name] for name in names))}, not media"
    return ""


def _rows(task: Task, tables: Sequence[readers.TableFiles], heads: Mapping[str, TableHead]) -> str | None:
    """The tables with another number of rows than the row states."""
    problems = []
    counted = False
    for table in tables:
        expected = next((task.rows[key] for key in table.keys if key in task.rows), None)
        counts = [heads[file.path].rows for file in table.files if file.path in heads]
        if expected is None or None in counts or len(counts) < len(table.files):
            continue
        counted = True
        if (count := sum(count or 0 for count in counts)) != expected:
            problems.append(f"{table.keys[0]} has {count:,} rows, expected {expected:,}")
    return "; ".join(problems) if counted else None


def _classes(task: Task, heads: Iterable[TableHead], hub: Hub) -> str | None:
    """The class names of the files, where they are not those of the row."""
    known = task.labels or tuple(task.options.get("names", ()))
    if not known:
        return None
    column = task.columns.get("label", "")
    declared = next((head.classes[column] for head in heads if head.classes and column in head.classes), None)
    declared = declared or readers.listed_classes(task, hub)
    if not declared:
        return None
    if len(declared) != len(known):
        return f"the files name {len(declared)} classes, the row {len(known)}"
    plain = [re.sub(r"[\W_]+", " ", name).strip().casefold() for name in declared]
    own = [re.sub(r"[\W_]+", " ", name).strip().casefold() for name in known]
    if sorted(plain) != sorted(own):
        return None  # other words for the classes; their order cannot be told
    moved = next((number for number, (name, other) in enumerate(zip(plain, own, strict=True)) if name != other), None)
    return "" if moved is None else f"class {moved} is '{declared[moved]}' in the files, '{known[moved]}' here"


def _ids(task: Task, tables: Sequence[readers.TableFiles], heads: Mapping[str, TableHead]) -> str | None:
    """The tables whose ids occur more than once, unless the row says what counts then."""
    problems = []
    compared = False
    for table in tables:
        values = [heads[file.path].values(table.id) for file in table.files if table.id and file.path in heads]
        if None in values or len(values) < len(table.files):
            continue
        compared = True
        ids = [str(value) for of_file in values for value in of_file or ()]
        if len(set(ids)) < len(ids) and not task.options.get("repeated"):
            problems.append(f"{table.keys[0]} has {len(ids):,} rows and {len(set(ids)):,} ids")
    return "; ".join(problems) if compared else None


def _license(source: Source, hub: Hub) -> str | None:
    """The license on the dataset's card, where it is another than the row's."""
    card = next((file for file in hub.files(source.id, source.revision) if file.path == "README.md"), None)
    if not source.license or source.license == "not specified" or card is None:
        return None
    text = hub.read_range(source.id, source.revision, card, 0, CARD).decode(errors="replace")
    head = re.search(r"^license: *['\"]?([^'\"\n]+)", card_head(text), re.MULTILINE)
    if head is None:
        return None
    stated = head[1].strip()
    plain = [re.sub(r"[\W_]+", "", str(name)).casefold() for name in (stated, source.license)]
    return "" if plain[0] in plain[1] or plain[1] in plain[0] else f"the card says {stated}, the row {source.license}"
