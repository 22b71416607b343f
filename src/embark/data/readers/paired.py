"""Media and texts that belong together, row by row: an image and its text, or an image and its list of captions.

How mteb reads its nine tasks of this shape, which this follows to the ids: queries are "query-<id>" and documents
"corpus-<id>"; captions in lists get "-<k>". WIT and XM3600 have one query per caption, XFlickr30kCo one per row; their
languages are splits. SciMMIR and Memotion have no id: it is "<split>-<row>", counted after rows without text are gone;
Memotion's corpus is every split. HatefulMemes' corpus is every split and unique by text, but its judgements are not: a
query whose own document was left out has no relevant document and scores zero. The same holds here: the truth grades
the first document with that text 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embark.catalogue import group_values
from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers import _table
from embark.data.readers._table import CONTENT, Table, as_list, content_columns, open_table
from embark.types import MODALITIES, Array, Dataset, EmbarkError, Item, Modality, Option, Qrels, Side, Task

VERSION = 2
EVALUATORS = ("retrieval",)
COLUMNS = {
    **CONTENT,
    "text": "texts, or lists of texts; two of these columns belong together",
    "id": "where the data has one: rows of one id are one image, video or sound with several texts",
}
OPTIONS = {
    "query": Option(MODALITIES, 'The modality of the queries ("text"); the documents are of the other one.'),
    "corpus": Option(list, "The splits whose rows are the documents, in order (default: the split of the queries)."),
    "unique": Option(("text",), "Of rows with equal text, only the first is a document."),
    **_table.OPTIONS,
}

ItemTable = tuple[Table, list[Item]]  # rows, and the image, video or sound of each


@dataclass
class Pairs:
    """Images, videos or sounds by key, and texts, each with the key that it belongs to."""

    media: dict[str, Item] = field(default_factory=dict)
    texts: dict[str, Item] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)  # text → key
    duplicate_of: dict[str, str] = field(default_factory=dict)  # key that was left out → the first with its text


def read_paired(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries from the split, documents from the corpus; media and their own texts are relevant to each other."""
    kind = _media_kind(task)
    query_kind = task.options.get("query", "text")
    if query_kind not in (kind, "text"):
        raise EmbarkError(f"Task {task.name}: the option 'query' must be '{kind}' or 'text', not '{query_kind}'.")
    query_tables = [_open(task, split, subset, kind, hub)]
    corpus = tuple(task.options.get("corpus", (split,)))
    corpus_tables = query_tables if corpus == (split,) else [_open(task, name, subset, kind, hub) for name in corpus]
    unique = task.options.get("unique") == "text"
    query_pairs = _pairs(query_tables)
    corpus_pairs = query_pairs if corpus_tables is query_tables and not unique else _pairs(corpus_tables, unique)
    by_text = query_kind == "text"
    queries = query_pairs.texts if by_text else query_pairs.media
    documents = corpus_pairs.media if by_text else corpus_pairs.texts
    query, document, grade = _judgements(query_pairs, corpus_pairs, documents, by_text).T
    sides = {"query": _side("query", queries), "document": _side("corpus", documents)}
    # A split may be among both tables, and its warnings are the same.
    warnings = dict.fromkeys(warning for table, _ in (*query_tables, *corpus_tables) for warning in table.skipped)
    if missing := int((grade == 0).sum()):
        warnings[f"{missing} queries have no relevant document, as their text is repeated: they score zero"] = None
    return Dataset(sides, Qrels(query, document, grade), tuple(warnings))


def _media_kind(task: Task) -> Modality:
    kinds = [kind for kind in content_columns(task.columns) if kind != "text"]
    if len(kinds) != 1 or "text" not in task.columns:
        raise EmbarkError(f"Task {task.name}: pairs need a column of text and one of image, video or audio.")
    return kinds[0]


def _open(task: Task, split: str, subset: str, kind: Modality, hub: Hub) -> ItemTable:
    required = [task.columns[role] for role in ("text", "id") if role in task.columns]
    return open_table(task, split, subset, hub).with_values(*required).with_items({kind: task.columns[kind]})


def _pairs(tables: list[ItemTable], unique: bool = False) -> Pairs:
    pairs = Pairs()
    counts: dict[str, int] = {}  # texts by key
    first: dict[Any, str] = {}  # the first key with a text
    for table, media in tables:
        columns = table.task.columns
        ids = table.values(columns["id"]) if "id" in columns else [f"{table.split}-{row}" for row in range(len(table))]
        for key, item, cell in zip(map(str, ids), media, table.values(columns["text"]), strict=True):
            several = isinstance(cell, (list, tuple))
            if unique and (original := first.setdefault(tuple(cell) if several else cell, key)) != key:
                pairs.duplicate_of[key] = original
                continue
            pairs.media.setdefault(key, item)
            for text in as_list(cell):
                count = counts.get(key, 0)
                counts[key] = count + 1
                name = f"{key}-{count}" if several or count else key
                if name in pairs.texts:
                    raise EmbarkError(
                        f"Task {table.task.name}: two texts of {table.split} would get the id '{name}': fix its ids."
                    )
                pairs.texts[name] = items.text(str(text))
                pairs.owner[name] = key
    return pairs


def _judgements(queries: Pairs, corpus: Pairs, documents: dict[str, Item], by_text: bool) -> Array:
    """Rows of (query, document, grade); a query whose document was left out as a duplicate gets grade 0."""
    positions = {name: position for position, name in enumerate(documents)}
    texts = group_values((key, name) for name, key in corpus.owner.items())
    rows = []
    for query, name in enumerate(queries.texts if by_text else queries.media):
        key = queries.owner[name] if by_text else name
        original = corpus.duplicate_of.get(key, key)
        for document in [original] if by_text else texts.get(original, ()):
            if document in positions:
                rows.append((query, positions[document], int(original == key)))
    return np.array(rows, np.int64).reshape(-1, 3)


def _side(prefix: str, by_key: dict[str, Item]) -> Side:
    return items.side({f"{prefix}-{key}": item for key, item in by_key.items()})
