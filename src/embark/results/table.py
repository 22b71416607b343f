"""Tables of scores as values: made here, printed anywhere (text, Markdown, LaTeX, CSV, JSON, HTML, data frames)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, zip_longest
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeVar

from embark import escape
from embark.catalogue import Catalogue, check_name
from embark.redaction import Private, redacted_value, this_machine
from embark.types import EmbarkError

T = TypeVar("T")
LESSER = ("metric", "chance", "p", "p (Holm)")  # columns that are left out on a narrow terminal, in this order
NARROW = 18  # characters that a last column of words takes at least; its words are wrapped
HEAD = 10  # characters of a name over scores, before it is broken
PIECES = r"(?<=[ /-])|(?<=[a-z0-9])(?=[A-Z][a-z])|(?=\()"  # where a name may be broken: patch14-384, ImageClustering
FOOTNOTE = re.compile(r"\(([a-z]+)\) (.*)", re.DOTALL)  # as `footnoted` writes them
COMMANDS = (
    "run|plan|fetch|check|doctor|store|leaderboard|compare|verify|"
    "recommend|analyze|diagnose|published|show|export|import"
)
ADVICE = rf"(?:(?<!\w)--[a-z]|\bembark (?:{COMMANDS})\b)"
HINT = re.compile(rf" ?\([^()]*{ADVICE}[^()]*\)|; [^;()]*{ADVICE}[^;()]*")  # in brackets, or as a clause
ENDINGS = ("MultiChoice", "Classification", "Retrieval", "Clustering", "ZeroShot")
ENOUGH = 0.9  # share of its tasks that a mean needs scores on to be compared with other means
LOPSIDED = 0.1  # share of its mean length by which an arm of an interval may be longer, before both ends are shown
NUMBERS = ("#", "95 %", "tasks", "Borda", "chance")  # columns of words that are set to the right
PAGE = 124  # characters of a table in small type that a page of a paper is wide
LEAST = 18  # characters that a column of words keeps where a table is wider


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval, over `of` tasks when `count` of them have a score and `zeros` count as zero.

    `marks` are footnotes; `over` names the tasks that a mean is over, and is empty for the score of a single task.
    """

    value: float
    low: float
    high: float
    count: int = 1
    of: int = 1
    marks: tuple[str, ...] = ()
    zeros: int = 0
    over: frozenset[str] = frozenset()

    @property
    def partial(self) -> bool:
        """Whether some of the tasks it should cover have no score."""
        return self.count + self.zeros < self.of

    @property
    def covered(self) -> str:
        """How many of the tasks it is over, such as 41/53."""
        return f"{self.count + self.zeros}/{self.of}"

    @property
    def comparable(self) -> bool:
        """Whether it covers enough known tasks to be compared with means over the same ones."""
        return not self.partial or (bool(self.over) and self.count + self.zeros >= ENOUGH * self.of)


@dataclass(frozen=True)
class Exact:
    """A name or number in full, and as people read it in a table: machines get `value`."""

    value: str | float | None
    text: str


@dataclass(frozen=True)
class Interval:
    """The ends of an interval, and the text that people read."""

    low: float
    high: float
    text: str


Cell = str | float | Score | Exact | Interval | None  # words, plain numbers, scores


@dataclass(frozen=True)
class Row:
    """A line of a table; `section` groups lines under a heading."""

    cells: tuple[Cell, ...]
    section: str = ""
    total: bool = False


class Line(NamedTuple):
    """A line of a table's text form: its cells, padded, and which of them are the best of their kind."""

    kind: Literal["head", "section", "rule", "row", "total"]
    cells: tuple[str, ...]
    best: tuple[bool, ...]

    def __str__(self) -> str:
        return "  ".join(self.cells).rstrip()


@dataclass(frozen=True)
class Table:
    """Columns, rows, and notes below them. Its text form is what `print` shows.

    The best score of several models is set in bold, unless `highlight` is false: where others stand in another table.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    models: Literal["columns", "rows"] = "columns"
    highlight: bool = True

    def __str__(self) -> str:
        return self.format("text")

    def transposed(self) -> Table:
        """Rows as columns, for few rows of many cells."""
        lines = zip(*(row.cells for row in self.rows), strict=True)
        label, *rest = [Row((name, *cells)) for name, cells in zip(self.columns, lines, strict=True)]
        return Table(("rank", *(shown(cell) for cell in label.cells[1:])), tuple(rest), self.notes)

    def only(self, columns: str | Iterable[str]) -> Table:
        """The columns of these names or patterns, in their order."""
        names = Catalogue("column", dict.fromkeys(self.columns), str, f"There are {', '.join(self.columns)}.")
        return self._only([self.columns.index(name) for name in names.match(columns)])

    def fitted(self, room: int) -> list[Table]:
        """Tables of at most `room` characters per line: without lesser columns, then with fewer scores side by side.

        Where one score is too much, the widest names stand on lines of their own. Words are not broken.
        """
        table = self
        for name in LESSER:
            if table.width() > room and name in table.columns:
                table = table._only([i for i, other in enumerate(table.columns) if other != name])
        widths, scores = table._widths(), [i for i in range(len(table.columns)) if table._scores(i)]
        words = [i for i in range(len(table.columns)) if i not in scores]
        names = [i for i in words if _words(table, i)]
        least = sum(widths[i] + 2 for i in words) - 2 + max((widths[i] + 2 for i in scores), default=0)
        last = names[-1:] if len(widths) - 1 in names else []  # it tells about the row, and is no heading of it
        if not scores:  # which stand after it, so that it is not wrapped
            least -= sum(max(0, widths[i] - NARROW) for i in last)
        if least > room and names and len(words) + len(scores) > 1:
            widest = table.columns[max([i for i in names if i not in last] or names, key=lambda i: widths[i])]
            return self._stacked(self.columns.index(widest)).fitted(room)
        pieces: list[list[int]] = []
        left = 0
        for i in scores:
            if not pieces or widths[i] + 2 > left:
                pieces.append(list(words))
                left = room - sum(widths[j] + 2 for j in words) + 2
            pieces[-1].append(i)
            left -= widths[i] + 2
        return [table._only(sorted(piece)) for piece in pieces] or [table]

    def width(self) -> int:
        """Characters that a line of its text form takes."""
        return sum(self._widths()) + 2 * len(self.columns) - 2

    def lines(self) -> Iterator[Line]:
        """The lines of its text form, without the notes."""
        widths = self._widths()
        none = (False,) * len(widths)
        pads = [str.ljust if _words(self, i) else str.rjust for i in range(len(widths))]

        def padded(texts: Iterable[str]) -> tuple[str, ...]:
            return tuple(pad(text, width) for pad, text, width in zip(pads, texts, widths, strict=True))

        heads = zip_longest(*(reversed(self._head(i)) for i in range(len(widths))), fillvalue="")
        yield from (Line("head", padded(names), none) for names in reversed(list(heads)))
        section = ""
        for row, best in zip(self.rows, self._best, strict=True):
            if row.section != section:
                section = row.section
                rule = Line("rule", ("-" * self.width(),), none)
                yield Line("section", (f"— {escape.terminal(section)}",), none) if section else rule
            cells = padded(escape.terminal(shown(cell)) for cell in row.cells)
            yield Line("total" if row.total else "row", cells, best)

    def _stacked(self, column: int) -> Table:
        """The table with the cells of a column as headings of its rows."""
        others = [i for i in range(len(self.columns)) if i != column]
        headings = [" · ".join(filter(None, (row.section, shown(row.cells[column])))) for row in self.rows]
        rows = [replace(row, section=heading) for row, heading in zip(self.rows, headings, strict=True)]
        return replace(self, rows=tuple(rows))._only(others)

    @cached_property
    def _best(self) -> list[tuple[bool, ...]]:
        """For each row, which of its cells are the highest that any of several models has there."""
        if not self.highlight:
            return [(False,) * len(row.cells) for row in self.rows]
        if self.models == "columns":
            return [tuple(highest(row.cells)) for row in self.rows]
        columns = [highest(column) for column in zip(*(row.cells for row in self.rows), strict=True)]
        return list(zip(*columns, strict=True))

    def _scores(self, column: int) -> bool:
        return any(isinstance(row.cells[column], Score) for row in self.rows)

    def _widths(self) -> list[int]:
        cells = zip(*([escape.terminal(shown(cell)) for cell in row.cells] for row in self.rows), strict=True)
        columns = list(cells) or [()] * len(self.columns)
        return [max(map(len, [*self._head(i), *column])) for i, column in enumerate(columns)]

    def _head(self, column: int) -> list[str]:
        """A column's name; over numbers, which are narrow, a long one takes several lines."""
        name = escape.terminal(self.columns[column])
        if len(name) <= HEAD or _words(self, column):
            return [name]
        lines = [""]
        for piece in re.split(PIECES, name):
            if lines[-1] and len(lines[-1] + piece.rstrip()) > HEAD:
                lines.append("")
            lines[-1] += piece
        return [line.rstrip() for line in lines]

    def _only(self, columns: Sequence[int]) -> Table:
        """Some of the columns, without footnotes and explanations that only others have."""
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in columns)) for row in self.rows)
        marks = {mark for row in rows for cell in row.cells if isinstance(cell, Score) for mark in cell.marks}
        names = tuple(self.columns[i] for i in columns)
        left_out = tuple(f"{name}: " for name in self.columns if name not in names)

        def stays(note: str) -> bool:
            footnote = FOOTNOTE.fullmatch(note)
            return footnote[1] in marks if footnote else not note.startswith(left_out)

        notes = tuple(note for note in self.notes if stays(note))
        return replace(self, columns=names, rows=rows, notes=notes)

    def format(self, style: str) -> str:
        """The table as text, markdown, latex, csv, json or html.

        Advice on commands and options stands below text and in notebooks alone.
        """
        check_name("table format", style, FORMATS)
        notes = self.notes if style in ("text", "html") else tuple(HINT.sub("", note) for note in self.notes)
        return FORMATS[style](replace(self, notes=notes))

    def outgoing(self, private: Private | None = None) -> Table:
        """The table as it may leave this machine: without folders, hosts, users and keys."""
        return redacted_value(self, private or this_machine(), TABLE_PARTS)  # type: ignore[no-any-return]

    def flat(self) -> tuple[list[str], list[list[str | float | None]]]:
        """Names of columns and lines of plain values: a score takes three columns, an interval two.

        Then come the section and, in full, the footnotes.
        """
        footnotes = {footnote[1]: footnote[2] for note in self.notes if (footnote := FOOTNOTE.fullmatch(note))}
        sections = any(row.section for row in self.rows)
        ends = [self._ends(column) for column in range(len(self.columns))]
        names = [f"{name}{end}" for name, several in zip(self.columns, ends, strict=True) for end in several]
        lines = []
        for row in self.rows:
            line = [value for cell, several in zip(row.cells, ends, strict=True) for value in _values(cell, several)]
            line += [row.section] * sections
            if footnotes:
                marked = zip(self.columns, row.cells, strict=True)
                signs = [(name, sign) for name, cell in marked if isinstance(cell, Score) for sign in cell.marks]
                line.append("; ".join(f"{name}: {footnotes.get(sign, sign)}" for name, sign in signs))
            lines.append(line)
        return names + ["section"] * sections + ["notes"] * bool(footnotes), lines

    def to_frame(self) -> Any:
        """The table as a pandas data frame, with full precision."""
        names, lines = self.flat()
        return data_frame(lines, names)

    def _repr_html_(self) -> str:
        return self.outgoing().format("html")  # notebooks are shared

    def _ends(self, column: int) -> tuple[str, ...]:
        """What is added to a column's name, for each of the columns that it takes in a flat table."""
        if self._scores(column):
            return "", " low", " high"
        intervals = any(isinstance(row.cells[column], Interval) for row in self.rows)
        return (" low", " high") if intervals else ("",)


TABLE_PARTS = (Table, Row, Score, Exact, Interval)


class Tabular:
    """A value that can be seen as a table: printed, in a notebook, or as a data frame.

    `notes` tell what was left out, and why; a command prints them beside its table.
    """

    notes: tuple[str, ...]

    def table(self) -> Table:
        """The value as a table."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The table as a pandas data frame, with full precision."""
        return self.table().to_frame()

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        table = self.table()
        notes = [note for note in self.notes if note not in table.notes]
        private = this_machine()  # notebooks are shared
        return table.outgoing(private).format("html") + html_notes(redacted_value(notes, private))


@dataclass(frozen=True)
class Noted(Tabular):
    """A value that can be seen as a table, and was made together with its notes."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)


def data_frame(rows: Sequence[Any], columns: Sequence[str] | None = None) -> Any:
    """Rows as a pandas data frame; pandas is not installed with embark."""
    try:
        import pandas
    except ImportError as error:
        raise EmbarkError("Data frames need pandas: pip install pandas. Tables print and export without it.") from error
    return pandas.DataFrame(rows, columns=columns)


def comparable(scores: Sequence[Score | None]) -> list[bool]:
    """Which of these scores may be ranked, shaded and set in bold together: those over the same tasks.

    Of several sets of tasks the one counts that most of the scores are over; of two such sets, the larger one. A mean
    over less than 90 % of its tasks is compared with nothing.
    """
    sets = Counter(score.over for score in scores if score is not None and score.comparable)
    chosen = max(sets, key=lambda over: (sets[over], len(over), sorted(over)), default=None)
    return [score is not None and score.comparable and score.over == chosen for score in scores]


def highest(cells: Sequence[Cell]) -> list[bool]:
    """Which cells are the highest of the scores that may be compared; none where it is the only one."""
    scores = [cell if isinstance(cell, Score) else None for cell in cells]
    rivals = comparable(scores)
    values = [score.value for score, rival in zip(scores, rivals, strict=True) if score is not None and rival]
    top = max(values) if len(values) > 1 else None
    return [rival and score is not None and score.value == top for score, rival in zip(scores, rivals, strict=True)]


def rounded(number: float, digits: int = 1, sign: bool = False) -> str:
    """A number of points as people read it, with its sign if wanted; never -0.0.

    Scores and differences are rounded here and nowhere else, once, from the full value.
    """
    return f"{round(number, digits) + 0.0:{'+' if sign else ''}.{digits}f}"  # adding zero: no -0.0


def in_points(value: float, digits: int = 1) -> str:
    """A score from 0 to 1, or an end of its interval, as text in points."""
    return rounded(100 * value, digits)


def points(value: float | None, digits: int = 1) -> Exact | None:
    """A score from 0 to 1 in points; None where it is not known."""
    return None if value is None else Exact(value, in_points(value, digits))


def signed_points(value: float, digits: int = 1) -> Exact:
    """A difference of such scores in points, with its sign."""
    return Exact(value, rounded(100 * value, digits, sign=True))


def signed_ends(low: float, high: float) -> Interval:
    """The ends of a difference's interval, in points."""
    return Interval(low, high, f"[{signed_points(low).text}, {signed_points(high).text}]")


def p_value(value: float | None) -> Exact | None:
    """A p-value with as many digits as tell something; None where there is none."""
    if value is None:
        return None
    return Exact(value, "<0.0001" if value < 5e-5 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}")


def applicable(notes: Mapping[str, object]) -> tuple[str, ...]:
    """The notes whose condition is met, from all notes with their conditions."""
    return tuple(note for note, condition in notes.items() if condition)


def first(rows: Sequence[T], top: int | None) -> Sequence[T]:
    """The first `top` rows; without it, all."""
    if top is not None and top < 1:
        raise EmbarkError(f"At least 1 row is shown, not {top}; None shows all.")
    return rows[:top]


def named(name: str, most: int) -> Exact:
    """A model's or task's name, shortened where the table is text."""
    return Exact(name, short(name, most))


def short(name: str, most: int = 26) -> str:
    """A model's or task's name without its organisation or family; a long one goes without a task's kind, or is cut."""
    name = name.split("/")[-1]
    if len(name) > most:
        name = without_kind(name)
    head = (most - 1) * 3 // 5
    return name if len(name) <= most else f"{name[:head]}…{name[head - most + 1 :]}"


def without_kind(task: str) -> str:
    """A task's name without the word for its kind, such as Retrieval."""
    for ending in ENDINGS:
        task = task.removesuffix(ending) or task
    return task


def name_parts(text: str) -> list[str]:
    """A text in parts between which a line may be broken; long ones also at underscores and points."""
    parts = re.split(PIECES, text)
    return [piece for part in parts for piece in (re.split(r"(?<=[_.@=?])", part) if len(part) > LEAST else [part])]


def footnoted(table: Table, partial: str = "over {} of {} tasks") -> Table:
    """Partial means and warnings get a mark, and a line below the table that explains it, before its other notes."""
    notes: dict[str, str] = {}

    def mark(cell: Cell) -> Cell:
        if not isinstance(cell, Score):
            return cell
        marks = [partial.format(cell.count + cell.zeros, cell.of)] if cell.partial else []
        marks += cell.marks
        return replace(cell, marks=tuple(notes.setdefault(text, letters(len(notes))) for text in marks))

    rows = tuple(replace(row, cells=tuple(mark(cell) for cell in row.cells)) for row in table.rows)
    return replace(table, rows=rows, notes=(*(f"({sign}) {text}" for text, sign in notes.items()), *table.notes))


def letters(number: int) -> str:
    """a to z, then aa, ab…"""
    return (letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def shown(cell: Cell, between: str = " ± ", marks: bool = True, full: bool = False) -> str:
    """A cell as people read it: percent, and the interval as half its width or, where it is lopsided, by its ends.

    Names are short, unless in `full`.
    """
    if isinstance(cell, Exact):
        return cell.value if full and isinstance(cell.value, str) else cell.text
    if isinstance(cell, Interval):
        return cell.text
    if isinstance(cell, (int, float)):
        return (f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}") if isfinite(cell) else "–"
    if not isinstance(cell, Score):
        return cell if cell is not None else "–"
    return f"{in_points(cell.value)}{_ends(cell, between)}{_signs(cell) if marks else ''}"


def _ends(cell: Score, between: str) -> str:
    """Half the width of the interval, or both of its ends where it is lopsided by more than a tenth."""
    below, above = 100 * (cell.value - cell.low), 100 * (cell.high - cell.value)
    if not isfinite(above + below):
        return ""
    if abs(above - below) > max(LOPSIDED * (above + below) / 2, 0.1):  # less than a tenth of a point is not seen
        return f" [{in_points(cell.low)}, {in_points(cell.high)}]"
    return f"{between}{rounded((above + below) / 2)}"


def _raw(cell: Cell) -> str | float | Score | Interval | None:
    """A cell as machines read it; what is no number is None."""
    value = cell.value if isinstance(cell, Exact) else cell
    return None if isinstance(value, float) and not isfinite(value) else value


def _values(cell: Cell, ends: tuple[str, ...]) -> list[str | float | None]:
    """The plain values of a cell, one for each column that it takes in a flat table."""
    if isinstance(cell, Score | Interval):
        numbers = (cell.value, cell.low, cell.high) if isinstance(cell, Score) else (cell.low, cell.high)
        return [number if isfinite(number) else None for number in numbers]
    value: Any = _raw(cell)
    return [value, None, None][: len(ends)]


def _signs(cell: Score) -> str:
    return f" ({','.join(cell.marks)})" if cell.marks else ""


def _text(table: Table) -> str:
    return "\n".join([*map(str, table.lines()), *map(escape.terminal, table.notes)])


def _words(table: Table, column: int) -> bool:
    """Whether a column holds words (set to the left) rather than numbers."""
    return all(isinstance(_raw(row.cells[column]), str) for row in table.rows) and table.columns[column] not in NUMBERS


def _markdown(table: Table) -> str:
    rule = [":---" if _words(table, i) else "---:" for i in range(len(table.columns))]
    lines: list[Sequence[str]] = [[escape.markdown(name) for name in table.columns], rule]
    for section, rows in groupby(table.rows, lambda row: row.section):
        lines += [[f"**{escape.markdown(section)}**", *[""] * (len(rule) - 1)]] if section else []
        for row in rows:
            label, *cells = (escape.markdown(shown(cell, full=True)) for cell in row.cells)
            lines.append([f"**{label}**" if row.total else label, *cells])  # apart from the section above
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in lines),
            *("\n" + escape.markdown_line(note) for note in table.notes),
        ]
    )


def _latex(table: Table) -> str:
    layout = "".join("l" if _words(table, i) else "r" for i in range(len(table.columns)))
    lines = [" & ".join(map(escape.latex, table.columns)) + r" \\ \midrule", *_latex_rows(table, escape.latex)]
    notes = [rf"\par\footnotesize {escape.latex(note)}" for note in table.notes]  # below, where lines can break
    return "\n".join([rf"\begin{{tabular}}{{{layout}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", *notes])


def longtable(table: Table, caption: str) -> str:
    """A table in LaTeX that breaks over pages (packages longtable, booktabs and array), under its caption.

    `caption` is LaTeX already. On a table that is wider than a page, columns of words wrap; names break between parts.
    """
    widths = [max(len(text) for text in (*table._head(i), *_full(table, i))) for i in range(len(table.columns))]
    layout = ["l" if _words(table, i) else "r" for i in range(len(widths))]
    excess = sum(widths) + 2 * len(widths) - PAGE
    for i in sorted((i for i, kind in enumerate(layout) if kind == "l"), key=lambda i: -widths[i]):
        if excess > 0 and widths[i] > LEAST:
            narrow = max(LEAST, widths[i] - excess)
            excess -= widths[i] - narrow
            layout[i] = rf">{{\raggedright\arraybackslash}}p{{{0.5 * narrow:.1f}em}}"
    heads = [r" \\ ".join(map(escape.latex, table._head(i))) for i in range(len(widths))]
    sides = ["r" if kind == "r" else "l" for kind in layout]
    stacks = [rf"\shortstack[{side}]{{{head}}}" for side, head in zip(sides, heads, strict=True)]
    head = rf"\toprule {' & '.join(stacks)} \\ \midrule"
    rows = _latex_rows(table, _breakable)
    notes = [rf"\par\noindent {escape.latex(note)}" for note in table.notes]
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
    best = iter(table._best)
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


def _full(table: Table, column: int) -> list[str]:
    """The texts of a column, with names in full."""
    return [escape.terminal(shown(row.cells[column], full=True)) for row in table.rows]


def _breakable(text: str) -> str:
    """Text without commands, which may be broken between the parts of a name."""
    return r"\allowbreak ".join(escape.latex(piece) for piece in name_parts(escape.terminal(text)))


def _latex_score(cell: Score, best: bool) -> str:
    """A score in mathematics; the best of several models in bold, without its interval."""
    value, *interval = shown(cell, r" \pm ", marks=False).replace(" [", r" \ [").split(" ", 1)
    return "$" + " ".join([rf"\mathbf{{{value}}}" if best else value, *interval]) + "$" + _signs(cell)


def _csv(table: Table) -> str:
    out = io.StringIO()
    names, lines = table.flat()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(escape.csv, names))
    writer.writerows([escape.csv(value) if isinstance(value, str) else value for value in line] for line in lines)
    return out.getvalue().rstrip("\n")


def _json(table: Table) -> str:
    def plain(cell: Cell) -> Any:
        if isinstance(cell, Interval):
            return dict(zip(("low", "high"), _values(cell, ("", "")), strict=True))
        if not isinstance(cell, Score):
            return _raw(cell)
        numbers = dict(zip(("score", "low", "high"), _values(cell, ("", "", "")), strict=True))
        return numbers | {"tasks": cell.count, "of": cell.of, "marks": cell.marks}

    rows = [
        dict(zip(table.columns, map(plain, row.cells), strict=True)) | ({"section": row.section} if row.section else {})
        for row in table.rows
    ]
    return escape.json(json.dumps({"rows": rows, "notes": table.notes}, indent=2, ensure_ascii=False))


def _html(table: Table) -> str:
    """A table for notebooks and pages; every text in it is escaped."""
    sides = ["left" if _words(table, column) else "right" for column in range(len(table.columns))]
    names = map(escape.html, table.columns)
    heads = [f'<th style="text-align:{side}">{name}</th>' for side, name in zip(sides, names, strict=True)]
    best = iter(table._best)
    lines = [f"<thead><tr>{''.join(heads)}</tr></thead>", "<tbody>"]
    for section, rows in groupby(table.rows, lambda row: row.section):
        if section:
            lines.append(f'<tr><th colspan="{len(sides)}" style="text-align:left">{escape.html(section)}</th></tr>')
        for row in rows:
            cells = [
                f'<td style="text-align:{side}"{_title(cell)}>{_bold(cell, row.total or bold)}</td>'
                for side, cell, bold in zip(sides, row.cells, next(best), strict=True)
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join(["<table>", *lines, "</tbody></table>"]) + html_notes(table.notes)


def html_notes(notes: Sequence[str]) -> str:
    """Notes below a table, escaped."""
    return "\n<p><small>" + "<br>\n".join(map(escape.html, notes)) + "</small></p>" if notes else ""


def _title(cell: Cell) -> str:
    """The interval of a score, for whoever points at it."""
    if not isinstance(cell, Score) or not isfinite(cell.high - cell.low):
        return ""
    return f' title="95 %: {in_points(cell.low)} to {in_points(cell.high)}"'


def _bold(cell: Cell, bold: bool) -> str:
    text = escape.html(shown(cell, full=True))
    return f"<b>{text}</b>" if bold else text


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "json": _json,
    "html": _html,
}
