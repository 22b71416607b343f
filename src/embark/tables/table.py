"""A table as a value: columns, rows of cells, footnotes and notes; printed or written in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from rich.cells import cell_len

from embark import escape
from embark.catalogue import Catalogue, check_name
from embark.redaction import Private, redacted, redacted_value, this_machine
from embark.tables.cells import Cell, Exact, Interval, Score, highest, raw, shown, values
from embark.tables.data import csv, json
from embark.tables.markup import html, latex, markdown
from embark.tables.names import HEAD_CHARACTERS, wrapped
from embark.tables.notes import Footnote, Note, letters, without_advice
from embark.tables.terminal import text
from embark.tables.values import Columnar
from embark.types import EmbarkError

T = TypeVar("T")
LESSER = ("metric", "chance", "p", "p (Holm)")  # columns that are left out on a narrow terminal, in this order
NARROW = 12  # characters that a column of words takes at least where it is wrapped
NUMBERS = ("#", "95 %", "tasks", "Borda", "chance")  # columns of words that are set to the right
FORMATS: dict[str, Callable[[Table, Sequence[str]], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": csv,
    "json": json,
    "html": html,
}


@dataclass(frozen=True)
class Row:
    """A line of a table; `section` groups lines under a heading."""

    cells: tuple[Cell, ...]
    section: str = ""
    total: bool = False


@dataclass(frozen=True)
class Table(Columnar):
    """Columns, rows, and below them footnotes on single scores and notes. `print` shows it as text.

    The best score of several models is set in bold, unless `highlight` is false: where others stand in another table.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    models: Literal["columns", "rows"] = "columns"
    highlight: bool = True
    footnotes: tuple[Footnote, ...] = ()

    def __str__(self) -> str:
        return self.format("text")

    def without_advice(self) -> Table:
        """The table as pages and papers show it: its notes have no advice on options and commands."""
        footnotes = tuple(replace(note, text=without_advice(note.text)) for note in self.footnotes)
        return replace(self, footnotes=footnotes, notes=tuple(map(without_advice, self.notes)))

    def note_lines(self, advice: bool = True) -> tuple[str, ...]:
        """Footnotes, then notes; with or without advice on options and commands."""
        notes = [*((note.sign, note.text) for note in self.footnotes), *(("", note) for note in self.notes)]
        texts = ((sign, str(note) if advice else without_advice(note)) for sign, note in notes)
        return tuple(f"({sign}) {note}" if sign else note for sign, note in texts)

    def transposed(self) -> Table:
        """Rows as columns, for few rows of many cells."""
        lines = zip(*(row.cells for row in self.rows), strict=True)
        label, *rest = [Row((name, *cells)) for name, cells in zip(self.columns, lines, strict=True)]
        return Table(
            ("rank", *(shown(cell) for cell in label.cells[1:])), tuple(rest), self.notes, footnotes=self.footnotes
        )

    def only(self, columns: str | Iterable[str]) -> Table:
        """The columns of these names or patterns, in their order."""
        names = Catalogue("column", dict.fromkeys(self.columns), str, f"There are {', '.join(self.columns)}.")
        return self._only([self.columns.index(name) for name in names.match(columns)])

    def fitted(self, room: int) -> list[Table]:
        """Tables of at most `room` characters per line: without lesser columns, then with fewer scores side by side."""
        table = self
        for name in LESSER:
            if table.width() > room and name in table.columns:
                table = table._only([i for i, other in enumerate(table.columns) if other != name])
        scores = [i for i in range(len(table.columns)) if table._scores(i)]
        if not scores or table.width() <= room:
            return [table]
        others = [i for i in range(len(table.columns)) if i not in scores]
        widest = max(scores, key=lambda i: table.widths()[i])
        narrow = table._only([*others, widest]).width() > room  # then words are wrapped
        widths = [width + 2 for width in (table.widths(0) if narrow else table.widths())]
        pieces: list[list[int]] = []
        left = 0
        for i in scores:
            if not pieces or widths[i] > left:
                pieces.append([])
                left = room + 2 - sum(widths[j] for j in others)
            pieces[-1].append(i)
            left -= widths[i]
        return [table._only(sorted([*others, *piece])) for piece in pieces]

    def width(self) -> int:
        """Characters that a line of its text form takes."""
        return sum(self.widths()) + 2 * len(self.columns) - 2

    def widths(self, room: int | None = None) -> list[int]:
        """Characters that each column takes; where lines have `room` for fewer, columns of words are wrapped."""
        cells = zip(*([escape.terminal(shown(cell)) for cell in row.cells] for row in self.rows), strict=True)
        columns = list(cells) or [()] * len(self.columns)
        widths = [max(map(cell_len, [*self.heading(i), *column])) for i, column in enumerate(columns)]
        if room is not None:
            excess = sum(widths) + 2 * len(widths) - 2 - room
            words = sorted(filter(self.words, range(len(widths))), key=lambda i: (i == len(widths) - 1, widths[i]))
            for i in reversed(words):  # the last column tells about the row, and is the first to be wrapped
                narrow = max(min(widths[i], NARROW), widths[i] - max(excess, 0))
                excess -= widths[i] - narrow
                widths[i] = narrow
        return widths

    def heading(self, column: int) -> list[str]:
        """The lines of a column's name; over numbers, which are narrow, a long one takes several."""
        name = escape.terminal(self.columns[column])
        return [name] if self.words(column) else wrapped(name, HEAD_CHARACTERS)

    def words(self, column: int) -> bool:
        """Whether a column holds words (set to the left) rather than numbers."""
        only_words = all(isinstance(raw(row.cells[column]), str) for row in self.rows)
        return only_words and self.columns[column] not in NUMBERS

    @cached_property
    def best(self) -> list[tuple[bool, ...]]:
        """For each row, which of its cells are the highest that any of several models has there."""
        if not self.highlight:
            return [(False,) * len(row.cells) for row in self.rows]
        if self.models == "columns":
            return [tuple(highest(row.cells)) for row in self.rows]
        columns = [highest(column) for column in zip(*(row.cells for row in self.rows), strict=True)]
        return list(zip(*columns, strict=True))

    def _scores(self, column: int) -> bool:
        return any(isinstance(row.cells[column], Score) for row in self.rows)

    def _only(self, columns: Sequence[int]) -> Table:
        """Some of the columns, without footnotes and notes that only others have."""
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in columns)) for row in self.rows)
        marks = {mark for row in rows for cell in row.cells if isinstance(cell, Score) for mark in cell.marks}
        names = tuple(self.columns[i] for i in columns)
        left_out = {*self.columns} - {*names}
        notes = tuple(note for note in self.notes if not (isinstance(note, Note) and note.column in left_out))
        footnotes = tuple(note for note in self.footnotes if note.sign in marks)
        return replace(self, columns=names, rows=rows, notes=notes, footnotes=footnotes)

    def format(self, style: str) -> str:
        """The table as text, markdown, latex, csv, json or html.

        Advice on commands and options stands below text and in notebooks alone.
        """
        check_name("table format", style, FORMATS)
        return FORMATS[style](self, self.note_lines(advice=style in ("text", "html")))

    def outgoing(self, private: Private | None = None) -> Table:
        """The table as it may leave this machine: without folders, hosts, users and keys."""
        private = private or this_machine()
        columns, rows = redacted_value((self.columns, self.rows), private, TABLE_PARTS)
        footnotes = tuple(Footnote(note.sign, _outgoing(note.text, private)) for note in self.footnotes)
        notes = tuple(_outgoing(note, private) for note in self.notes)
        return replace(self, columns=columns, rows=rows, notes=notes, footnotes=footnotes)

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns and lines of plain values: a score takes three columns, an interval two.

        Then come the section and, in full, the footnotes.
        """
        footnotes = {note.sign: without_advice(note.text) for note in self.footnotes}
        sections = any(row.section for row in self.rows)
        ends = [self._ends(column) for column in range(len(self.columns))]
        names = [f"{name}{end}" for name, several in zip(self.columns, ends, strict=True) for end in several]
        lines = []
        for row in self.rows:
            line = [value for cell, several in zip(row.cells, ends, strict=True) for value in values(cell, several)]
            if sections:
                line.append(row.section)
            if footnotes:
                marked = zip(self.columns, row.cells, strict=True)
                signs = [(name, sign) for name, cell in marked if isinstance(cell, Score) for sign in cell.marks]
                line.append("; ".join(f"{name}: {footnotes.get(sign, sign)}" for name, sign in signs))
            lines.append(line)
        if sections:
            names.append("section")
        if footnotes:
            names.append("notes")
        return names, lines

    def _repr_html_(self) -> str:
        return self.outgoing().format("html")  # notebooks are shared

    def _ends(self, column: int) -> tuple[str, ...]:
        """What is added to a column's name, for each of the columns that it takes in a flat table."""
        if self._scores(column):
            return "", " low", " high"
        intervals = any(isinstance(row.cells[column], Interval) for row in self.rows)
        return (" low", " high") if intervals else ("",)


TABLE_PARTS = (Table, Row, Footnote, Score, Exact, Interval)


def first(rows: Sequence[T], top: int | None) -> Sequence[T]:
    """The first `top` rows; without it, all."""
    if top is not None and top < 1:
        raise EmbarkError(f"At least 1 row is shown, not {top}; None shows all.")
    return rows[:top]


def footnoted(table: Table, partial: str = "over {} of {} tasks") -> Table:
    """Partial means and warnings get a mark, and a line below the table that explains it, before its other notes."""
    notes: dict[str, str] = {}

    def mark(cell: Cell) -> Cell:
        if not isinstance(cell, Score):
            return cell
        marks = [partial.format(cell.count + cell.zeros, cell.of)] if cell.partial else []
        marks += cell.marks
        return replace(cell, marks=tuple(notes.setdefault(text, letters(len(notes))) for text in marks))

    rows = tuple(replace(row, cells=tuple(mark(cell) for cell in row.cells)) for row in table.rows)
    return replace(table, rows=rows, footnotes=tuple(Footnote(sign, text) for text, sign in notes.items()))


def _outgoing(note: str, private: Private) -> str:
    """A note as it may leave this machine."""
    if isinstance(note, Note):
        return Note(redacted(note.text, private), redacted(note.advice, private), note.column)
    return redacted(note, private)
