"""Things that belong together, row by row: an image and its text, or an image and its list of captions.

Columns: two of image, video, audio, text (a text column may hold lists), and `id` where the data has one: rows of one
id are one thing with several texts. Options, besides those of `_table`:
  query     the modality that asks; the other one answers ("text")
  corpus    the splits whose rows answer, in order (default: the split that asks)
  unique    "text": of rows with equal text, only the first answers

How mteb reads its nine tasks of this shape, which this follows to the ids: queries are "query-<id>" and documents
"corpus-<id>"; captions in lists get "-<k>". WIT and XM3600 have one query a caption, XFlickr30kCo one a row; a language
is a split of theirs. SciMMIR and Memotion have no id: it is "<split>-<row>", counted after rows without text are gone;
Memotion's corpus is every split. HatefulMemes' corpus is every split and unique by text, but its judgements are not: a
query whose own document went has nothing left to find and scores zero. So it does here: its row of the truth says that
the document which stayed is not relevant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers._table import Table, as_text, contents, open_table
from embark.types import Dataset, EmbarkError, Item, Modality, Qrels, Side, Task

VERSION = 2
OPTIONS = ("query", "corpus", "unique")


@dataclass
class Pairs:
    """Things by key, and texts with the key of the thing that each belongs to."""

    things: dict[str, Item] = field(default_factory=dict)
    texts: dict[str, Item] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)  # text → thing
    twin: dict[str, str] = field(default_factory=dict)  # thing that gave way → the one that stayed


def read_paired(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Queries from the split, documents from the corpus; each thing goes with its own texts."""
    thing, query = _thing(task), task.options.get("query", "text")
    if query not in (thing, "text"):
        raise EmbarkError(f"Task {task.name}: the option 'query' must be '{thing}' or 'text', not '{query}'.")
    asking = [_opened(task, split, subset, thing, hub)]
    splits = task.options.get("corpus", (split,))
    answering = asking if tuple(splits) == (split,) else [_opened(task, one, subset, thing, hub) for one in splits]
    unique = task.options.get("unique") == "text"
    queries = _pairs(asking)
    documents = queries if answering is asking and not unique else _pairs(answering, unique)
    asked, answers = (queries.texts, documents.things) if query == "text" else (queries.things, documents.texts)
    place = {key: at for at, key in enumerate(answers)}
    rows = _judged(queries, documents, place, query == "text")
    lost = sum(not grade for *_, grade in rows)
    said = (f"{lost} queries have no answer left, as their text is repeated: they score zero",) if lost else ()
    at, document, grade = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    sides = {"query": _side("query", asked), "document": _side("corpus", answers)}
    told = dict.fromkeys(one for table, _ in (*asking, *answering) for one in table.skipped)  # a split may be in both
    return Dataset(sides, Qrels(at, document, grade), (*told, *said))


def _thing(task: Task) -> Modality:
    found = [kind for kind in contents(task.columns) if kind != "text"]
    if len(found) != 1 or "text" not in task.columns:
        raise EmbarkError(f"Task {task.name}: pairs need a column of text and one of image, video or audio.")
    return found[0]


def _opened(task: Task, split: str, subset: str, thing: Modality, hub: Hub) -> tuple[Table, list[Item]]:
    filled = [task.columns[role] for role in ("text", "id") if role in task.columns]
    table = open_table(task, split, subset, hub).full(*filled)
    return table.shown({thing: task.columns[thing]})


def _pairs(parts: list[tuple[Table, list[Item]]], unique: bool = False) -> Pairs:
    out, counts, first = Pairs(), dict[str, int](), dict[Any, str]()
    for table, shown in parts:
        columns = table.task.columns
        given = table.values(columns["id"]) if "id" in columns else [f"{table.split}-{at}" for at in range(len(table))]
        for key, item, cell in zip(map(str, given), shown, table.values(columns["text"]), strict=True):
            several = isinstance(cell, (list, tuple))
            if unique and (kept := first.setdefault(tuple(cell) if several else cell, key)) != key:
                out.twin[key] = kept
                continue
            out.things.setdefault(key, item)
            for text in cell if several else (cell,):
                count = counts.get(key, 0)
                counts[key] = count + 1
                name = f"{key}-{count}" if several or count else key
                if name in out.texts:
                    raise EmbarkError(
                        f"Task {table.task.name}: {table.split} has two texts that would be called '{name}'."
                    )
                out.texts[name], out.owner[name] = items.text(as_text(text)), key
    return out


def _judged(queries: Pairs, documents: Pairs, place: dict[str, int], by_text: bool) -> list[tuple[int, int, int]]:
    """(query, document, grade); a query whose document gave way to a twin gets grade 0."""
    texts_of: dict[str, list[str]] = {}
    for name, key in documents.owner.items():
        texts_of.setdefault(key, []).append(name)
    rows = []
    for at, name in enumerate(queries.texts if by_text else queries.things):
        key = queries.owner[name] if by_text else name
        kept = documents.twin.get(key, key)
        for document in (kept,) if by_text else texts_of.get(kept, ()):
            if document in place:
                rows.append((at, place[document], int(kept == key)))
    return rows


def _side(prefix: str, shown: dict[str, Item]) -> Side:
    return Side(tuple(f"{prefix}-{key}" for key in shown), tuple(shown.values()))
