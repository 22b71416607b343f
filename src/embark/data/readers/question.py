"""Questions with a few answers to choose from: only its own choices are offered to a question.

Columns: `question` and `choices` (a list of texts), `answer`, and the media that it is about (image, video, audio).
The query is the media, then the question. An answer is one of the choices, its number, or its letter: "C", "(C)".
As published, documents are the distinct choices of all questions, so that equal answers are one document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers._table import Table, contents, open_table
from embark.types import Dataset, EmbarkError, Qrels, Side, Task

VERSION = 2
OPTIONS: tuple[str, ...] = ()

LETTER = re.compile(r"\(?([A-Za-z])[).:]?")


def read_question(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One query a row; ids count the rows that are part of the task."""
    columns = {role: task.columns.get(role, role) for role in ("question", "choices", "answer")}
    table = open_table(task, split, subset, hub).full(*columns.values())
    table, queries = table.shown(contents(task.columns) | {"text": columns["question"]})
    documents: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    cells = zip(table.values(columns["choices"]), table.values(columns["answer"]), strict=True)
    for at, (choices, answer) in enumerate(cells):
        right = choices[_index(table, at, choices, answer)]
        for choice in dict.fromkeys(choices):
            rows.append((at, documents.setdefault(choice, len(documents)), int(choice == right)))
    query, document, grade = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    sides = {
        "query": Side(tuple(f"query-{split}-{at}" for at in range(len(table))), tuple(queries)),
        "document": Side(tuple(f"corpus-{split}-{at}" for at in documents.values()), tuple(map(items.text, documents))),
    }
    return Dataset(sides, Qrels(query, document, grade), table.skipped)


def _index(table: Table, at: int, choices: Sequence[str], answer: Any) -> int:
    """The position of the right choice."""
    found = -1
    if isinstance(answer, str):
        if answer in choices:
            found = list(choices).index(answer)
        elif letter := LETTER.fullmatch(answer.strip()):
            found = ord(letter[1].upper()) - ord("A")
    elif isinstance(answer, (int, np.integer)):
        found = int(answer)
    if not 0 <= found < len(choices):
        where = f"row {table.numbers[at]} of {table.split}"
        raise EmbarkError(f"Task {table.task.name}: the answer {answer!r} of {where} is none of {list(choices)}.")
    return found
