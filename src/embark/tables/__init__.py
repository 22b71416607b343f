"""Tables as values: columns, rows of cells, footnotes and notes; their renderings, and the columns that others read.

Numbers are rounded in `cells` and nowhere else.
"""

from embark.tables.cells import (
    RANKED_SHARE,
    Cell,
    Exact,
    Interval,
    Score,
    comparable,
    highest,
    in_points,
    named,
    p_value,
    points,
    rounded,
    shown,
    signed_ends,
    signed_points,
)
from embark.tables.markup import html_notes, html_table, longtable
from embark.tables.names import name_parts, short, without_kind
from embark.tables.notes import Footnote, Note, applicable, letters, without_advice
from embark.tables.table import FORMATS, LESSER, NUMBERS, TABLE_PARTS, Row, Table, first, footnoted
from embark.tables.tabular import Noted, Tabular
from embark.tables.values import Brief, Columnar, by_column

__all__ = [
    "FORMATS",
    "LESSER",
    "NUMBERS",
    "RANKED_SHARE",
    "TABLE_PARTS",
    "Brief",
    "Cell",
    "Columnar",
    "Exact",
    "Footnote",
    "Interval",
    "Note",
    "Noted",
    "Row",
    "Score",
    "Table",
    "Tabular",
    "applicable",
    "by_column",
    "comparable",
    "first",
    "footnoted",
    "highest",
    "html_notes",
    "html_table",
    "in_points",
    "letters",
    "longtable",
    "name_parts",
    "named",
    "p_value",
    "points",
    "rounded",
    "short",
    "shown",
    "signed_ends",
    "signed_points",
    "without_advice",
    "without_kind",
]
