"""Retrieval as three tables: a corpus, queries, and judgements (qrels) that name them by id.

Tables are configs called corpus, query (or queries) and default (or qrels); a subset's are "<subset>-corpus" and so on.
A table that has no split of the task's name has one that is called like the table, or train.
Columns: query_text, query_image…, corpus_text, corpus_image… (default: those of the usual names that are there),
`query_id` and `corpus_id` (default: id or _id; ids are compared as strings), `title` of the corpus (default: title).
An item holds what its row has of these, images first; a corpus text is its title, a space and its text.
Options, besides those of `_table`:
  configs   {"corpus": …, "queries": …, "qrels": …}: what the tables are called otherwise ("{subset}" is the subset)
  splits    {"corpus": …, "queries": …, "qrels": …}: the split of a table, if not the task's
  unknown   "skip": judgements of unknown ids are left out and counted, instead of being an error

By evaluator: `retrieval` ranks the corpus; `choice` ranks the documents that are judged for a query, whatever their
grade; `pairs` is one text (the query) with its documents, the relevant one first, the others in the order of the qrels.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np

from embark.data import rows
from embark.data.fetch import Hub
from embark.data.layout import NoFiles
from embark.data.readers._table import Table, contents, listed, open_part, subset_kind
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Matches, Qrels, Side, Task

VERSION = 2
OPTIONS = ("configs", "unknown")

NAMES = {
    "corpus": ("corpus",),
    "queries": ("query", "queries"),
    "qrels": ("default", "qrels"),
}  # the first that is there
JUDGED = ("query-id", "corpus-id", "score")
UNKNOWN, GONE = -1, -2


def read_beir(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries and documents in their order; queries without a judgement stay, and the evaluator counts them."""
    documents, document_at, no_documents = _side(_open(task, "corpus", split, subset, hub), "corpus")
    queries, query_at, no_queries = _side(_open(task, "queries", split, subset, hub), "query")
    query, document, grade, said = _judgements(_open(task, "qrels", split, subset, hub), query_at, document_at)
    sides, skipped = {"query": queries, "document": documents}, (*no_documents, *no_queries, *said)
    if task.evaluator == "pairs":
        return _samples(task, sides, query, document, grade, skipped)
    return Dataset(sides, Qrels(query, document, grade), skipped)


def needed(task: Task, hub: Hub) -> rows.Needed:
    """The files of the three tables, by whatever names they go."""
    parts = product(NAMES, task.source.splits, task.subsets)
    places = dict.fromkeys(_place(task, *part, hub) for part in parts)
    found = {file.path: file for config, stored in places for file in rows.needed(task.source, stored, hub, config)}
    return [(task.source, list(found.values()))]


def _side(table: Table, role: str) -> tuple[Side, dict[str, int], tuple[str, ...]]:
    """A side, the position of each id in it (GONE where its row was left out), and a word on those."""
    table = table.full(_id_column(table, role))
    given, there = table.task.columns, table.rows.names
    columns = contents(given, f"{role}_") or {kind: kind for kind in MODALITIES if kind in there}
    usual = "title" if "title" in there and "text" in columns else None
    kept, shown = table.shown(columns, given.get("title", usual) if role == "corpus" else None)
    ids = _ids(kept, role)
    places = dict.fromkeys(_ids(table, role), GONE) if kept.skipped else {}
    places |= {name: at for at, name in enumerate(ids)}
    return Side(tuple(ids), tuple(shown)), places, kept.skipped


def _open(task: Task, name: str, split: str, subset: str, hub: Hub) -> Table:
    config, stored = _place(task, name, split, subset, hub)
    table = open_part(task, stored, config, hub, keys=[f"{config}/{split}", f"{name}/{split}"])
    return replace(table, split=name)  # what is said about rows tells the tables apart


def _place(task: Task, name: str, split: str, subset: str, hub: Hub) -> tuple[str, str]:
    """The first config and split by which a table goes that has files."""
    given, splits = task.options.get("configs", {}).get(name), task.options.get("splits", {})
    configs = (given.replace("{subset}", subset),) if given else NAMES[name]
    if not given and subset_kind(task, subset) == "config":
        configs = tuple(f"{subset}-{one}" for one in configs if one != "default")
    stored = splits.get(name, splits.get(split, split))
    for config in configs:
        for one in dict.fromkeys((stored, config, *NAMES[name], "train")):
            with suppress(NoFiles):
                rows.needed(task.source, one, hub, config)
                return config, one
    return configs[0], stored  # opening it will say what is there


def _ids(table: Table, role: str) -> list[str]:
    return [str(one) for one in table.values(_id_column(table, role))]


def _id_column(table: Table, role: str) -> str:
    usual = ("id", "_id", f"{role}-id")
    return table.task.columns.get(f"{role}_id") or next((name for name in usual if name in table.rows.names), "id")


def _judgements(
    table: Table, query_at: dict[str, int], document_at: dict[str, int]
) -> tuple[Array, Array, Array, tuple[str, ...]]:
    """The rows of the qrels as positions and grades; of a pair that is judged twice, the larger grade counts."""
    graded = JUDGED[2] in table.rows.names
    table = table.full(*(JUDGED if graded else JUDGED[:2]))
    query, document = (
        np.fromiter((at.get(str(one), UNKNOWN) for one in table.values(column)), np.int64, len(table))
        for column, at in zip(JUDGED, (query_at, document_at), strict=False)
    )
    grade = np.array(table.values(JUDGED[2]), float) if graded else np.ones(len(table))
    grade = grade.astype(np.int64) if (grade % 1 == 0).all() else grade
    said = (*table.skipped, *_unknown(table, query, document))
    there = np.flatnonzero((query >= 0) & (document >= 0))
    there = there[np.argsort(-grade[there], kind="stable")]
    _, largest = np.unique(query[there] * len(document_at) + document[there], return_index=True)
    kept = np.sort(there[largest])
    return query[kept], document[kept], grade[kept], said


def _unknown(table: Table, query: Array, document: Array) -> tuple[str, ...]:
    """A word on the judgements that name what is not there, if the task puts up with them."""
    told = []
    for what, column, found in (("queries", JUDGED[0], query), ("documents", JUDGED[1], document)):
        missing = np.flatnonzero(found == UNKNOWN)
        if len(missing):
            ids = table.values(column)
            names = dict.fromkeys(str(ids[at]) for at in missing)
            told.append(f"{len(names)} unknown {what} ({listed(names)})")
    if not told:
        return ()
    rows = int(((query == UNKNOWN) | (document == UNKNOWN)).sum())
    said = f"{rows} of {len(table)} judgements name {' and '.join(told)}"
    if table.task.options.get("unknown") != "skip":
        raise EmbarkError(f"Task {table.task.name}: {said}. Set the option unknown='skip' to score without them.")
    return (f"left out {said}",)


def _samples(
    task: Task, sides: dict[str, Side], query: Array, document: Array, grade: Array, skipped: tuple[str, ...]
) -> Dataset:
    order = np.lexsort((np.arange(len(query)), -grade, query))
    size = len(query) // max(1, len(np.unique(query)))
    counts = np.bincount(query, minlength=len(sides["query"]))
    if set(counts.tolist()) - {0, size} or not size:
        raise EmbarkError(f"Task {task.name}: its samples are not of one size ({sorted(set(counts.tolist()))}).")
    image, text = document[order].reshape(-1, size), query[order].reshape(-1, size)[:, :1]
    if not (np.add.reduceat(grade[order] > 0, np.arange(0, len(order), size)) == 1).all():
        raise EmbarkError(f"Task {task.name}: a sample needs exactly one relevant image.")
    return Dataset({"image": sides["document"], "text": sides["query"]}, Matches(image, text), skipped)
