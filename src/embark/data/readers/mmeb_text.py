"""MMEB's text and agent groups: texts, tools, memories and screens, each ranked in one corpus.

The datasets were put together from many, so a column has many names: the first of them that a row fills counts. An
instruction that comes with a row, or with its part of the dataset, is written into the query by the task's template.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers import _mmeb
from embark.data.readers._mmeb import Files
from embark.data.rows import Archive, Rows, open_archive
from embark.types import Dataset, EmbarkError, Item, Media, Part, Qrels, Side, Task, Text

VERSION = 1

QUERY_ID = ("_id", "id", "qid", "query_id", "query-id")
QUERY = ("text", "query", "query_content", "short_query")
DOCUMENT_ID = ("_id", "id", "doc_id", "document_id", "corpus-id")
DOCUMENT = ("text", "content")
JUDGED_QUERY = ("query_id", "query-id", "qid", "q_id", "id")
JUDGED_DOCUMENT = ("corpus_id", "corpus-id", "doc_id", "document_id", "p_id")
GOLD = ("gold_ids", "gold_ids_long")
MARK = re.compile(r"<\|image_\d+\|>")

Row = Mapping[str, Any]
Grades = dict[str, dict[str, float]]  # query → document → grade


@dataclass(frozen=True, slots=True)
class Ask:
    """A query and the grades of its documents."""

    id: str
    item: Item
    grades: Mapping[str, float]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def texts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries and documents of a folder, and judgements in a table of their own or in the queries' gold_ids."""
    files, tables = _files(task, hub), task.options["tables"]
    judged = _judged(files.table(tables["qrels"]).records()) if "qrels" in tables else None
    asks = []
    for row in files.table(tables["queries"]).records():
        name, item = _id(row, QUERY_ID), items.text(_asked(task, row, _text(row, QUERY)))
        grades = judged.get(name, {}) if judged is not None else dict.fromkeys(map(str, _listed(_cell(row, GOLD))), 1.0)
        asks.append(Ask(name, item, grades))
    return _retrieval(task, asks, *_documents(files.table(tables["corpus"]).records()))


def tools(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Requests to the tools that serve them; a tool is its documentation, as JSON in one line."""
    files, tables = _files(task, hub), task.options["tables"]
    asks = []
    for row in files.table(tables["queries"]).records():
        right = _listed(_cell(row, ("label", "labels")))
        grades = {str(one["id"] if isinstance(one, dict) else one): 1.0 for one in right}
        asks.append(Ask(_id(row, QUERY_ID), items.text(_asked(task, row, _text(row, ("query",)))), grades))
    documents: dict[str, Item] = {}
    for row in files.table(tables["corpus"]).records():
        documents.setdefault(_id(row, DOCUMENT_ID), items.text(_documentation(_cell(row, ("documentation",)))))
    return _retrieval(task, asks, documents)


def memories(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """All parts of a dataset over one corpus; ids get the name of their folder."""
    files, asks, documents, skipped = _files(task, hub), list[Ask](), dict[str, Item](), list[str]()
    for path in sorted(name for name in files.names if f"/{name}".endswith("/queries.jsonl")):
        folder = path.rpartition("/")[0]
        corpus = _nearest(files, folder, "corpus.jsonl")
        home = corpus.rpartition("/")[0]
        found, lost = _documents(files.table(corpus).records(), home)
        documents |= {name: item for name, item in found.items() if name not in documents}
        skipped += [line for line in lost if line not in skipped]
        judged = _tab_separated(files.archive.read(files.name(_nearest(files, folder, "qrels.tsv"))))
        told = {"instruction": _instruction(task, folder)}
        for row in files.table(path).records():
            name = _id(row, QUERY_ID)
            grades = {_within(home, document): grade for document, grade in judged.get(name, {}).items()}
            asks.append(Ask(_within(folder, name), items.text(_asked(task, told, _text(row, QUERY))), grades))
    return _retrieval(task, asks, documents, skipped)


def _instruction(task: Task, folder: str) -> str:
    """What the row tells the queries of a part, which is a folder, or the whole dataset."""
    told, part = task.options["instructions"], folder.rpartition("/")[2] or _mmeb.label(task)
    if part not in told:
        raise EmbarkError(f"Task {task.name} has no instruction for '{part}'; it has some for {', '.join(told)}.")
    return str(told[part])


# ── screens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def screens(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Texts with screenshots, one right candidate a row; a candidate that only a query names is one too."""
    archive = open_archive(task.source, task.options["images"], hub)
    asks, documents = list[Ask](), dict[str, Item]()
    corpus, queries = (_mmeb.rows_of(task, split, hub, config) for config in ("corpus", "queries"))
    for name, text, paths in zip(*_columns(task, corpus, "document"), strict=True):
        documents.setdefault(str(name), _screen(archive, text, paths))
    asked, right = _columns(task, queries, "query"), _columns(task, queries, "positive")
    for name, text, paths, positive, told, seen in zip(*asked, *right, strict=True):
        asks.append(Ask(str(name), _screen(archive, text, paths), {str(positive): 1.0}))
        if str(positive) not in documents:
            documents[str(positive)] = _screen(archive, told, seen)
    return _retrieval(task, asks, documents)


def _columns(task: Task, rows: Rows, role: str) -> list[list[Any]]:
    return [rows.values(task.columns[f"{role}_{what}"]) for what in ("id", "text", "images")]


def _screen(archive: Archive, text: str | None, paths: Any) -> Item:
    """Screenshots where the text has marks for them; those without a mark come first."""
    pictures = [archive.media("image", path) for path in _paths(paths)]
    pieces = MARK.split(text or "")
    spare = max(0, len(pictures) - (len(pieces) - 1))
    parts: list[Part] = list(pictures[:spare])
    rest = iter(pictures[spare:])
    for at, piece in enumerate(pieces):
        marked: Media | None = next(rest, None) if at else None
        parts += ([marked] if marked else []) + ([Text(piece.strip())] if piece.strip() else [])
    if not parts:
        raise EmbarkError("A row of the interface data has neither text nor screenshots.")
    return Item(tuple(parts))


def _paths(value: Any) -> list[str]:
    """A list of paths, one path, or a list written as Python writes it."""
    if isinstance(value, str):
        value = ast.literal_eval(value) if value.startswith("[") else [value]
    return [path for path in value or () if path]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _files(task: Task, hub: Hub) -> Files:
    return _mmeb.files(task.source, task.options["archive"], hub, task.options["path"])


def _cell(row: Row, names: Sequence[str]) -> Any:
    """The first of the columns that the row fills; it must have one of them."""
    if not set(names) & set(row):
        raise EmbarkError(f"A row has none of the columns {', '.join(names)}; it has {', '.join(row)}.")
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _text(row: Row, names: Sequence[str]) -> str:
    return str(_cell(row, names) or "")


def _id(row: Row, names: Sequence[str]) -> str:
    found = _cell(row, names)
    if found is None:
        raise EmbarkError(
            f"A row has an empty id: {', '.join(f'{name}={value!r:.40}' for name, value in row.items())}."
        )
    return str(found)


def _asked(task: Task, row: Row, text: str) -> str:
    """The query with its instruction, in the order of the task's template; without one, the query alone."""
    template: str = task.options["template"]
    own = [name for name in re.findall(r"{(\w+)}", template) if name != "query"]
    for name in own:
        if name not in row:
            raise EmbarkError(f"Task {task.name}: a query has no column '{name}'; it has {', '.join(row)}.")
    if not all(row[name] for name in own):
        return text
    return template.format(query=text, **{name: row[name] for name in own}).strip() if own else text


def _listed(value: Any) -> list[Any]:
    """A list, one value, or either of them as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = json.loads(value)
    return value if isinstance(value, list) else [] if value is None else [value]


def _documentation(value: Any) -> str:
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return str(value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


# ── folders within a dataset ─────────────────────────────────────────────────────────────────────────────────────────


def _nearest(files: Files, folder: str, name: str) -> str:
    """The file of that name in a folder, or in the nearest one above."""
    above = folder
    while True:
        path = f"{above}/{name}" if above else name
        if path in files:
            return path
        if not above:
            raise EmbarkError(f"Folder '{files.root}/{folder}' of the archive has no {name}, nor has one above it.")
        above = above.rpartition("/")[0]


def _within(folder: str, name: str) -> str:
    return f"{folder}::{name}" if folder else name


def _tab_separated(data: bytes) -> Grades:
    """Judgements as query, document, grade; a header has no number in its third place."""
    found = Grades()
    for line in data.decode("utf-8-sig").split("\n"):
        cells = line.strip().split("\t")
        if len(cells) >= 3 and re.fullmatch(r"-?\d+(\.\d+)?", cells[2]):
            _judge(found, cells[0], cells[1], float(cells[2]))
    return found


# ── how a dataset is put together ────────────────────────────────────────────────────────────────────────────────────


def _documents(rows: Iterable[Row], folder: str = "") -> tuple[dict[str, Item], list[str]]:
    """Title, line feed and text of each row; of equal ids the first counts, and documents without text are left out."""
    found: dict[str, Item] = {}
    empty = []
    for row in rows:
        name, text = _within(folder, _id(row, DOCUMENT_ID)), _text(row, DOCUMENT)
        if not text:
            empty.append(name)
        elif name not in found:
            found[name] = items.text(f"{row['title']}\n{text}" if row.get("title") else text)
    return found, [f"{len(empty)} documents without text, such as {empty[0]}"] if empty else []


def _judged(rows: Iterable[Row]) -> Grades:
    found = Grades()
    for row in rows:
        grade = next((row[name] for name in ("label", "score") if row.get(name) is not None), 1)
        _judge(found, _id(row, JUDGED_QUERY), _id(row, JUDGED_DOCUMENT), float(grade))
    return found


def _judge(found: Grades, query: str, document: str, grade: float) -> None:
    """Of a pair that is judged twice, the larger grade counts."""
    grades = found.setdefault(query, {})
    grades[document] = max(grade, grades.get(document, grade))


def _retrieval(task: Task, asks: Sequence[Ask], documents: Mapping[str, Item], skipped: Iterable[str] = ()) -> Dataset:
    """Relevance as MMEB has it: what is not above zero is not judged, and a query with nothing relevant is a miss."""
    if not asks or not documents:
        raise EmbarkError(f"Task {task.name} has {len(asks)} queries and {len(documents)} documents.")
    place = {name: at for at, name in enumerate(documents)}
    queries: dict[str, Item] = {}
    rows: list[tuple[int, int, float]] = []
    lost = list[str]()
    for at, ask in enumerate(asks):
        queries[ask.id if ask.id not in queries else f"{ask.id}#{at}"] = ask.item  # an id may come more than once
        right = {document: grade for document, grade in ask.grades.items() if grade > 0}
        lost += [document for document in right if document not in place]
        found = [(at, place[document], grade) for document, grade in right.items() if document in place]
        rows += found or [(at, 0, 0.0)]  # a grade of zero keeps the query among those that count
    query, document, grade = (np.array(column) for column in zip(*rows, strict=True))
    sides = {"query": queries, "document": documents}
    said = [f"{len(lost)} relevant documents that are not in the corpus, such as {lost[0]}"] if lost else []
    whole = grade.astype(np.int64)
    truth = Qrels(query, document, whole if (whole == grade).all() else grade)
    shown = {side: Side(list(held), list(held.values())) for side, held in sides.items()}
    return Dataset(shown, truth, (*skipped, *said))
