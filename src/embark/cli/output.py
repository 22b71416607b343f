"""Printing for people: tables in colour on a terminal, plain elsewhere; the options that several commands share."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.analysis.table import Table

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


FEW = 6  # models that fit side by side


def say(text: str) -> None:
    """A line about the work, beside the result: to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Machine-readable output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=list))


def print_table(table: Table) -> None:
    """A score table: rich on a terminal, the same text everywhere else; turned when it is too wide and has few rows."""
    if table.width() > shutil.get_terminal_size((120, 24)).columns and len(table.rows) <= FEW:
        table = table.turned()
    if not sys.stdout.isatty():
        print(table)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    from embark.analysis.aggregate import Score
    from embark.analysis.table import shown

    rich = RichTable(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for i, name in enumerate(table.columns):
        numbers = any(isinstance(row.cells[i], Score) for row in table.rows) or name in ("#", "chance")
        rich.add_column(name, justify="right" if numbers else "left", no_wrap=True)
    section = ""
    for row in table.rows:
        if row.section and row.section != section:
            rich.add_row(f"[dim]{row.section}[/dim]")
            section = row.section
        best = max((c.value for c in row.cells if isinstance(c, Score)), default=None)
        style = "bold" if row.total else None
        rich.add_row(
            *(f"[bold]{shown(c)}[/bold]" if isinstance(c, Score) and c.value == best else shown(c) for c in row.cells),
            style=style,
        )
    console = Console()
    console.print(rich)
    for note in table.notes:
        console.print(note, style="dim", markup=False)


def print_columns(columns: list[str], rows: list[list[str]], right: tuple[str, ...] = ()) -> None:
    """A plain listing."""
    if not rows:
        say("nothing matches")
        return
    width = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    for line in [columns, *rows]:
        cells = [t.rjust(w) if n in right else t.ljust(w) for t, w, n in zip(line, width, columns, strict=True)]
        print("  ".join(cells).rstrip())
