"""A robustness task: the data of another reader, clean, and with one side read from other columns.

The parameter `base` names the evaluator; columns and further options are those of the base task's reader.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import cleandoc

from embark import readers
from embark.hub import Hub
from embark.readers._files import NO_TABLES
from embark.readers.rows import FilesBySource
from embark.seams import Reader
from embark.types import Dataset, EmbarkError, Option, Task

OPTIONS = {
    "reader": Option(str, "The reader of the base task."),
    "side": Option(str, "The side that changes: item, document…"),
    "conditions": Option(dict, "{condition: {role: the column that takes the place of the role's own}}."),
}


def read_conditions(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The clean sides, and "side:condition" with the same items in the same order."""
    if missing := [name for name in OPTIONS if not task.options.get(name)]:
        raise EmbarkError(f"Task {task.name}: the reader 'conditions' needs the option {' and '.join(missing)}.")
    base = _base(task)
    clean = readers.read(base, split, subset, hub)
    side = task.options["side"]
    sides = dict(clean.sides)
    for condition, columns in task.options["conditions"].items():
        changed = readers.read(replace(base, columns={**task.columns, **columns}), split, subset, hub).sides
        if side not in changed or list(changed[side].ids) != list(clean.sides[side].ids):
            raise EmbarkError(
                f"Task {task.name}: under '{condition}', side '{side}' has other ids than in the clean task."
            )
        sides[f"{side}:{condition}"] = changed[side]
    return replace(clean, sides=sides)


def needed_files(task: Task, hub: Hub) -> FilesBySource:
    """The files of the base task."""
    return readers.needed_files(_base(task), hub)


def other_sources(task: Task) -> tuple[str, ...]:
    """Those of the base task."""
    return readers.sources(_base(task)) if "reader" in task.options else ()


def _base(task: Task) -> Task:
    options = {name: value for name, value in task.options.items() if name not in OPTIONS}
    return replace(task, evaluator=task.params.get("base", "retrieval"), reader=task.options["reader"], options=options)


def external_state(task: Task) -> str:
    """The version of the base task's reader."""
    name = task.options.get("reader", "")
    return f"{name} {readers.version(name)}" if name else ""


CONDITIONS = Reader(
    "conditions",
    cleandoc(__doc__ or ""),
    read_conditions,
    evaluators=("robustness",),
    files=replace(NO_TABLES, needed=needed_files, other_sources=other_sources),
    options=OPTIONS,
    base_option="reader",
    external_state=external_state,
)
