"""Notes and footnotes: what is said below a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class Note(str):
    """A note as text, with its parts: `text`, and `advice` on the options and commands that change what it states.

    Advice stands in brackets after the text, on terminals and in notebooks; pages, papers and files leave it out.
    `column` is the name of the column that the note explains: a table without that column is without the note.
    """

    text: str
    advice: str
    column: str

    def __new__(cls, text: str, advice: str = "", column: str = "") -> Note:
        """A note of these parts."""
        note = super().__new__(cls, f"{text} ({advice})" if advice else text)
        note.text, note.advice, note.column = text, advice, column
        return note

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        """The parts, from which a copy is made."""
        return self.text, self.advice, self.column


@dataclass(frozen=True)
class Footnote:
    """A note on single scores, which carry its `sign`: (a), (b)…"""

    sign: str
    text: str

    def __str__(self) -> str:
        return f"({self.sign}) {self.text}"


def without_advice(note: str) -> str:
    """A note without advice on options and commands."""
    return note.text if isinstance(note, Note) else note


def applicable(notes: Mapping[str, object]) -> tuple[str, ...]:
    """The notes whose condition is met, from all notes with their conditions."""
    return tuple(note for note, condition in notes.items() if condition)


def letters(number: int) -> str:
    """a to z, then aa, ab…"""
    return (letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)
