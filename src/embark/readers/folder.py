"""A folder of media with a table of the columns `file`, `caption` and `label`, or with a subfolder for each class.

Such a row is read as one of the readers `paired` and `labelled`, of which `folder_task` makes rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path, PurePosixPath

from embark import readers
from embark.hub import Hub
from embark.hub.listing import files_below
from embark.paths import Outside, inside
from embark.readers._files import TABLES, TableFiles, with_tables
from embark.readers._table import OPTIONS, OUTSIDE, first_few
from embark.readers.layout import media_kind
from embark.readers.sibling_files import ALLOW
from embark.seams import Reader
from embark.types import Dataset, EmbarkError, Task

SCORED = ("test", "validation", "valid", "val", "dev")  # names of what is scored, beside "train"
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")  # of tables that are looked for
METADATA = tuple(f"metadata{ending}" for ending in (*ENDINGS, ".json"))


def read_folder(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items and truth of a row that names the columns `file`, `caption` and `label` of a table in a folder."""
    return readers.read(_row_of_tables(task), split, subset, hub)


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The tables of such a row."""
    return list(TABLES.tables(_row_of_tables(task), hub))


def _row_of_tables(task: Task) -> Task:
    """Such a row as one of the readers `paired` and `labelled`."""
    folder = Path(task.source.id)
    files = table_files(folder, task.source.config, bool(task.options.get(OUTSIDE)))
    captioned = "caption" in task.columns
    roles: Mapping[str, str] = {"file": "image", "caption": "text"}
    return replace(
        task,
        reader="paired" if captioned else "labelled",
        source=replace(task.source, config=None, files=files),
        columns={roles.get(role, role): column for role, column in task.columns.items()},
        options={"equal": "one", "missing": "keep" if captioned else "skip", **task.options},
    )


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def table_files(folder: Path, table: str | None, allow_outside: bool) -> dict[str, tuple[str, ...]]:
    """The files of each split, as patterns: a table, tables for test and training, or else media in subfolders."""
    names = [table] if table else _table_names(folder)
    for name in names:
        try:
            path = folder / name if allow_outside else inside(folder, name)
        except Outside as error:
            raise EmbarkError(f"The table {error} Put it there, or {ALLOW}.") from None
        if not path.is_file():
            raise EmbarkError(f"There is no file {path}.")
    if names:
        return dict(zip(("test", "train"), ((name.replace("[", "[[]"),) for name in names), strict=False))
    media = [PurePosixPath(name) for name, _ in files_below(folder) if media_kind(name)]
    deep = [path for path in media if len(path.parts) > 1 and not any(part.startswith(".") for part in path.parts)]
    if not deep:
        raise EmbarkError(
            f"The folder {folder} has no table (CSV, TSV, JSON lines, Parquet) with a row for each file, and no "
            "subfolders of media, one for each class."
        )
    endings = sorted({path.suffix for path in deep})
    parts = _scored_and_train({path.parts[0] for path in deep})
    for part in parts or [""]:
        _check_classes(folder, [path for path in deep if part in ("", path.parts[0])])
    if parts:
        patterns = (tuple(f"{part}/*/*{ending}" for ending in endings) for part in parts)
        return dict(zip(("test", "train"), patterns, strict=True))
    return {"test": tuple(f"*/*{ending}" for ending in endings)}


def _scored_and_train(names: Collection[str]) -> list[str]:
    """Of names like test, val and train, the one that is scored and "train"; none where others are among them."""
    if "train" not in names or len(names) < 2 or not {*names} <= {"train", *SCORED}:
        return []
    return [next(name for name in SCORED if name in names), "train"]


def _check_classes(folder: Path, paths: Sequence[PurePosixPath]) -> None:
    """A class is the folder of its files: two of one name could be one class, or parts of two."""
    places: dict[str, PurePosixPath] = {}
    for path in paths:
        place = places.setdefault(path.parent.name, path.parent)
        if place != path.parent:
            raise EmbarkError(
                f"Which folders of {folder} are the classes? {place} and {path.parent} have one name. Name them "
                "otherwise, or write a table with the columns file and label."
            )


def _table_names(folder: Path) -> list[str]:
    """The table of a folder: the one named metadata, the only one, or those named test and train."""
    files = {path.name for path in folder.iterdir() if path.is_file()}  # a pipe would be waited for
    if metadata := [name for name in METADATA if name in files]:
        return metadata[:1]
    tables = sorted(name for name in files if name.endswith(ENDINGS) and not name.startswith("."))
    if len(tables) < 2:
        return tables
    by_stem = {PurePosixPath(name).stem: name for name in tables}
    if len(tables) == len(by_stem) and (parts := _scored_and_train(by_stem)):
        return [by_stem[part] for part in parts]
    raise EmbarkError(
        f"The folder {folder} has several tables ({first_few(tables)}): name one with table=…, or in a TOML file."
    )


FOLDER = Reader(
    "folder",
    cleandoc(__doc__ or ""),
    read_folder,
    evaluators=("retrieval", "zeroshot"),
    files=with_tables(tables),
    version=2,
    columns={"file": "names of media", "caption": "their captions", "label": "their classes"},
    options=OPTIONS,
)
