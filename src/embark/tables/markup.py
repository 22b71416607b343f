"""Tables as Markdown, HTML and LaTeX; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from embark import escape
from embark.tables.cells import Cell, Score, in_points, shown, signs
from embark.tables.names import name_parts

if TYPE_CHECKING:
    from embark.tables.table import Table

PAGE = 56.0  # ems of footnotesize that the text of a page is wide (170 mm, less 1 %)
GAP = 0.95  # ems between two columns
WORDS_EMS = 9.0  # ems that a column of words keeps where a table is wider
# Ems of letters in Computer Modern, by their kind.
NARROW, WIDE, CAPITAL, OTHER = 0.36, 0.9, 0.74, 0.52
THIN, BROAD = frozenset("ijl.,:;'|!I()[]tfrs -"), frozenset("mwMW%@&±→")
WORD_LETTERS = 30  # letters without a place to break


def markdown(table: Table, notes: Sequence[str]) -> str:
    """The table in the dialect of GitHub."""
    rule = [":---" if table.words(i) else "---:" for i in range(len(table.columns))]
    lines: list[Sequence[str]] = [[escape.markdown(name) for name in table.columns], rule]
    for section, rows in groupby(table.rows, lambda row: row.section):
        lines += [[f"**{escape.markdown(section)}**", *[""] * (len(rule) - 1)]] if section else []
        for row in rows:
            label, *cells = (escape.markdown(shown(cell, full=True)) for cell in row.cells)
            lines.append([f"**{label}**" if row.total else label, *cells])  # apart from the section above
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in lines),
            *("\n" + escape.markdown_line(note) for note in notes),
        ]
    )


def latex(table: Table, notes: Sequence[str]) -> str:
    """The table as a tabular environment (package booktabs)."""
    layout = "".join("l" if table.words(i) else "r" for i in range(len(table.columns)))
    lines = [" & ".join(map(escape.latex, table.columns)) + r" \\ \midrule", *_latex_rows(table, escape.latex)]
    below = [rf"\par\footnotesize {escape.latex(note)}" for note in notes]  # where lines can break
    return "\n".join([rf"\begin{{tabular}}{{{layout}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", *below])


def longtable(table: Table, caption: str) -> str:
    """A table in LaTeX that breaks over pages (packages longtable, booktabs and array), under its caption.

    `caption` is LaTeX already. On a table that is wider than a page, columns of words wrap; names break between parts.
    """
    widths = [max(map(_ems, (*table.heading(i), *_full(table, i)))) for i in range(len(table.columns))]
    layout = ["l" if table.words(i) else "r" for i in range(len(widths))]
    excess = sum(widths) + GAP * len(widths) - PAGE
    for i in sorted((i for i, kind in enumerate(layout) if kind == "l"), key=lambda i: -widths[i]):
        if excess > 0 and widths[i] > WORDS_EMS:
            narrow = max(WORDS_EMS, widths[i] - excess)
            excess -= widths[i] - narrow
            layout[i] = rf">{{\raggedright\arraybackslash}}p{{{narrow:.1f}em}}"
    heads = [r" \\ ".join(map(escape.latex, table.heading(i))) for i in range(len(widths))]
    sides = ["r" if kind == "r" else "l" for kind in layout]
    stacks = [rf"\shortstack[{side}]{{{head}}}" for side, head in zip(sides, heads, strict=True)]
    head = rf"\toprule {' & '.join(stacks)} \\ \midrule"
    rows = _latex_rows(table, _breakable)
    notes = [rf"\par\noindent {escape.latex(note)}" for note in table.note_lines(advice=False)]
    return "\n".join(
        [
            rf"{{\footnotesize\begin{{longtable}}{{{''.join(layout)}}}",
            rf"\caption{{{caption}}} \\ {head} \endfirsthead",
            rf"{head} \endhead",
            r"\midrule \endfoot \bottomrule \endlastfoot",
            # A heading stays on the page of its first row: \\* forbids a break.
            *(rf"\addlinespace {row}*" if row.startswith(r"\multicolumn") else row for row in rows),
            r"\end{longtable}",
            *notes,
            r"\par}",
        ]
    )


def _latex_rows(table: Table, text: Callable[[str], str]) -> list[str]:
    """The lines of a LaTeX table below its head; `text` escapes words."""
    lines = []
    best = iter(table.best)
    for section, rows in groupby(table.rows, lambda row: row.section):
        if section:
            lines.append(rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textit{{{escape.latex(section)}}}}} \\")
        for row in rows:
            cells = [
                _latex_score(cell, bold) if isinstance(cell, Score) else text(shown(cell, full=True))
                for cell, bold in zip(row.cells, next(best), strict=True)
            ]
            lines.append((r"\midrule " if row.total else "") + " & ".join(cells) + r" \\")
    return lines


def _ems(text: str) -> float:
    """The width of a text, about."""
    return sum(
        NARROW if sign in THIN else WIDE if sign in BROAD else CAPITAL if sign.isupper() else OTHER for sign in text
    )


def _full(table: Table, column: int) -> list[str]:
    """The texts of a column, with names in full."""
    return [escape.terminal(shown(row.cells[column], full=True)) for row in table.rows]


def _breakable(text: str) -> str:
    """Text without commands, which may be broken between the parts of a name."""
    return r"\allowbreak ".join(escape.latex(piece) for piece in name_parts(escape.terminal(text)))


def _latex_score(cell: Score, best: bool) -> str:
    """A score in mathematics; the best of several models in bold, without its interval."""
    value, *interval = shown(cell, r" \pm ", marks=False).replace(" [", r" \ [").split(" ", 1)
    return "$" + " ".join([rf"\mathbf{{{value}}}" if best else value, *interval]) + "$" + signs(cell)


def html(table: Table, notes: Sequence[str]) -> str:
    """The table for notebooks and pages."""
    return html_table(table) + html_notes(notes)


def html_table(table: Table, breakable: bool = False) -> str:
    """The table without notes; cells of words are `breakable` between the parts of names, and others are not."""
    words = [table.words(column) for column in range(len(table.columns))]
    sides = ["left" if is_words else "right" for is_words in words]
    names = map(escape.html, table.columns)
    heads = [f'<th style="text-align:{side}">{name}</th>' for side, name in zip(sides, names, strict=True)]
    best = iter(table.best)
    lines = [f"<thead><tr>{''.join(heads)}</tr></thead>", "<tbody>"]
    for section, rows in groupby(table.rows, lambda row: row.section):
        if section:
            lines.append(f'<tr><th colspan="{len(sides)}" style="text-align:left">{escape.html(section)}</th></tr>')
        for row in rows:
            cells = zip(row.cells, words, sides, next(best), strict=True)
            texts = (
                _html_cell(cell, side, row.total or bold, breakable and named) for cell, named, side, bold in cells
            )
            lines.append(f"<tr>{''.join(texts)}</tr>")
    return "\n".join(["<table>", *lines, "</tbody></table>"])


def _html_cell(cell: Cell, side: str, bold: bool, breakable: bool) -> str:
    """A cell with the interval of its score as a title; a long name without a place to break may be broken anywhere."""
    parts = name_parts(shown(cell, full=True)) if breakable else [shown(cell, full=True)]
    text = "<wbr>".join(map(escape.html, parts))
    kind = ' class="words long"' if max(map(len, parts)) > WORD_LETTERS else ' class="words"'
    text = f"<b>{text}</b>" if bold else text
    return f'<td{kind if breakable else ""} style="text-align:{side}"{_title(cell)}>{text}</td>'


def html_notes(notes: Sequence[str]) -> str:
    """Notes below a table, escaped."""
    return "\n<p><small>" + "<br>\n".join(map(escape.html, notes)) + "</small></p>" if notes else ""


def _title(cell: Cell) -> str:
    """The interval of a score, for whoever points at it."""
    if not isinstance(cell, Score) or not isfinite(cell.high - cell.low):
        return ""
    return f' title="95 %: {in_points(cell.low)} to {in_points(cell.high)}"'
