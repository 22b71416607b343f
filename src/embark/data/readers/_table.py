"""What readers of tables share: opening a split of a dataset, selecting its rows, making items of its columns.

Every such reader understands the options in `OPTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

import numpy as np

from embark.catalogue import listed
from embark.data import items
from embark.data.fetch import Hub, RemoteFile
from embark.data.rows import Rows, open_rows, split_files
from embark.types import MODALITIES, Array, Classes, Dataset, EmbarkError, Item, Media, Modality, Option, Side, Task

OUTSIDE = "allow_outside"  # what a user said, never a file: tables of a folder may name files outside it
OPTIONS = {
    "subset_is": Option(
        ("config", "split", "column", "columns"),
        "What a name in the row's `subsets` is in the data (default: a config, or nothing for \"default\"); columns: "
        "the names of columns hold it, as in caption_{subset}.",
    ),
    "language": Option(str, "The column that names the subset of a row, where `subset_is` is column (language)."),
    "splits": Option(dict, "{split: the name that the data has for it}, where they differ."),
    "where": Option(dict, "{column: value or list of values}: only these rows are part of the task."),
    "drop": Option(dict, "{split: list of row numbers}: rows known to be broken; they are left out and counted."),
    "missing": Option(("skip", "error"), "What to do about rows that lack a value (default: the task's `unreadable`)."),
    "equal": Option(
        ("one", "apart"), "Whether items of equal content are one, as in own tasks, or each row has its own item."
    ),
    OUTSIDE: Option(bool, "Tables of a folder may name files outside it; a user says so, never a file of tasks."),
}
CONTENT = {"image": "pictures", "video": "films", "audio": "sounds", "text": "texts"}  # as descriptions of columns
ORDER: tuple[Modality, ...] = ("image", "video", "audio", "text")  # of the parts of a mixed item: words come last
NAMED = 5  # rows or ids that a message names


@dataclass(frozen=True)
class Table:
    """A selection of the rows of one split: their numbers, and warnings about those that were left out."""

    task: Task
    split: str
    rows: Rows
    numbers: Sequence[int]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def values(self, column: str) -> list[Any]:
        """The values of a column."""
        return self._select(self.rows.values(column))

    def numbers_of(self, column: str) -> Array:
        """The values of a column of numbers, as floats; one that is not a finite number is an error."""
        cells = self.values(column)
        floats = np.fromiter(map(_finite, cells), float, len(cells))
        if len(invalid := np.flatnonzero(np.isnan(floats))):
            row = int(invalid[0])
            raise EmbarkError(
                f"Task {self.task.name}: '{column}' is {cells[row]!r} in row {self.numbers[row]} of {self.split}, "
                f"not a finite number ({len(invalid)} such rows). Mend the data."
            )
        return floats

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """A column of media, encoded and unread."""
        return self._select(self.rows.media(kind, column))

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """A column of lists of media."""
        return self._select(self.rows.list_media(kind, column))

    def take(self, positions: Iterable[int]) -> Table:
        """The rows at these positions."""
        return replace(self, numbers=[self.numbers[position] for position in positions])

    def drop_missing(self, positions: Iterable[int], what: str) -> Table:
        """The table without the rows at these positions, which lack `what`; an error unless the task skips them."""
        missing = set(positions)
        if not missing:
            return self
        rows = f"{len(missing)} of {len(self)} rows of {self.split}"
        numbers = first_few(str(self.numbers[position]) for position in sorted(missing))
        if self.task.options.get("missing", self.task.unreadable) == "error":
            advice = "Repair the data, or set unreadable='skip' on the task (--skip-unreadable) to leave them out."
            raise EmbarkError(f"Task {self.task.name}: {rows} have no {what}: row {numbers}. {advice}")
        remaining = self.take(position for position in range(len(self)) if position not in missing)
        return replace(remaining, skipped=(*self.skipped, f"left out {rows} that have no {what}: row {numbers}"))

    def with_values(self, *columns: str) -> Table:
        """The rows with a value in each of these columns."""
        table = self
        for column in columns:
            cells = enumerate(table.values(column))
            table = table.drop_missing((position for position, cell in cells if cell is None), column)
        return table

    def with_items(self, columns: Mapping[Modality, str], title: str | None = None) -> tuple[Table, list[Item]]:
        """The rows that have content in one of the columns at least, and the items made of it.

        `title` is a column whose text goes before the text, with a space between.
        """
        if not columns:
            raise EmbarkError(
                f"Task {self.task.name} names no column of content: its `columns` need one of {', '.join(MODALITIES)}."
            )
        parts = [self._items(kind, columns[kind], title) for kind in ORDER if kind in columns]
        whole = parts[0] if len(parts) == 1 else [_mix(row) for row in zip(*parts, strict=True)]
        empty = (position for position, item in enumerate(whole) if item is None)
        return self.drop_missing(empty, " or ".join(columns)), [item for item in whole if item is not None]

    def _items(self, kind: Modality, column: str, title: str | None) -> list[Item | None]:
        if kind != "text":
            return [None if media is None else Item((media,)) for media in self.media(kind, column)]
        cells = self.values(column)
        if title is not None:
            cells = [_add_title(text, cell) for text, cell in zip(self.values(title), cells, strict=True)]
        return [None if cell is None else items.text(str(cell)) for cell in cells]

    def _select(self, cells: list[Any]) -> list[Any]:
        return cells if len(self.numbers) == len(cells) else [cells[number] for number in self.numbers]


def _finite(cell: Any) -> float:
    """The number in a cell, or NaN where there is none or no finite one."""
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def open_table(task: Task, split: str, subset: str, hub: Hub) -> Table:
    """One split and subset of a task's dataset, after `where` and `drop`."""
    config, stored = config_and_split(task, split, subset)
    where = dict(task.options.get("where", {}))
    if subset_kind(task, subset) == "column":
        where[task.options.get("language", "language")] = subset
    return open_split(task, stored, config, hub, where, [f"{config}/{split}" if config else split])


def open_split(
    task: Task,
    split: str,
    config: str | None,
    hub: Hub,
    where: Mapping[str, Any] = MappingProxyType({}),
    keys: Sequence[str] = (),
) -> Table:
    """A split of a config, by the hub's names; `keys` are other names that the task's `rows` may use for it."""
    keys = (f"{config}/{split}" if config else split, *keys)
    expected = next((task.rows[key] for key in keys if key in task.rows), None)
    rows = open_rows(task.source, split, hub, config, expected, bool(task.options.get(OUTSIDE)))
    table = Table(task, split, rows, _matching(rows, where))
    if not len(table):
        condition = f" where {', '.join(f'{name} is {value!r}' for name, value in where.items())}" if where else ""
        raise EmbarkError(f"Task {task.name}: {rows.name} has no rows{condition}.")
    return _drop_broken(table, task.options.get("drop", {}).get(split, ()))


@dataclass(frozen=True)
class TableFiles:
    """The files of one table of a task, the names that the task's `rows` may have for it, and the column of its ids.

    `roles` are those of the task's `columns` that each of its files must have, as far as that is known.
    """

    files: tuple[RemoteFile, ...]
    keys: tuple[str, ...]
    id: str = ""
    roles: tuple[str, ...] = ()


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The tables of a task: of its splits, of the options `train` and `corpus`, of its subsets, and of each config in
    the option `configs`.
    """
    options = task.options
    learns = task.evaluator in ("probe", "multilabel") and "divide" not in options
    train = options.get("train", "train" if learns else None)
    splits = dict.fromkeys((*task.source.splits, *options.get("corpus", ()), *([train] if train else ())))
    roles = () if "configs" in options else tuple(task.columns)  # of several configs, each has columns of its own
    keys: dict[tuple[str | None, str], dict[str, None]] = {}
    for subset in task.subsets:
        for split in splits:
            own, stored = config_and_split(task, split, subset)
            for config in options.get("configs", (own,)):
                names = (stored, split) if config is None else (f"{config}/{stored}", f"{config}/{split}")
                keys.setdefault((config, stored), {}).update(dict.fromkeys(names))
    return [
        TableFiles(tuple(split_files(task.source, stored, hub, config)), tuple(names), roles=roles)
        for (config, stored), names in keys.items()
    ]


def needed_files(task: Task, hub: Hub) -> list[RemoteFile]:
    """The files of a task's tables, and those that match the patterns in its option `files`."""
    files = {file.path: file for table in tables(task, hub) for file in table.files}
    files |= {
        file.path: file
        for file in hub.files(task.source.id, task.source.revision)
        if any(fnmatchcase(file.path, pattern) for pattern in task.options.get("files", ()))
    }
    return list(files.values())


def config_and_split(task: Task, split: str, subset: str) -> tuple[str | None, str]:
    """The hub's names of the config and the split that hold a split and subset of a task."""
    kind = subset_kind(task, subset)
    stored = subset if kind == "split" else task.options.get("splits", {}).get(split, split)
    return subset if kind == "config" else task.source.config, stored


def subset_kind(task: Task, subset: str) -> str:
    """What a subset is in the data: a config, a split, a column, or nothing."""
    kind = task.options.get("subset_is", "config" if subset != "default" else "")
    if kind not in ("", "config", "split", "column", "columns"):
        raise EmbarkError(f"Task {task.name}: 'subset_is' must be config, split, column or columns, not '{kind}'.")
    return str(kind)


def of_subset(task: Task, subset: str) -> Task:
    """The task with the columns of a subset, where their names hold it."""
    if task.options.get("subset_is") != "columns":
        return task
    return replace(task, columns={role: name.replace("{subset}", subset) for role, name in task.columns.items()})


def zeroshot_dataset(
    side: Side,
    labels: Array,
    names: tuple[str, ...],
    templates: Sequence[str],
    prompt_id: Callable[[int, int], str],
    skipped: tuple[str, ...] = (),
    words: Sequence[str] = (),
) -> Dataset:
    """Items with their labels, and a prompt for each class and template, whose numbers `prompt_id` gets.

    `words` are the class names as prompts have them, where those are not the names.
    """
    ids = [prompt_id(number, template) for number in range(len(names)) for template in range(len(templates))]
    prompts = Side(tuple(ids), tuple(items.prompts(words or names, templates)))
    truth = Classes(labels, np.repeat(np.arange(len(names)), len(templates)), names)
    return Dataset({"item": side, "prompt": prompts}, truth, skipped)


def content_columns(columns: Mapping[str, str], prefix: str = "") -> dict[Modality, str]:
    """The columns that hold content, by modality."""
    return {kind: columns[prefix + kind] for kind in ORDER if prefix + kind in columns}


def first_few(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    return listed(list(names), NAMED)


def as_list(cell: Any) -> list[Any]:
    """The values of a cell that holds a list, one value or none."""
    return list(cell) if isinstance(cell, (list, tuple)) else [] if cell is None else [cell]


def _add_title(title: str | None, text: Any) -> Any:
    return text if not title else title if text is None else f"{title} {text}"


def _mix(parts: Iterable[Item | None]) -> Item | None:
    present = [part for part in parts if part is not None]
    return items.mixed(*present) if present else None


def _matching(rows: Rows, where: Mapping[str, Any]) -> Sequence[int]:
    """The numbers of the rows that the option `where` accepts."""
    numbers: Sequence[int] = range(len(rows))
    for column, wanted in where.items():
        accepted = set(wanted) if isinstance(wanted, (list, tuple, set)) else {wanted}
        cells = rows.values(column)
        numbers = [number for number in numbers if cells[number] in accepted]
    return numbers


def _drop_broken(table: Table, drop: Sequence[int]) -> Table:
    """The table without the rows of the option `drop`."""
    broken = set(drop)
    if not broken:
        return table
    if absent := sorted(broken.difference(range(len(table.rows)))):
        raise EmbarkError(f"Task {table.task.name} drops rows that {table.split} does not have: {absent}.")
    remaining = table.take(position for position, number in enumerate(table.numbers) if number not in broken)
    numbers = first_few(map(str, sorted(broken)))
    warning = f"left out {len(table) - len(remaining)} rows of {table.split} that the task drops: row {numbers}"
    return replace(remaining, skipped=(*table.skipped, warning))
