"""The files of readers of tables: which a task needs, and which of them are its tables, before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from embark.hub import Hub
from embark.hub.listing import RemoteFile
from embark.readers.rows import FilesBySource, split_files
from embark.seams import Files
from embark.types import EmbarkError, Task


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


def needed_files(task: Task, hub: Hub) -> FilesBySource:
    """The files of a task's tables, and those that match the patterns in its option `files`."""
    listed = hub.files(task.source.id, task.source.revision)
    patterns = task.options.get("files", ())
    others = [file for file in listed if any(fnmatchcase(file.path, pattern) for pattern in patterns)]
    return [(task.source, [*{file.path: file for file in (*files_of(tables(task, hub)), *others)}.values()])]


def files_of(tables: Iterable[TableFiles]) -> list[RemoteFile]:
    """The files of tables, each once."""
    return list({file.path: file for table in tables for file in table.files}.values())


def config_and_split(task: Task, split: str, subset: str) -> tuple[str | None, str]:
    """The hub's names of the config and the split that hold a split and subset of a task."""
    kind = subset_kind(task, subset)
    stored = subset if kind == "split" else task.options.get("splits", {}).get(split, split)
    return subset if kind == "config" else task.source.config, stored


def subset_kind(task: Task, subset: str) -> str:
    """The part of the data that a subset is: a config, a split, a column or several; empty: all of it."""
    kind = task.options.get("subset_is", "config" if subset != "default" else "")
    if kind not in ("", "config", "split", "column", "columns"):
        raise EmbarkError(f"Task {task.name}: 'subset_is' must be config, split, column or columns, not '{kind}'.")
    return str(kind)


def has_column(column: str, known: Collection[str]) -> bool:
    """Whether a table with these columns has one that a row names."""
    return bool(named_columns("", column, known))


def named_columns(role: str, column: str, known: Collection[str]) -> set[str]:
    """The columns of a table that a row names: "a;b" is either, "struct.field" a field of one."""
    return {column, *column.split(";"), column.split(".")[0]} & {*known}


def with_tables(tables: Callable[[Task, Hub], list[TableFiles]]) -> Files:
    """The files of a reader that finds its tables in a way of its own, and needs no others."""

    def needed(task: Task, hub: Hub) -> FilesBySource:
        return [(task.source, files_of(tables(task, hub)))]

    return replace(TABLES, needed=needed, tables=tables)


# The files of readers of tables; and of those whose tables have other columns than the row names.
TABLES = Files(needed_files, tables, stored_columns=named_columns)
NO_TABLES = replace(TABLES, tables=lambda task, hub: [])
