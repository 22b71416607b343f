"""`embark published`: the papers' tables, what is wrong in them, and whether they follow from their parts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embark.cli.output import AsJson, print_columns, print_json, say, wrapped

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.boards.rederive import Check, LiteAgreement
    from embark.published import Erratum

PAPER = (0.992, 0.986)  # Spearman and Pearson of MIEB-lite with MIEB, as section 6.3 says

app = typer.Typer(
    help="The papers' tables: list, show, re-derive, errata.", no_args_is_help=True, rich_markup_mode=None
)
Family = Annotated[str | None, typer.Option("--family", help="Only MIEB, UniBench, MMEB-V3 or ARK.")]


@app.command("list")
def list_tables(family: Family = None, as_json: AsJson = False) -> None:
    """List the tables that are here, with their sources.

    \b
    embark published list
    embark published list --family ARK --json
    """
    from embark import published

    families = [_family(family)] if family else list(published.FAMILIES)
    counts: dict[str, int] = {}
    for name in families:
        for score in published.scores(name):
            counts[score.table] = counts.get(score.table, 0) + 1
    found = {
        name: {"cells": counts[name], **about} for one in families for name, about in published.tables(one).items()
    }
    if as_json:
        print_json(found)
        return
    rows = [[name, str(about["cells"]), about["title"]] for name, about in found.items()]
    print_columns(["table", "cells", "what"], rows, right=("cells",))
    print()
    sources = dict.fromkeys((about["family"], about["url"], about["paper"]) for about in found.values())
    print_columns(["family", "source", "title"], [list(source) for source in sources])


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="A table's name (see: embark published list).")],
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a table's cells, one a line, with the errata that they fall under.

    \b
    embark published show 'MIEB Table 2' -m royokong/e5-v
    embark published show 'MMEB-V3 Table 6' --json
    """
    from embark import published
    from embark.catalogue import UnknownName

    known = published.tables()
    if table not in known:
        raise UnknownName("published table", table, known, "`embark published list` lists them all.")
    family = known[table]["family"]
    cells = [cell for cell in published.scores(family) if cell.table == table]
    if model is not None and model not in (models := {cell.model for cell in cells}):
        raise UnknownName(f"model in {table}", model, models)
    marked = [
        (cell, [e.id for e in published.errata(family) if e.concerns(table, cell.model, cell.name)])
        for cell in cells
        if model in (None, cell.model)
    ]
    if as_json:
        print_json({**known[table], "cells": [cell._asdict() | {"errata": ids} for cell, ids in marked]})
        return
    columns = ["model", "name", "split", "subset", "metric", "protocol", "value", "errata"]
    rows = [
        [c.model, c.name, c.split, c.subset, c.metric, c.protocol, f"{c.value:.6g}", ", ".join(ids)]
        for c, ids in marked
    ]
    print_columns(columns, rows, right=("value",))


@app.command()
def errata(
    name: Annotated[str | None, typer.Argument(metavar="[ERRATUM]", help="One of them, with its evidence.")] = None,
    family: Family = None,
    as_json: AsJson = False,
) -> None:
    """List published cells that do not follow from their parts, are artefacts, or come from other data.

    \b
    embark published errata
    embark published errata mieb-collapsed-probe
    embark published errata --family MIEB --json
    """
    from embark import published
    from embark.catalogue import Catalogue

    found = published.errata(_family(family) if family else None)
    if name is not None:
        found = (Catalogue("erratum", found, lambda one: one.id)[name],)
    if as_json:
        print_json([dataclasses.asdict(erratum) for erratum in found])
        return
    if name is not None:
        _print_erratum(found[0])
        return
    rows = [[erratum.id, erratum.effect, str(len(erratum.cells)), erratum.what] for erratum in found]
    print_columns(["erratum", "effect", "cells", "what"], rows, right=("cells",))


@app.command()
def check(as_json: AsJson = False) -> None:
    """Compute every published aggregate again from its parts; exit with 1 if one differs without a known reason.

    \b
    embark published check
    embark published check --json
    """
    from embark.boards import rederive

    checks, lite = rederive.check(), rederive.lite_agreement()
    if as_json:
        print_json(_plain(checks, lite))
    else:
        _print(checks, lite)
    if any(one.unexplained for one in checks):
        raise typer.Exit(1)


def _family(name: str) -> str:
    from embark import published
    from embark.catalogue import Catalogue

    return Catalogue("family with published tables", published.FAMILIES, str)[name]


def _print_erratum(erratum: Erratum) -> None:
    for key in ("id", "family", "effect", "what", "evidence", "source"):
        print(f"{key:<10}{wrapped(getattr(erratum, key), 10)}")
    columns = ["table", "model", "name", "printed", "from its parts"]
    values = [["–" if v is None else f"{v:.6g}" for v in (cell.published, cell.derived)] for cell in erratum.cells]
    rows = [[c.table, c.model, c.name, *two] for c, two in zip(erratum.cells, values, strict=True)]
    print()
    print_columns(columns, rows, right=tuple(columns[3:]))


def _print(checks: list[Check], lite: LiteAgreement) -> None:
    rows = [
        [one.table, *map(str, (one.cells, one.agreeing, sum(one.errata.values()), len(one.unexplained))), _known(one)]
        for one in checks
    ]
    sums = [sum(int(row[at]) for row in rows) for at in range(1, 5)]
    columns = ["table", "cells", "agreeing", "errata", "unexplained", "which errata"]
    print_columns(columns, [*rows, ["all", *map(str, sums), ""]], right=tuple(columns[1:5]))
    print(
        f"\nMIEB-lite ranks {lite.models} fully covered models as MIEB does: Spearman {lite.spearman:.3f}, Pearson "
        f"{lite.pearson:.3f} (the paper says {PAPER[0]} and {PAPER[1]})."
    )
    for one in checks:
        for cell in one.unexplained:
            values = f"{cell.published:g} printed, {cell.derived:g} here"
            say(f"unexplained: {one.table}, {cell.model}, {cell.name}: {values}")


def _known(one: Check) -> str:
    return ", ".join(f"{name} ({count})" for name, count in one.errata.items())


def _plain(checks: list[Check], lite: LiteAgreement) -> dict[str, Any]:
    return {
        "tables": [dataclasses.asdict(one) for one in checks],
        "MIEB-lite": dataclasses.asdict(lite) | {"paper": {"spearman": PAPER[0], "pearson": PAPER[1]}},
    }
