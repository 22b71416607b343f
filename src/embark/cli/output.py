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

    from embark.tables import Table

WIDTH = 120  # characters per line where there is no terminal
NARROWEST = 18  # characters of a line of wrapped text


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
            lines = escape.folded(note, terminal_width()) if sys.stderr.isatty() else [escape.terminal(note)]
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
    """A table, fitted to the terminal or to COLUMNS, elsewhere whole."""
    from embark.tables import terminal

    terminal.print_table(table, terminal_width(), limited=limited())


def listing(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of words and numbers."""
    from embark.tables import Row, Table

    return Table(tuple(columns), tuple(Row(tuple(row)) for row in rows))


def limited() -> bool:
    """Whether lines have an end: those of a terminal have, and those of a file where COLUMNS is set."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def wrapped(text: str, indent: int) -> str:
    """A text that begins at column `indent`, wrapped to stay right of it where lines have an end."""
    if not limited() or len(text) + indent <= (columns := terminal_width()):
        return text
    lines = textwrap.wrap(text, max(columns - indent, NARROWEST), break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)
