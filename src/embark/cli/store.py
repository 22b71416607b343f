"""`embark store`: how large the store of vectors is, whether it is sound, and what mends and cleans it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import typer

import embark
from embark.cli.grammar import Command
from embark.cli.output import Format, Home, ResultsFolder, StorePlace, emit, finish

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.run.store_health import StoreHealth

app = typer.Typer(help="The store of vectors: size, check, repair, gc.", no_args_is_help=True, rich_markup_mode=None)


@app.command(cls=Command)
def size(style: Format = "text", home: Home = None, store: StorePlace = None, results: ResultsFolder = None) -> None:
    """List whose vectors are stored, how many and how large they are.

    \b
    embark store size
    """
    _show(embark.store.size(embark.load_settings(home, results, store=store)), style)


@app.command(cls=Command)
def check(style: Format = "text", home: Home = None, store: StorePlace = None, results: ResultsFolder = None) -> None:
    """Verify every byte of the store against its checksums. Ends with status 1 if something is damaged.

    \b
    embark store check
    """
    _show(embark.store.check(embark.load_settings(home, results, store=store)), style)


@app.command(cls=Command)
def repair(style: Format = "text", home: Home = None, store: StorePlace = None, results: ResultsFolder = None) -> None:
    """Remove damaged vectors and keep the sound ones; the next run that needs the others embeds them again.

    \b
    embark store repair
    """
    _show(embark.store.repair(embark.load_settings(home, results, store=store)), style)


@app.command(cls=Command)
def gc(style: Format = "text", home: Home = None, store: StorePlace = None, results: ResultsFolder = None) -> None:
    """Delete what nobody reads: leftovers of killed runs, vectors that are stored twice, and data given in Python
    that has no result and was not used for a month.

    \b
    embark store gc
    """
    _show(embark.store.clean(embark.load_settings(home, results, store=store)), style)


def _show(health: StoreHealth, style: str) -> None:
    emit(health.table(), style, dataclasses.asdict(health), local=True)
    finish(*health.notes, failed=health.damage)
