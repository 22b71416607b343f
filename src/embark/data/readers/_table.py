"""What readers of tables share: opening a part of a dataset, picking its rows, making items of its columns.

Every such reader understands these options of a row:
  subset_is   "config" (the default, unless the subset is called "default"), "split" or "column": what a subset is
  language    the column that holds the subset, where `subset_is` is "column"
  splits      {split: the hub's name of it}, where they differ
  where       {column: value or values}: only these rows are part of the task
  drop        {split: row numbers}: rows known to be broken; they are left out
  missing     "skip" or "error": what to do about rows that lack something (default: the row's `unreadable`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from embark.data import items, rows
from embark.data.fetch import Hub, RemoteFile
from embark.data.rows import Rows
from embark.types import MODALITIES, EmbarkError, Item, Media, Modality, Task

OPTIONS = ("subset_is", "language", "splits", "where", "drop", "missing")
ORDER: tuple[Modality, ...] = ("image", "video", "audio", "text")  # of the parts of a mixed item: words come last
NAMED = 5  # rows or ids that a message names


@dataclass(frozen=True)
class Table:
    """Some rows of one split: their numbers in it, and a word on those that were left out."""

    task: Task
    split: str
    rows: Rows
    numbers: Sequence[int]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def values(self, column: str) -> list[Any]:
        """A small column, whole."""
        return self._picked(self.rows.values(column))

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """A column of media, still encoded and unread."""
        return self._picked(self.rows.media(kind, column))

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """A column of lists of media."""
        return self._picked(self.rows.list_media(kind, column))

    def only(self, positions: Sequence[int]) -> Table:
        """The rows at these positions."""
        return replace(self, numbers=[self.numbers[at] for at in positions])

    def without(self, positions: Iterable[int], why: str) -> Table:
        """All other rows; those left out are counted and the first named, or are an error if the task says so."""
        bad = set(positions)
        if not bad:
            return self
        named = listed(str(self.numbers[at]) for at in sorted(bad))
        said = f"{len(bad)} of {len(self)} rows of {self.split} have no {why}: row {named}"
        if self.task.options.get("missing", self.task.unreadable) == "error":
            way_out = "Mend the data, or set unreadable='skip' on the task (--skip-unreadable) to leave them out."
            raise EmbarkError(f"Task {self.task.name}: {said}. {way_out}")
        kept = self.only([at for at in range(len(self)) if at not in bad])
        return replace(kept, skipped=(*self.skipped, f"left out {said}"))

    def full(self, *columns: str) -> Table:
        """The rows with a value in each of these small columns."""
        found = self
        for column in columns:
            found = found.without((at for at, cell in enumerate(found.values(column)) if cell is None), column)
        return found

    def shown(self, columns: Mapping[Modality, str], title: str | None = None) -> tuple[Table, list[Item]]:
        """The rows that have something to show, and their items; an item holds what its row has of the columns.

        `title` is a column whose text, where there is any, goes before the text with a space between.
        """
        if not columns:
            known = ", ".join(MODALITIES)
            raise EmbarkError(f"Task {self.task.name} names no column of content: its `columns` need one of {known}.")
        parts = [self._items(kind, columns[kind], title) for kind in ORDER if kind in columns]
        whole = parts[0] if len(parts) == 1 else [_joined(several) for several in zip(*parts, strict=True)]
        table = self.without((at for at, item in enumerate(whole) if item is None), " or ".join(columns))
        return table, [item for item in whole if item is not None]

    def _items(self, kind: Modality, column: str, title: str | None) -> list[Item | None]:
        if kind == "text":
            cells = self.values(column)
            if title is not None:
                cells = [_titled(above, cell) for above, cell in zip(self.values(title), cells, strict=True)]
            return [None if cell is None else items.text(as_text(cell)) for cell in cells]
        return [None if cell is None else Item((cell,)) for cell in self.media(kind, column)]

    def _picked(self, cells: list[Any]) -> list[Any]:
        return cells if len(self.numbers) == len(cells) else [cells[number] for number in self.numbers]


def open_table(task: Task, split: str, subset: str, hub: Hub) -> Table:
    """One split and subset of a task's dataset, after `where` and `drop`."""
    config, stored = place(task, split, subset)
    where = dict(task.options.get("where", {}))
    if subset_kind(task, subset) == "column":
        where[task.options.get("language", "language")] = subset
    return open_part(task, stored, config, hub, where, [f"{config}/{split}" if config else split])


def open_part(
    task: Task,
    stored: str,
    config: str | None,
    hub: Hub,
    where: Mapping[str, Any] = MappingProxyType({}),
    keys: Sequence[str] = (),
) -> Table:
    """The rows of one split of one config, as the hub calls them; `keys` are other names that `rows` may use for it."""
    counted = (f"{config}/{stored}" if config else stored, *keys)
    expected = next((task.rows[key] for key in counted if key in task.rows), None)
    opened = rows.open_rows(task.source, stored, hub, config, expected=expected)
    table = Table(task, stored, opened, _where(opened, where))
    if not len(table):
        said = f" where {', '.join(f'{name} is {value!r}' for name, value in where.items())}" if where else ""
        raise EmbarkError(f"Task {task.name}: {opened.what} has no rows{said}.")
    return _dropped(table, task.options.get("drop", {}).get(stored, ()))


def needed(task: Task, hub: Hub) -> list[RemoteFile]:
    """The files of a row's tables, in each of the option `configs` where a row has several, and other files of its own.

    The tables are those of its splits, of the options `train` and `corpus`, and of its subsets; files that are no
    tables are told by the patterns in the option `files`.
    """
    source, options = task.source, task.options
    learnt = options.get("train", "train" if task.evaluator in ("probe", "multilabel") else None)
    splits = dict.fromkeys((*source.splits, *options.get("corpus", ()), *([learnt] if learnt else ())))
    places = [place(task, split, subset) for subset in task.subsets for split in splits]
    tables = dict.fromkeys((config, stored) for own, stored in places for config in options.get("configs", (own,)))
    found = {file.path: file for config, stored in tables for file in rows.needed(source, stored, hub, config)}
    for file in hub.files(source.id, source.revision):
        if any(fnmatchcase(file.path, pattern) for pattern in options.get("files", ())):
            found[file.path] = file
    return list(found.values())


def place(task: Task, split: str, subset: str) -> tuple[str | None, str]:
    """The config and the split that hold a part of a task."""
    kind = subset_kind(task, subset)
    stored = subset if kind == "split" else task.options.get("splits", {}).get(split, split)
    return subset if kind == "config" else task.source.config, stored


def subset_kind(task: Task, subset: str) -> str:
    """What a subset is in the data: a config, a split, a column, or nothing."""
    kind = task.options.get("subset_is", "config" if subset != "default" else "")
    if kind not in ("", "config", "split", "column"):
        raise EmbarkError(f"Task {task.name}: 'subset_is' must be config, split or column, not '{kind}'.")
    return str(kind)


def contents(columns: Mapping[str, str], prefix: str = "") -> dict[Modality, str]:
    """The columns that hold content, by modality."""
    return {kind: columns[prefix + kind] for kind in ORDER if prefix + kind in columns}


def listed(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    every = list(names)
    return ", ".join(every[:NAMED]) + (f" and {len(every) - NAMED} more" if len(every) > NAMED else "")


def as_text(cell: Any) -> str:
    """Text as published; numbers are written out."""
    return cell if isinstance(cell, str) else str(cell)


def _titled(title: str | None, text: Any) -> Any:
    return text if not title else title if text is None else f"{title} {text}"


def _joined(parts: tuple[Item | None, ...]) -> Item | None:
    found = [part for part in parts if part is not None]
    return items.mixed(*found) if found else None


def _where(opened: Rows, where: Mapping[str, Any]) -> Sequence[int]:
    numbers: Sequence[int] = range(len(opened))
    for column, wanted in where.items():
        accepted = set(wanted) if isinstance(wanted, (list, tuple, set)) else {wanted}
        cells = opened.values(column)
        numbers = [number for number in numbers if cells[number] in accepted]
    return numbers


def _dropped(table: Table, drop: Sequence[int]) -> Table:
    bad = set(drop)
    if not bad:
        return table
    if not all(0 <= number < len(table.rows) for number in bad):
        raise EmbarkError(f"Task {table.task.name} drops rows that {table.split} does not have: {sorted(bad)}.")
    kept = table.only([at for at, number in enumerate(table.numbers) if number not in bad])
    which = f"row {listed(map(str, sorted(bad)))}"
    said = f"left out {len(table) - len(kept)} rows of {table.split} that the task drops: {which}"
    return replace(kept, skipped=(*table.skipped, said))
