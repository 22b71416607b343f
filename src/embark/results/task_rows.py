"""Rows of tasks beside their results: a user's own task needs no file to be compared, ranked or shown again.

A results folder may be a stranger's, and its rows may name any folder, file or data set. So a row that is read from it
is a `ClaimedTask`, whose data nothing opens (`readers.require_named`), unless this home has run the same row: then it
is the home's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from embark.atomic import atomically
from embark.catalogue import Catalogue
from embark.field_types import misfits, stated_fields
from embark.own.names import tasks_here
from embark.tasks import TASKS
from embark.types import ClaimedTask, Pool, Source, Style, Task

if TYPE_CHECKING:
    from embark.results import TaskResult

TUPLES = ("modalities", "labels", "templates", "notes")  # which JSON has as lists
DESCRIBING = ("family", "category", "tags", "chance", "notes", "rows", "pools", "license", "reference")  # no score
PLUG_IN = " here (is a plug-in not installed, or not allowed?)"
NO_TASK = f"there is no task of that name{PLUG_IN}"
Row = TypeVar("Row", Task, ClaimedTask, Source, Pool, Style)


def to_json(task: Task) -> dict[str, Any]:
    """The fields of a row that differ from their defaults."""
    return {name: value for name, value in stated_fields(task).items() if name != "variants"} | {
        "source": stated_fields(task.source),
        "pools": [vars(pool) for pool in task.pools],
        **({"style": vars(task.style)} if task.style else {}),
    }


def from_json(content: Mapping[str, Any]) -> ClaimedTask:
    """The row again, as `to_json` wrote it: what it names is claimed by whoever wrote the file."""
    facts = dict(content)
    source = dict(facts.pop("source"))
    source["splits"] = tuple(source.get("splits", ("test",)))
    source["files"] = {split: tuple(patterns) for split, patterns in source.get("files", {}).items()}
    facts |= {name: tuple(facts[name]) for name in TUPLES if name in facts}
    if "subsets" in facts:
        facts["subsets"] = {subset: tuple(languages) for subset, languages in facts["subsets"].items()}
    pools = tuple(_checked(Pool(**pool)) for pool in facts.pop("pools", ()))
    if style := facts.pop("style", None):
        facts["style"] = _checked(Style(**style))
    facts.pop("variants", None)  # which `to_json` does not write
    return _checked(ClaimedTask(**facts, source=_checked(Source(**source)), pools=pools))


def known_tasks(results: Iterable[TaskResult], home: Path) -> Catalogue[Task]:
    """The built-in tasks, the own ones of embark.toml, and those that these results carry: the newest row of each.

    A row that this home has run (`named_task`) is the home's own. Rows that only results state are `ClaimedTask`s,
    whose data nothing opens; they count where the home has run no task of that name. Where an own task was scored
    under several protocols, the paper's has the row, and the others are its variants. Rows of samples are none of them:
    no board has scores on a sample.
    """
    stated = []
    for result in results:
        if result.row is not None and result.row.limit is None and result.task not in TASKS:
            named = named_task(result.row, home)
            stated.append((named is not None, result.date, result.protocol, named or result.row))
    run_here = {row.name for is_own, _, _, row in stated if is_own}
    own: dict[str, dict[str, Task]] = {}
    for is_own, _, protocol, row in sorted(stated, key=lambda row: row[1]):
        if is_own or row.name not in run_here:  # a claimed row is no variant of the home's own
            rows = own.setdefault(row.name, {})
            rows.pop(protocol, None)  # the newest comes last
            rows[protocol] = row
    return tasks_here(_with_variants(own[name]) for name in sorted(own))


def without_task(results: Iterable[TaskResult], known: Collection[str]) -> list[TaskResult]:
    """The results on tasks that a plug-in brought which is not here: no table can have them."""
    return [result for result in results if result.row is None and result.task not in known]


def _with_variants(rows: Mapping[str, Task]) -> Task:
    """One row with the others as its variants, from the rows of several protocols."""
    row = rows.get("paper") or list(rows.values())[-1]
    variants = {
        protocol: {
            spec.name: getattr(other, spec.name)
            for spec in fields(Task)
            if spec.name not in ("protocol", "variants") and getattr(other, spec.name) != getattr(row, spec.name)
        }
        for protocol, other in rows.items()
        if protocol != row.protocol
    }
    return replace(row, variants=variants)


def _checked(value: Row) -> Row:
    """A row, source, pool or style, if its fields are of their types; else a TypeError."""
    for misfit in misfits(value):
        raise TypeError(f"of its row, {misfit}")
    return value


# ── rows that this home has run ──────────────────────────────────────────────────────────────────────────────────────


def remember(tasks: Iterable[Task], home: Path) -> None:
    """Keep the rows of own tasks that the user runs in `home/tasks`, which no results folder can write to."""
    for task in tasks:
        if task.name not in TASKS and not isinstance(task, ClaimedTask):
            data = _text(to_json(task))
            path = _place(task, home)
            with suppress(OSError):  # then results state the row, and its data are not opened for a page
                if not path.is_file() or path.read_bytes() != data:
                    with atomically(path) as out:
                        out.write(data)


def named_task(row: Task, home: Path) -> Task | None:
    """The row that this home has run and that a result states; None where nobody has run it here.

    All must be equal that decides what is opened and how it is scored: the place, its content, columns, options… The
    row that is returned is the home's own.
    """
    if not isinstance(row, ClaimedTask):
        return row
    try:
        own = from_json(json.loads(_place(row, home).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Task(**vars(own)) if _deciding(own) == _deciding(row) else None


def _place(row: Task, home: Path) -> Path:
    return home / "tasks" / f"{hashlib.sha256(_deciding(row)).hexdigest()[:40]}.json"


def _deciding(row: Task) -> bytes:
    """What of a row decides which data are opened, and how they are scored."""
    facts = {name: fact for name, fact in to_json(row).items() if name not in DESCRIBING}
    source = {name: fact for name, fact in facts["source"].items() if name not in DESCRIBING}
    return _text(facts | {"source": source})


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=dict).encode("utf-8", "surrogatepass")
