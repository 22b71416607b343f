"""Readers over webdataset shards as UniBench keeps them on the hub: lossless pictures with a class or with captions.

A sample has `0.webp` (and `1.webp`…), and `cls` (a number), or `npy` (several numbers, or captions). Class names and
templates lie beside the shards, one a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.rows import Rows, open_file, open_rows
from embark.types import Array, Classes, Dataset, EmbarkError, Item, Matches, Side, Task

VERSION = 1

CLASSES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"


def zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pictures with one class or several, and a prompt for each class and template.

    Option `labels`: "dataset" takes names and templates from the dataset's own files, "row" from the task.
    """
    rows = open_rows(task.source, split, hub, expected=task.rows.get(split))
    names, templates, said = _prompts(task, hub)
    pictures = _pictures(task, rows, 1)
    texts = [items.text(template.replace("{}", name)) for name in names for template in templates]
    owners = np.repeat(np.arange(len(names)), len(templates))
    truth = Classes(_labels(task, rows, names), owners, names)
    return Dataset({"item": _side(pictures), "prompt": _side(texts)}, truth, said)


def relation(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Samples of a few pictures and captions; caption j belongs to picture j, the others are wrong."""
    rows = open_rows(task.source, split, hub, expected=task.rows.get(split))
    count = int(task.options.get("images", 1))
    pictures = _pictures(task, rows, count)
    captions = [np.asarray(value) for value in _cells(task, rows, task.columns.get("captions", "npy"))]
    shapes = sorted({array.shape for array in captions})
    if len(shapes) != 1 or len(shapes[0]) != 1 or any(array.dtype.kind != "U" for array in captions):
        raise EmbarkError(f"{task.name}: every sample needs the same number of captions, found arrays of {shapes}.")
    texts = [items.text(str(text)) for array in captions for text in array]
    image, text = np.arange(len(pictures)).reshape(-1, count), np.arange(len(texts)).reshape(len(captions), -1)
    said = _told(task, "captions", text.shape[1], "captions a sample")
    return Dataset({"image": _side(pictures), "text": _side(texts)}, Matches(image, text), said)


# ── pictures and labels ──────────────────────────────────────────────────────────────────────────────────────────────


def _side(found: Sequence[Item]) -> Side:
    return Side([str(at) for at in range(len(found))], found)


def _pictures(task: Task, rows: Rows, count: int) -> list[Item]:
    """The pictures of each sample, one sample after another."""
    ending = task.columns.get("image", "webp")
    columns = sorted(name for name in rows.names if name.rpartition(".")[2] == ending)
    if len(columns) != count:
        there = ", ".join(rows.names)
        raise EmbarkError(f"{task.name} needs {count} pictures ({ending}) a sample, its columns are: {there}.")
    found = [rows.media("image", name) for name in columns]
    pictures = [picture for sample in zip(*found, strict=True) for picture in sample]
    if missing := [at // count for at, picture in enumerate(pictures) if picture is None]:
        raise EmbarkError(f"{task.name}: {len(missing)} samples lack a picture, the first is number {missing[0]}.")
    return [Item((picture,)) for picture in pictures if picture is not None]


def _labels(task: Task, rows: Rows, names: Sequence[str]) -> Array:
    """(items,) of class numbers; (items, classes) of booleans if any item has more than one, or none."""
    column = task.columns.get("label", "cls")
    found = _cells(task, rows, column if column in rows.names else "npy")
    lists = [value.ravel().tolist() if isinstance(value, np.ndarray) else [value] for value in found]
    if odd := [label for some in lists for label in some if type(label) is not int]:
        raise EmbarkError(f"{task.name}: labels must be whole numbers, found {odd[0]!r}.")
    if wrong := [at for at, some in enumerate(lists) if not all(0 <= label < len(names) for label in some)]:
        first = lists[wrong[0]]
        raise EmbarkError(f"{task.name}: sample {wrong[0]} has class {first}, but there are {len(names)} class names.")
    if all(len(some) == 1 for some in lists):
        return np.array([label for (label,) in lists], np.int64)
    several = np.zeros((len(lists), len(names)), bool)
    for row, some in zip(several, lists, strict=True):
        row[some] = True
    return several


def _cells(task: Task, rows: Rows, column: str) -> list[Any]:
    """A column without gaps; arrays of pickled objects were refused on the way here."""
    found = rows.values(column)
    if missing := [at for at, value in enumerate(found) if value is None]:
        raise EmbarkError(f"{task.name}: {len(missing)} samples lack '{column}', the first is number {missing[0]}.")
    return found


# ── class names and templates ────────────────────────────────────────────────────────────────────────────────────────


def _prompts(task: Task, hub: Hub) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Class names, templates, and what to say where the dataset's files differ from the row's lists."""
    listed = (task.labels, task.templates)
    if task.options.get("labels", "dataset") == "row":
        names, templates = listed
    else:
        names, templates = _lines(task, CLASSES, hub), _lines(task, TEMPLATES, hub)
    if not names or not templates or not all("{}" in template for template in templates):
        raise EmbarkError(
            f"{task.name} needs class names and templates with {{}}; it has {len(names)} and {templates}."
        )
    said = _told(task, "classes", len(names), "class names")
    for what, here, there in zip(("class names", "templates"), listed, (names, templates), strict=True):
        if here and here != there:
            old, new = next(pair for pair in zip_longest(here, there) if pair[0] != pair[1])
            said += (
                f"the dataset's {what} are not those listed in the task; the first that differs: {new!r} for {old!r}",
            )
    return names, templates, said


def _lines(task: Task, name: str, hub: Hub) -> tuple[str, ...]:
    """The lines of a file as UniBench reads them; a line may be empty."""
    try:
        text = open_file(task.source, name, hub).read_text(encoding="utf-8")
    except EmbarkError as error:
        advice = " Protocol 'listed' uses the task's own lists." if "listed" in task.variants else ""
        raise EmbarkError(f"{task.name} takes its prompts from the dataset's {name}: {error}{advice}") from error
    lines = text.removesuffix("\n").split("\n")
    return tuple(line.replace("_", " ").replace("{c}", "{}").replace("  ", " ").lower() for line in lines)


def _told(task: Task, option: str, found: int, what: str) -> tuple[str, ...]:
    """A warning where the data is not of the size that the chance level was computed from."""
    expected = task.options.get(option, found)
    return () if expected == found else (f"{found} {what} where the task expects {expected}",)
