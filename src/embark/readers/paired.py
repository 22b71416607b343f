"""Things that belong together, row by row: an image and its text, a sound and an image, an image and its captions.

How mteb reads its nine tasks of this shape, which this follows to the ids: queries are "query-<id>" and documents
"corpus-<id>"; captions in lists get "-<k>". WIT and XM3600 have one query per caption, XFlickr30kCo one per row; their
languages are splits. SciMMIR and Memotion have no id: it is "<split>-<row>", counted after rows without text are gone;
Memotion's corpus is every split. HatefulMemes' corpus is every split and unique by text, but its judgements are not: a
query whose own document was left out has no relevant document and scores zero. The same holds here: the truth grades
the first document with that text 0.

Own tasks have `equal` = "one": a caption that two images have is one query with two right answers. Their ids are names
of files, or the column and the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from typing import Any

import numpy as np

from embark.catalogue import group_values
from embark.hub import Hub
from embark.items import ItemList, Items
from embark.items.equal_items import merge_equal
from embark.items.lazy_items import Names, Texts, chain, text_array
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import CONTENT, SourceTable, as_list, content_columns, first_few, numbered, open_table
from embark.seams import Reader
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Modality, Option, Qrels, Side, Task

COLUMNS = {
    **CONTENT,
    "text": "texts, lists of texts, or several columns with commas between: several texts per item",
    **{f"query_{kind}": f"{held} of the queries, where both sides have one modality" for kind, held in CONTENT.items()},
    **{f"corpus_{kind}": f"{held} of the documents, likewise" for kind, held in CONTENT.items()},
    "id": "optional: rows with the same id are one item with several texts",
}
OPTIONS = {
    **_table.OPTIONS,
    "query": Option(
        object, 'The modality of the queries ("text"), or a list of those of one item; documents are of the others.'
    ),
    "corpus": Option(list, "The splits whose rows are the documents, in order (default: the split of the queries)."),
    "unique": Option(("text",), "Of rows with equal text, only the first is a document."),
    "missing": Option(
        ("skip", "error", "keep"),
        "What to do about rows that lack a value (default: the task's `unreadable`); keep: an item without a text "
        "stays a document.",
    ),
}

Columns = Mapping[Modality, str]


@dataclass(frozen=True)
class PairedTable:
    """The rows of a split: the thing of each, and its texts (or whatever the other side of the pairs is)."""

    table: SourceTable
    things: Items
    cells: list[Any]  # the texts of each row as the table has them; numbers of `others`, where they are no texts
    others: Items | None
    names: Mapping[str, list[str]]  # of things and texts, for messages and outcomes; empty: they have ids


@dataclass
class Pairs:
    """Things and texts by key (as numbers of all things and all texts of its tables), and the things of texts."""

    things: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    all_things: Items = field(default_factory=lambda: ItemList(()))
    all_texts: Items = field(default_factory=lambda: ItemList(()))
    owner: dict[str, str] = field(default_factory=dict)  # text → key
    duplicate_of: dict[str, str] = field(default_factory=dict)  # key that was left out → the first with its text
    names: dict[str, str] = field(default_factory=dict)  # of things and texts by key, where they are not ids


def read_paired(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries from the split, documents from the corpus; things and their own texts are relevant to each other."""
    columns = _sides(task)
    by_text = columns["query"].keys() == {"text"} or columns["document"].keys() != {"text"}
    sides = ("query", "document") if by_text else ("document", "query")
    texts, things = (columns[side] for side in sides)
    query_tables = [_open(task, split, subset, things, texts, hub)]
    corpus = tuple(task.options.get("corpus", (split,)))
    corpus_tables = query_tables
    if corpus != (split,):
        corpus_tables = [_open(task, name, subset, things, texts, hub) for name in corpus]
    unique = task.options.get("unique") == "text"
    query_pairs = _pairs(query_tables)
    corpus_pairs = query_pairs if corpus_tables is query_tables and not unique else _pairs(corpus_tables, unique)
    queries = query_pairs.texts if by_text else query_pairs.things
    documents = corpus_pairs.things if by_text else corpus_pairs.texts
    query, document, grade = _judgements(query_pairs, corpus_pairs, documents, by_text).T
    # A split may be among both tables, and its warnings are the same.
    tables = [paired.table for paired in (*query_tables, *corpus_tables)]
    warnings = dict.fromkeys(warning for table in tables for warning in table.skipped)
    if missing := int((grade == 0).sum()):
        warnings[f"{missing} queries have no relevant document, as their text is repeated: they score zero"] = None
    data = Dataset(
        {"query": _side("query", queries, query_pairs), "document": _side("corpus", documents, corpus_pairs)},
        Qrels(query, document, grade),
        tuple(warnings),
    )
    return _with_distinct_ids(merge_equal(task, data)) if _is_own(task) else data


def _is_own(task: Task) -> bool:
    return bool(task.options.get("equal") == "one")


def _sides(task: Task) -> dict[str, dict[Modality, str]]:
    """The columns of the queries and of the documents."""
    query = content_columns(task.columns, "query_")
    document = content_columns(task.columns, "corpus_")
    plain = content_columns(task.columns)
    if plain and (query or document):
        raise EmbarkError(
            f"Task {task.name}: its columns are either {first_few(plain)}, or all of them begin with query_ or corpus_."
        )
    if len(plain) > 1:
        kinds = as_list(task.options.get("query", "text"))
        if unknown := [kind for kind in kinds if kind not in plain]:
            raise EmbarkError(
                f"Task {task.name}: the option 'query' must name the modality of the queries, one of "
                f"{', '.join(plain)}, not '{unknown[0]}'."
            )
        query = {kind: column for kind, column in plain.items() if kind in kinds}
        document = {kind: column for kind, column in plain.items() if kind not in kinds}
    if not query or not document:
        raise EmbarkError(f"Task {task.name}: pairs need columns of two of {', '.join(MODALITIES)}.")
    return {"query": query, "document": document}


def _open(task: Task, split: str, subset: str, things: Columns, texts: Columns, hub: Hub) -> PairedTable:
    table = open_table(task, split, subset, hub)
    required = [task.columns["id"]] if "id" in task.columns else []
    only_text = texts.keys() == {"text"}
    names = _text_columns(table, texts["text"]) if only_text else []
    if task.options.get("missing") == "keep":
        table = table.with_values(*required)
    elif only_text:
        table = table.with_values(*names[:1], *required) if len(names) == 1 else _with_some(table, names, required)
    else:
        table = table.with_values(*required).with_items(texts)[0]
    table, of_things = table.with_items(things)
    others = None if only_text else table.with_items(texts)[1]
    cells = _cells(table, names) if others is None else list(range(len(others)))
    if task.options.get("missing") == "keep" and only_text:
        table = _with_warning(table, cells, texts["text"])
    if not _is_own(task):
        return PairedTable(table, of_things, cells, others, {})
    labels = {"things": _names(table, things), "texts": _names(table, texts)}
    return PairedTable(table, of_things, cells, others, labels)


def _text_columns(table: SourceTable, column: str) -> list[str]:
    """The columns of text: one, or several with commas between."""
    return [column] if column in table.rows.column_names else [name.strip() for name in column.split(",")]


def _cells(table: SourceTable, columns: Sequence[str]) -> list[Any]:
    """The texts of each row: as the cell has them, or the texts of several cells."""
    if len(columns) == 1:
        return table.values(columns[0])
    cells = zip(*map(table.values, columns), strict=True)
    return [[text for cell in row for text in as_list(cell)] for row in cells]


def _with_some(table: SourceTable, columns: Sequence[str], required: Sequence[str]) -> SourceTable:
    """The rows with a text in one of the columns at least."""
    table = table.with_values(*required)
    empty = (position for position, cell in enumerate(_cells(table, columns)) if not cell)
    return table.drop_missing(empty, " or ".join(columns))


def _with_warning(table: SourceTable, cells: Sequence[Any], column: str) -> SourceTable:
    """The table with a warning about its rows without a text."""
    empty = [number for number, cell in zip(table.numbers, cells, strict=True) if not as_list(cell)]
    if not empty:
        return table
    if len(empty) == len(table):
        raise EmbarkError(f"Task {table.task.name}: no row of {table.split} has a {column}.")
    rows = f"{len(empty)} of {len(table)} rows of {table.split} have no {column}: row {first_few(map(str, empty))}"
    by_text = table.task.options.get("query", "text") == "text"  # else nothing answers them, which is said of queries
    return replace(table, skipped=(*table.skipped, f"{rows}{'; what they name is in the corpus' * by_text}"))


def _names(table: SourceTable, columns: Columns) -> list[str]:
    """What messages call the items of a side: the name of a file, or the column and the row."""
    names = [table.rows.file_names(column) for kind, column in columns.items() if kind != "text"]
    if len(columns) == 1 and names and names[0] is not None:
        return [str(names[0][number]) for number in table.numbers]
    return [f"{'+'.join(columns.values())}-{number:05d}" for number in table.numbers]


def _pairs(tables: Sequence[PairedTable], unique: bool = False) -> Pairs:
    pairs = Pairs()
    counts: dict[str, int] = {}  # texts by key
    first: dict[Any, str] = {}  # the first key with a text
    texts: list[str] = []
    offset = 0  # of the table's rows among all
    for paired in tables:
        table = paired.table
        columns = table.task.columns
        ids = table.values(columns["id"]) if "id" in columns else [f"{table.split}-{row}" for row in range(len(table))]
        for row, (key, cell) in enumerate(zip(map(str, ids), paired.cells, strict=True)):
            several = isinstance(cell, (list, tuple))
            if unique and (original := first.setdefault(tuple(cell) if several else cell, key)) != key:
                pairs.duplicate_of[key] = original
                continue
            pairs.things.setdefault(key, offset + row)
            if paired.names:
                pairs.names.setdefault(f"thing {key}", paired.names["things"][row])
            for text in as_list(cell):
                count = counts.get(key, 0)
                counts[key] = count + 1
                name = f"{key}-{count}" if several or count else key
                if name in pairs.texts:
                    raise EmbarkError(
                        f"Task {table.task.name}: two texts of {table.split} would get the id '{name}': fix its ids."
                    )
                pairs.texts[name] = len(texts) if paired.others is None else offset + text
                texts += [str(text)] if paired.others is None else []
                pairs.owner[name] = key
                if paired.names:
                    pairs.names[f"text {name}"] = paired.names["texts"][row] + (f"-{count}" if several else "")
        offset += len(table)
    pairs.all_things = chain([paired.things for paired in tables])
    others = [paired.others for paired in tables if paired.others is not None]
    pairs.all_texts = chain(others) if others else Texts(text_array(texts))
    return pairs


def _judgements(queries: Pairs, corpus: Pairs, documents: dict[str, int], by_text: bool) -> Array:
    """Rows of (query, document, grade); a query whose document was left out as a duplicate gets grade 0."""
    positions = {name: position for position, name in enumerate(documents)}
    texts = group_values((key, name) for name, key in corpus.owner.items())
    rows = []
    for query, name in enumerate(queries.texts if by_text else queries.things):
        key = queries.owner[name] if by_text else name
        original = corpus.duplicate_of.get(key, key)
        for document in [original] if by_text else texts.get(original, ()):
            if document in positions:
                rows.append((query, positions[document], int(original == key)))
    return np.array(rows, np.int64).reshape(-1, 3)


def _side(prefix: str, by_key: dict[str, int], pairs: Pairs) -> Side:
    kind, contents = ("thing", pairs.all_things) if by_key is pairs.things else ("text", pairs.all_texts)
    ids = text_array(pairs.names.get(f"{kind} {key}", f"{prefix}-{key}") for key in by_key)
    return Side(Names(ids), contents.take(np.fromiter(by_key.values(), np.int64, len(by_key))))


def _with_distinct_ids(data: Dataset) -> Dataset:
    """The dataset with a number behind each id that several items have: tables of two splits name their rows alike."""
    return replace(data, sides={role: Side(numbered(side.ids), side.items) for role, side in data.sides.items()})


PAIRED = Reader(
    "paired",
    cleandoc(__doc__ or ""),
    read_paired,
    evaluators=("retrieval",),
    files=TABLES,
    version=2,
    columns=COLUMNS,
    options=OPTIONS,
)
