"""ARK: queries, and a gallery for each subtype, as folders of pictures with tables of metadata.

Relevance is not published, so the user supplies it: a CSV named by EMBARK_ARK_LABELS, or by the row's option `labels`,
with the columns query_id and corpus_id, and perhaps skills (with semicolons between them) and demand.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.formats import open_table_file
from embark.data.rows import Rows, open_file
from embark.types import Dataset, EmbarkError, Item, Qrels, Side, Source, Task

VERSION = 1

LABELS = "EMBARK_ARK_LABELS"
TEXT = ("query", "text", "query_text", "question")  # columns that may hold a query's words, best first
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
SKILLS = (
    "knowledge reasoning", "conceptual abstraction", "fine-grained visual reasoning",
    "logical reasoning", "spatial reasoning", "symbolic reasoning",
)  # fmt: skip
DEMANDS = ("perception-only", "knowledge-intensive", "reasoning-intensive", "both")


@dataclass(frozen=True)
class Label:
    """The one right answer to a query, and what finding it takes, where the labels say."""

    document: str
    skills: tuple[str, ...] = ()
    demand: str = ""


def read_ark(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The queries of a subtype that have a label, and the subtype's whole gallery."""
    given = labels(task)
    gallery, asked = _records(task, "gallery", hub), _records(task, "queries", hub)
    answered = {name: row for name, row in asked.items() if name in given}
    if not answered:
        raise EmbarkError(f"None of the {len(asked)} queries of {task.name} is in the labels file.")
    place = {name: at for at, name in enumerate(gallery)}
    if lost := [name for name in answered if given[name].document not in place]:
        raise EmbarkError(
            f"The labels of {len(lost)} queries name pictures outside the gallery of {task.name}, such as "
            f"'{given[lost[0]].document}' for '{lost[0]}'."
        )
    document = np.array([place[given[name].document] for name in answered], np.int64)
    truth = Qrels(np.arange(len(answered)), document, np.ones(len(answered), np.int64))
    sides = {"query": _side(task, answered, hub), "document": _side(task, gallery, hub)}
    left = len(asked) - len(answered)
    return Dataset(sides, truth, (f"left out {left} of {len(asked)} queries, which have no label",) if left else ())


def unlabelled(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Every query of a subtype and its gallery, for rankings that the leaderboard scores."""
    nothing = np.zeros(0, np.int64)
    parts = {"query": "queries", "document": "gallery"}
    sides = {side: _side(task, _records(task, part, hub), hub) for side, part in parts.items()}
    return Dataset(sides, Qrels(nothing, nothing, nothing))


def labels(task: Task) -> dict[str, Label]:
    """The supplied labels by query, of all subtypes."""
    path = _labels_file(task)
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    out: dict[str, Label] = {}
    for number, row in enumerate(rows, 1):
        query, document = ((row.get(name) or "").strip() for name in ("query_id", "corpus_id"))
        skills = tuple(skill.strip() for skill in (row.get("skills") or "").split(";") if skill.strip())
        demand = (row.get("demand") or "").strip()
        if not query or not document:
            raise EmbarkError(f"Row {number} of {path} lacks query_id or corpus_id; its columns are {', '.join(row)}.")
        if unknown := [*({*skills} - {*SKILLS}), *({demand} - {"", *DEMANDS})]:
            known = f"{', '.join(SKILLS)}; {', '.join(DEMANDS)}"
            raise EmbarkError(f"Row {number} of {path} has '{unknown[0]}'; skills and demands are {known}.")
        if query in out:
            raise EmbarkError(f"{path} has two labels for query '{query}'; a query has one right answer.")
        out[query] = Label(document, skills, demand)
    return out


def outside(task: Task) -> str:
    """The state of the labels file: a score depends on it, so it is part of the protocol's fingerprint."""
    path = _named(task)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path and path.is_file() else ""


def _named(task: Task) -> Path | None:
    stated = task.options.get("labels") or os.environ.get(LABELS)
    return Path(stated).expanduser() if stated else None


def _labels_file(task: Task) -> Path:
    path = _named(task)
    if path is None:
        raise EmbarkError(
            f"The relevance labels of {task.name} are not published, so scoring it here needs a labels file: "
            f"set {LABELS} to a CSV with the columns query_id,corpus_id (and, if known, skills,demand)."
        )
    if not path.is_file():
        raise EmbarkError(f"There is no labels file {path} ({LABELS}).")
    return path


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _records(task: Task, part: str, hub: Hub) -> dict[str, Mapping[str, Any]]:
    """The rows of the task's subtype by id, each with the paths of its pictures."""
    column = task.columns["query" if part == "queries" else "document"]
    files = hub.files(task.source.id, task.source.revision)
    paths = [file.path for file in files if file.path.startswith(f"data/{part}/")]
    tables = [path for path in paths if PurePosixPath(path).stem == "metadata"]
    rows = [row for table in tables for row in _table(task.source, table, hub)]
    if not rows:  # a picture's name tells its subtype and number
        rows = [{"pictures": [path]} for path in paths if path.lower().endswith(PICTURES)]
    out: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        stem = PurePosixPath(row["pictures"][0]).stem if row["pictures"] else ""
        name = str(row.get(column) or stem)
        topic = str(row.get(task.columns["topic"]) or (stem or name).rpartition("_")[0])
        if _plain(topic) == _plain(task.options["topic"]):
            if name in out:
                raise EmbarkError(f"Task {task.name}: two rows of data/{part} have the {column} '{name}'.")
            out[name] = row
    if not out:
        raise EmbarkError(f"Task {task.name}: {task.source.id} has nothing of its subtype in data/{part}.")
    return out


def _table(source: Source, path: str, hub: Hub) -> list[dict[str, Any]]:
    """The rows of a metadata table; file names are relative to it."""
    here = PurePosixPath(path).parent
    rows = Rows(path, [open_table_file(open_file(source, path, hub), hub.home / "digests")]).records()
    return [row | {"pictures": [str(here / name) for name in _file_names(row)]} for row in rows]


def _file_names(row: Mapping[str, Any]) -> Iterable[str]:
    for column, cell in row.items():
        if column.endswith(("file_name", "file_names")) and cell:
            yield from cell if isinstance(cell, (list, tuple)) else [cell]


def _plain(topic: str) -> str:
    return topic.lower().replace(" ", "-").replace("_", "-")


def _side(task: Task, rows: Mapping[str, Mapping[str, Any]], hub: Hub) -> Side:
    paths = [path for row in rows.values() for path in row["pictures"]]
    local = dict(zip(paths, hub.get_all(task.source.id, task.source.revision, paths), strict=True))
    return Side(tuple(rows), tuple(_item(task, name, row, local) for name, row in rows.items()))


def _item(task: Task, name: str, row: Mapping[str, Any], local: Mapping[str, Path]) -> Item:
    """Pictures first, then words, as in other families."""
    parts = [items.media("image", local[path]) for path in row["pictures"]]
    words = _first(row, (task.columns["text"],) if "text" in task.columns else TEXT)
    if words:
        parts.append(items.text(words))
    if not parts:
        raise EmbarkError(f"Task {task.name}: '{name}' has no pictures and no words; its columns: {', '.join(row)}.")
    return items.mixed(*parts)


def _first(row: Mapping[str, Any], columns: Sequence[str]) -> str | None:
    return next((str(row[column]) for column in columns if row.get(column)), None)
