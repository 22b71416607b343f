"""Names of models and tasks as tables show them: shortened, or in parts between which a line may be broken."""

from __future__ import annotations

import re

HEAD_CHARACTERS = 10  # characters of a name over scores, before it is broken
PART_CHARACTERS = 18  # characters of a part that is broken at underscores and points, too
PIECES = re.compile(r"(?<=[ /-])|(?<=[a-z0-9])(?=[A-Z][a-z])|(?=\()")  # patch14-384, ImageClustering
ENDINGS = ("MultiChoice", "Classification", "Retrieval", "Clustering", "ZeroShot")


def short(name: str, most: int = 26) -> str:
    """A model's or task's name without its organisation or family; a long one goes without a task's kind, or is cut."""
    name = name.split("/")[-1]
    if len(name) > most:
        name = without_kind(name)
    head = (most - 1) * 3 // 5
    return name if len(name) <= most else f"{name[:head]}…{name[head - most + 1 :]}"


def without_kind(task: str) -> str:
    """A task's name without the word for its kind, such as Retrieval."""
    for ending in ENDINGS:
        task = task.removesuffix(ending) or task
    return task


def name_parts(text: str) -> list[str]:
    """A text in parts between which a line may be broken; long ones also at underscores and points."""
    parts = PIECES.split(text)
    return [
        piece
        for part in parts
        for piece in (re.split(r"(?<=[_.@=?])", part) if len(part) > PART_CHARACTERS else [part])
    ]


def wrapped(text: str, width: int) -> list[str]:
    """A text as lines of at most `width` characters, as far as it has parts between which it may be broken."""
    if len(text) <= width:
        return [text]
    lines = [""]
    for piece in PIECES.split(text):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
