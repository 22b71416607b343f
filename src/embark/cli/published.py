"""`embark published`: the papers' tables, what is wrong in them, and whether they follow from their parts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

import embark
from embark.cli.grammar import Command, Group
from embark.cli.options import Format
from embark.cli.output import emit, finish, listing, print_table, wrapped

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.published import Erratum

app = typer.Typer(
    cls=Group, help="The papers' tables: list, show, errata, check.", no_args_is_help=True, rich_markup_mode=None
)
Family = Annotated[str | None, typer.Option("--family", metavar="NAME", help="Only MIEB, UniBench, MMEB-V3 or ARK.")]


@app.command("list", cls=Command)
def list_tables(family: Family = None, style: Format = "text") -> None:
    """List the tables that are here, with their sources.

    \b
    embark published list
    embark published list --family ARK --format json
    """
    from embark import published
    from embark.boards.published_views import titles

    tables = published.overview(family)
    views = titles() if family in (None, "MIEB") else {}
    lines = [(name, about["cells"], about["title"]) for name, about in tables.items()]
    lines += [(name, "view", title) for name, title in views.items()]
    about_views = {name: {"title": title} for name, title in views.items()}
    emit(listing(("table", "cells", "what"), lines), style, tables | about_views)
    if style == "text":
        sources = dict.fromkeys((about["family"], about["url"], about["paper"]) for about in tables.values())
        print()
        print_table(listing(("family", "source", "title"), list(sources)))


@app.command(cls=Command)
def show(
    table: Annotated[str, typer.Argument(help="A table or view (see: embark published list), or a task.")],
    model: Annotated[str | None, typer.Option("-m", "--model", metavar="NAME", help="Only this model.")] = None,
    style: Format = "text",
) -> None:
    """Print a table's cells, one per line, with the errata that they fall under; views and tasks as models by columns.

    \b
    embark published show 'MIEB Table 2' -m royokong/e5-v
    embark published show 'MIEB Clustering'
    embark published show XM3600T2IRetrieval --format csv
    embark published show 'MMEB-V3 Table 6' --format json
    """
    from embark import published
    from embark.tables import Exact

    if table not in published.tables():
        from embark.boards.published_views import published_view

        emit(published_view(table, model).table(), style)
        return
    cells = published.cells(table, model)
    errata = [[erratum.id for erratum in published.errata_of(cell)] for cell in cells]
    columns = ("model", "name", "split", "subset", "metric", "protocol", "value", "errata")
    rows = [
        (c.model, c.name, c.split, c.subset, c.metric, c.protocol, Exact(c.value, f"{c.value:.6g}"), ", ".join(ids))
        for c, ids in zip(cells, errata, strict=True)
    ]
    data = [cell._asdict() | {"errata": ids} for cell, ids in zip(cells, errata, strict=True)]
    emit(listing(columns, rows), style, {**published.tables()[table], "cells": data})


@app.command(cls=Command)
def errata(
    name: Annotated[str | None, typer.Argument(metavar="[ERRATUM]", help="One of them, with its evidence.")] = None,
    family: Family = None,
    style: Format = "text",
) -> None:
    """List published cells that do not follow from their parts, are artefacts, or come from other data.

    \b
    embark published errata
    embark published errata mieb-collapsed-probe
    embark published errata --family MIEB --format json
    """
    from embark import published
    from embark.catalogue import Catalogue

    errata = published.errata(family)
    if name is not None:
        errata = (Catalogue("erratum", errata, lambda erratum: erratum.id)[name],)
    if name is not None and style == "text":
        _print_erratum(errata[0])
        return
    rows = [(erratum.id, erratum.effect, len(erratum.cells), erratum.what) for erratum in errata]
    data = [dataclasses.asdict(erratum) for erratum in errata]
    emit(listing(("erratum", "effect", "cells", "what"), rows), style, data)


@app.command(cls=Command)
def check(style: Format = "text") -> None:
    """Compute every published aggregate again from its parts; exit with 1 if one differs without a known reason.

    \b
    embark published check
    embark published check --format json
    """
    checked = embark.published.check()
    emit(checked.table(), style, checked.as_dict())
    if style == "text":
        print(f"\n{checked.sentence()}")
    finish(*checked.notes, failed=checked.notes)


def _print_erratum(erratum: Erratum) -> None:
    from embark.tables import Exact

    for key in ("id", "family", "effect", "what", "evidence", "source"):
        print(f"{key:<10}{wrapped(getattr(erratum, key), 10)}")

    def value(number: float | None) -> Exact:
        return Exact(number, "–" if number is None else f"{number:.6g}")

    rows = [(c.table, c.model, c.name, value(c.published), value(c.derived)) for c in erratum.cells]
    print()
    print_table(listing(("table", "model", "name", "printed", "from its parts"), rows))
