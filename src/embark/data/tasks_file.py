"""A user's own tasks from a TOML file: one [[task]] table a row, with the fields of `Task`."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from embark.catalogue import UnknownName
from embark.data import readers
from embark.data.errors import errors_about
from embark.data.readers import READERS
from embark.settings import load_settings
from embark.types import MODALITIES, EmbarkError, Pool, Source, Task

# Evaluator → the main metric of a row that names none.
METRICS = {
    "retrieval": "ndcg_at_10", "choice": "accuracy", "zeroshot": "accuracy", "probe": "accuracy", "multilabel": "lrap",
    "clustering": "nmi", "pairs": "accuracy", "sts": "cosine_spearman", "robustness": "mean_corrupted",
}  # fmt: skip
OUTSIDE = "allow_outside"  # the option that tells the reader `folder`
ALLOW = "--allow-outside (allow_outside=True)"
ALIASES = {"licence": "license"}  # other spellings of fields


def load_tasks(path: str | Path, *, allow_outside: bool = False) -> list[Task]:
    """The tasks of a TOML file. A source whose id is a folder (from the file's own place) is read from there.

    Data lies in the file's folder; `allow_outside` lets the file name other places, and links lead there.
    `family`, `category` and `metric` may be left out, and so may the revision of a folder: its state is its revision.
    """
    file = Path(path).expanduser()
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise EmbarkError(f"The tasks file {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise EmbarkError(f"The tasks file {file} is not valid TOML: {error}") from error
    tables = content.pop("task", None)
    if content or not isinstance(tables, list) or not tables:
        extra = f"; it has {', '.join(content)} beside them" if content else ""
        raise EmbarkError(f"The tasks file {file} must hold [[task]] tables and nothing else{extra}.")
    return read_tasks(file, tables, allow_outside)


def read_tasks(file: Path, tables: Sequence[Any], allow_outside: bool = False) -> list[Task]:
    """The tasks of the [[task]] tables of a file."""
    with errors_about(f"The tasks file {file}"):
        tasks = [_task(file, number, table, allow_outside) for number, table in enumerate(tables, 1)]
    names = [task.name for task in tasks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise EmbarkError(f"The tasks file {file} has more than one task named {', '.join(twice)}.")
    return tasks


def local_source(folder: str | Path, revision: str = "", **more: Any) -> Source:
    """A folder as a source; without a revision, the names, sizes and times of its files are one."""
    root = Path(folder).expanduser().resolve()
    if not root.is_dir():
        raise EmbarkError(f"There is no folder {root}.")
    return Source(id=str(root), revision=revision or _state(root), **more)


# ── one table ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _InvalidField(Exception):
    """An invalid value: the problem, and the path of field names that leads to the value."""

    def __init__(self, problem: str, *path: str) -> None:
        super().__init__(problem)
        self.path = path


def _task(file: Path, number: int, table: Any, allow_outside: bool) -> Task:
    name = table.get("name") if isinstance(table, dict) else None
    try:
        stated = _fields(Task, table)
        evaluator = stated.get("evaluator", "")
        usual = {"family": "Own", "category": evaluator.capitalize(), "metric": METRICS.get(evaluator, "")}
        stated = {**usual, "upright": True} | stated
        _complete(Task, stated)
        source = stated["source"]
        stated["source"] = _source(file, source, allow_outside)
        for changes in stated.get("variants", {}).values():
            if "source" in changes:
                changes["source"] = _source(file, source | changes["source"], allow_outside)
        row = _check_options(Task(**stated))
        if not allow_outside:
            for changes in ({}, *row.variants.values()):
                _check_paths(file, replace(row, **changes))
        elif "folder" in (row.reader, row.options.get("reader")):
            return replace(row, options={**row.options, OUTSIDE: True})
        return row
    except _InvalidField as error:
        place = f"field '{'.'.join(error.path)}': " if error.path else ""
        raise EmbarkError(f"{file}, task {name or f'number {number}'}: {place}{error}") from None


def _check_options(task: Task) -> Task:
    """The task, if its reader knows all its options: an ignored option would leave the score under a wrong protocol."""
    known = readers.options(task)
    if known is not None and (unknown := [name for name in task.options if name not in known]):
        raise _InvalidField(str(UnknownName(f"option of '{task.reader}'", unknown[0], known)), "options")
    return task


def _check_paths(file: Path, task: Task) -> None:
    """Options that are paths must not lead out of the file's folder."""
    for option in readers.path_options(task):
        if option in task.options:
            _check_inside(file, str(task.options[option]), "options", option)


def _check_inside(file: Path, path: str, *where: str) -> None:
    place = Path(os.path.realpath(file.parent / os.path.expanduser(path)))
    if not place.is_relative_to(os.path.realpath(file.parent)):
        raise _InvalidField(f"'{path}' is not in the file's folder; if that is meant: {ALLOW}", *where)


def _check_links(folder: Path) -> None:
    """No file of a folder may be a link that leads out of it."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)  # hidden links are not read
        if path.is_symlink() and not hidden and not path.resolve().is_relative_to(folder):
            message = f"{path} is a link that leads out of its folder; if that is meant: {ALLOW}"
            raise _InvalidField(message, "source", "id")


def _source(file: Path, stated: dict[str, Any], allow_outside: bool) -> Source:
    id = stated.get("id", "")
    folder = (file.parent / Path(id).expanduser()).resolve()
    if id and folder.is_dir():
        if not allow_outside:
            _check_inside(file, id, "source", "id")
            _check_links(folder)
        return local_source(folder, **{name: value for name, value in stated.items() if name != "id"})
    if id.startswith((".", "/", "~")):
        raise _InvalidField(f"there is no folder {folder}", "source", "id")
    try:
        _complete(Source, stated)
    except _InvalidField as error:
        hint = "; data of the hub is pinned to a commit" if error.path == ("revision",) else ""
        raise _InvalidField(f"{error}{hint}", "source", *error.path) from None
    return Source(**stated)


def _state(folder: Path) -> str:
    """Changes with the name, size or time of any file, but for those that embark writes there itself."""
    state = hashlib.sha256()
    settings = load_settings()
    ours = [own for own in (settings.home.resolve(), settings.results.resolve()) if folder in own.parents]
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts) or any(path.is_relative_to(own) for own in ours)
        if path.is_file() and not hidden:
            facts = path.stat()
            state.update(f"{'/'.join(parts)}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return state.hexdigest()[:12]


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fields(kind: type, table: Any) -> dict[str, Any]:
    """The table's values as the dataclass has them."""
    if not isinstance(table, dict):
        raise _InvalidField("must be a table")
    known = [spec.name for spec in fields(kind)]
    out = {}
    for stated, value in table.items():
        name = str(ALIASES.get(stated, stated))
        if name not in known:
            raise _InvalidField(str(UnknownName("field", name, known)), name)
        out[name] = _read_field(name, _READ[name], value)
    return out


def _read_field(name: str, read: Callable[[Any], Any], value: Any) -> Any:
    """The value of a field, read by `read`; the field's name is added to the path of an error."""
    try:
        return read(value)
    except _InvalidField as error:
        raise _InvalidField(str(error), name, *error.path) from None


def _complete(kind: type, stated: Mapping[str, Any]) -> None:
    for spec in fields(kind):
        if spec.name not in stated and spec.default is MISSING and spec.default_factory is MISSING:
            raise _InvalidField("is missing", spec.name)


def _require(valid: bool, kind: str, value: Any) -> Any:
    """The value, if it is valid as what `kind` describes."""
    if not valid:
        raise _InvalidField(f"must be {kind}, not {value!r}")
    return value


def _text(value: Any) -> str:
    return str(_require(isinstance(value, str) and value != "", "a text", value))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _require(isinstance(value, list), "a list of texts", value)))


def _whole(value: Any) -> int:
    return int(_require(type(value) is int and value >= 0, "a whole number", value))  # true is an int, too


def _number(value: Any) -> float:
    return float(_require(type(value) in (int, float), "a number", value))


def _flag(value: Any) -> bool:
    return bool(_require(isinstance(value, bool), "true or false", value))


def _one_of(what: str, known: Mapping[str, Any] | tuple[str, ...], value: Any) -> str:
    if _text(value) not in known:
        hint = f"Known: {', '.join(known)}." if len(known) < 12 else ""
        raise _InvalidField(str(UnknownName(what, value, known, hint)))
    return str(value)


def _map(read: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    table = _require(isinstance(value, dict), "a table", value)
    return {name: _read_field(name, read, content) for name, content in table.items()}


def _params(value: Any) -> dict[str, Any]:
    return _map(lambda value: value, value)


def _options(value: Any) -> dict[str, Any]:
    options = _params(value)
    if OUTSIDE in options:  # the file may be a stranger's
        raise _InvalidField(f"is the user's to say: {ALLOW}", OUTSIDE)
    return options


def _not_empty(read: Callable[[Any], Any], value: Any) -> Any:
    if not (content := read(value)):
        raise _InvalidField("must not be empty")
    return content


def _modalities(value: Any) -> tuple[str, ...]:
    return tuple(_one_of("modality", MODALITIES, name) for name in _texts(value))


def _pools(value: Any) -> tuple[Pool, ...]:
    pools = [_fields(Pool, table) for table in _require(isinstance(value, list), "a list of tables", value)]
    for pool in pools:
        _complete(Pool, pool)
    return tuple(Pool(**pool) for pool in pools)


# Names that `Source` and `Pool` share with `Task` mean the same kind of value.
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("name", "family", "metric", "category", "protocol"), _text),
    **dict.fromkeys(("id", "revision", "config", "license", "reference", "side"), _text),
    "evaluator": partial(_one_of, "evaluator", METRICS),
    "reader": partial(_one_of, "reader", READERS),
    "unreadable": partial(_one_of, "policy", ("error", "skip")),
    "source": partial(_fields, Source),
    "modalities": partial(_not_empty, _modalities),
    **dict.fromkeys(("labels", "templates", "notes"), _texts),
    "splits": partial(_not_empty, _texts),  # without a split or subset there is nothing to score
    "subsets": partial(_not_empty, partial(_map, _texts)),
    **dict.fromkeys(("columns", "instructions", "tags"), partial(_map, _text)),
    "params": _params,
    "options": _options,
    "files": partial(_map, _texts),
    "rows": partial(_map, _whole),
    "items": _whole,
    "mixed": _flag,
    "upright": _flag,
    "chance": _number,
    "pools": _pools,
    "variants": partial(_map, partial(_fields, Task)),
}
