"""What readers of tables share: opening a split of a dataset, selecting its rows, making items of its columns.

Every such reader understands the options in `OPTIONS`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embark import items
from embark.catalogue import listed
from embark.hub import Hub
from embark.items import Items
from embark.items.lazy_items import Mixed, Names, Texts, same_type, text_array
from embark.readers._files import config_and_split, subset_kind
from embark.readers.rows import Rows, open_rows
from embark.types import MODALITIES, Array, Classes, Dataset, EmbarkError, Media, Modality, Option, Side, Task

OUTSIDE = "allow_outside"  # what a user said, never a file: tables of a folder may name files outside it
OPTIONS = {
    "subset_is": Option(
        ("config", "split", "column", "columns"),
        'What the names in the row\'s `subsets` refer to in the data (default: a config, or nothing for "default"); '
        "columns: they are part of the names of columns, as in caption_{subset}.",
    ),
    "language": Option(str, "The column that names the subset of a row, where `subset_is` is column (language)."),
    "splits": Option(dict, "{split: its name in the data}, if the two differ."),
    "where": Option(dict, "{column: value or list of values}: only these rows are part of the task."),
    "drop": Option(dict, "{split: list of row numbers}: rows known to be broken; they are left out and counted."),
    "missing": Option(("skip", "error"), "What to do about rows that lack a value (default: the task's `unreadable`)."),
    "equal": Option(
        ("one", "apart"),
        "one: items of equal content are one item (as in folders and TOML files); apart: each row is an item.",
    ),
    "strip": Option(list, 'The sides whose texts are stripped of white space at both ends, for example ["document"].'),
    OUTSIDE: Option(
        bool, "Whether tables of a folder may name files outside it; only the user can set it, no file of tasks."
    ),
}
CONTENT = {"image": "pictures", "video": "films", "audio": "sounds", "text": "texts"}  # as descriptions of columns
ORDER: tuple[Modality, ...] = ("image", "video", "audio", "text")  # of the parts of a mixed item: words come last
NAMED_ROWS = 5  # rows or ids that a message names


@dataclass(frozen=True)
class SourceTable:
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

    def take(self, positions: Iterable[int]) -> SourceTable:
        """The rows at these positions."""
        return replace(self, numbers=[self.numbers[position] for position in positions])

    def drop_missing(self, positions: Iterable[int], what: str) -> SourceTable:
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

    def with_values(self, *columns: str) -> SourceTable:
        """The rows with a value in each of these columns."""
        table = self
        for column in columns:
            missing = table.rows.missing(column)[table.row_numbers]
            table = table.drop_missing(np.flatnonzero(missing).tolist(), column)
        return table

    def with_items(self, columns: Mapping[Modality, str], title: str | None = None) -> tuple[SourceTable, Items]:
        """The rows that have content in one of the columns at least, and the items made of it.

        `title` is a column whose text goes before the text, with a space between.
        """
        if not columns:
            raise EmbarkError(
                f"Task {self.task.name} names no column of content: its `columns` need one of {', '.join(MODALITIES)}."
            )
        parts = [self._items(kind, columns[kind], title) for kind in ORDER if kind in columns]
        present = np.stack([has for _, has in parts], axis=1)
        contents = parts[0][0] if len(parts) == 1 else Mixed([items for items, _ in parts], present)
        filled = present.any(axis=1)
        table = self.drop_missing(np.flatnonzero(~filled).tolist(), " or ".join(columns))
        return table, contents if filled.all() else contents.take(np.flatnonzero(filled))

    def texts(self, column: str) -> Any:
        """The values of a column as an Arrow array of texts."""
        array = self.rows.texts(column)
        return array if self._all else array.take(pa.array(self.numbers, pa.int64()))

    def _items(self, kind: Modality, column: str, title: str | None) -> tuple[Items, Array]:
        """A column as items, and which rows have one."""
        if kind != "text":
            contents, present = self.rows.media_items(kind, column)
            rows = self.row_numbers
            return (contents, present) if self._all else (contents.take(rows), present[rows])
        texts = self.texts(column) if title is None else _with_titles(self.texts(title), self.texts(column))
        filled = texts.fill_null("" if texts.type == pa.large_string() else b"") if texts.null_count else texts
        return Texts(filled), texts.is_valid().to_numpy(zero_copy_only=False)

    @property
    def row_numbers(self) -> Array:
        """The numbers of the rows as an array."""
        rows = self.numbers
        return np.arange(len(rows)) if rows == range(len(self.rows)) else np.asarray(rows, np.int64)

    @property
    def _all(self) -> bool:
        return len(self.numbers) == len(self.rows)

    def _select(self, cells: list[Any]) -> list[Any]:
        return cells if self._all else [cells[number] for number in self.numbers]


def _finite(cell: Any) -> float:
    """The number in a cell, or NaN where there is none or no finite one."""
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def open_table(task: Task, split: str, subset: str, hub: Hub) -> SourceTable:
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
) -> SourceTable:
    """A split of a config, by the hub's names; `keys` are other names that the task's `rows` may use for it."""
    keys = (f"{config}/{split}" if config else split, *keys)
    expected = next((task.rows[key] for key in keys if key in task.rows), None)
    rows = open_rows(task.source, split, hub, config, expected, bool(task.options.get(OUTSIDE)))
    table = SourceTable(task, split, rows, _matching(rows, where))
    if not len(table):
        condition = f" where {', '.join(f'{name} is {value!r}' for name, value in where.items())}" if where else ""
        raise EmbarkError(f"Task {task.name}: {rows.name} has no rows{condition}.")
    return _drop_broken(table, task.options.get("drop", {}).get(split, ()))


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


def rows_of_grades(query: Array, grade: Array, queries: int) -> Array | None:
    """The grades of each query as a row, filled up with 0; None where there are none."""
    if not len(query):
        return None
    order = np.argsort(query, kind="stable")
    counts = np.bincount(query, minlength=queries)
    column = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
    out = np.zeros((queries, counts.max()), grade.dtype)
    out[query[order], column] = grade[order]
    return out


def numbered(ids: Iterable[str]) -> Names:
    """Ids with a number behind each that several rows have, from the second of these rows on: "a", "b", "a (2)"."""
    seen: Counter[str] = Counter()
    names = []
    for name in ids:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return Names(text_array(names))


def first_few(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    return listed(list(names), NAMED_ROWS)


def as_list(cell: Any) -> list[Any]:
    """The values of a cell that holds a list, one value or none."""
    return list(cell) if isinstance(cell, (list, tuple)) else [] if cell is None else [cell]


def _with_titles(titles: Any, texts: Any) -> Any:
    """The texts with their titles before them and a space between; either may be missing, and a title empty."""
    titles, texts = same_type(titles, texts)
    titles = pc.if_else(pc.equal(pc.binary_length(titles), 0), pa.scalar(None, titles.type), titles)
    separator = pa.scalar(" ", pa.large_string()).cast(titles.type)
    return pc.coalesce(pc.binary_join_element_wise(titles, texts, separator), titles, texts)


def _matching(rows: Rows, where: Mapping[str, Any]) -> Sequence[int]:
    """The numbers of the rows that the option `where` accepts."""
    numbers: Sequence[int] = range(len(rows))
    for column, wanted in where.items():
        accepted = set(wanted) if isinstance(wanted, (list, tuple, set)) else {wanted}
        cells = rows.values(column)
        numbers = [number for number in numbers if cells[number] in accepted]
    return numbers


def _drop_broken(table: SourceTable, drop: Sequence[int]) -> SourceTable:
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
