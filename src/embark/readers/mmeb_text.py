"""MMEB's text and agent groups: texts, tools, memories and screens, each ranked in one corpus.

The datasets were put together from many, so a column has many names: the first of them that a row fills counts. An
instruction that comes with a row, or with its part of the dataset, is written into the query by the task's template.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from embark import items
from embark.hub import Hub
from embark.readers import _mmeb
from embark.readers._files import TABLES
from embark.readers._mmeb import ArchiveFolder, json_list
from embark.readers._table import first_few, rows_of_grades
from embark.readers.rows import Archive, open_archive
from embark.seams import Read, Reader
from embark.types import Dataset, EmbarkError, Item, Part, Qrels, Task, Text

QUERY_ID = ("_id", "id", "qid", "query_id", "query-id")
QUERY = ("text", "query", "query_content", "short_query")
DOCUMENT_ID = ("_id", "id", "doc_id", "document_id", "corpus-id")
DOCUMENT = ("text", "content")
QRELS_QUERY = ("query_id", "query-id", "qid", "q_id", "id")
QRELS_DOCUMENT = ("corpus_id", "corpus-id", "doc_id", "document_id", "p_id")
GOLD = ("gold_ids", "gold_ids_long")
IMAGE_MARK = re.compile(r"<\|image_\d+\|>")

Row = Mapping[str, Any]
Grades = dict[str, dict[str, float]]  # query → document → grade


@dataclass(frozen=True, slots=True)
class GradedQuery:
    """A query and the grades of its documents."""

    id: str
    item: Item
    grades: Mapping[str, float]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def texts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries and documents of a folder, and judgements in a table of their own or in the queries' gold_ids."""
    folder = _open_folder(task, hub)
    tables = task.options["tables"]
    qrels = _grades(map(_judgement, folder.table(tables["qrels"]).records())) if "qrels" in tables else None
    queries = []
    for row in folder.table(tables["queries"]).records():
        name = _id(row, QUERY_ID)
        if qrels is None:
            gold = json_list(_first_filled(row, GOLD))
            grades = {str(document): 1.0 for document in gold if document is not None}
        else:
            grades = qrels.get(name, {})
        queries.append(GradedQuery(name, _query_item(task, row, _text(row, QUERY)), grades))
    return _retrieval(task, queries, *_documents(folder.table(tables["corpus"]).records()))


def tools(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Requests to the tools that serve them; a tool is its documentation, as JSON in one line."""
    folder = _open_folder(task, hub)
    tables = task.options["tables"]
    queries = []
    for row in folder.table(tables["queries"]).records():
        labels = json_list(_first_filled(row, ("label", "labels")))
        grades = {str(label["id"] if isinstance(label, dict) else label): 1.0 for label in labels}
        queries.append(GradedQuery(_id(row, QUERY_ID), _query_item(task, row, _text(row, ("query",))), grades))
    documents: dict[str, Item] = {}
    for row in folder.table(tables["corpus"]).records():
        documents.setdefault(_id(row, DOCUMENT_ID), items.text(_documentation(row)))
    return _retrieval(task, queries, documents)


def memories(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """All parts of a dataset over one corpus; ids get the name of their folder."""
    folder = _open_folder(task, hub)
    queries: list[GradedQuery] = []
    documents: dict[str, Item] = {}
    warnings: dict[str, None] = {}
    for path in sorted(path for path in folder.names if f"/{path}".endswith("/queries.jsonl")):
        part = path.rpartition("/")[0]
        corpus = _nearest(folder, part, "corpus.jsonl")
        home = corpus.rpartition("/")[0]
        part_documents, part_warnings = _documents(folder.table(corpus).records(), home)
        documents |= {name: item for name, item in part_documents.items() if name not in documents}
        warnings |= dict.fromkeys(part_warnings)
        qrels = _read_tsv(folder.lines(_nearest(folder, part, "qrels.tsv")))
        instruction = {"instruction": _instruction(task, part)}
        for row in folder.table(path).records():
            name = _id(row, QUERY_ID)
            grades = {_in_folder(home, document): grade for document, grade in qrels.get(name, {}).items()}
            item = _query_item(task, instruction, _text(row, QUERY))
            queries.append(GradedQuery(_in_folder(part, name), item, grades))
    return _retrieval(task, queries, documents, warnings)


def _instruction(task: Task, folder: str) -> str:
    """The instruction of the queries of a part, which is a folder, or the whole dataset."""
    instructions = task.options["instructions"]
    part = folder.rpartition("/")[2] or _mmeb.dataset_name(task)
    if part not in instructions:
        raise EmbarkError(
            f"Task {task.name} has no instruction for '{part}'; it has some for {', '.join(instructions)}."
        )
    return str(instructions[part])


# ── screens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def screens(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Texts with screenshots, one relevant candidate per row; a candidate that only a query names is added."""
    archive = open_archive(task.source, task.options["images"], hub)
    queries: list[GradedQuery] = []
    documents: dict[str, Item] = {}
    for name, text, paths in _mmeb.task_rows(task, split, hub, "corpus").tuples(*_columns(task, "document")):
        documents.setdefault(str(name), _screen(archive, text, paths))
    rows = _mmeb.task_rows(task, split, hub, "queries")
    columns = (*_columns(task, "query"), *_columns(task, "positive"))
    for name, text, paths, positive, positive_text, positive_paths in rows.tuples(*columns):
        queries.append(GradedQuery(str(name), _screen(archive, text, paths), {str(positive): 1.0}))
        if str(positive) not in documents:
            documents[str(positive)] = _screen(archive, positive_text, positive_paths)
    return _retrieval(task, queries, documents)


def _columns(task: Task, role: str) -> list[str]:
    return [task.columns[f"{role}_{what}"] for what in ("id", "text", "images")]


def _screen(archive: Archive, text: str | None, paths: Any) -> Item:
    """Screenshots where the text has marks for them; those without a mark come first."""
    images = [archive.media("image", path) for path in _paths(paths)]
    pieces = [piece.strip() for piece in IMAGE_MARK.split(text or "")]
    unmarked = max(0, len(images) - (len(pieces) - 1))
    marked = [None, *images[unmarked:]]  # the image before each piece of text
    parts: list[Part] = list(images[:unmarked])
    for image, piece in zip_longest(marked, pieces):
        parts += [image] if image else []
        parts += [Text(piece)] if piece else []
    if not parts:
        raise EmbarkError("A row of the interface data has neither text nor screenshots.")
    return Item(tuple(parts))


def _paths(value: Any) -> list[str]:
    """A list of paths, one path, or a list written as Python writes it."""
    if isinstance(value, str):
        value = ast.literal_eval(value) if value.startswith("[") else [value]
    return [path for path in value or () if path]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open_folder(task: Task, hub: Hub) -> ArchiveFolder:
    return _mmeb.open_folder(task, hub, task.options["path"])


def _first_filled(row: Row, names: Sequence[str]) -> Any:
    """The value of the first of these columns that the row fills; it must have one of them."""
    if not set(names) & set(row):
        raise EmbarkError(f"A row has none of the columns {', '.join(names)}; it has {', '.join(row)}.")
    return next((row[name] for name in names if row.get(name) not in (None, "", [])), None)


def _text(row: Row, names: Sequence[str]) -> str:
    return str(_first_filled(row, names) or "")


def _id(row: Row, names: Sequence[str]) -> str:
    value = _first_filled(row, names)
    if value is None:
        raise EmbarkError(f"A row has an empty id: {', '.join(f'{name}={cell!r:.40}' for name, cell in row.items())}.")
    return str(value)


def _query_item(task: Task, row: Row, text: str) -> Item:
    """The query with its instruction, in the order of the task's template; without an instruction, the query alone."""
    template: str = task.options["template"]
    fields = [name for name in re.findall(r"{(\w+)}", template) if name != "query"]
    for name in fields:
        if name not in row:
            raise EmbarkError(f"Task {task.name}: a query has no column '{name}'; it has {', '.join(row)}.")
    if fields and all(row[name] for name in fields):
        text = template.format(query=text, **{name: row[name] for name in fields}).strip()
    return items.text(text)


def _documentation(row: Row) -> str:
    value = _first_filled(row, ("documentation",))
    with suppress(ValueError):  # a text that is not JSON
        value = json.loads(value) if isinstance(value, str) else value
    return json.dumps(value) if isinstance(value, dict) else str(value)


# ── folders within a dataset ─────────────────────────────────────────────────────────────────────────────────────────


def _nearest(folder: ArchiveFolder, part: str, name: str) -> str:
    """The file of that name in a part's folder, or in the nearest one above."""
    start = PurePosixPath(part)
    for above in (start, *start.parents):
        if (path := str(above / name)) in folder:
            return path
    raise EmbarkError(f"Folder '{folder.root}/{part}' of the archive has no {name}, nor has one above it.")


def _in_folder(folder: str, name: str) -> str:
    """The id of a document or query of a part."""
    return f"{folder}::{name}" if folder else name


# ── building a dataset ───────────────────────────────────────────────────────────────────────────────────────────────


def _documents(rows: Iterable[Row], folder: str = "") -> tuple[dict[str, Item], list[str]]:
    """Title, line feed and text of each row; of equal ids the first counts, and documents without text are left out."""
    documents: dict[str, Item] = {}
    empty = []
    for row in rows:
        name = _in_folder(folder, _id(row, DOCUMENT_ID))
        text = _text(row, DOCUMENT)
        if not text:
            empty.append(name)
        elif name not in documents:
            documents[name] = items.text(f"{row['title']}\n{text}" if row.get("title") else text)
    return documents, [f"{len(empty)} documents without text, such as {empty[0]}"] if empty else []


def _judgement(row: Row) -> tuple[str, str, float]:
    grade = next((row[name] for name in ("label", "score") if row.get(name) is not None), 1)
    return _id(row, QRELS_QUERY), _id(row, QRELS_DOCUMENT), float(grade)


NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?|nan|inf(inity)?)", re.IGNORECASE)  # as float() reads it; some are refused


def _read_tsv(lines: Iterable[str]) -> Grades:
    """Judgements as query, document, grade, or as TREC writes them; a header has no number for a grade."""
    rows = (cells if len(cells := line.strip().split("\t")) >= 3 else line.split() for line in lines)
    rows = ([row[0], *row[2:]] if len(row) >= 4 and row[1].upper() == "Q0" else row for row in rows)
    numeric = (row for row in rows if len(row) >= 3 and NUMBER.fullmatch(row[2]))
    return _grades((query, document, float(grade)) for query, document, grade, *_ in numeric)


def _grades(judgements: Iterable[tuple[str, str, float]]) -> Grades:
    """The grades above zero by query and document; of a pair that is judged twice, the last such grade counts."""
    qrels: Grades = {}
    for query, document, grade in judgements:
        if not math.isfinite(grade):
            raise EmbarkError(f"The grade of document {document} for query {query} is {grade}. Mend the data.")
        if grade > 0:
            qrels.setdefault(query, {})[document] = grade
    return qrels


def _retrieval(
    task: Task, queries: Sequence[GradedQuery], documents: Mapping[str, Item], warnings: Iterable[str] = ()
) -> Dataset:
    """The dataset as MMEB scores it: a query without a relevant document scores zero, and one without text is left out.

    Relevant documents that the corpus has not, or has without text, stay in the ideal ranking.
    """
    empty = items.text("")
    without_text = [query.id for query in queries if query.item == empty]
    queries = [query for query in queries if query.item != empty]
    if not queries or not documents:
        raise EmbarkError(f"Task {task.name} has {len(queries)} queries and {len(documents)} documents.")
    positions = {name: position for position, name in enumerate(documents)}
    query_items: dict[str, Item] = {}
    judged: list[tuple[int, int, float]] = []  # query, document, grade
    missing: list[tuple[int, str, float]] = []  # query, id of a document outside the corpus, grade
    for number, query in enumerate(queries):
        query_items[query.id if query.id not in query_items else f"{query.id}#{number}"] = query.item  # ids may repeat
        inside = [(number, positions[name], grade) for name, grade in query.grades.items() if name in positions]
        judged += inside or [(number, 0, 0.0)]  # a judgement of grade zero keeps the query among the scored ones
        missing += [(number, name, grade) for name, grade in query.grades.items() if name not in positions]
    query_rows, document_rows, grades = (np.array(column) for column in zip(*judged, strict=True))
    missing_rows = np.array([number for number, _, _ in missing], np.int64)
    missing_grades = np.array([grade for _, _, grade in missing])
    if not (grades % 1).any() and not (missing_grades % 1).any():
        grades, missing_grades = grades.astype(np.int64), missing_grades.astype(np.int64)
    outside = rows_of_grades(missing_rows, missing_grades, len(queries))
    if without_text:
        warnings = (*warnings, f"left out {len(without_text)} queries without text: {first_few(without_text)}")
    if missing:
        names = first_few(dict.fromkeys(name for _, name, _ in missing))
        lost = "relevant documents are not in the corpus, or have no text there, and cannot be retrieved"
        warnings = (*warnings, f"{len(missing)} {lost}: {names}")
    truth = Qrels(query_rows, document_rows, grades, outside=outside)
    return Dataset({"query": items.side(query_items), "document": items.side(documents)}, truth, tuple(warnings))


def _reader(name: str, read: Read) -> Reader:
    return Reader(name, getdoc(read) or "", read, evaluators=("retrieval",), files=TABLES, version=3)


TEXT = _reader("mmeb-text", texts)
TOOLS = _reader("mmeb-tools", tools)
MEMORY = _reader("mmeb-memory", memories)
GUI = _reader("mmeb-gui", screens)
