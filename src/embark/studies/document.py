"""A paper-like document as a value: sections of text, lists, tables and figures; as HTML, Markdown and LaTeX.

Every text in it may come from outside, and is escaped for each format. The same document is the same bytes.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from embark import escape
from embark.tables import TABLE_PARTS, Table, longtable, name_parts, without_advice
from embark.tables.drawing import Drawn

FIGURES, TABLES = "figures", "tables"  # folders beside the document


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Definitions:
    """Names with what they stand for, under a heading of their own."""

    heading: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Commands:
    """Lines to type."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class NamedTable:
    """A table with its caption; `name` is that of its file. `whole` is the table of the file where that has more."""

    name: str
    caption: str
    table: Table
    whole: Table | None = None


@dataclass(frozen=True)
class NamedFigure:
    """A drawing, with its caption; `name` is that of its file."""

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
class Document:
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
        return _html(self, images)

    def markdown(self) -> str:
        """With links to the figures in their folder."""
        return _markdown(self)

    def latex(self) -> str:
        """For pdflatex, xelatex and lualatex, with the figures as PDF in their folder."""
        return _latex(self)


DOCUMENT_PARTS = (
    Document, Section, Paragraph, Bullets, Definitions, Commands, NamedTable, NamedFigure, *TABLE_PARTS
)  # fmt: skip  # drawings pass the gate where they are drawn

Numbers = Mapping[type[Block], Iterator[int]]  # of tables and figures, each counted from 1


def _numbers() -> Numbers:
    return {NamedTable: count(1), NamedFigure: count(1)}


def _plain(block: Block) -> Block:
    """A block without the advice on commands and options that tables give on a terminal."""
    if not isinstance(block, NamedTable):
        return block
    notes = tuple(map(without_advice, block.table.notes))
    return replace(block, table=replace(block.table, notes=notes))


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
@page { size: A4; margin: 18mm 16mm; }
body { font: 10.5pt/1.45 Georgia, "Times New Roman", serif; color: #111; background: #fff; max-width: 178mm;
  margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1, h2, h3, table, figcaption, nav, code { font-family: "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 19pt; line-height: 1.2; margin: 0 0 .3em; }
h2 { font-size: 13pt; margin: 1.8em 0 .5em; border-bottom: .6pt solid #999; break-after: avoid; }
h2.appendix { break-before: page; }
h3 { font-size: 10pt; margin: 1.2em 0 .2em; break-after: avoid; }
.byline { color: #555; margin: 0; }
nav { font-size: 9pt; margin: 1.2em 0; columns: 2; }
nav a { display: block; color: #0b4f8a; text-decoration: none; }
figure { margin: 1.2em 0; }
figcaption { font-size: 8.5pt; color: #333; margin: .3em 0 .5em; }
figure.drawing { break-inside: avoid; text-align: center; }
figure.drawing figcaption { text-align: left; }
figure.table figcaption { break-after: avoid; }
figure.short { break-inside: avoid; }
img { max-width: 100%; max-height: 225mm; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 8pt; font-variant-numeric: tabular-nums; border-top: 1.1pt solid #111;
  border-bottom: 1.1pt solid #111; overflow-wrap: normal; }
th, td { padding: .16em .55em; vertical-align: top; }
td { white-space: nowrap; }
td.words { white-space: normal; }
td.long { overflow-wrap: anywhere; min-width: 9em; }
thead th { vertical-align: bottom; border-bottom: .6pt solid #111; max-width: 8em; }
thead { display: table-header-group; }
tbody th { font-style: italic; font-weight: normal; padding-top: .5em; break-after: avoid; }
tr { break-inside: avoid; }
figure.table p, p small { font-size: 8pt; line-height: 1.35; color: #333; }
dl { break-inside: avoid; }
dl { display: grid; grid-template-columns: 9em 1fr; font-size: 8.5pt; margin: .2em 0 .8em; gap: 0 .8em; }
dt { color: #555; } dd { margin: 0; min-width: 0; }
pre { background: #f4f4f4; padding: .6em .8em; font-size: 8.5pt; white-space: pre-wrap; }
@media print { body { margin: 0; padding: 0; max-width: none; } .scroll { overflow: visible; } nav { display: none; } }
@media screen and (max-width: 500px) { nav { columns: 1; } dl { grid-template-columns: 1fr; } }
""".strip()


SHORT = 24  # rows of a table that stays on one page
LONG = 30  # letters without a place to break
WORDS = re.compile(r'<td (style="text-align:left"[^>]*)>([^<]*)</td>')  # bold cells have tags, and are short


def _html(document: Document, images: Mapping[str, bytes]) -> str:
    title = escape.html(document.title)
    headings = [f"{number} {escape.html(section.title)}" for number, section in _numbered(document)]
    links = [f'<a href="#s{place}">{heading}</a>' for place, heading in enumerate(headings)]
    numbers = _numbers()
    body = []
    for place, (heading, section) in enumerate(zip(headings, document.sections, strict=True)):
        blocks = (_html_block(block, numbers, images) for block in section.blocks)
        kind = ' class="appendix"' * section.appendix
        body += [f'<section id="s{place}"><h2{kind}>{heading}</h2>', *blocks, "</section>"]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>",
            f"<h1>{title}</h1>",
            *(f'<p class="byline">{escape.html(line)}</p>' for line in document.byline),
            f'<nav aria-label="Contents">{"".join(links)}</nav>',
            *body,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _html_block(block: Block, numbers: Numbers, images: Mapping[str, bytes]) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{escape.html(block.text)}</p>"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{escape.html(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Definitions):
        rows = (f"<dt>{escape.html(name)}</dt><dd>{escape.html(text)}</dd>" for name, text in block.rows)
        return f"<h3>{escape.html(block.heading)}</h3>\n<dl>{''.join(rows)}</dl>"
    if isinstance(block, Commands):
        return "<pre><code>" + "\n".join(map(escape.html, block.lines)) + "</code></pre>"
    caption = escape.html(block.caption)
    if isinstance(block, NamedTable):
        head = f"<figcaption><b>Table {next(numbers[NamedTable])}.</b> {caption}</figcaption>"
        kind = "table short" if len(block.table.rows) <= SHORT else "table"
        return f'<figure class="{kind}">{head}\n<div class="scroll">{_html_table(block.table)}</div></figure>'
    source = b64encode(images[block.name]).decode()
    image = f'<img alt="{escape.html(block.drawing.title)}" src="data:image/svg+xml;base64,{source}">'
    head = f"<figcaption><b>Figure {next(numbers[NamedFigure])}.</b> {caption}</figcaption>"
    return f'<figure class="drawing">{image}\n{head}</figure>'


def _html_table(table: Table) -> str:
    """The table; cells of words may wrap, names between their parts, and those of numbers do not."""
    return WORDS.sub(_wrapping, table.format("html"))


def _wrapping(cell: re.Match[str]) -> str:
    pieces = name_parts(cell[2])
    kind = "words long" if max(map(len, pieces)) > LONG else "words"
    return f'<td class="{kind}" {cell[1]}>{"<wbr>".join(pieces)}</td>'


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _markdown(document: Document) -> str:
    blocks = [f"# {escape.markdown_line(document.title)}", "  \n".join(map(escape.markdown_line, document.byline))]
    numbers = _numbers()
    for number, section in _numbered(document):
        title = escape.markdown_line(section.title)
        blocks.append(f"## Appendix {number}: {title}" if section.appendix else f"## {number}\\. {title}")
        blocks += [_markdown_block(block, numbers) for block in section.blocks]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _markdown_block(block: Block, numbers: Numbers) -> str:
    if isinstance(block, Paragraph):
        return escape.markdown_line(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {escape.markdown_line(item)}" for item in block.items)
    if isinstance(block, Definitions):
        rows = [f"- *{escape.markdown_line(name)}*: {escape.markdown(text)}" for name, text in block.rows]
        return "\n".join([f"### {escape.markdown_line(block.heading)}", "", *rows])
    if isinstance(block, Commands):
        return "\n".join(f"    {escape.terminal(line)}" for line in block.lines)  # indented: a text cannot end it
    caption = escape.markdown(block.caption)
    if isinstance(block, NamedTable):
        return f"**Table {next(numbers[NamedTable])}.** {caption}\n\n{block.table.format('markdown')}"
    image = f"![{escape.markdown(block.drawing.title)}]({FIGURES}/{block.name}.svg)"
    return f"{image}\n\n**Figure {next(numbers[NamedFigure])}.** {caption}"


# ── LaTeX ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PREAMBLE = r"""
\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=20mm]{geometry}
\usepackage{array,booktabs,longtable,graphicx}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt plus 1pt}
\setlength{\emergencystretch}{6em}
\setlength{\LTcapwidth}{\linewidth}
\renewcommand{\topfraction}{0.95}
\renewcommand{\textfraction}{0.05}
\renewcommand{\floatpagefraction}{0.6}
\raggedbottom
""".strip()
KNOWN = set("–—‘’“”…•±×·°§") | {chr(code) for code in range(0x80, 0x180)}  # letters that LaTeX has of its own
SIGNS = {
    "−": "-", "→": "\\to ", "←": "\\leftarrow ", "≤": "\\leq ", "≥": "\\geq ", "≠": "\\neq ", "≈": "\\approx ",
    "∞": "\\infty ", "↔": "\\leftrightarrow ", "∈": "\\in ", "√": "\\surd ", "²": "^2", "³": "^3",
}  # fmt: skip
HYPHEN = "\ue000"  # stands for the end of a hyphen that must not join the next one to a dash


def _latex(document: Document) -> str:
    body = [rf"{{\LARGE\bfseries\raggedright {_tex(document.title)}\par}}", r" \\ ".join(map(_tex, document.byline))]
    appendix = False
    for section in document.sections:
        if section.appendix and not appendix:
            body += [r"\clearpage\appendix"]
            appendix = True
        body += [rf"\section{{{_tex(section.title)}}}", *map(_latex_block, section.blocks)]
    text = "\n\n".join(body)
    letters = sorted({sign for sign in text if ord(sign) > 0x7F} - KNOWN | {*SIGNS} & {*text})
    declared = [rf"\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{{_stand_in(sign)}}}" for sign in letters]
    # XeTeX and LuaTeX read such letters themselves.
    fallback = [r"\ifdefined\pdftexversion", *declared, r"\fi"] if declared else []
    return "\n".join([PREAMBLE, *fallback, r"\begin{document}", "", text, "", r"\end{document}", ""])


def _stand_in(sign: str) -> str:
    """What pdflatex, whose fonts lack most letters, prints for one: a sign of mathematics, else its number."""
    if sign in SIGNS:
        return rf"\ensuremath{{{SIGNS[sign]}}}"
    letters = unicodedata.normalize("NFKD", sign)
    plain = letters if letters.isascii() and letters.isalnum() else ""
    return plain or rf"\texttt{{U+{ord(sign):04X}}}"


def _latex_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _tex(block.text)
    if isinstance(block, Bullets):
        return "\n".join([r"\begin{itemize}", *(rf"\item {_tex(item)}" for item in block.items), r"\end{itemize}"])
    if isinstance(block, Definitions):
        rows = [rf"\item[{{{_tex(name)}}}] {_tex(text)}" for name, text in block.rows]
        lists = [r"{\small\begin{description}\setlength{\itemsep}{0pt}", *rows, r"\end{description}}"] if rows else []
        return "\n".join([rf"\paragraph{{{_tex(block.heading)}}}\mbox{{}}", *lists])
    if isinstance(block, Commands):
        lines = "\n\n".join(rf"\texttt{{{_tex(line)}}}" for line in block.lines)
        return rf"{{\small\raggedright {lines}\par}}"
    caption = _tex(block.caption)
    if isinstance(block, NamedTable):
        return longtable(block.table, caption)
    size = r"width=\linewidth,height=0.8\textheight,keepaspectratio"
    image = rf"\includegraphics[{size}]{{{FIGURES}/{block.name}.pdf}}"
    return "\n".join([r"\begin{figure}[htbp]\centering", image, rf"\caption{{{caption}}}", r"\end{figure}"])


def _tex(text: str) -> str:
    """Text without commands, in which two hyphens stay two, and long names and addresses may be broken."""
    words = re.sub("-(?=-)", f"-{HYPHEN}", escape.terminal(text.replace(HYPHEN, ""))).split(" ")
    parts = [name_parts(word) if len(word) > LONG else [word] for word in words]
    return " ".join(r"\allowbreak ".join(map(escape.latex, pieces)) for pieces in parts).replace(HYPHEN, "{}")


def _numbered(document: Document) -> Sequence[tuple[str, Section]]:
    """Sections with their numbers; appendices with letters."""
    main = count(1)
    letters = count(ord("A"))
    return [(chr(next(letters)) if section.appendix else str(next(main)), section) for section in document.sections]
