"""A user's own tasks from a TOML file: one [[task]] table a row, with the fields of `Task`."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from embark import readers
from embark.catalogue import UnknownName
from embark.field_types import defaults, stated_fields
from embark.hub import Hub
from embark.hub.listing import is_local
from embark.items.errors import errors_about
from embark.readers import READERS
from embark.readers._table import OUTSIDE
from embark.readers.local_state import STATES, revision_of_folder
from embark.registries import EVALUATORS
from embark.settings import load_settings
from embark.types import MODALITIES, EmbarkError, Pool, Source, Task

CATEGORIES = {  # of others, the evaluator's name
    "zeroshot": "Zero-shot", "sts": "STS", "pair-classification": "Pair classification",
}  # fmt: skip
PAIRED = "hit_rate_at_1"  # of pairs, which have one right answer or few
EQUAL = {reader: {"equal": "one"} for reader in ("paired", "labelled")}  # reader → options of a row that states none
ALLOW = "--allow-outside (allow_outside=True)"


def load_tasks(path: str | Path, *, allow_outside: bool = False) -> list[Task]:
    """The tasks of a TOML file. A source whose id is a folder (from the file's own place) is read from there.

    Data lies in the file's folder; `allow_outside` lets the file name other places, and links lead there.
    `family`, `category` and `metric` may be left out, and so may the revision of a folder: it is the content of the
    files that the task reads. Items of equal content are one, unless the option `equal` is "apart".
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
    """A folder as a source; without a revision, the names and contents of all its files are one."""
    root = Path(folder).expanduser().resolve()
    if not root.is_dir():
        raise EmbarkError(f"There is no folder {root}.")
    return Source(id=str(root), revision=revision or revision_of_folder(root, load_settings()), **more)


def to_toml(task: Task, folder: str | Path = ".") -> str:
    """A task as a [[task]] table of a TOML file in `folder`: `load_tasks` makes the same task of it."""
    if task.style is not None:
        raise EmbarkError(f"Task {task.name} has a style, which a TOML file cannot state.")
    usual = _usual(task.evaluator, task.reader)
    stated = stated_fields(replace(task, variants={}), usual)
    options = {name: value for name, value in task.options.items() if name != OUTSIDE}
    known = EQUAL.get(task.reader, {})
    stated["options"] = {name: value for name, value in options.items() if known.get(name) != value}
    stated["options"] |= {name: "apart" for name in known if name not in options}
    stated["source"] = _source_table(task.source, Path(folder))
    if task.variants:
        stated["variants"] = {
            name: {
                field: _source_table(value, Path(folder)) if isinstance(value, Source) else value
                for field, value in changes.items()
            }
            for name, changes in task.variants.items()
        }
    outside = task.options.get(OUTSIDE) or (is_local(task.source.id) and os.path.isabs(stated["source"]["id"]))
    hint = "# run with --allow-outside\n" if outside else ""
    lines = [f"{name} = {_toml(value)}" for name, value in stated.items() if value not in ({}, ())]
    return hint + "\n".join(["[[task]]", *lines, ""])


def _source_table(source: Source, folder: Path) -> dict[str, Any]:
    """A source as a table: a folder by its path from the file's, without the revision that its content is."""
    stated = stated_fields(source)
    if is_local(source.id):
        root = Path(os.path.realpath(folder))
        place = Path(source.id)
        stated["id"] = f"{place.relative_to(root)}" if place.is_relative_to(root) else str(place)
        if source.revision.startswith(STATES):
            del stated["revision"]
    return stated


def _toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Mapping):
        pairs = [f"{_key(str(name))} = {_toml(content)}" for name, content in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Pool):
        return _toml(vars(value))
    if isinstance(value, (bool, int, float)):
        return str(value).lower()  # true, 3, 0.5, nan
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise EmbarkError(f"TOML has no value like {value!r}.")


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


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
        stated = _usual(evaluator, stated.get("reader", "")) | stated
        stated["options"] = EQUAL.get(stated.get("reader", ""), {}) | stated.get("options", {})
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
        elif OUTSIDE in (readers.options(row) or ()):
            row = replace(row, options={**row.options, OUTSIDE: True})
        return _with_revision(row)
    except _InvalidField as error:
        place = f"field '{'.'.join(error.path)}': " if error.path else ""
        raise EmbarkError(f"{file}, task {name or f'number {number}'}: {place}{error}") from None


def category(evaluator: str) -> str:
    """The category of a row that names none."""
    return CATEGORIES.get(evaluator, evaluator.capitalize())


def _usual(evaluator: str, reader: str) -> dict[str, Any]:
    """The values of fields that a row does not state."""
    metric = usual_metric(evaluator, reader) if evaluator in EVALUATORS else ""
    return {"family": "Own", "category": category(evaluator), "metric": metric, "upright": True}


def usual_metric(evaluator: str, reader: str) -> str:
    """The metric of a row that names none: the evaluator's main measure, except where pairs are retrieved."""
    return PAIRED if reader == "paired" and evaluator == "retrieval" else EVALUATORS[evaluator].main


def _with_revision(task: Task) -> Task:
    """The row with the content of its files as the revision of a folder that states none, and so its variants."""
    source = task.source
    if is_local(source.id) and not source.revision:
        source = replace(source, revision=readers.content_revision(task, Hub(load_settings())))
        task = replace(task, source=source)
    variants = {
        name: {**changes, "source": _with_revision(replace(task, variants={}, **changes)).source}
        if "source" in changes
        else changes
        for name, changes in task.variants.items()
    }
    return replace(task, variants=variants)


def _check_options(task: Task) -> Task:
    """The task, if its reader knows its options and serves its evaluator, if that knows its parameters and metric, and
    if its instructions are of subsets that it has.
    """
    try:
        readers.check_options(task)
    except EmbarkError as error:
        raise _InvalidField(str(error), "options") from None
    for name in task.instructions:
        subset = name.partition(":")[2]
        if subset and subset not in task.subsets:
            raise _InvalidField(str(UnknownName(f"subset of {task.name}", subset, task.subsets)), "instructions", name)
    served = READERS[task.reader].evaluators
    if task.evaluator not in served:
        raise _InvalidField(f"'{task.reader}' serves {', '.join(served)}, not '{task.evaluator}'", "reader")
    for part, params in (("params", task.params), ("metric", {**task.params, "metric": task.metric})):
        try:
            EVALUATORS[task.evaluator].check(params)
        except EmbarkError as error:
            raise _InvalidField(str(error), part) from None
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
        return Source(**{"revision": "", **stated, "id": str(folder)})
    if id.startswith((".", "/", "~")):
        raise _InvalidField(f"there is no folder {folder}", "source", "id")
    try:
        _complete(Source, stated)
    except _InvalidField as error:
        hint = f"; data of the hub is pinned to a commit, and there is no folder {folder}"
        hint *= error.path == ("revision",)
        raise _InvalidField(f"{error}{hint}", "source", *error.path) from None
    return Source(**stated)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fields(kind: type, table: Any) -> dict[str, Any]:
    """The table's values as the dataclass has them."""
    if not isinstance(table, dict):
        raise _InvalidField("must be a table")
    known = [spec.name for spec in fields(kind) if spec.name in _READ]
    out = {}
    for name, value in table.items():
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
    for name, default in defaults(kind).items():
        if name not in stated and default is MISSING:
            raise _InvalidField("is missing", name)


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


def _share(value: Any) -> float:
    return float(_require(type(value) in (int, float) and 0 <= value <= 1, "a number from 0 to 1", value))


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
        raise _InvalidField(f"can only be allowed by the user: {ALLOW}", OUTSIDE)
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
    "evaluator": partial(_one_of, "evaluator", EVALUATORS),
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
    "chance": _share,
    "pools": _pools,
    "variants": partial(_map, partial(_fields, Task)),
}
