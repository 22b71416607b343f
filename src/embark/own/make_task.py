"""Any data as a task: objects of other libraries, rows and pairs in Python, or a data set of the hub by its id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from typing import Any

from embark import readers
from embark.catalogue import UnknownName, check_name, listed
from embark.hub import Hub
from embark.hub.listing import is_local
from embark.items.encode import ENDINGS, modality
from embark.own.columns import DIVIDE, FILES, PROBE, USUAL
from embark.own.records import PAIR, splits
from embark.own.tables import REVISION, TableShape, keep
from embark.own.tasks_file import EQUAL, category, usual_metric
from embark.paths import component
from embark.readers.folder import SCORED
from embark.readers.layout import NoFiles
from embark.readers.remote import table_head
from embark.readers.rows import split_files
from embark.registries import EVALUATORS
from embark.settings import Settings, load_settings
from embark.types import MODALITIES, EmbarkError, Modality, Source, Task

SPLIT = "split"
SIDES = ("query_", "corpus_")  # before the roles of columns of one side
LABELED = ("zeroshot", "probe", "multilabel", "clustering")
TRAINED = ("probe", "multilabel")
NEEDED = {  # kind → (its reader, the roles that it needs besides content)
    "retrieval": ("paired", ()),
    **dict.fromkeys(LABELED, ("labelled", ("label",))),
    "choice": ("question", ("question", "choices", "answer")),
    "pairs": ("captions", ("images", "texts")),
    "sts": ("rendered-sts", ("left", "right", "score")),
    "pair-classification": ("labelled-pairs", ("left", "right", "label")),
}  # fmt: skip
SEVERAL = ("images", "texts", "text")  # roles that may name several columns
TITLES = {  # as names of tasks have them
    "zeroshot": "ZeroShot", "sts": "STS", "pair-classification": "PairClassification",
}  # fmt: skip
KINDS = {"zero-shot": "zeroshot", "classification": "probe", "STS": "sts"}  # other spellings


def task(
    data: Any,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    split: str | None = None,
    train: str | None = None,
    rate: int | None = None,
    folder: str | Path = ".",
    allow_outside: bool = False,
    revision: str | None = None,
    config: str | None = None,
    settings: Settings | None = None,
    **more: Any,
) -> Task:
    """A task of any data: a frame of pandas or polars, an Arrow table, a data set of `datasets` or torchvision, a list
    of rows (dictionaries) or of (item, label), a mapping of splits to these; or a data set of the hub, or a folder.

    `kind` is retrieval, zeroshot, probe, multilabel, clustering, choice, pairs, sts or pair-classification; `columns`
    names the columns by role (image, text, audio, video, label, left, right, score…). What is not named is taken from
    the usual names and from what cells hold, where that leaves no doubt. Items are texts, PIL images, arrays (sounds
    with their `rate`, or as (array, rate)), paths, or encoded bytes; names of files are those of `folder`.

    Splits are those of the mapping, or of a column called "split"; `split` is scored, and a probe learns from `train`.
    Without a split to learn from, it learns from half of each class, drawn by content (the option `divide`).

    Data of Python objects is stored in home as tables named by the hash of their content, which is the task's revision;
    of the hub, at `revision` (default: the branch main), the row is pinned to the commit. `more` are other fields of
    `embark.types.Task`: metric, templates, labels, instructions, params, options…
    """
    kind = KINDS.get(kind or "", kind) or ""
    if kind:
        check_name("kind", kind, NEEDED)
    known = [spec.name for spec in fields(Task)]
    for field in more:
        check_name("field of a task", field, known)
    settings = settings or load_settings()
    request = _Request(kind, columns, name, split, train, more)
    if isinstance(data, (str, PurePath)):
        return _of_source(str(data), request, revision, config, settings)
    if revision or config:
        raise EmbarkError("revision and config are those of a data set of the hub; this data is a Python object.")
    return _of_objects(data, request, Path(folder), allow_outside, rate, settings)


@dataclass(frozen=True)
class _Request:
    """What the user stated about a task."""

    kind: str
    columns: Mapping[str, str] | None
    name: str | None
    split: str | None
    train: str | None
    more: Mapping[str, Any]

    def row(
        self,
        kind: str,
        columns: Mapping[str, str],
        content: Sequence[Modality],
        source: Source,
        stem: str,
        has_train: bool,
    ) -> Task:
        """The row; `content` are the modalities of its columns; `has_train`: a split that is not scored is `train`."""
        reader = NEEDED[kind][0]
        words = {"text"} if kind in ("zeroshot", "choice") else set()
        kinds = {*content, *words}
        options: dict[str, Any] = {**EQUAL.get(reader, {})}
        if self.train in source.splits:
            raise EmbarkError(f"A probe cannot learn from '{self.train}', which is scored: name another split.")
        if kind in TRAINED:
            options |= {"train": self.train} if self.train else {} if has_train else {"divide": DIVIDE}
        if kind == "retrieval" and "text" not in kinds and len(columns) > 1 and not _sided(columns):
            options["query"] = content[0]
        if kind == "pair-classification" and len(kinds) > 1:
            options["left"] = content[[role for role in columns if role != "label"].index("left")]
        usual = Task(
            name=self.name or f"{stem}{TITLES.get(kind, kind.capitalize())}",
            family="Own",
            evaluator=kind,
            reader=reader,
            source=source,
            metric=_metric(kind, columns),
            category=category(kind),
            modalities=tuple(modality for modality in MODALITIES if modality in kinds),
            columns=dict(columns),
            params=PROBE if kind == "probe" else {},
            options=options,
            templates=("a photo of {}",) if kind == "zeroshot" and "image" in kinds else (),
            mixed=_mixed(kind, columns, content),
            upright=True,
        )
        more = dict(self.more)
        more["options"] = {**usual.options, **more.get("options", {})}
        more["params"] = {**usual.params, **more.get("params", {})}
        for field in ("modalities", "labels", "templates", "notes"):  # one text would be taken for its letters
            if field in more:
                more[field] = tuple([more[field]] if isinstance(more[field], str) else more[field])
        row = replace(usual, **more)
        readers.check_options(row)
        EVALUATORS[row.evaluator].check({**row.params, "metric": row.metric})
        return row


# ── data of Python ───────────────────────────────────────────────────────────────────────────────────────────────────


def _of_objects(
    data: Any, request: _Request, folder: Path, allow_outside: bool, rate: int | None, settings: Settings
) -> Task:
    tables = splits(data)
    sample = tables[next(iter(tables))]
    stated = dict(request.columns or {})
    by_column = stated.pop(SPLIT, SPLIT if SPLIT in sample.columns and "" in tables else None)
    for column in [*(column for _, column in _named(stated, sample.columns)), *([by_column] if by_column else ())]:
        for rows in tables.values():
            check_name("column", column, rows.columns, f"There are {listed(rows.columns)}.")
    cells = {
        column: _Column(column, sample.sample(column), sample.class_names.get(column), "", sample.all_different(column))
        for column in sample.columns
        if column != by_column
    }
    kind, columns = choose(request.kind, stated, cells.values())
    kinds = {column: _kind(role, cells[column]) for role, column in _named(columns, cells)}
    content = {column: of_column for column, of_column in kinds.items() if of_column is not None}
    media = {column: None if of_column == "text" else of_column for column, of_column in kinds.items()}
    stored = keep(tables, TableShape(media, folder, allow_outside, rate), settings.home, by_column)
    scored = _scored(request, kind, list(stored.rows))
    source = Source(id=str(stored.folder), revision=stored.revision, splits=(scored,), files=_files(stored.rows))
    stem = f"Own{stored.revision.removeprefix(REVISION)[:8]}"
    has_train = "train" in stored.rows and scored != "train"
    row = request.row(kind, columns, list(content.values()), source, stem, has_train)
    names = cells[columns["label"]].class_names if "label" in columns else None
    return replace(row, rows=stored.rows, labels=row.labels or names or ())


def _files(rows: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The files of splits whose names no file can have."""
    return {split: (f"{component(split)}.parquet",) for split in rows if component(split) != split}


def _sided(columns: Mapping[str, str]) -> bool:
    """Whether columns say by themselves which side they are of."""
    return any(role.startswith(SIDES) for role in columns)


def _metric(kind: str, columns: Mapping[str, str]) -> str:
    """The usual measure; of one image with several texts, or the reverse, the one that not every model fails."""
    if kind != "pairs":
        return usual_metric(kind, NEEDED[kind][0])
    images, texts = (columns[role].count(",") for role in NEEDED[kind][1])
    return "accuracy" if images == texts else "image_acc" if images > texts else "text_acc"


def _mixed(kind: str, columns: Mapping[str, str], content: Sequence[Modality]) -> bool:
    """Whether items are of several modalities."""
    if kind == "retrieval" and _sided(columns):
        return any(sum(role.startswith(side) for role in columns) > 1 for side in SIDES)
    most = {"retrieval": 2, "choice": 1, **dict.fromkeys(LABELED, 1)}.get(kind, len(MODALITIES))
    return len({*content}) > most


def _scored(request: _Request, kind: str, names: Sequence[str]) -> str:
    """The split that is scored: the one that is named, the usual one, or the only one."""
    if request.split:
        check_name("split", request.split, names)
        return request.split
    train = request.train or "train"
    if kind in TRAINED and request.train:
        check_name("split to learn from (train=…)", train, names, f"There are {listed(names)}.")
    usual = [name for name in SCORED if name in names]
    rest = [name for name in names if name != train] or names
    if usual or len(rest) == 1:
        return usual[0] if usual else rest[0]
    raise EmbarkError(f"Which split is scored? Name it with split=…: there are {listed(names)}.")


# ── data of the hub, or of a folder ──────────────────────────────────────────────────────────────────────────────────


def _of_source(id: str, request: _Request, revision: str | None, config: str | None, settings: Settings) -> Task:
    """A task over a data set of the hub, pinned to its present commit, or over a folder of tables."""
    hub = Hub(settings)
    folder = Path(id).expanduser()
    if folder.is_file():
        raise EmbarkError(f"{id} is a file: its folder is the data, embark.folder_task(folder, table={folder.name!r}).")
    if folder.is_dir():
        source = Source(str(folder.resolve()), revision or "", config)
        stem = folder.resolve().name
    else:
        source = Source(id, hub.resolve(id, revision or "main"), config)
        stem = id.rpartition("/")[2]
    stated = dict(request.columns or {})
    chosen = _stored_split(source, request, hub)
    source = replace(source, splits=(chosen,))
    heads = [table_head(hub, source, file) for file in split_files(source, chosen, hub)[:1]]
    head = heads[0] if heads else None
    known: list[_Column] = []
    if head is not None:
        for _, column in _named(stated, head.columns):
            if not readers.has_column(column, head.columns):
                raise UnknownName(f"column of {id}", column, head.columns, f"There are {listed(list(head.columns))}.")
        classes = head.classes or {}
        known = [_Column(name, None, classes.get(name), head.columns[name]) for name in head.columns]
    kind, columns = choose(request.kind, stated, known)
    by_name = {column.name: column for column in known}
    kinds = [
        of_column
        for role, column in _named(columns, by_name)
        if (of_column := _kind(role, by_name.get(column, _Column(column))))
    ]
    row = request.row(kind, columns, kinds, source, stem, _has_split(source, "train", chosen, hub))
    if source.revision:
        return row
    return replace(row, source=replace(source, revision=readers.content_revision(row, hub)))


def _stored_split(source: Source, request: _Request, hub: Hub) -> str:
    """The split that is scored, if the data set has files for it."""
    if request.split:
        split_files(source, request.split, hub)
        return request.split
    for split in (*SCORED, "train"):
        if _has_split(source, split, "", hub):
            return split
    files = [file.path for file in hub.files(source.id, source.revision)]
    own = " If it is one of media with a table or classes, take embark.folder_task(folder)." * is_local(source.id)
    raise EmbarkError(
        f"Which split of {source.id} is scored? Name it with split=… (--split), and its config if it has several; "
        f"its files are {listed(files)}.{own}"
    )


def _has_split(source: Source, split: str, scored: str, hub: Hub) -> bool:
    """Whether a data set has files of a split that is not the scored one."""
    try:
        return split != scored and bool(split_files(source, split, hub))
    except NoFiles:
        return False


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Column:
    """A column: its name, a value, the names of its classes, the type that a file states, whether its values differ."""

    name: str
    cell: Any = None
    class_names: tuple[str, ...] | None = None
    type: str = ""
    all_different: bool = False

    @property
    def modality(self) -> Modality | None:
        """What its cells hold, as far as they tell."""
        if self.cell is None:
            stored: Modality | None = "text" if self.type in ("string", "large_string", "text", "str") else None
            return next((role for role in MODALITIES if self.name.lower() in USUAL[role]), stored)
        if isinstance(self.cell, str):
            ending = PurePath(self.cell).suffix.lower().lstrip(".")
            named = (*FILES, PAIR[0], *(name for kind in MODALITIES[1:] for name in USUAL[kind]))
            return ENDINGS.get(ending, "text") if self.name.lower() in named else "text"
        return modality(self.cell)


def choose(kind: str, columns: Mapping[str, str], known: Iterable[_Column]) -> tuple[str, dict[str, str]]:
    """The kind of a task and its columns by role: those that are named, else as names and cells tell without doubt."""
    known = list(known)
    names = [column.name for column in known]
    if not columns:
        columns = _usual(kind, known)
    if not kind:
        for role in columns:
            check_name("role of a column", role, [*dict.fromkeys(role for kind in NEEDED for role in _roles(kind))])
        kind = _usual_kind(columns, known)
    wrong = [role for role in columns if role not in _roles(kind)]
    if wrong:
        known_roles = ", ".join(_roles(kind))
        raise EmbarkError(f"A task of kind '{kind}' has no column for '{wrong[0]}'; its roles are {known_roles}.")
    content = [role for role in MODALITIES if role in columns]
    missing = [role for role in NEEDED[kind][1] if role not in columns]
    if kind in LABELED and not content:
        missing.insert(0, "image (or text, audio, video)")
    if kind == "retrieval" and len(content) < 2 and not _sided(columns):
        missing = ["two of image, text, audio, video"]
    if missing:
        example = _example(kind)
        raise EmbarkError(
            f"Which columns does a task of kind '{kind}' take? It needs {' and '.join(missing)}; name them, as in "
            f"columns={example}. There are {listed(names) or 'none'}."
        )
    return kind, dict(columns)


def _roles(kind: str) -> tuple[str, ...]:
    return tuple(readers.READERS[NEEDED[kind][0]].columns)


def _usual(kind: str, known: Sequence[_Column]) -> dict[str, str]:
    """Columns by role, of the roles that a kind of task has: by their names, then by what their cells hold."""
    roles = _roles(kind) if kind else tuple(USUAL)
    by_name = {column.name.lower(): column for column in reversed(known)}
    columns: dict[str, str] = {}
    for role in (role for role in USUAL if role in roles):
        named = [by_name[name] for name in USUAL[role] if name in by_name]
        fitting = [column.name for column in named if role not in MODALITIES or column.modality in (role, None)]
        if fitting:
            columns[role] = fitting[0]

    def free() -> list[tuple[Modality, str]]:
        """Content in columns that have no role, where the role of that content is free."""
        others = [(column.modality, column.name) for column in known if column.name not in columns.values()]
        return [(of_cell, name) for of_cell, name in others if of_cell and of_cell in roles and of_cell not in columns]

    for of_cell, name in free():
        if of_cell != "text" or name == PAIR[0]:
            columns.setdefault(of_cell, name)
    texts = free()
    if kind == "retrieval" and [column.name for column in known] == [*PAIR] and columns == {"text": PAIR[0]}:
        return {"query_text": PAIR[0], "corpus_text": PAIR[1]}
    if kind == "retrieval" and len(texts) == 1:
        columns |= dict(texts)
    if kind in LABELED and "text" in columns and any(role in columns for role in MODALITIES[1:]):
        del columns["text"]  # pictures with captions and labels: the pictures are classified
    return columns


def _usual_kind(columns: Mapping[str, str], known: Iterable[_Column]) -> str:
    """The kind of task that these columns are for; an error where it could be several."""
    content = [role for role in MODALITIES if role in columns]
    for kind in ("sts", "pair-classification", "choice", "pairs"):
        if {*NEEDED[kind][1]} <= {*columns}:
            return kind
    if "label" not in columns and len(content) == 2:
        return "retrieval"
    if "label" in columns and len(content) == 1:
        label = next((column for column in known if column.name == columns["label"]), _Column("label"))
        if isinstance(label.cell, (list, tuple)):
            return "multilabel"
        if label.all_different:
            raise EmbarkError(
                f"What is the task? All rows differ in '{label.name}': if it holds captions, say kind='retrieval'; if "
                "classes, kind='zeroshot', 'probe' or 'clustering'."
            )
        return "zeroshot" if label.class_names or isinstance(label.cell, str) or label.type == "string" else "probe"
    names = [column.name for column in known]
    raise EmbarkError(
        f"What is the task? Name its kind ({', '.join(NEEDED)}) and its columns, as in "
        f"columns={_example('retrieval')}. There are {listed(names) or 'none'}."
    )


def _kind(role: str, column: _Column) -> Modality | None:
    """The modality of a column in a role; None where it is no content."""
    role = role.removeprefix(SIDES[0]).removeprefix(SIDES[1])
    if role in MODALITIES:
        return role
    if role in ("images", "texts"):
        return "image" if role == "images" else "text"
    if role in ("left", "right"):
        return column.modality or ("image" if "binary" in column.type else "text")
    return "text" if role in ("question", "choices") else None


def _example(kind: str) -> str:
    roles = {"retrieval": ("image", "text"), **dict.fromkeys(LABELED, ("image", "label"))}.get(kind, NEEDED[kind][1])
    return "{" + ", ".join(f"'{role}': '…'" for role in roles) + "}"


def _named(columns: Mapping[str, str], known: Collection[str]) -> list[tuple[str, str]]:
    """Each role with its column; roles of texts and images may name several, with commas between."""
    return [
        (role, column.strip())
        for role, names in columns.items()
        for column in ([names] if names in known or role not in SEVERAL else names.split(","))
    ]
