"""A paper-like document as a value: sections of text, lists, tables and figures; as HTML, Markdown and LaTeX.

Every text in it may come from outside, and is escaped for each format. The same document is the same bytes.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple

from embark import escape
from embark.documents.templating import TEMPLATES, Raw, render
from embark.tables import TABLE_PARTS, Brief, Table, html_notes, html_table, longtable, name_parts
from embark.tables.drawing import Drawn

FIGURES, TABLES = "figures", "tables"  # folders beside the document
WORD_LETTERS = 30  # letters without a place to break


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    kind: ClassVar = "paragraph"
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar = "bullets"
    items: tuple[str, ...]


@dataclass(frozen=True)
class Definitions:
    """Names with what they stand for, under a heading of their own."""

    kind: ClassVar = "definitions"
    heading: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Commands:
    """Lines to type."""

    kind: ClassVar = "commands"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class NamedTable:
    """A table with its caption; `name` is that of its file. `whole` is the table of the file where that has more."""

    kind: ClassVar = "table"
    name: str
    caption: str
    table: Table
    whole: Table | None = None


@dataclass(frozen=True)
class NamedFigure:
    """A drawing, with its caption; `name` is that of its file."""

    kind: ClassVar = "figure"
    name: str
    caption: str
    drawing: Drawn


Block = Paragraph | Bullets | Definitions | Commands | NamedTable | NamedFigure


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]
    appendix: bool = False


@dataclass(frozen=True)
class Document(Brief):
    """A title, lines below it, and sections; appendices come last. Sections without blocks are left out."""

    title: str
    byline: tuple[str, ...]
    sections: tuple[Section, ...]
    bibliography: str = field(default="", repr=False)  # as BibTeX

    def __post_init__(self) -> None:
        sections = [replace(section, blocks=tuple(map(_plain, section.blocks))) for section in self.sections]
        object.__setattr__(self, "sections", tuple(section for section in sections if section.blocks))

    @property
    def tables(self) -> tuple[NamedTable, ...]:
        """All tables, in their order."""
        return tuple(block for block in self._blocks() if isinstance(block, NamedTable))

    @property
    def figures(self) -> tuple[NamedFigure, ...]:
        """All figures, in their order."""
        return tuple(block for block in self._blocks() if isinstance(block, NamedFigure))

    def without_figures(self) -> Document:
        """The document where nothing can be drawn."""
        sections = [
            replace(section, blocks=tuple(block for block in section.blocks if not isinstance(block, NamedFigure)))
            for section in self.sections
        ]
        return replace(self, sections=tuple(sections))

    def _blocks(self) -> Iterator[Block]:
        return (block for section in self.sections for block in section.blocks)

    def html(self, images: Mapping[str, bytes]) -> str:
        """One file that needs no other: `images` are the figures as SVG, by name."""
        filters = {
            "table": lambda table: html_table(table, breakable=True),
            "notes": html_notes,
            "image": lambda name: b64encode(images[name]).decode(),
        }
        style = (TEMPLATES / "document.css").read_text(encoding="utf-8")
        return self._render("document.html", escape.html, filters, style=Raw(style.strip()))

    def markdown(self) -> str:
        """With links to the figures in their folder."""
        filters = {
            "table": lambda table: table.format("markdown"),
            "line": escape.markdown_line,  # a text at the beginning of a line
            "code": escape.terminal,
        }
        return self._render("document.md", escape.markdown, filters)

    def latex(self) -> str:
        """For pdflatex, xelatex and lualatex, with the figures as PDF in their folder."""
        body = self._render("body.tex", _tex, {"table": lambda block: longtable(block.table, _tex(block.caption))})
        signs = sorted({sign for sign in body if ord(sign) > 0x7F} - KNOWN | {*SIGNS} & {*body})
        letters = [(f"{ord(sign):04X}", _stand_in(sign)) for sign in signs]
        return render("document.tex", _tex, {}, body=Raw(body), letters=letters)

    def _render(
        self, template: str, escape: Callable[[str], str], filters: Mapping[str, Callable[[Any], str]], **values: str
    ) -> str:
        return render(template, escape, filters, document=self, sections=_numbered(self), **values)


DOCUMENT_PARTS = (
    Document, Section, Paragraph, Bullets, Definitions, Commands, NamedTable, NamedFigure, *TABLE_PARTS
)  # fmt: skip  # drawings pass the gate where they are drawn


class NumberedSection(NamedTuple):
    """A section with its number, or the letter of an appendix; its blocks with those of tables and figures, else 0."""

    number: str
    title: str
    appendix: bool
    blocks: tuple[tuple[int, Block], ...]


def _numbered(document: Document) -> list[NumberedSection]:
    """Sections and their blocks with their numbers; appendices have letters."""
    main, appendices = count(1), count(ord("A"))
    counters: dict[type[Block], Iterator[int]] = {NamedTable: count(1), NamedFigure: count(1)}
    return [
        NumberedSection(
            chr(next(appendices)) if section.appendix else str(next(main)),
            section.title,
            section.appendix,
            tuple((next(counters[type(block)]) if type(block) in counters else 0, block) for block in section.blocks),
        )
        for section in document.sections
    ]


def _plain(block: Block) -> Block:
    """A block without the advice on commands and options that tables give on a terminal."""
    if not isinstance(block, NamedTable):
        return block
    whole = block.whole and block.whole.without_advice()
    return replace(block, table=block.table.without_advice(), whole=whole)


KNOWN = set("–—‘’“”…•±×·°§") | {chr(code) for code in range(0x80, 0x180)}  # letters that LaTeX has of its own
SIGNS = {
    "−": "-", "→": "\\to ", "←": "\\leftarrow ", "≤": "\\leq ", "≥": "\\geq ", "≠": "\\neq ", "≈": "\\approx ",
    "∞": "\\infty ", "↔": "\\leftrightarrow ", "∈": "\\in ", "√": "\\surd ", "²": "^2", "³": "^3",
}  # fmt: skip
HYPHEN = "\ue000"  # stands for the end of a hyphen that must not join the next one to a dash


def _stand_in(sign: str) -> str:
    """What pdflatex, whose fonts lack most letters, prints for one: a sign of mathematics, else its number."""
    if sign in SIGNS:
        return rf"\ensuremath{{{SIGNS[sign]}}}"
    letters = unicodedata.normalize("NFKD", sign)
    plain = letters if letters.isascii() and letters.isalnum() else ""
    return plain or rf"\texttt{{U+{ord(sign):04X}}}"


def _tex(text: str) -> str:
    """Text without commands, in which two hyphens stay two, and long names and addresses may be broken."""
    words = re.sub("-(?=-)", f"-{HYPHEN}", escape.terminal(text.replace(HYPHEN, ""))).split(" ")
    parts = [name_parts(word) if len(word) > WORD_LETTERS else [word] for word in words]
    return " ".join(r"\allowbreak ".join(map(escape.latex, pieces)) for pieces in parts).replace(HYPHEN, "{}")
