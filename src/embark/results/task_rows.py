"""Rows of tasks beside their results: a user's own task needs no file to be compared, ranked or shown again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

from embark.catalogue import Catalogue
from embark.data.own_tasks import tasks_here
from embark.tasks import TASKS
from embark.types import Pool, Source, Style, Task

if TYPE_CHECKING:
    from embark.results import TaskResult

TUPLES = ("modalities", "labels", "templates", "notes")  # which JSON has as lists


def to_json(task: Task) -> dict[str, Any]:
    """The fields of a row that differ from their defaults."""
    return {name: value for name, value in _stated(task).items() if name != "variants"} | {
        "source": _stated(task.source),
        "pools": [vars(pool) for pool in task.pools],
        **({"style": vars(task.style)} if task.style else {}),
    }


def from_json(content: Mapping[str, Any]) -> Task:
    """The row again, as `to_json` wrote it."""
    facts = dict(content)
    source = dict(facts.pop("source"))
    source["splits"] = tuple(source.get("splits", ("test",)))
    source["files"] = {split: tuple(patterns) for split, patterns in source.get("files", {}).items()}
    facts |= {name: tuple(facts[name]) for name in TUPLES if name in facts}
    if "subsets" in facts:
        facts["subsets"] = {subset: tuple(languages) for subset, languages in facts["subsets"].items()}
    pools = tuple(Pool(**pool) for pool in facts.pop("pools", ()))
    if style := facts.pop("style", None):
        facts["style"] = Style(**style)
    return Task(**facts, source=Source(**source), pools=pools)


def known_tasks(results: Iterable[TaskResult]) -> Catalogue[Task]:
    """The built-in tasks, the own ones of embark.toml, and those that these results carry: the newest row of each.

    Where an own task was scored under several protocols, the paper's has the row, and the others are its variants. Rows
    of samples are none of them: no board has scores on a sample.
    """
    own: dict[str, dict[str, Task]] = {}
    for result in sorted(results, key=lambda result: result.date):
        if result.row is not None and result.row.limit is None and result.task not in TASKS:
            rows = own.setdefault(result.task, {})
            rows.pop(result.protocol, None)  # the newest comes last
            rows[result.protocol] = result.row
    return tasks_here(_with_variants(own[name]) for name in sorted(own))


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


def _stated(value: Task | Source) -> dict[str, Any]:
    """A dataclass's fields that differ from their defaults."""
    defaults = {
        spec.name: spec.default if spec.default_factory is MISSING else spec.default_factory() for spec in fields(value)
    }
    return {name: getattr(value, name) for name, default in defaults.items() if getattr(value, name) != default}
