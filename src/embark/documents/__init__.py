"""Documents: sections of text, lists, tables and figures as values; HTML, Markdown and LaTeX by templates."""

from embark.documents.document import (
    DOCUMENT_PARTS,
    FIGURES,
    TABLES,
    Block,
    Bullets,
    Commands,
    Definitions,
    Document,
    NamedFigure,
    NamedTable,
    Paragraph,
    Section,
)
from embark.documents.templating import render

__all__ = [
    "DOCUMENT_PARTS",
    "FIGURES",
    "TABLES",
    "Block",
    "Bullets",
    "Commands",
    "Definitions",
    "Document",
    "NamedFigure",
    "NamedTable",
    "Paragraph",
    "Section",
    "render",
]
