"""`embark store`: how large the store of vectors is, whether it is sound, and what mends and cleans it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import typer

import embark
from embark.cli.grammar import Command, Group
from embark.cli.options import Format, StoreSettings, expanded
from embark.cli.output import emit, finish

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.run.store_health import StoreHealth

app = typer.Typer(
    cls=Group, help="The store of vectors: size, check, repair, gc.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(cls=Command)
@expanded
def size(style: Format = "text", *, places: StoreSettings) -> None:
    """List whose vectors are stored, how many and how large they are.

    \b
    embark store size
    """
    _show(embark.store.size(places.settings()), style)


@app.command(cls=Command)
@expanded
def check(style: Format = "text", *, places: StoreSettings) -> None:
    """Verify every byte of the store against its checksums. Ends with status 1 if something is damaged.

    \b
    embark store check
    """
    _show(embark.store.check(places.settings()), style)


@app.command(cls=Command)
@expanded
def repair(style: Format = "text", *, places: StoreSettings) -> None:
    """Remove damaged vectors and keep the sound ones; the next run that needs the others embeds them again.

    \b
    embark store repair
    """
    _show(embark.store.repair(places.settings()), style)


@app.command(cls=Command)
@expanded
def gc(style: Format = "text", *, places: StoreSettings) -> None:
    """Delete what nobody reads: leftovers of killed runs, vectors that are stored twice, and data given in Python
    that has no result and was not used for a month.

    \b
    embark store gc
    """
    _show(embark.store.clean(places.settings()), style)


def _show(health: StoreHealth, style: str) -> None:
    emit(health.table(), style, dataclasses.asdict(health), local=True)
    finish(*health.notes, failed=health.damage)
