"""Tables as text, for terminals and logs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from embark import escape
from embark.tables.cells import shown
from embark.tables.names import wrapped

if TYPE_CHECKING:
    from embark.tables.table import Row, Table

FEW_ROWS = 6  # rows of a table that is shown with rows as columns, where it is too wide


def text(table: Table, notes: Sequence[str]) -> str:
    """The table with lines as long as they need to be."""
    return "\n".join([*_plain(table, table.widths(), True), *map(escape.terminal, notes)])


def print_table(table: Table, room: int, *, limited: bool) -> None:
    """Print a table to standard output; where lines are `limited` to `room` characters, in pieces that fit.

    A table of few models that is too wide is shown with rows as columns. Notes are wrapped.
    """
    if table.width() > room and len(table.rows) <= FEW_ROWS and table.models == "rows" and table.columns[0] == "#":
        table = table.transposed()
    pieces = table.fitted(room) if limited else [table]
    left_out = [name for name in table.columns if not any(name in piece.columns for piece in pieces)]
    notes = [f"(a wider terminal shows {' and '.join(left_out)}, too)"] if left_out else []
    notes = [line for note in (*notes, *table.note_lines()) for line in escape.folded(note, room)]
    bold = len(pieces) == 1 or table.models == "rows"  # else scores to compare with are in another piece
    console = Console(highlight=False, soft_wrap=True)
    for number, piece in enumerate(pieces):
        if number:
            print()
        widths = piece.widths(room if limited else None)
        if sys.stdout.isatty():
            for block in _blocks(piece, widths, bold):
                console.print(block, width=_total(widths), crop=False, no_wrap=True, overflow="ignore")
        else:
            print("\n".join(_plain(piece, widths, bold)))
    for note in notes:
        if sys.stdout.isatty():
            console.print(Text(note), style="dim")
        else:
            print(note)


def _plain(table: Table, widths: Sequence[int], bold: bool) -> list[str]:
    """The lines of a table without styles."""
    file = io.StringIO()
    console = Console(file=file, width=_total(widths), color_system=None, highlight=False)
    for block in _blocks(table, widths, bold):
        console.print(block, crop=False, no_wrap=True, overflow="ignore")
    return [line.rstrip() for line in file.getvalue().splitlines()]


def _blocks(table: Table, widths: Sequence[int], bold: bool) -> Iterator[RenderableType]:
    """The head of a table, then each section with its heading; one without a heading stands below a rule."""
    head = _grid(table, widths, "bottom")
    head.add_row(*(Text("\n".join(table.heading(i)), "bold") for i in range(len(widths))))
    yield head
    rows = zip(table.rows, table.best, strict=True)
    for number, (section, lines) in enumerate(groupby(rows, lambda line: line[0].section)):
        if section:
            yield Text(f"— {escape.terminal(section)}", "dim")
        elif number:
            yield Text("-" * _total(widths), "dim")
        grid = _grid(table, widths, "top")
        for row, best in lines:
            grid.add_row(*_cells(row, best if bold else (False,) * len(best), widths))
        yield grid


def _cells(row: Row, best: Sequence[bool], widths: Sequence[int]) -> Iterator[Text]:
    """The cells of a row; the best of several models, and totals, in bold."""
    for cell, is_best, width in zip(row.cells, best, widths, strict=True):
        lines = wrapped(escape.terminal(shown(cell)), width)
        yield Text("\n".join(lines), "bold" if is_best or row.total else "")


def _grid(table: Table, widths: Sequence[int], vertical: str) -> Grid:
    """Columns of these widths, two characters apart."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for i, width in enumerate(widths):
        side = "left" if table.words(i) else "right"
        grid.add_column(width=width, justify=side, vertical=vertical, overflow="fold")  # type: ignore[arg-type]
    return grid


def _total(widths: Sequence[int]) -> int:
    """Characters of a line."""
    return sum(widths) + 2 * len(widths) - 2
