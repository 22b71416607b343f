"""Readers over webdataset shards as UniBench keeps them on the hub: lossless images with a class or with captions.

A sample has `0.webp` (and `1.webp`…), and `cls` (a number), or `npy` (several numbers, or captions). Class names and
templates are in files beside the shards, one per line. What else a sample tells, as `split.txt` (the corruption, the
attribute, the group) or in a `json`, is kept about its pictures, so that scores can be broken down by it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from inspect import getdoc
from itertools import zip_longest
from typing import Any

import numpy as np

from embark import items
from embark.hub import Hub
from embark.items import Items
from embark.items.lazy_items import Numbered, chain
from embark.readers._files import TABLES
from embark.readers._table import zeroshot_dataset
from embark.readers.formats import Shard
from embark.readers.rows import Rows, open_rows
from embark.seams import Reader
from embark.types import Array, Dataset, EmbarkError, Item, Matches, Option, Side, Task

CLASSES = "classnames.txt"
TEMPLATES = "zeroshot_classification_templates.txt"
SEED = 42


def zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Images with one class or several, and a prompt for each class and template."""
    rows = open_rows(task.source, split, hub, expected=task.rows.get(split))
    names, templates, warnings = _class_names_and_templates(task, hub)
    rows, ids = _sample(task, rows)
    about = _about(task, rows)
    data = zeroshot_dataset(
        Side(ids, _images(task, rows, 1)),
        _labels(task, rows, names),
        names,
        templates,
        lambda number, template: str(number * len(templates) + template),
        warnings,
    )
    return replace(data, about={"item": about} if about else {})


def relation(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Samples of a few images and captions; caption j belongs to image j, the others are wrong."""
    rows = open_rows(task.source, split, hub, expected=task.rows.get(split))
    count = int(task.options.get("images", 1))
    images = _images(task, rows, count)
    captions = [np.asarray(value) for value in _filled_values(task, rows, task.columns.get("captions", "npy"))]
    shapes = sorted({array.shape for array in captions})
    if len(shapes) != 1 or len(shapes[0]) != 1 or any(array.dtype.kind != "U" for array in captions):
        raise EmbarkError(f"{task.name}: every sample needs the same number of captions, found arrays of {shapes}.")
    texts = [items.text(str(text)) for array in captions for text in array]
    truth = Matches(np.arange(len(images)).reshape(-1, count), np.arange(len(texts)).reshape(len(captions), -1))
    warnings = _size_warnings(task, "captions", truth.text.shape[1], "captions per sample")
    about = {fact: [value for value in values for _ in range(count)] for fact, values in _about(task, rows).items()}
    sides = {"image": _side(images), "text": _side(texts)}
    return Dataset(sides, truth, warnings, about={"image": about} if about else {})


def stored_columns(role: str, column: str, known: Collection[str]) -> set[str]:
    """A column is the ending of one file of a sample or several; several numbers of classes are an array."""
    names = {name for name in known if name.rpartition(".")[2] == column}
    return names or ({"npy"} & {*known} if role == "label" else set())


def listed_classes(task: Task, hub: Hub) -> tuple[str, ...]:
    """The class names beside the shards, read where they are."""
    source = task.source
    file = next((file for file in hub.files(source.id, source.revision) if file.path == CLASSES), None)
    if file is None or task.options.get("labels", "dataset") == "row":
        return ()
    return _lines_of(hub.read_range(source.id, source.revision, file, 0, file.size).decode("utf-8"))


# ── images and labels ────────────────────────────────────────────────────────────────────────────────────────────────


def _side(contents: Sequence[Item]) -> Side:
    return Side(Numbered(range(len(contents))), contents)


def _sample(task: Task, rows: Rows) -> tuple[Rows, Numbered]:
    """The rows that are used, all or as many as the option `sample` says, and their numbers as ids."""
    count = len(rows)
    size = int(task.options.get("sample", count))
    if size >= count:
        return rows, Numbered(range(count))
    # As `datasets` shuffles, which UniBench calls with this seed before it takes the first rows.
    numbers = np.sort(np.random.default_rng(SEED).permutation(count)[:size])
    starts = np.cumsum([0, *map(len, rows.tables)])
    shards = []
    for table, start, stop in zip(rows.tables, starts[:-1], starts[1:], strict=True):
        assert isinstance(table, Shard)
        shards.append(table.take((numbers[(numbers >= start) & (numbers < stop)] - start).tolist()))
    return Rows(rows.name, [shard for shard in shards if len(shard)]), Numbered(numbers)


def _about(task: Task, rows: Rows) -> dict[str, list[str | None]]:
    """What the samples tell about their pictures besides class and captions: texts, and the fields of json files."""
    used = {task.columns.get(role, "") for role in ("image", "label", "captions")}
    about: dict[str, list[str | None]] = {}
    for column in rows.column_names:
        name, _, ending = column.rpartition(".")
        if ending not in ("txt", "json") or column in used:
            continue
        values = rows.values(column)
        if ending == "txt":
            about[name or column] = [None if value is None else value.strip() for value in values]
        elif all(isinstance(value, dict) for value in values):
            for fact in dict.fromkeys(fact for value in values for fact in value):
                facts = [value.get(fact) for value in values]
                about[str(fact)] = [None if value is None else str(value) for value in facts]
    return about


def _images(task: Task, rows: Rows, count: int) -> Items:
    """The images of each sample, one sample after another."""
    ending = task.columns.get("image", "webp")
    columns = sorted(name for name in rows.column_names if name.rpartition(".")[2] == ending)
    if len(columns) != count:
        raise EmbarkError(
            f"{task.name} needs {count} images ({ending}) a sample, its columns are: {', '.join(rows.column_names)}."
        )
    images, present = zip(*(rows.media_items("image", name) for name in columns), strict=True)
    if len(missing := np.flatnonzero(~np.stack(present).all(axis=0))):
        raise EmbarkError(f"{task.name}: {len(missing)} samples lack an image, the first is number {missing[0]}.")
    return chain(images).take(np.arange(len(rows) * count).reshape(count, -1).T.ravel())


def _labels(task: Task, rows: Rows, names: Sequence[str]) -> Array:
    """(items,) of class numbers; (items, classes) of booleans if any item has more than one, or none."""
    column = task.columns.get("label", "cls")
    values = _filled_values(task, rows, column if column in rows.column_names else "npy")
    labels = [value.ravel().tolist() if isinstance(value, np.ndarray) else [value] for value in values]
    for number, classes in enumerate(labels):
        if odd := [label for label in classes if type(label) is not int]:
            raise EmbarkError(f"{task.name}: labels must be whole numbers, sample {number} has {odd[0]!r}.")
        if not all(0 <= label < len(names) for label in classes):
            raise EmbarkError(
                f"{task.name}: sample {number} has class {classes}, but there are {len(names)} class names."
            )
    if all(len(classes) == 1 for classes in labels):
        return np.array([label for (label,) in labels], np.int64)
    table = np.zeros((len(labels), len(names)), bool)
    for row, classes in zip(table, labels, strict=True):
        row[classes] = True
    return table


def _filled_values(task: Task, rows: Rows, column: str) -> list[Any]:
    """The values of a column; a sample without one is an error."""
    values = rows.values(column)
    if missing := [number for number, value in enumerate(values) if value is None]:
        raise EmbarkError(f"{task.name}: {len(missing)} samples lack '{column}', the first is number {missing[0]}.")
    return values


# ── class names and templates ────────────────────────────────────────────────────────────────────────────────────────


def _class_names_and_templates(task: Task, hub: Hub) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Class names, templates, and warnings where the dataset's files differ from the task's lists."""
    names = task.labels
    templates = task.templates
    if task.options.get("labels", "dataset") != "row":
        names = _lines(task, CLASSES, hub)
        templates = _lines(task, TEMPLATES, hub)
    if not names or not templates or not all("{}" in template for template in templates):
        raise EmbarkError(
            f"{task.name} needs class names and templates with {{}}; it has {len(names)} and {templates}."
        )
    warnings = [*_size_warnings(task, "classes", len(names), "class names")]
    for what, listed, used in (("class names", task.labels, names), ("templates", task.templates, templates)):
        if listed and listed != used:
            old, new = next(pair for pair in zip_longest(listed, used) if pair[0] != pair[1])
            warnings.append(
                f"the dataset's {what} are not those listed in the task; the first that differs: {new!r} for {old!r}"
            )
    return names, templates, tuple(warnings)


def _lines(task: Task, name: str, hub: Hub) -> tuple[str, ...]:
    """The lines of a file as UniBench reads them; a line may be empty."""
    try:
        text = hub.get(task.source.id, task.source.revision, name).read_text(encoding="utf-8")
    except EmbarkError as error:
        advice = " Protocol 'listed' uses the task's own lists." if "listed" in task.variants else ""
        raise EmbarkError(f"{task.name} takes its prompts from the dataset's {name}: {error}{advice}") from error
    return _lines_of(text)


def _lines_of(text: str) -> tuple[str, ...]:
    lines = text.removesuffix("\n").split("\n")
    return tuple(line.replace("_", " ").replace("{c}", "{}").replace("  ", " ").lower() for line in lines)


def _size_warnings(task: Task, option: str, count: int, what: str) -> tuple[str, ...]:
    """A warning where the data is not of the size that the task's chance level was computed from."""
    expected = task.options.get(option, count)
    return () if expected == count else (f"{count} {what} where the task expects {expected}",)


FILES = replace(TABLES, stored_columns=stored_columns, listed_classes=listed_classes)
ZEROSHOT = Reader(
    "webdataset-zeroshot",
    getdoc(zeroshot) or "",
    zeroshot,
    evaluators=("zeroshot",),
    files=FILES,
    columns={
        "image": "the ending of the pictures' files (0.webp)",
        "label": "the ending of the classes' files: cls (a number) or npy (several)",
    },
    options={
        "labels": Option(
            ("dataset", "row"), "The source of class names and templates: the data set's files, or the row."
        ),
        "classes": Option(int, "The number of classes that the chance level was computed from."),
        "sample": Option(
            int, "The number of rows to use, drawn as in UniBench (the first after shuffling with seed 42)."
        ),
        "files": Option(list, "Patterns of the files that are needed besides the shards."),
    },
)
RELATION = Reader(
    "webdataset-relation",
    getdoc(relation) or "",
    relation,
    evaluators=("pairs",),
    files=FILES,
    columns={
        "image": "the ending of the pictures' files (0.webp; of the others 1.webp…)",
        "captions": "the ending of the captions' files (npy)",
    },
    options={
        "images": Option(int, "The pictures of a sample (1)."),
        "captions": Option(int, "The captions of a sample that the chance level was computed from."),
    },
)
