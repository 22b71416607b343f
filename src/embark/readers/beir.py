"""Retrieval as three tables: a corpus, queries, and judgements (qrels) that name them by id.

Tables are configs called corpus, query (or queries) and default (or qrels); a subset's are "<subset>-corpus" and so on.
Where a table has no split of the task's name, its split is called like the table, or train.
An item holds the content that its row has, images first; a corpus text is its title, a space and its text, or its
text alone where the option `titles` is false.

By evaluator: `retrieval` ranks the corpus; `choice` ranks the documents that are judged for a query, whatever their
grade; `pairs` is one text (the query) with its documents, the relevant one first, the others in the order of the qrels.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import cleandoc
from itertools import product
from typing import Any

import numpy as np
import pyarrow.compute as pc

from embark.hub import Hub
from embark.items.lazy_items import Names, decoded, same_type
from embark.readers import _table
from embark.readers._files import TableFiles, subset_kind, with_tables
from embark.readers._table import (
    CONTENT,
    SourceTable,
    content_columns,
    first_few,
    numbered,
    open_split,
    rows_of_grades,
)
from embark.readers.layout import NoFiles
from embark.readers.rows import split_files
from embark.seams import Reader
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Matches, Option, Qrels, Side, Task

COLUMNS = {
    **{f"query_{kind}": f"{held} of the queries (default: the column {kind})" for kind, held in CONTENT.items()},
    **{f"corpus_{kind}": f"{held} of the corpus (default: the column {kind})" for kind, held in CONTENT.items()},
    "query_id": "ids of the queries, compared as strings (default: id or _id)",
    "corpus_id": "ids of the corpus (default: id or _id)",
    "title": "titles of the corpus, which go before its texts (default: title)",
}
OPTIONS = {
    **_table.OPTIONS,
    "configs": Option(
        dict, '{corpus, queries, qrels: the name of the table, if not the usual}; "{subset}" is the subset.'
    ),
    "splits": Option(dict, "{corpus, queries, qrels: the split of the table, if not the task's}."),
    "unknown": Option(
        ("miss", "skip"),
        "Judgements of ids that no row has (default: an error). miss: documents outside the corpus count as positives "
        "that cannot be retrieved, as in trec_eval; skip: such judgements are left out.",
    ),
    "repeated": Option(
        ("last", "heap"),
        "What to do about rows with the same id (default: an error). last: the last row counts; heap: all rows are "
        "compared, and one of them counts for each query, as in mteb's search.",
    ),
    "titles": Option(bool, "Whether titles go before the texts of the corpus (default: true)."),
}

NAMES = {  # the configs of each table; the first that exists is used
    "corpus": ("corpus",),
    "queries": ("query", "queries"),
    "qrels": ("default", "qrels"),
}
QRELS_COLUMNS = ("query-id", "corpus-id", "score")
UNKNOWN = -1  # the position of an id that no row has
SKIPPED = -2  # the position of an id whose row was left out


def read_beir(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries and documents in their order; queries without a judgement stay, and the evaluator counts them."""
    if task.options.get("repeated") == "heap" and task.evaluator != "retrieval":
        raise EmbarkError(f"Task {task.name}: the option repeated='heap' is for the evaluator 'retrieval' alone.")
    documents = _side(_open(task, "corpus", split, subset, hub), "corpus")
    queries = _side(_open(task, "queries", split, subset, hub), "query")
    truth, warnings = _judgements(_open(task, "qrels", split, subset, hub), queries, documents)
    if queries.repeated or documents.repeated:
        ids = {"query_ids": queries.row_ids, "document_ids": documents.row_ids}
        truth = replace(truth, repeated=True, **ids)
    sides = {"query": queries.side, "document": documents.side}
    skipped = (*documents.warnings, *queries.warnings, *warnings)
    if task.evaluator == "pairs":
        return _samples(task, sides, truth, skipped)
    return Dataset(sides, truth, skipped)


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The three tables, whatever their names."""
    places: dict[tuple[str, str], TableFiles] = {}
    for name, split, subset in product(NAMES, task.source.splits, task.subsets):
        config, stored = _config_and_split(task, name, split, subset, hub)
        if (config, stored) not in places:
            files = split_files(task.source, stored, hub, config)
            role = {"corpus": "corpus_", "queries": "query_"}.get(name, "none of them")
            column = task.columns.get(f"{role}id", "")
            roles = tuple(of for of in task.columns if of.startswith(role) or (name, of) == ("corpus", "title"))
            places[config, stored] = TableFiles(tuple(files), _keys(config, stored, name, split), column, roles)
    return list(places.values())


@dataclass(frozen=True)
class IdentifiedSide:
    """A side, the ids of its items, those of all rows (of some left out, too), and warnings about those.

    Of items with one id (`repeated`), the first stands for the id.
    """

    side: Side
    ids: Any
    rows: Any
    warnings: tuple[str, ...]
    repeated: bool = False

    @property
    def row_ids(self) -> Array:
        """The ids of the items as an array of texts."""
        return np.array(decoded(self.ids), object)

    def positions(self, ids: Any) -> Array:
        """The position of each of these ids; SKIPPED where its row was left out, and UNKNOWN where there is none."""
        positions = _index(ids, self.ids)
        if self.repeated:
            _, first, number = np.unique(self.row_ids, return_index=True, return_inverse=True)
            positions = np.where(positions < 0, positions, first[number[positions]])
        left_out = (positions < 0) & (_index(ids, self.rows) >= 0)
        return np.where(left_out, SKIPPED, positions)


def _index(ids: Any, known: Any) -> Array:
    """The position of each id among the known ones; UNKNOWN where it is none of them."""
    ids, known = same_type(ids, known)
    positions: Array = pc.index_in(ids, value_set=known).fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
    return positions.astype(np.int64)


def _side(table: SourceTable, role: str) -> IdentifiedSide:
    """The items of a table by their ids."""
    table = table.with_values(_id_column(table, role))
    names = table.rows.column_names
    columns = content_columns(table.task.columns, f"{role}_") or {kind: kind for kind in MODALITIES if kind in names}
    usual_title = "title" if "title" in names and "text" in columns else None
    titled = role == "corpus" and table.task.options.get("titles", True)
    title = table.task.columns.get("title", usual_title) if titled else None
    filled, contents = table.with_items(columns, title)
    ids = filled.texts(_id_column(filled, role))
    rows = table.texts(_id_column(table, role)) if filled.skipped else ids
    warnings = (*filled.skipped, *_repeated_ids(table, ids))
    distinct = ids.dictionary_encode()
    if len(distinct.dictionary) < len(ids):
        if table.task.options.get("repeated") == "heap":
            return IdentifiedSide(Side(numbered(decoded(ids)), contents), ids, rows, warnings, repeated=True)
        last = np.zeros(len(distinct.dictionary), np.int64)
        last[distinct.indices.to_numpy()] = np.arange(len(ids))  # of equal ones, the last is set last
        ids = distinct.dictionary
        contents = contents.take(last)
    return IdentifiedSide(Side(Names(ids), contents), ids, rows, warnings)


def _repeated_ids(table: SourceTable, ids: Any) -> tuple[str, ...]:
    """A warning about ids that several rows have; an error unless the task's option `repeated` accepts them."""
    if Names(ids).distinct == len(ids):
        return ()
    counts = Counter(decoded(ids))
    rows = f"{len(ids):,} rows of {table.split} have {len(counts):,} ids"
    counts_of_rows = {
        "last": "of rows with one id, the last counts",
        "heap": "of rows with one id, one counts for each query, as in mteb's search",
    }
    if option := table.task.options.get("repeated"):
        return (f"{rows}: {counts_of_rows[option]}",)
    names = first_few(f"{name} ({count} times)" for name, count in counts.items() if count > 1)
    raise EmbarkError(
        f"Task {table.task.name}: {rows}, so judgements of them are ambiguous: {names}. "
        "Mend the ids, or set the option repeated='last' to let the last row of an id count (repeated='heap' scores "
        "them as mteb does)."
    )


def _open(task: Task, name: str, split: str, subset: str, hub: Hub) -> SourceTable:
    config, stored = _config_and_split(task, name, split, subset, hub)
    table = open_split(task, stored, config, hub, keys=_keys(config, stored, name, split))
    return replace(table, split=name)  # so that warnings about rows name the table


def _keys(config: str, stored: str, name: str, split: str) -> tuple[str, ...]:
    """What a task's `rows` may call a table."""
    return f"{config}/{stored}", f"{config}/{split}", f"{name}/{split}"


def _config_and_split(task: Task, name: str, split: str, subset: str, hub: Hub) -> tuple[str, str]:
    """The config and split that hold a table: as the row or the card states them, else by the usual layouts.

    The split of the task comes first, then the other names that it may go by. Of layouts, one must fit alone.
    """
    pattern = task.options.get("configs", {}).get(name)
    configs = (pattern.replace("{subset}", subset),) if pattern else NAMES[name]
    if not pattern and subset_kind(task, subset) == "config":
        configs = tuple(f"{subset}-{usual}" for usual in configs if usual != "default")
    splits = task.options.get("splits", {})
    stored = splits.get(name, splits.get(split, split))
    others = dict.fromkeys((config, other) for other in (*NAMES[name], "train") for config in configs)
    levels = [[(config, stored) for config in configs], [(config, config) for config in configs], list(others)]
    for stated in (True, False):
        for level in levels:
            if tables := _tables(task, level, hub, stated):
                if not stated:
                    _check_unambiguous(task, name, tables, stored)
                return next(iter(tables))
    return configs[0], stored  # opening it raises an error that lists the files


def _tables(
    task: Task, candidates: list[tuple[str, str]], hub: Hub, stated: bool
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The paths of those configs and splits that have files."""
    tables = {}
    for config, split in candidates:
        with suppress(NoFiles):
            tables[config, split] = tuple(file.path for file in split_files(task.source, split, hub, config, stated))
    return tables


def _check_unambiguous(task: Task, name: str, tables: dict[tuple[str, str], tuple[str, ...]], stored: str) -> None:
    """Raise an error where a layout fits in two ways, or holds files of several splits, none of them the task's."""
    config, split = next(iter(tables))
    kinds = {re.sub(r"\d+", "", path): path for path in tables[config, split]}
    if split == stored and len({*tables.values()}) > 1:
        readings = [f"{first_few(paths)} (config {config})" for (config, _), paths in tables.items()]
    elif split != stored and len(kinds) > 1:
        readings = list(kinds.values())
    else:
        return
    raise EmbarkError(
        f"Task {task.name}: the table of {name} for split '{stored}' could be {', or '.join(readings)}, and the "
        f"card of {task.source.id} does not say which. Set the options `configs` and `splits` of the task."
    )


def _id_column(table: SourceTable, role: str) -> str:
    return table.task.columns.get(f"{role}_id") or table.rows.first_column("id", "_id", f"{role}-id") or "id"


def _judgements(
    table: SourceTable, queries: IdentifiedSide, documents: IdentifiedSide
) -> tuple[Qrels, tuple[str, ...]]:
    """The qrels as positions and grades, and warnings; of a pair that is judged twice, the larger grade counts."""
    query_column, document_column, grade_column = QRELS_COLUMNS
    graded = grade_column in table.rows.column_names
    table = table.with_values(*(QRELS_COLUMNS if graded else QRELS_COLUMNS[:2]))
    query = queries.positions(table.texts(query_column))
    document = documents.positions(table.texts(document_column))
    grade = table.numbers_of(grade_column) if graded else np.ones(len(table))
    grade = grade.astype(np.int64) if (grade % 1 == 0).all() else grade
    warnings = (*table.skipped, *_unknown_ids(table, query, document))
    known = _distinct(np.flatnonzero((query >= 0) & (document >= 0)), query, document, grade)
    truth = Qrels(query[known], document[known], grade[known])
    if table.task.options.get("unknown") == "miss":
        _, name = np.unique(np.array(table.values(document_column), str), return_inverse=True)
        outside = np.flatnonzero((query >= 0) & (document == UNKNOWN) & (grade > 0))
        outside = _distinct(outside, query, name, grade)
        truth = replace(truth, outside=rows_of_grades(query[outside], grade[outside], len(queries.side)))
    return truth, warnings


def _distinct(rows: Array, query: Array, document: Array, grade: Array) -> Array:
    """These rows of the judgements, in order, with each (query, document) pair once: with its largest grade."""
    falling = rows[np.argsort(-grade[rows], kind="stable")]
    pair = query[falling] * (1 + document.max(initial=0)) + document[falling]
    _, largest = np.unique(pair, return_index=True)
    return np.sort(falling[largest])


def _unknown_ids(table: SourceTable, query: Array, document: Array) -> tuple[str, ...]:
    """A warning about judgements that name unknown ids; an error unless the task's option `unknown` accepts them."""
    unknown = []
    for role, column, positions in (("queries", "query-id", query), ("documents", "corpus-id", document)):
        rows = np.flatnonzero(positions == UNKNOWN)
        if len(rows):
            ids = table.values(column)
            distinct = dict.fromkeys(str(ids[row]) for row in rows)
            unknown.append(f"{len(distinct):,} unknown {role} ({first_few(distinct)})")
    if not unknown:
        return ()
    count = int(((query == UNKNOWN) | (document == UNKNOWN)).sum())
    judgements = f"{count:,} of {len(table):,} judgements"
    names = " and ".join(unknown)
    option = table.task.options.get("unknown")
    if option == "skip":
        return (f"left out {judgements} that name {names}",)
    if option == "miss" and table.task.evaluator != "pairs" and not (query == UNKNOWN).any():
        return (f"{judgements} name {names}: positives that no model can retrieve",)
    advice = (
        "Set the option unknown='miss' to count such documents as positives that cannot be retrieved, as "
        "trec_eval does, or unknown='skip' to score without these judgements."
    )
    raise EmbarkError(f"Task {table.task.name}: {judgements} name {names}. {advice}")


def _samples(task: Task, sides: dict[str, Side], truth: Qrels, skipped: tuple[str, ...]) -> Dataset:
    """A sample for each query: its text, and its documents with the relevant one first."""
    query, document, grade = truth.query, truth.document, truth.grade
    order = np.lexsort((np.arange(len(query)), -grade, query))
    size = len(query) // max(1, len(np.unique(query)))
    counts = np.bincount(query, minlength=len(sides["query"]))
    if set(counts.tolist()) - {0, size} or not size:
        raise EmbarkError(f"Task {task.name}: its samples are not of one size ({sorted(set(counts.tolist()))}).")
    image = document[order].reshape(-1, size)
    text = query[order].reshape(-1, size)[:, :1]
    if not ((grade[order].reshape(-1, size) > 0).sum(1) == 1).all():
        raise EmbarkError(f"Task {task.name}: a sample needs exactly one relevant image.")
    return Dataset({"image": sides["document"], "text": sides["query"]}, Matches(image, text), skipped)


BEIR = Reader(
    "beir",
    cleandoc(__doc__ or ""),
    read_beir,
    evaluators=("retrieval", "choice", "pairs"),
    files=with_tables(tables),
    version=2,
    columns=COLUMNS,
    options=OPTIONS,
)
