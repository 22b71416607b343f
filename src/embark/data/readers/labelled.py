"""Items with a label: a probe's two splits, groups to cluster, or classes to tell apart by their prompts.

Columns: one or more of image, video, audio, text; and `label` (a class number, a name, or a list of either).
Options, besides those of `_table`:
  train     the split a probe learns from ("train")
  labels    "class_names": the classes are those that the data declares for its label column, or, where it declares
            none, the distinct labels, sorted. This is also the rule where the row lists no `labels`
  column    the column whose declared class names are meant, if not the label's own
  clean     {"split": "/", "from": 2, "replace": {"_": " "}}: how class names become words

Class numbers index the list of classes in order; names are looked up in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers._table import Table, contents, listed, open_table
from embark.types import Array, Classes, Dataset, EmbarkError, Groups, Item, Side, Split, Task

VERSION = 2
OPTIONS = ("train", "column", "clean", "labels")

Part = tuple[Table, list[Item], list[Any]]


def read_labelled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items of a split and the truth that the task's evaluator needs."""
    if task.evaluator not in SHAPES:
        known = ", ".join(SHAPES)
        raise EmbarkError(f"Task {task.name}: labelled items serve {known}, not '{task.evaluator}'.")
    return SHAPES[task.evaluator](task, split, subset, hub)


def _probe(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    train = _part(task, task.options.get("train", "train"), subset, hub)
    test = _part(task, split, subset, hub)
    names = _names(task, train, test)
    sides = {"train": _side(train), "test": _side(test)}
    return Dataset(sides, Split(_numbers(train, names), _numbers(test, names), names), _skipped(train, test))


def _clustering(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    part = _part(task, split, subset, hub)
    names = _names(task, part)
    return Dataset({"item": _side(part)}, Groups(_numbers(part, names), names), _skipped(part))


def _zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    part = _part(task, split, subset, hub)
    names = _names(task, part, described=True)
    templates = task.templates or ("{}",)
    words = [template.replace("{}", name) for name in _cleaned(task, names) for template in templates]
    ids = [f"{number}-{at}" for number in range(len(names)) for at in range(len(templates))]
    prompts = Side(tuple(ids), tuple(map(items.text, words)))
    owners = np.repeat(np.arange(len(names)), len(templates))
    return Dataset(
        {"item": _side(part), "prompt": prompts}, Classes(_numbers(part, names), owners, names), _skipped(part)
    )


SHAPES: dict[str, Callable[[Task, str, str, Hub], Dataset]] = {
    "probe": _probe,
    "multilabel": _probe,
    "clustering": _clustering,
    "zeroshot": _zeroshot,
}


def _part(task: Task, split: str, subset: str, hub: Hub) -> Part:
    table = open_table(task, split, subset, hub).full(_label(task))
    table, shown = table.shown(contents(task.columns))
    return table, shown, table.values(_label(task))


def _label(task: Task) -> str:
    return task.columns.get("label", "label")


def _side(part: Part) -> Side:
    table, shown, _ = part
    return Side(tuple(f"{table.split}-{number}" for number in table.numbers), tuple(shown))


def _skipped(*parts: Part) -> tuple[str, ...]:
    return tuple(said for table, *_ in parts for said in table.skipped)


# ── classes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _names(task: Task, *parts: Part, described: bool = False) -> tuple[str, ...]:
    """The classes in order: the row's own list, the data's declaration, or the labels that occur."""
    if task.labels:
        return task.labels
    column = task.options.get("column", _label(task))
    for table, *_ in parts:
        if declared := table.rows.class_names(column):
            return declared
    found: set[Any] = set()
    for *_, labels in parts:
        found.update(_flat(labels))
    if all(isinstance(label, str) for label in found):
        return tuple(sorted(found))
    numbers = [label for label in found if not isinstance(label, str)]
    if described or len(numbers) < len(found):
        why = "bare numbers" if described else "both names and numbers"
        raise EmbarkError(f"Task {task.name}: column '{column}' holds {why}: the row must list its `labels`.")
    return tuple(str(number) for number in range(int(max(numbers)) + 1))


def _cleaned(task: Task, names: Sequence[str]) -> list[str]:
    clean: Mapping[str, Any] = task.options.get("clean", {})
    out = []
    for name in names:
        if "split" in clean:
            name = " ".join(name.split(clean["split"])[clean.get("from", 0) :])
        for old, new in clean.get("replace", {}).items():
            name = name.replace(old, new)
        out.append(name)
    return out


def _numbers(part: Part, names: tuple[str, ...]) -> Array:
    """Labels as class numbers, (items,), or as (items, classes) of booleans where the column holds lists."""
    table, _, labels = part
    several = bool(labels) and isinstance(labels[0], (list, tuple))
    place = {name: number for number, name in reversed(list(enumerate(names)))}  # of equal names, the first counts
    flat = _flat(labels) if several else labels
    found = [_number(label, place) if isinstance(label, str) else label for label in flat]
    numbers = np.array(found, dtype=np.int64) if found else np.zeros(0, np.int64)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= len(names)))
    if len(wrong):
        labels_seen = listed(dict.fromkeys(repr(flat[at]) for at in wrong))
        known = f"{len(names)} classes ({listed(names)})"
        raise EmbarkError(f"Task {table.task.name}: {table.split} has labels outside its {known}: {labels_seen}.")
    if not several:
        return numbers
    out = np.zeros((len(labels), len(names)), bool)
    out[np.repeat(np.arange(len(labels)), [len(cell) for cell in labels]), numbers] = True
    return out


def _number(label: str, place: Mapping[str, int]) -> int:
    """A name's place; a number that a text table spells is one, unless it is a name."""
    return place[label] if label in place else int(label) if label.isdecimal() else -1


def _flat(labels: Sequence[Any]) -> list[Any]:
    return [one for cell in labels for one in (cell if isinstance(cell, (list, tuple)) else (cell,))]
