"""Multiple-choice questions: every question ranks its own choices only.

The query is the media, then the question.
As published, documents are the distinct choices of all questions, so that equal answers are one document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import numpy as np

from embark import items
from embark.hub import Hub
from embark.items.lazy_items import Numbered
from embark.readers import _table
from embark.readers._files import TABLES
from embark.readers._table import CONTENT, SourceTable, content_columns, open_table
from embark.seams import Reader
from embark.types import Dataset, EmbarkError, Qrels, Side, Task

LETTER = re.compile(r"\(?([A-Za-z])[).:]?")


def read_question(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One query per row; ids count the rows that are part of the task."""
    columns = {role: task.columns.get(role, role) for role in ("question", "choices", "answer")}
    table = open_table(task, split, subset, hub).with_values(*columns.values())
    table, queries = table.with_items(content_columns(task.columns) | {"text": columns["question"]})
    documents: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    cells = zip(table.numbers, table.values(columns["choices"]), table.values(columns["answer"]), strict=True)
    for position, (number, choices, answer) in enumerate(cells):
        right = choices[_answer_position(table, number, choices, answer)]
        for choice in dict.fromkeys(choices):
            rows.append((position, documents.setdefault(choice, len(documents)), int(choice == right)))
    sides = {
        "query": Side(Numbered(range(len(table)), f"query-{split}-"), queries),
        "document": items.side({f"corpus-{split}-{number}": items.text(text) for text, number in documents.items()}),
    }
    return Dataset(sides, Qrels(*np.array(rows, np.int64).reshape(-1, 3).T), table.skipped)


def _answer_position(table: SourceTable, number: int, choices: Sequence[str], answer: Any) -> int:
    """The position of the right answer among a row's choices."""
    position = -1
    if isinstance(answer, str):
        if answer in choices:
            position = list(choices).index(answer)
        elif letter := LETTER.fullmatch(answer.strip()):
            position = ord(letter[1].upper()) - ord("A")
    elif isinstance(answer, (int, np.integer)):
        position = int(answer)
    if not 0 <= position < len(choices):
        row = f"row {number} of {table.split}"
        raise EmbarkError(f"Task {table.task.name}: the answer {answer!r} of {row} is none of {list(choices)}.")
    return position


QUESTION = Reader(
    "question",
    cleandoc(__doc__ or ""),
    read_question,
    evaluators=("choice",),
    files=TABLES,
    version=2,
    columns={
        "question": "the question",
        "choices": "a list of texts",
        "answer": 'one of the choices, its number from 0, or its letter: "C", "(C)"',
        **{kind: f"{held} that the question is about" for kind, held in CONTENT.items() if kind != "text"},
    },
    options=_table.OPTIONS,
)
