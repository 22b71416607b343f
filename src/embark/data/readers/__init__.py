"""Readers turn the rows of a source into items and the truth about them; their modules are imported when first used."""

from __future__ import annotations

import gc
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from embark.catalogue import UnknownName
from embark.data.fetch import Hub, is_local
from embark.data.formats import Records
from embark.data.items import as_items
from embark.data.layout import NoFiles, card_head
from embark.data.lazy_items import compact_side, distinct_ids
from embark.data.local_state import CONTENT, revision_of_files, revision_of_folder
from embark.data.readers import _table
from embark.data.readers._table import TableFiles as TableFiles
from embark.data.readers._table import of_subset
from embark.data.rows import FilesBySource, open_files
from embark.data.sibling_files import SiblingFiles
from embark.data.upright import upright
from embark.settings import load_settings
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Option, Qrels, Side, Task, role_of


class UnexpectedData(EmbarkError):
    """Data that a reader does not understand; the error that it met is the cause."""


Reader = Callable[[Task, str, str, Hub], Dataset]

MEDIA_ROLE = re.compile("(^|_)(image|audio|video)s?$")  # of columns that hold or name media
WIDEST = 64  # characters of ids that are kept in an array of fixed width

_POCKET = "embark.data.readers.pocket:"
READERS: dict[str, str] = {
    "pocket-names": _POCKET + "names",
    "pocket-robustness": _POCKET + "robustness",
    "pocket-tones": _POCKET + "tones",
    "pocket-composed-tones": _POCKET + "composed_tones",
    "pocket-clock-sums": _POCKET + "clock_sums",
    "pocket-pages": _POCKET + "pages",
    "pocket-probe": _POCKET + "probe",
    "pocket-keywords": _POCKET + "keywords",
    "pocket-groups": _POCKET + "groups",
    "pocket-zeroshot": _POCKET + "zeroshot",
    "pocket-swaps": _POCKET + "swaps",
    "pocket-sts": _POCKET + "sts",
    "pocket-clocks": _POCKET + "clocks",
    "pocket-counting": _POCKET + "counting",
    "pocket-capitals": _POCKET + "capitals",
    "pocket-negation": _POCKET + "negation",
    "pocket-grounding": _POCKET + "grounding",
    "pocket-moments": _POCKET + "moments",
    "pocket-omni": _POCKET + "omni",
    "pocket-ark": "embark.data.readers.pocket_ark:read",
    "ark": "embark.data.readers.ark:read_ark",
    "conditions": "embark.data.readers.conditions:read_conditions",
    "folder": "embark.data.readers.folder:read_folder",
    "mmeb-image": "embark.data.readers.mmeb_image:images",
    "mmeb-mcmr": "embark.data.readers.mmeb_image:products",
    "mmeb-video-classification": "embark.data.readers.mmeb_video:classification",
    "mmeb-video-qa": "embark.data.readers.mmeb_video:questions",
    "mmeb-video-retrieval": "embark.data.readers.mmeb_video:retrieval",
    "mmeb-moments": "embark.data.readers.mmeb_video:moments",
    "mmeb-audio-classification": "embark.data.readers.mmeb_audio:classification",
    "mmeb-audio-retrieval": "embark.data.readers.mmeb_audio:retrieval",
    "mmeb-audio-grounding": "embark.data.readers.mmeb_audio:grounding",
    "omniset": "embark.data.readers.omniset:read",
    "labelled": "embark.data.readers.labelled:read_labelled",
    "beir": "embark.data.readers.beir:read_beir",
    "paired": "embark.data.readers.paired:read_paired",
    "tuples": "embark.data.readers.tuples:read_tuples",
    "question": "embark.data.readers.question:read_question",
    "captions": "embark.data.readers.captions:read_captions",
    "rendered-sts": "embark.data.readers.rendered_sts:read_rendered_sts",
    "mmeb-text": "embark.data.readers.mmeb_text:texts",
    "mmeb-tools": "embark.data.readers.mmeb_text:tools",
    "mmeb-memory": "embark.data.readers.mmeb_text:memories",
    "mmeb-gui": "embark.data.readers.mmeb_text:screens",
    "webdataset-zeroshot": "embark.data.readers.webdataset:zeroshot",
    "webdataset-relation": "embark.data.readers.webdataset:relation",
}


def version(name: str) -> int:
    """The version of a reader's module; it is raised when the items or the truth that it returns can change."""
    return int(_module(name).VERSION)


def external_state(task: Task) -> str:
    """The state of what the truth depends on besides the dataset (a file of labels); empty for most readers."""
    return str(getattr(_module(task.reader), "external_state", lambda task: "")(task))


def require(task: Task) -> None:
    """Raise an error where a task cannot be read, whatever its dataset holds: a file of labels is missing."""
    getattr(_module(task.reader), "require", lambda task: None)(task)


def needed_files(task: Task, hub: Hub) -> FilesBySource:
    """The files needed to read a task, by dataset: as its reader's module states them, else those of its tables."""
    own: Callable[[Task, Hub], FilesBySource] | None = getattr(_module(task.reader), "needed_files", None)
    with _checked_listing(task, hub), _expected_data(task, hub):
        return own(task, hub) if own else [(task.source, _table.needed_files(task, hub))]


def sources(task: Task) -> tuple[str, ...]:
    """The ids of the datasets that a task may read: its own, and those that its reader's module names."""
    if task.reader not in READERS:
        return (task.source.id,)
    others: Callable[[Task], Iterable[str]] = getattr(_module(task.reader), "other_sources", lambda task: ())
    return tuple(dict.fromkeys((task.source.id, *others(task))))


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The tables of a task with their files, where its reader is one of tables."""
    module = _module(task.reader)
    own: Callable[[Task, Hub], list[TableFiles]] | None = getattr(module, "tables", None)
    if own is None and hasattr(module, "needed_files"):
        return []
    with _checked_listing(task, hub):
        return (own or _table.tables)(task, hub)


def has_column(column: str, known: Collection[str]) -> bool:
    """Whether a table with these columns has one: "a;b" is either, "struct.field" a field."""
    return bool({column, *column.split(";"), column.split(".")[0]} & {*known})


def content_revision(task: Task, hub: Hub) -> str:
    """The revision of a task whose data is a folder: the content of all files that the task reads, and of no others.

    Where the tables are not known, it is that of the whole folder.
    """
    alike: Callable[[Task], Task] | None = getattr(_module(task.reader), "row_of_tables", None)
    try:
        task = alike(task) if alike else task
        paths = dict.fromkeys(file.path for table in tables(task, hub) for file in table.files)
        files = _named_files(task, list(paths), hub) if paths else None
    except EmbarkError:  # reading it tells what is wrong
        files = None
    if files is None:
        return revision_of_folder(Path(task.source.id), load_settings(hub.home))
    card = Path(task.source.id, "README.md")  # its head may name files and classes
    head = card_head(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else ""
    return revision_of_files(files, hub.home, card=head)


def _named_files(task: Task, paths: Sequence[str], hub: Hub) -> list[tuple[str, Path]]:
    """The tables of a folder, and the media that they name."""
    root = Path(task.source.id)
    files = {path: root / path for path in paths}
    if task.modalities == ("text",):
        return list(files.items())
    conditions = [columns for columns in task.options.get("conditions", {}).values() if isinstance(columns, Mapping)]
    named = {
        name.strip()
        for columns in (task.columns, *conditions)
        for role, value in columns.items()
        if MEDIA_ROLE.search(role)
        for name in str(value).split(",")
    }
    outside = bool(task.options.get(_table.OUTSIDE))
    for table in open_files(task.source, paths, hub, outside):
        siblings = getattr(table, "siblings", None)
        if not isinstance(siblings, SiblingFiles) or not siblings.table:
            continue
        for column in table.column_names:
            if column in named or MEDIA_ROLE.search(column):
                cells = table.values(column) if isinstance(table, Records) else table.file_names(column)
                for name in dict.fromkeys(name for cell in cells or () for name in _table.as_list(cell)):
                    if isinstance(name, str) and name and (file := siblings.find(name)):
                        files.setdefault(f"{siblings.table}: {name}", file)
    return list(files.items())


def check_state(task: Task, hub: Hub) -> None:
    """Raise an error where a folder has changed since the task was made of it."""
    revision = task.source.revision
    if not is_local(task.source.id) or not revision.startswith(CONTENT) or task in hub.unchanged:
        return
    if content_revision(task, hub) != revision:
        advice = "make it again (embark run, or folder_task and load_tasks in Python)"
        raise EmbarkError(f"The folder {task.source.id} has changed since task {task.name} was made: {advice}.")
    hub.unchanged.append(task)


def stored_columns(task: Task, role: str, column: str, known: Collection[str]) -> set[str]:
    """The columns of a task's files that its reader takes for a column of the row, whose role it is."""
    if "{subset}" in column:
        return {name for subset in task.subsets for name in [column.replace("{subset}", subset)] if name in known}
    own: Callable[[str, str, Collection[str]], set[str]] | None = getattr(_module(task.reader), "stored_columns", None)
    return own(role, column, known) if own else {column, *column.split(";"), column.split(".")[0]} & {*known}


def listed_classes(task: Task, hub: Hub) -> tuple[str, ...]:
    """The class names in a file beside the tables, where a task's reader takes them from one."""
    own: Callable[[Task, Hub], tuple[str, ...]] | None = getattr(_module(task.reader), "listed_classes", None)
    return own(task, hub) if own else ()


def options(task: Task) -> Mapping[str, Option] | None:
    """The options that a task of this reader may have; None for readers of one benchmark, which declare none."""
    facts = reader_facts(task.reader)
    base = task.options.get("reader") if task.reader == "conditions" else None
    if not facts.own or base not in READERS:
        return facts.options if facts.own else None
    of_base = options(replace(task, reader=base))
    return None if of_base is None else {**facts.options, **of_base}


def check_options(task: Task) -> None:
    """An error for an unknown option or value: ignored, it would leave the score under a wrong protocol."""
    known = options(task)
    if known is None:
        return
    for name, value in task.options.items():
        if name not in known:
            raise UnknownName(f"option of '{task.reader}'", name, known)
        if not known[name].accepts(value):
            raise EmbarkError(f"The option '{name}' of '{task.reader}' must be {known[name].values}, not {value!r}.")


@dataclass(frozen=True)
class ReaderFacts:
    """A reader: what it is, the evaluators it serves, its columns by role and its options; `own`: for data of users."""

    name: str
    about: str
    evaluators: tuple[str, ...]
    columns: Mapping[str, str]
    options: Mapping[str, Option]
    own: bool


def reader_facts(name: str) -> ReaderFacts:
    """What is declared about a reader."""
    module = _module(name)
    function = getattr(module, READERS[name].split(":")[1])
    shared = sum(path.startswith(f"{module.__name__}:") for path in READERS.values()) > 1
    own = hasattr(module, "OPTIONS")
    about = inspect.getdoc(function if shared or not own else module) or ""

    def declared(fact: str) -> Any:
        values = getattr(module, fact) if own else {}
        return values[name] if shared and own else values  # of several readers in a module, each has its own

    return ReaderFacts(name, about, tuple(declared("EVALUATORS")), declared("COLUMNS"), declared("OPTIONS"), own)


def roles(name: str) -> tuple[str, ...]:
    """The roles that columns of a reader may have."""
    return tuple(reader_facts(name).columns)


def path_options(task: Task) -> tuple[str, ...]:
    """The options of a task that are paths of this machine."""
    reader = task.options.get("reader") if task.reader == "conditions" else task.reader
    return tuple(getattr(_module(reader), "PATH_OPTIONS", ())) if reader in READERS else ()


def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items and truth of one split and subset of a task, checked for consistency."""
    for what, name, known in (
        (f"split of {task.name}", split, task.source.splits),
        (f"subset of {task.name}", subset, task.subsets),
    ):
        if name not in known:
            raise UnknownName(what, name, known)
    reader: Reader = getattr(_module(task.reader), READERS[task.reader].split(":")[1])
    with _without_garbage_collection(), _checked_listing(task, hub), _expected_data(task, hub):
        data = reader(of_subset(task, subset), split, subset, hub)
        check_state(task, hub)
        for problem in _problems(data):
            raise EmbarkError(f"Task {task.name} ({split}, {subset}) was read wrongly: {problem}.")
    data = replace(data, sides={name: compact_side(side) for name, side in data.sides.items()})
    _check_modalities(task, data)
    data = _adjusted(task, data)
    pa.default_memory_pool().release_unused()  # what decoding of tables took
    return replace(_with_ids(data), revision=hub.commit(task.source.id, task.source.revision))


def read_unlabeled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The items of a task, for rankings that are scored elsewhere; labels are read only where the reader needs them."""
    own: Reader | None = getattr(_module(task.reader), "read_unlabeled", None)
    if own is None:
        return read(task, split, subset, hub)
    return _adjusted(task, own(task, split, subset, hub))


def _adjusted(task: Task, data: Dataset) -> Dataset:
    """The dataset with pictures upright and texts stripped, where the task says so."""
    stripped = {
        name: Side(side.ids, as_items(side.items).stripped())
        for name, side in data.sides.items()
        if role_of(name) in task.options.get("strip", ())
    }
    data = replace(data, sides={**data.sides, **stripped})
    return upright(data) if task.upright else data


@contextmanager
def _checked_listing(task: Task, hub: Hub) -> Iterator[None]:
    """A list of files that lacks what a task needs may be wrong: it is not kept."""
    try:
        yield
    except NoFiles:
        hub.forget(task.source.id, task.source.revision)
        raise


@contextmanager
def _expected_data(task: Task, hub: Hub) -> Iterator[None]:
    """Whatever a reader raises about data that it does not expect is an error that names the task or its data."""
    try:
        yield
    except Exception as error:
        files = [path for (id, _), opened in hub.opened.items() if id == task.source.id for path in opened]
        if not isinstance(error, EmbarkError):
            named = _table.first_few(files) or "no files"
            raise UnexpectedData(
                f"Task {task.name}: the data of {task.source.id} ({named}) is not what the reader '{task.reader}' "
                f"expects ({type(error).__name__}: {error}): it is damaged, or of another layout."
            ) from error
        if not any(name in str(error) for name in (task.name, task.source.id, *files)):
            error.args = (f"Task {task.name} ({_table.first_few(files) or task.source.id}): {error}",)
        raise


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off: with millions of small objects, it takes a third of a reader's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _with_ids(data: Dataset) -> Dataset:
    """The dataset with ids in the truth of a ranking, which resolves ties by document id."""
    if not isinstance(data.truth, Qrels):
        return data
    query: Any
    document: Any
    query, document = data.sides["query"].ids, data.sides["document"].ids
    if data.truth.repeated:  # the reader gave the ids of its rows, of which those of the sides are variants
        query, document = data.truth.query_ids, data.truth.document_ids
    return replace(data, truth=replace(data.truth, query_ids=_array(query), document_ids=_array(document)))


def _array(ids: Any) -> Array:
    """Ids as an array: of fixed width where they are short, as it sorts five times as fast but pads to the longest."""
    if isinstance(ids, np.ndarray) and ids.dtype != object:
        return ids
    width = max(map(len, ids), default=0)
    if width > WIDEST:
        return np.fromiter(ids, object, len(ids))
    if all(map(str.isascii, ids)):  # a byte a character, in the same order
        return np.fromiter(map(str.encode, ids), f"S{max(1, width)}", len(ids))
    return np.fromiter(ids, f"U{max(1, width)}", len(ids))


def _module(name: str) -> ModuleType:
    if name not in READERS:
        raise UnknownName("reader", name, READERS, "embark show --reader lists all.")
    return import_module(READERS[name].split(":")[0])


def _check_modalities(task: Task, data: Dataset) -> None:
    """Raise an error for items of a modality that the task does not list: models are chosen by the listed ones."""
    kinds = {
        kind for side in data.sides.values() for modalities in as_items(side.items).kinds().names for kind in modalities
    }
    if other := [kind for kind in MODALITIES if kind in kinds and kind not in task.modalities]:
        raise EmbarkError(
            f"Task {task.name} has items of {' and '.join(other)}, but its `modalities` are "
            f"{', '.join(task.modalities) or 'none'}. Correct its `modalities` or its `columns`."
        )


def _problems(data: Dataset) -> Iterator[str]:
    """A text for each inconsistency between the sides, their ids and the truth."""
    for role, side in data.sides.items():
        if len(side.ids) != len(side.items):
            yield f"side '{role}' has {len(side.ids)} ids for {len(side.items)} items"
        if distinct_ids(side.ids) != len(side.ids):
            yield f"side '{role}' has repeated ids"
        if not len(side):
            yield f"side '{role}' is empty"
        for fact, values in data.about.get(role, {}).items():
            if len(values) != len(side):
                yield f"side '{role}' has {len(values)} values of '{fact}' for {len(side)} items"
        base = data.sides.get(role_of(role))
        if base is None or len(base) != len(side):
            yield f"side '{role}' is not a variant of a side of the same length"
    for spec in fields(data.truth):
        values = getattr(data.truth, spec.name)
        for kind, role in spec.metadata.items():
            if role not in data.sides:
                yield f"there is no side '{role}'"
                continue
            count = len(data.sides[role])
            if kind == "index":
                yield from _index_problems(spec.name, values, role, count)
            elif values is not None and len(values) != count:
                yield f"'{spec.name}' has {len(values)} rows for {count} items of side '{role}'"
        yield from _value_problems(spec.name, values, getattr(data.truth, "names", None))


def _value_problems(name: str, values: Any, classes: Sequence[str] | None) -> list[str]:
    """Grades and scores that are no finite numbers; labels that are no class, or tables of other classes."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf" or name == "drawn":
        return []
    if classes is None or values.dtype.kind == "f":
        return [f"'{name}' is {values[tuple(row)]} in row {row[0]}" for row in np.argwhere(~np.isfinite(values))[:1]]
    if values.ndim == 2:
        return [] if values.shape[1] == len(classes) else [f"'{name}' has other than {len(classes)} classes"]
    outside = np.flatnonzero((values < 0) | (values >= len(classes)))
    return [f"'{name}' is {values[row]} in row {row}, and there are {len(classes)} classes" for row in outside[:1]]


def _index_problems(name: str, values: Array, role: str, count: int) -> list[str]:
    if not np.issubdtype(values.dtype, np.integer):
        return [f"'{name}' holds {values.dtype}, not positions in side '{role}'"]
    if len(values) and not (values.min() >= 0 and values.max() < count):
        return [f"'{name}' points outside the {count} items of side '{role}'"]
    return []
