"""Printing: results to standard output, in the format that was asked for; notes beside them, to standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from embark import escape

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from collections.abc import Sequence

    from embark.results.table import Table

WIDTH = 120  # characters per line where there is no terminal
FEW = 6  # models that fit side by side
STYLES = {"head": "bold", "section": "dim", "rule": "dim", "row": "", "total": "bold"}


def beside_stderr() -> bool:
    """Whether whoever reads standard error sees standard output, too: on a terminal, or in the same log."""
    try:
        return sys.stdout.isatty() or os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # one of them is no file
        return False


def say(*notes: str) -> None:
    """Print lines to standard error, beside the result; on a terminal, wrapped between words."""
    with suppress(OSError, ValueError):  # nobody reads any more
        for note in notes:
            lines = folded(note, terminal_width()) if sys.stderr.isatty() else [escape.terminal(note)]
            print("\n".join(lines), file=sys.stderr, flush=True)


def finish(*notes: str, failed: object = False) -> None:
    """Print the last lines to standard error; where something failed, the command ends with status 1."""
    say(*notes)
    if failed:
        raise typer.Exit(1)


def terminal_width() -> int:
    """Characters that a line has room for."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def emit(
    table: Table, style: str, data: Any = None, columns: Sequence[str] | None = None, *, local: bool = False
) -> None:
    """Print a table in a format, or only these columns; as JSON, `data` instead where it has more than the table.

    Other formats than text are for files that others read: folders, hosts and users are removed from them, unless the
    output is `local`, about what is on this machine.
    """
    if style != "text" and not local:
        from embark.redaction import redacted_value, this_machine

        private = this_machine()
        table, data = table.outgoing(private), redacted_value(data, private)
    if columns:
        table = table.only(name.strip() for names in columns for name in names.split(","))
    if style == "json" and data is not None and not columns:
        print_json(data)
    elif style != "text":
        print(table.format(style))
    elif table.rows:
        print_table(table)
    else:
        say("nothing matches")


def print_json(value: Any) -> None:
    """Machine-readable output; escaped where the output cannot take every letter."""
    from embark.results import finite

    escaped = "utf" not in (sys.stdout.encoding or "utf").lower()
    print(escape.json(json.dumps(finite(value), indent=2, ensure_ascii=escaped)))


def print_table(table: Table) -> None:
    """A table, fitted to the terminal or to COLUMNS, elsewhere whole; transposed if it is too wide and has few rows."""
    from rich.console import Console
    from rich.text import Text

    from embark.results.table import LESSER

    room = terminal_width()
    if table.width() > room and len(table.rows) <= FEW and table.models == "rows" and table.columns[0] == "#":
        table = table.transposed()
    pieces = table.fitted(room) if limited() else [table]
    hidden = [name for name in LESSER if name in table.columns and name not in pieces[0].columns]
    notes = [f"(a wider terminal shows {' and '.join(hidden)}, too)"] if hidden else []
    notes += [line for note in table.notes for line in folded(note, room)]
    apart = len(pieces) > 1 and table.models == "columns"  # scores to compare with are in another piece
    console = Console(highlight=False, soft_wrap=True)
    styled = sys.stdout.isatty()
    for number, piece in enumerate(pieces):
        if number:
            print()
        for line in piece.lines():
            *cells, last = line.cells
            cells.append(wrapped(last.rstrip(), sum(map(len, cells)) + 2 * len(cells)))
            if not styled:
                print("  ".join(cells).rstrip())
                continue
            best = [bold and not apart for bold in line.best]
            texts = [Text(cell, "bold" if bold else "") for cell, bold in zip(cells, best, strict=False)]
            console.print(Text("  ").join(texts), style=STYLES[line.kind])
    for note in notes:
        console.print(Text(note), style="dim") if styled else print(note)


def listing(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of words and numbers."""
    from embark.results.table import Row, Table

    return Table(tuple(columns), tuple(Row(tuple(row)) for row in rows))


def limited() -> bool:
    """Whether lines have an end: those of a terminal have, and those of a file where COLUMNS is set."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def folded(text: str, room: int) -> list[str]:
    """A text as lines of at most `room` characters; words and names stay whole."""
    return textwrap.wrap(
        escape.terminal(text), room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    ) or [""]


def wrapped(text: str, indent: int) -> str:
    """A text that begins at column `indent`, wrapped to stay right of it where lines have an end."""
    from embark.results.table import NARROW

    if not limited() or len(text) + indent <= (columns := terminal_width()):
        return text
    lines = textwrap.wrap(text, max(columns - indent, NARROW), break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)
