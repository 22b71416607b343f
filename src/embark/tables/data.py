"""Tables as CSV and JSON, with full precision."""

from __future__ import annotations

import csv as csv_files
import io
import json as json_files
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embark import escape
from embark.tables.cells import Cell, Interval, Score, raw, values

if TYPE_CHECKING:
    from embark.tables.table import Table


def csv(table: Table, notes: Sequence[str]) -> str:  # footnotes stand in a column; there is no place for notes
    """The table as CSV: scores with their intervals, footnotes in a column of their own."""
    out = io.StringIO()
    names, lines = table.flat()
    writer = csv_files.writer(out, lineterminator="\n")
    writer.writerow(map(escape.csv, names))
    writer.writerows([escape.csv(value) if isinstance(value, str) else value for value in line] for line in lines)
    return out.getvalue().rstrip("\n")


def json(table: Table, notes: Sequence[str]) -> str:
    """The table as JSON: a row as an object by column, and the notes."""

    def plain(cell: Cell) -> Any:
        if isinstance(cell, Interval):
            return dict(zip(("low", "high"), values(cell, ("", "")), strict=True))
        if not isinstance(cell, Score):
            return raw(cell)
        numbers = dict(zip(("score", "low", "high"), values(cell, ("", "", "")), strict=True))
        return numbers | {"tasks": cell.count, "of": cell.of, "marks": cell.marks}

    rows = [
        dict(zip(table.columns, map(plain, row.cells), strict=True)) | ({"section": row.section} if row.section else {})
        for row in table.rows
    ]
    return escape.json(json_files.dumps({"rows": rows, "notes": notes}, indent=2, ensure_ascii=False))
