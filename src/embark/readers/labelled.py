"""Items with a label: a probe's two splits, groups to cluster, or classes to recognize by their prompts.

Class numbers index the list of classes in order; names are looked up in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

import numpy as np

from embark.hub import Hub
from embark.items import Items, digests, take
from embark.items.equal_items import merge_equal
from embark.items.lazy_items import Numbered, take_ids
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import (
    CONTENT,
    SourceTable,
    as_list,
    content_columns,
    first_few,
    open_table,
    zeroshot_dataset,
)
from embark.readers.layout import NoFiles
from embark.seams import Reader
from embark.types import Array, Dataset, EmbarkError, Groups, Option, Side, Split, Task

MOST_CLASSES = 10_000_000  # of numbered labels; a larger number is no class
COLUMNS = {
    **CONTENT,
    "label": "the class of each item: a name, a number, or a list of either; several content columns make one item",
}
OPTIONS = {
    "train": Option(str, 'The split that a probe is trained on ("train").'),
    "divide": Option(
        dict,
        "{train = 0.5, seed = 42}: the share of each class that a probe is trained on, if one table is used for both "
        "splits; drawn by content, so that equal items are never in both.",
    ),
    "column": Option(str, "The column whose declared class names are used, if not the label's own."),
    "clean": Option(dict, 'How class names become words: {split = "/", from = 2, replace = {"_" = " "}}.'),
    "labels": Option(
        ("class_names",),
        "The classes are those that the data declares, or else the distinct labels, sorted: the rule without `labels`.",
    ),
    "names": Option(
        list, "The classes in order, for prompts where neither files nor card name them; where they do, in their order."
    ),
    **_table.OPTIONS,
}


@dataclass(frozen=True)
class LabeledTable:
    """The rows of a split that have content and a label."""

    table: SourceTable
    items: Items
    labels: list[Any]

    def side(self) -> Side:
        """Its items; an id is the split and the row's number, of own tasks the name of a file."""
        task = self.table.task
        media = [column for kind, column in content_columns(task.columns).items() if kind != "text"]
        names = self.table.rows.file_names(media[0]) if task.options.get("equal") == "one" and len(media) == 1 else None
        if names is None:
            return Side(Numbered(self.table.row_numbers, f"{self.table.split}-"), self.items)
        return Side(tuple(str(names[number]) for number in self.table.numbers), self.items)

    @property
    def distinct_labels(self) -> set[Any]:
        """The different labels; of lists, what they hold."""
        try:
            return set(_flat(tuple(set(self.labels))))
        except TypeError:  # lists cannot be members of a set
            return set(_flat(self.labels))


def read_labelled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items of a split and the truth that the task's evaluator needs."""
    if task.evaluator not in BY_EVALUATOR:
        raise EmbarkError(
            f"Task {task.name}: the reader 'labelled' serves {', '.join(BY_EVALUATOR)}, not '{task.evaluator}'."
        )
    data = BY_EVALUATOR[task.evaluator](task, split, subset, hub)
    return merge_equal(task, data) if task.options.get("equal") == "one" else data


def _probe(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    if "divide" in task.options:
        return _divided(task, split, subset, hub)
    try:
        train = _open(task, task.options.get("train", "train"), subset, hub)
    except NoFiles as error:
        raise EmbarkError(f"{error} The option `divide` makes both splits of one.") from None
    test = _open(task, split, subset, hub)
    names = _class_names(task, train, test)
    truth = Split(_class_numbers(train, names), _class_numbers(test, names), names)
    return Dataset({"train": train.side(), "test": test.side()}, truth, (*train.table.skipped, *test.table.skipped))


def _divided(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Both sides of a probe from one table."""
    rows = _open(task, split, subset, hub)
    names = _class_names(task, rows)
    numbers = _class_numbers(rows, names)
    groups = numbers if numbers.ndim == 1 else np.zeros(len(numbers), np.int64)  # lists of labels are no classes
    share, seed = _division(task)
    contents = [hashlib.sha256(f"{seed}\0".encode() + content).digest() for content in digests(rows.items).tolist()]
    learnt: set[bytes] = set()
    for label in np.unique(groups):
        distinct = sorted({contents[row] for row in np.flatnonzero(groups == label)})
        count = min(max(round(share * len(distinct)), 1), max(len(distinct) - 1, 1))
        learnt.update(distinct[:count])
    train = np.array([content in learnt for content in contents])
    if train.all():
        raise EmbarkError(f"Task {task.name}: no class of {split} has two different items, one of them to test.")
    whole = rows.side()
    sides = {
        name: Side(take_ids(whole.ids, rows), take(whole.items, rows))
        for name, rows in (("train", np.flatnonzero(train)), ("test", np.flatnonzero(~train)))
    }
    drawn = f"drawn by content, {share:.0%} of each class, seed {seed}"
    note = f"{train.sum():,} of {len(train):,} rows of {split} are for training: {drawn}"
    truth = Split(numbers[train], numbers[~train], names)
    return Dataset(sides, truth, (*rows.table.skipped, note))


def _division(task: Task) -> tuple[float, int]:
    """The share of the training items, and the seed that they are drawn with."""
    divide = task.options["divide"]
    share, seed = (divide.get("train", 0.5), divide.get("seed", 42)) if isinstance(divide, Mapping) else (0, 0)
    if not isinstance(share, float) or not 0 < share < 1 or type(seed) is not int or {*divide} - {"train", "seed"}:
        example = "{ train = 0.5, seed = 42 }"
        raise EmbarkError(f"Task {task.name}: the option 'divide' must be like {example}, not {divide}.")
    return share, seed


def _clustering(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    rows = _open(task, split, subset, hub)
    names = _class_names(task, rows)
    return Dataset({"item": rows.side()}, Groups(_class_numbers(rows, names), names), rows.table.skipped)


def _zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    rows = _open(task, split, subset, hub)
    if plain := [template for template in task.templates if "{}" not in template]:
        raise EmbarkError(f"Task {task.name}: the template {plain[0]!r} has no {{}} where the class goes.")
    names, warnings = _descriptive_names(task, rows)
    return zeroshot_dataset(
        rows.side(),
        _class_numbers(rows, names),
        names,
        task.templates or ("{}",),
        lambda number, template: f"{number}-{template}",
        (*rows.table.skipped, *warnings),
        _clean(task, names),
    )


BY_EVALUATOR: dict[str, Callable[[Task, str, str, Hub], Dataset]] = {
    "probe": _probe,
    "multilabel": _probe,
    "clustering": _clustering,
    "zeroshot": _zeroshot,
}


def _open(task: Task, split: str, subset: str, hub: Hub) -> LabeledTable:
    column = _label_column(task)
    table, contents = open_table(task, split, subset, hub).with_values(column).with_items(content_columns(task.columns))
    return LabeledTable(table, contents, table.values(column))


def _label_column(task: Task) -> str:
    return task.columns.get("label", "label")


# ── classes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _class_names(task: Task, *tables: LabeledTable) -> tuple[str, ...]:
    """The classes in order: those that the task lists, that the data declares, or the labels that occur."""
    column = task.options.get("column", _label_column(task))
    if declared := task.labels or _declared(tables, column):
        return declared
    labels = {label for rows in tables for label in rows.distinct_labels}
    numbers = [label for label in labels if not isinstance(label, str)]
    if not numbers:
        return tuple(sorted(labels))
    if len(numbers) < len(labels):
        raise EmbarkError(
            f"Task {task.name}: column '{column}' holds both names and numbers: the row must list its `labels`."
        )
    whole = [number for number in numbers if _number(number, {}) >= 0]
    return tuple(str(number) for number in range(min(int(max(whole, default=0)), MOST_CLASSES) + 1))


def _descriptive_names(task: Task, rows: LabeledTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes in order, as names that prompts can be made of, and warnings."""
    if task.labels:
        return task.labels, ()
    column = task.options.get("column", _label_column(task))
    listed = tuple(task.options.get("names", ()))
    declared = _declared((rows,), column) or rows.table.rows.card_class_names(column)
    if declared:
        _check_order(task, declared, listed)
        return declared, ()
    if all(isinstance(label, str) for label in rows.distinct_labels):
        return _class_names(task, rows), ()
    if not listed:
        raise EmbarkError(
            f"Task {task.name}: column '{column}' holds bare numbers, and neither the files nor the card of "
            f"{task.source.id} name the classes: the row must list its `labels`, in the order of the numbers."
        )
    return listed, (f"neither files nor card name the {len(listed)} classes: prompts are made of the row's list",)


def _declared(tables: Sequence[LabeledTable], column: str) -> tuple[str, ...] | None:
    """The class names that the files of these tables declare."""
    return next((names for rows in tables if (names := rows.table.rows.class_names(column))), None)


def _check_order(task: Task, declared: Sequence[str], listed: Sequence[str]) -> None:
    """Raise an error where data and row have a class in different places; other spellings are no difference."""
    places = {_letters(name): number for number, name in enumerate(_clean(task, declared))}
    for number, name in enumerate(listed):
        place = places.get(_letters(name), number)
        if place != number:
            raise EmbarkError(
                f"Task {task.name}: '{name}' is class {number} in the row's list and class {place} in the data, which "
                "are in another order than the row's facts: mend one of them."
            )


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _clean(task: Task, names: Sequence[str]) -> list[str]:
    """The class names as words, by the option `clean`."""
    clean: Mapping[str, Any] = task.options.get("clean", {})
    words = []
    for name in names:
        if "split" in clean:
            name = " ".join(name.split(clean["split"])[clean.get("from", 0) :])
        for old, new in clean.get("replace", {}).items():
            name = name.replace(old, new)
        words.append(name)
    return words


def _class_numbers(rows: LabeledTable, names: tuple[str, ...]) -> Array:
    """Labels as class numbers, (items,), or as (items, classes) of booleans where the column holds lists."""
    several = bool(rows.labels) and isinstance(rows.labels[0], (list, tuple))
    by_name = {name: number for number, name in reversed(list(enumerate(names)))}  # of equal names, the first counts
    labels = _flat(rows.labels) if several else rows.labels
    number_of = {label: _number(label, by_name) for label in rows.distinct_labels}
    numbers = np.array([number_of[label] for label in labels], np.int64)
    unknown = np.flatnonzero((numbers < 0) | (numbers >= len(names)))
    if len(unknown):
        outside = first_few(dict.fromkeys(repr(labels[position]) for position in unknown))
        classes = f"{len(names)} classes ({first_few(names)})"
        raise EmbarkError(
            f"Task {rows.table.task.name}: {rows.table.split} has labels outside its {classes}: {outside}."
        )
    if not several:
        return numbers
    table = np.zeros((len(rows.labels), len(names)), bool)
    table[np.repeat(np.arange(len(rows.labels)), list(map(len, rows.labels))), numbers] = True
    return table


def _number(label: Any, by_name: Mapping[str, int]) -> int:
    """The number of a class name, or the number that the label is or spells; -1 if it is neither."""
    if isinstance(label, str):
        return by_name[label] if label in by_name else _number(int(label), {}) if label.isdecimal() else -1
    return int(label) if label % 1 == 0 and label < 1 << 62 else -1  # infinity and NaN have no remainder


def _flat(labels: Sequence[Any]) -> list[Any]:
    return [label for cell in labels for label in as_list(cell)]


LABELLED = Reader(
    "labelled",
    cleandoc(__doc__ or ""),
    read_labelled,
    evaluators=("zeroshot", "probe", "multilabel", "clustering"),
    files=TABLES,
    version=2,
    columns=COLUMNS,
    options=OPTIONS,
)
