"""ARK: queries, and a gallery for each subtype, as folders of images with tables of metadata.

Ids of queries and documents are numbers from 0 within each subtype ("topic"), so everything goes by topic and id.
Relevance is not published, so the user supplies it: a CSV named by EMBARK_ARK_LABELS, or by the row's option `labels`,
with the columns topic, query_id and corpus_id, and perhaps skills (with semicolons between them) and demand.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from embark import items
from embark.hub import Hub
from embark.items.errors import errors_about
from embark.readers._files import NO_TABLES
from embark.readers._table import as_list
from embark.readers.formats import open_table_file
from embark.readers.rows import Rows
from embark.seams import Reader
from embark.types import Dataset, EmbarkError, Item, Option, Qrels, Side, Source, Task
from embark.types import Label as Value

COLUMNS = {
    "topic": "the subtype of a query or document",
    "query": "the ids of queries",
    "document": "the ids of documents",
}
OPTIONS = {
    "topic": Option(str, "The subtype."),
    "labels": Option(str, "A CSV of the relevance (else EMBARK_ARK_LABELS names it)."),
}

LABELS = "EMBARK_ARK_LABELS"
TEXT = ("query", "text", "query_text", "question")  # columns that may hold a query's text, best first
IMAGES = (".png", ".jpg", ".jpeg", ".webp")
LABEL_COLUMNS = ("topic", "query_id", "corpus_id")  # that labels need
SKILLS = (
    "knowledge reasoning", "conceptual abstraction", "fine-grained visual reasoning",
    "logical reasoning", "spatial reasoning", "symbolic reasoning",
)  # fmt: skip
DEMANDS = ("perception-only", "knowledge-intensive", "reasoning-intensive", "both")


@dataclass(frozen=True)
class Label:
    """The one right answer to a query, and the skills and the demand of the query, where the labels state them."""

    document: str
    skills: tuple[str, ...] = ()
    demand: str = ""


def read_ark(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The queries of a subtype that have a label, and the subtype's whole gallery."""
    by_query = labels_of(task)
    gallery = _records(task, "gallery", hub)
    queries = _records(task, "queries", hub)
    labeled = {name: row for name, row in queries.items() if name in by_query}
    if not labeled:
        raise EmbarkError(f"None of the {len(queries)} queries of {task.name} is in the labels file.")
    positions = {name: position for position, name in enumerate(gallery)}
    if unknown := [name for name in labeled if by_query[name].document not in positions]:
        raise EmbarkError(
            f"The labels of {len(unknown)} queries name images outside the gallery of {task.name}, such as "
            f"'{by_query[unknown[0]].document}' for '{unknown[0]}'."
        )
    document = np.array([positions[by_query[name].document] for name in labeled], np.int64)
    truth = Qrels(np.arange(len(labeled)), document, np.ones(len(labeled), np.int64))
    sides = {"query": _side(task, labeled, hub), "document": _side(task, gallery, hub)}
    count = len(queries) - len(labeled)
    skipped = (f"left out {count} of {len(queries)} queries, which have no label",) if count else ()
    return Dataset(sides, truth, skipped, about={"query": _axes([by_query[name] for name in labeled])})


def _axes(labels: Sequence[Label]) -> dict[str, list[Value]]:
    """The labels of the reasoning axis by query, as far as the file states any."""
    axes: dict[str, list[Value]] = {
        "skills": [label.skills or None for label in labels],
        "demand": [label.demand or None for label in labels],
    }
    return {axis: values for axis, values in axes.items() if any(values)}


def read_unlabeled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Every query of a subtype and its gallery, for rankings that the leaderboard scores."""
    empty = np.zeros(0, np.int64)
    folders = {"query": "queries", "document": "gallery"}
    sides = {side: _side(task, _records(task, folder, hub), hub) for side, folder in folders.items()}
    return Dataset(sides, Qrels(empty, empty, empty))


def labels_of(task: Task) -> dict[str, Label]:
    """The supplied labels of a task's subtype, by query id."""
    own = _slug(task.options["topic"])
    return {query: label for (topic, query), label in labels(task).items() if topic == own}


def labels(task: Task) -> dict[tuple[str, str], Label]:
    """The supplied labels by topic and query id, of all subtypes."""
    path = _labels_path(task)
    if path is None:
        raise EmbarkError(
            f"The relevance labels of {task.name} are not published, so scoring it here needs a labels file: "
            f"set {LABELS} to a CSV with the columns {','.join(LABEL_COLUMNS)} (and, if known, skills,demand)."
        )
    if not path.is_file():
        raise EmbarkError(f"There is no labels file {path} ({LABELS}).")
    with errors_about(path):
        rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    by_query: dict[tuple[str, str], Label] = {}
    for number, row in enumerate(rows, 1):
        topic, query, document = ((row.get(name) or "").strip() for name in LABEL_COLUMNS)
        skills = tuple(skill.strip() for skill in (row.get("skills") or "").split(";") if skill.strip())
        demand = (row.get("demand") or "").strip()
        if not (topic and query and document):
            lacking = " or ".join(LABEL_COLUMNS)
            raise EmbarkError(f"Row {number} of {path} lacks {lacking}; its columns are {', '.join(row)}.")
        if unknown := [*({*skills} - {*SKILLS}), *({demand} - {"", *DEMANDS})]:
            known = f"{', '.join(SKILLS)}; {', '.join(DEMANDS)}"
            raise EmbarkError(f"Row {number} of {path} has '{unknown[0]}'; skills and demands are {known}.")
        if (_slug(topic), query) in by_query:
            raise EmbarkError(f"{path} has two labels for query '{query}' of {topic}; a query has one right answer.")
        by_query[_slug(topic), query] = Label(document, skills, demand)
    return by_query


def require(task: Task) -> None:
    """Raise an error where there are no labels."""
    labels(task)


def external_state(task: Task) -> str:
    """The state of the labels file: a score depends on it, so it is part of the protocol's fingerprint."""
    path = _labels_path(task)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path and path.is_file() else ""


def _labels_path(task: Task) -> Path | None:
    path = task.options.get("labels") or os.environ.get(LABELS)
    return Path(path).expanduser() if path else None


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _records(task: Task, folder: str, hub: Hub) -> dict[str, Mapping[str, Any]]:
    """The rows of the task's subtype by id, each with the paths of its images."""
    column = task.columns["query" if folder == "queries" else "document"]
    files = hub.files(task.source.id, task.source.revision)
    paths = [file.path for file in files if file.path.startswith(f"data/{folder}/")]
    tables = [path for path in paths if PurePosixPath(path).stem == "metadata"]
    rows = [row for table in tables for row in _table(task.source, table, hub)]
    if not rows:  # an image's name holds its subtype and number
        rows = [{"images": [path]} for path in paths if path.lower().endswith(IMAGES)]
    records: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        stem = PurePosixPath(row["images"][0]).stem if row["images"] else ""
        name = _id(row.get(column)) or stem
        topic = str(row.get(task.columns["topic"]) or (stem or name).rpartition("_")[0])
        if _slug(topic) == _slug(task.options["topic"]):
            if name in records:
                raise EmbarkError(f"Task {task.name}: two rows of data/{folder} have the {column} '{name}'.")
            records[name] = row
    if not records:
        raise EmbarkError(f"Task {task.name}: {task.source.id} has nothing of its subtype in data/{folder}.")
    return records


def _table(source: Source, path: str, hub: Hub) -> list[dict[str, Any]]:
    """The rows of a metadata table; file names are relative to it."""
    folder = PurePosixPath(path).parent
    rows = Rows(path, [open_table_file(hub.get(source.id, source.revision, path), hub.home / "digests")]).records()
    return [row | {"images": [str(folder / name) for name in _file_names(row)]} for row in rows]


def _file_names(row: Mapping[str, Any]) -> list[str]:
    columns = [column for column in row if column.endswith(("file_name", "file_names")) and row[column]]
    return [name for column in columns for name in as_list(row[column])]


def _id(cell: Any) -> str:
    """An id as text: 0 is one, and a column of numbers with gaps holds them as floats. Empty where there is none."""
    return "" if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def _slug(topic: str) -> str:
    return topic.lower().replace(" ", "-").replace("_", "-")


def _side(task: Task, rows: Mapping[str, Mapping[str, Any]], hub: Hub) -> Side:
    paths = [path for row in rows.values() for path in row["images"]]
    local = dict(zip(paths, hub.get_all(task.source.id, task.source.revision, paths), strict=True))
    return items.side({name: _item(task, name, row, local) for name, row in rows.items()})


def _item(task: Task, name: str, row: Mapping[str, Any], local: Mapping[str, Path]) -> Item:
    """The item of a row: images first, then text, as in the other families."""
    parts = [items.media("image", local[path]) for path in row["images"]]
    columns = (task.columns["text"],) if "text" in task.columns else TEXT
    if text := next((row[column] for column in columns if row.get(column)), None):
        parts.append(items.text(str(text)))
    if not parts:
        raise EmbarkError(f"Task {task.name}: '{name}' has no images and no text; its columns: {', '.join(row)}.")
    return items.mixed(*parts)


ARK = Reader(
    "ark",
    cleandoc(__doc__ or ""),
    read_ark,
    evaluators=("retrieval",),
    files=NO_TABLES,  # each metadata table has columns of its own, and a split has pictures as well
    version=2,
    columns=COLUMNS,
    options=OPTIONS,
    path_options=("labels",),
    read_unlabeled=read_unlabeled,
    require=require,
    external_state=external_state,
)
