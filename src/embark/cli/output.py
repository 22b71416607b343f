"""Printing for people: tables in colour on a terminal, plain elsewhere; the options that several commands share."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.results.table import Table

Home = Annotated[
    Path | None, typer.Option("--home", help="Folder of vectors and data (else EMBARK_HOME, else settings file).")
]
ResultsFolder = Annotated[
    Path | None, typer.Option("--results", help="Folder of scores (else EMBARK_RESULTS, else ./results).")
]
ProtocolName = Annotated[
    str | None, typer.Option("--protocol", help="Score as this protocol does where it differs from the paper: mteb2…")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Offline = Annotated[bool, typer.Option("--offline", help="Use only data that is here; never ask the hub.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda:1, mps, or several: cuda:0,cuda:1.")]
Precision = Annotated[
    str | None, typer.Option("--dtype", help="float32, bfloat16 or float16 (default: as the card says).")
]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the forward pass: slow to start, then faster.")]
Trust = Annotated[
    str | None,
    typer.Option("--trust", metavar="REVISION", help="Run the code and open the pickles of exactly this revision."),
]

FEW = 6  # models that fit side by side
NARROW = 18  # characters that a column of words takes at least
STYLES = {"head": "bold", "section": "dim", "rule": "dim", "row": "", "total": "bold"}


def say(text: str) -> None:
    """A line about the work, beside the result: to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Machine-readable output."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=list))


def _finite(value: Any) -> Any:
    """JSON has no NaN: null stands for it."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(table: Table) -> None:
    """A score table: fitted and styled on a terminal, plain elsewhere; turned when it is too wide and has few rows."""
    room = shutil.get_terminal_size((120, 24)).columns
    if table.width() > room and len(table.rows) <= FEW and table.models == "rows":
        table = table.turned()
    notes = [line for note in table.notes for line in textwrap.wrap(note, room, subsequent_indent="    ") or [""]]
    if not sys.stdout.isatty():
        print("\n".join([*map(str, table.lines()), *notes]))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    pieces = table.fitted(room)
    apart = len(pieces) > 1 and table.models == "columns"  # rivals of a score stand in another piece
    for at, piece in enumerate(pieces):
        if at:
            console.print()
        for line in piece.lines():
            cells = [Text(c, "bold" if b and not apart else "") for c, b in zip(line.cells, line.best, strict=False)]
            console.print(Text("  ").join(cells), style=STYLES[line.kind])
    if gone := [name for name in table.columns if name not in {n for piece in pieces for n in piece.columns}]:
        console.print(f"(a wider terminal shows {' and '.join(gone)}, too)", style="dim")
    for note in notes:
        console.print(Text(note), style="dim")


def print_columns(columns: list[str], rows: list[list[str]], right: tuple[str, ...] = ()) -> None:
    """A plain listing; on a terminal, words in the last column are wrapped within it."""
    if not rows:
        say("nothing matches")
        return
    width = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    indent = sum(width[:-1]) + 2 * len(width) - 2
    for *others, last in [columns, *rows]:
        shown = zip([*others, wrapped(last, indent)], width, columns, strict=True)
        cells = [t.rjust(w) if n in right else t.ljust(w) for t, w, n in shown]
        print("  ".join(cells).rstrip())


def wrapped(text: str, indent: int) -> str:
    """A text that begins at column `indent`, wrapped to stay right of it on a terminal."""
    if not sys.stdout.isatty() or len(text) + indent <= (columns := shutil.get_terminal_size().columns):
        return text
    lines = textwrap.wrap(text, max(columns - indent, NARROW), break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)


def some(names: list[str], most: int = 12) -> str:
    """Names in a row, the first of them when they are many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
