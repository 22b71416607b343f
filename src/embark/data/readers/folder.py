"""Tasks of a user's folder of images and a CSV: its captions make a retrieval task, its labels a zero-shot task."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os.path import isfile  # False for a name that no file can have, too
from pathlib import Path

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers._table import first_few, zeroshot_dataset
from embark.paths import Outside, inside
from embark.types import Dataset, EmbarkError, Option, Qrels, Side, Source, Task

VERSION = 1
EVALUATORS = ("retrieval", "zeroshot")
COLUMNS = {"file": "names of images", "caption": "their captions", "label": "their classes"}
OPTIONS = {"allow_outside": Option(bool, "The table may name files outside the folder; no file of tasks can set it.")}

FILE = ("file", "file_name", "filename", "image", "path")
CAPTION = ("caption", "text")
LABEL = ("label", "class")
ALLOW = "allow it with --allow-outside (allow_outside=True)"

Row = dict[str, str]


def folder_task(
    path: str | Path,
    *,
    name: str | None = None,
    table: str | None = None,
    file: str | None = None,
    caption: str | None = None,
    label: str | None = None,
    templates: Sequence[str] = ("a photo of {}",),
    language: str = "eng",
    allow_outside: bool = False,
) -> list[Task]:
    """The tasks of a folder: text→image retrieval if its CSV has captions, zero-shot classification if it has labels.

    `table` names the CSV (else `metadata.csv` or the only one there is); `file`, `caption` and `label` name its columns
    (else the usual names are looked for). Equal captions are one query, and a file named twice is one image. The CSV
    may name files outside the folder, and links lead there, only where `allow_outside` is true.
    """
    folder = Path(path).expanduser().resolve()
    source = _table(folder, table, allow_outside)
    rows = _rows(source)
    files = _column(source, rows, file, FILE)
    if files is None:
        raise EmbarkError(f"{source} has no column of files ({', '.join(FILE)}); its columns are {first_few(rows[0])}.")
    if not allow_outside:
        _check_inside(folder, source, rows, files)
    _check_files(folder, rows, files)
    captions = _column(source, rows, caption, CAPTION)
    labels = _column(source, rows, label, LABEL)
    origin = Source(id=str(folder), revision=_revision(folder, source, files), config=source.name)
    base = Task(
        name or folder.name, "Folder", "retrieval", "folder", origin, "hit_rate_at_1", "Retrieval", ("text", "image"),
        subsets={"default": (language,)}, options={"allow_outside": True} if allow_outside else {},
        upright=True,
    )  # fmt: skip
    tasks = []
    if captions is not None:
        tasks.append(replace(base, name=f"{base.name}Retrieval", columns={"file": files, "caption": captions}))
        _filled_rows(tasks[-1], rows, "caption")
    if labels is not None:
        classes = _classes(source, rows, files, labels)
        tasks.append(
            replace(
                base,
                name=f"{base.name}ZeroShot",
                evaluator="zeroshot",
                metric="accuracy",
                category="Zero-shot",
                columns={"file": files, "label": labels},
                labels=classes,
                templates=_check_templates(templates),
                chance=1 / len(classes),
            )
        )
    if not tasks:
        wanted = f"captions ({', '.join(CAPTION)}) nor of labels ({', '.join(LABEL)})"
        raise EmbarkError(f"{source} has neither a column of {wanted}; its columns are {first_few(rows[0])}.")
    return tasks


def read_folder(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items and truth of a task that `folder_task` made; a folder that has changed since is an error."""
    folder = Path(task.source.id)
    allow_outside = bool(task.options.get("allow_outside"))
    source = _table(folder, task.source.config, allow_outside)
    if not allow_outside:
        _check_inside(folder, source, _rows(source), task.columns["file"])
    if _revision(folder, source, task.columns["file"]) != task.source.revision:
        advice = "make it again (embark run --folder, or folder_task in Python)"
        raise EmbarkError(f"The folder {folder} has changed since task {task.name} was made: {advice}.")
    rows = _rows(source)
    return _retrieval(task, folder, rows) if "caption" in task.columns else _zeroshot(task, folder, rows)


def _retrieval(task: Task, folder: Path, rows: Sequence[Row]) -> Dataset:
    filled, warnings = _filled_rows(task, rows, "caption")
    pairs = list(dict.fromkeys((row[task.columns["caption"]], row[task.columns["file"]]) for row in filled))
    captions = {text: number for number, text in enumerate(dict.fromkeys(text for text, _ in pairs))}
    files = {name: number for number, name in enumerate(dict.fromkeys(row[task.columns["file"]] for row in rows))}
    queries = items.side({f"caption-{number:05d}": items.text(text) for text, number in captions.items()})
    truth = Qrels(*np.array([(captions[text], files[name], 1) for text, name in pairs], np.int64).T)
    return Dataset({"query": queries, "document": _images(folder, files)}, truth, warnings)


def _zeroshot(task: Task, folder: Path, rows: Sequence[Row]) -> Dataset:
    filled, warnings = _filled_rows(task, rows, "label")
    labels = {row[task.columns["file"]]: task.labels.index(row[task.columns["label"]]) for row in filled}
    return zeroshot_dataset(
        _images(folder, labels),
        np.array(list(labels.values())),
        task.labels,
        task.templates,
        lambda number, template: f"{task.labels[number]}-{template + 1}",
        warnings,
    )


def _images(folder: Path, names: Iterable[str]) -> Side:
    return items.side({name: items.media("image", folder / name) for name in names})


def _filled_rows(task: Task, rows: Sequence[Row], role: str) -> tuple[list[Row], tuple[str, ...]]:
    """The rows with a value in the role's column, and a warning about the others."""
    column = task.columns[role]
    filled = [row for row in rows if row[column]]
    if not filled:
        raise EmbarkError(f"Column '{column}' of {Path(task.source.id, task.source.config or '')} is empty.")
    empty = [str(number) for number, row in enumerate(rows, 1) if not row[column]]
    warning = f"{len(empty)} of {len(rows)} rows have no {role} and are left out: row {first_few(empty)}"
    return filled, (warning,) if empty else ()


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(folder: Path, name: str | None, allow_outside: bool) -> Path:
    """The CSV of a folder: the one with this name, metadata.csv, or the only one."""
    table = _find_table(folder, name)
    try:
        return table if allow_outside else inside(folder, name or table.name)
    except Outside as error:
        raise EmbarkError(f"The table {error} Put it there, or {ALLOW}.") from None


def _find_table(folder: Path, name: str | None) -> Path:
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    if name or (folder / "metadata.csv").is_file():
        chosen = folder / (name or "metadata.csv")
        if not chosen.is_file():
            raise EmbarkError(f"There is no file {chosen}.")
        return chosen
    tables = sorted(path for path in folder.glob("*.csv") if path.is_file())  # a pipe would be waited for
    if not tables:
        raise EmbarkError(f"The folder {folder} has no CSV; it needs one with a row for each image.")
    if len(tables) > 1:
        names = first_few(table.name for table in tables)
        raise EmbarkError(f"The folder {folder} has several CSVs ({names}): name one with table=….")
    return tables[0]


def _rows(source: Path) -> list[Row]:
    """The table's rows, cells stripped; a byte-order mark and line breaks inside quotes are fine."""
    try:
        text = source.read_bytes().decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="", strict=True))
    except UnicodeDecodeError as error:
        raise EmbarkError(f"{source} is not UTF-8 text: save it as UTF-8.") from error
    except csv.Error as error:
        raise EmbarkError(f"{source} is not a valid CSV: {error}.") from error
    if not rows:
        raise EmbarkError(f"{source} has no rows.")
    for number, row in enumerate(rows, 1):
        if isinstance(row.get(""), list):
            raise EmbarkError(f"Row {number} of {source} has more cells than the header: quote cells that hold commas.")
    return [{column.strip(): cell.strip() for column, cell in row.items()} for row in rows]


def _column(source: Path, rows: Sequence[Row], wanted: str | None, usual: Sequence[str]) -> str | None:
    """The wanted column, or the first with a usual name, or None."""
    if wanted is not None and wanted not in rows[0]:
        raise EmbarkError(f"{source} has no column '{wanted}'; its columns are {first_few(rows[0])}.")
    by_name = {column.lower(): column for column in rows[0]}
    return wanted or next((by_name[name] for name in usual if name in by_name), None)


def _check_files(folder: Path, rows: Sequence[Row], column: str) -> None:
    names = dict.fromkeys(row[column] for row in rows)
    if missing := [name or "(no name)" for name in names if not name or not isfile(folder / name)]:
        raise EmbarkError(f"{len(missing)} of {len(names)} files are not in {folder}: {first_few(missing)}.")


def _check_inside(folder: Path, source: Path, rows: Sequence[Row], column: str) -> None:
    """A CSV may come from anybody, and what it names may be sent to an API."""
    for number, row in enumerate(rows, 1):
        try:
            inside(folder, row[column])
        except Outside as error:
            raise EmbarkError(f"Row {number} of {source}: {error} Put the file there, or {ALLOW}.") from None


def _classes(source: Path, rows: Sequence[Row], files: str, labels: str) -> tuple[str, ...]:
    """The distinct labels, sorted; every image must have only one."""
    by_file: dict[str, str] = {}
    for row in rows:
        if row[labels] and by_file.setdefault(row[files], row[labels]) != row[labels]:
            both = f"'{by_file[row[files]]}' and '{row[labels]}'"
            raise EmbarkError(f"{row[files]} has two labels in {source}, {both}; zero-shot needs one per image.")
    classes = tuple(sorted(set(by_file.values())))
    if len(classes) < 2:
        raise EmbarkError(
            f"Column '{labels}' of {source} needs two labels or more; it has {first_few(classes) or 'none'}."
        )
    return classes


def _check_templates(templates: Sequence[str]) -> tuple[str, ...]:
    if isinstance(templates, str) or not templates or not all("{}" in template for template in templates):
        raise EmbarkError("templates must be a list of texts with {} where the label goes.")
    return tuple(templates)


def _revision(folder: Path, source: Path, column: str) -> str:
    """Changes with the CSV and with the name, size or time of any file in it."""
    state = hashlib.sha256(source.read_bytes())
    for name in sorted({row[column] for row in _rows(source)}):
        stat = (folder / name).stat() if isfile(folder / name) else None
        state.update(f"\0{name}\0{stat.st_size if stat else ''}\0{stat.st_mtime_ns if stat else ''}".encode())
    return state.hexdigest()[:12]
