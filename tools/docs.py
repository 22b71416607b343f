"""What mkdocs does to the pages of docs/: links that leave docs/, and the reference of the public API.

A page links files of the repository (`../examples/slurm.sh`, `../CONTRIBUTING.md`). The site takes them along, below
`repository/`, so that such a link works in a checkout and in the site. The reference lists what `help(embark)` lists.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")  # of Markdown, up to its anchor
FENCE = re.compile(r"(^ *```.*?^ *```[ ]*$|`[^`\n]+`)", re.M | re.S)  # code, in which nothing is a link
ALSO = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # pages of the site, linked or not


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the repository that pages link, and those that they link in turn."""
    queue = [*ALSO, *(f"docs/{page.src_uri}" for page in files.documentation_pages())]
    for path in queue:
        for target in _links(path) if path.endswith(".md") else ():
            if _place(target) != target.removeprefix("docs/") and target not in queue:
                queue.append(target)
        if not path.startswith("docs/"):
            files.append(File.generated(config, _place(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page with links as the site has them; the reference with its entries."""
    path = posixpath.relpath(str(page.file.abs_src_path), str(ROOT))
    place = posixpath.dirname(_place(path))

    def relink(match: re.Match[str]) -> str:
        return match[1] + posixpath.relpath(_place(_target(path, match[2])), place or ".")

    pieces = FENCE.split(markdown)
    pieces[::2] = [LINK.sub(relink, piece) for piece in pieces[::2]]
    return "".join(pieces).replace("<!-- what help(embark) lists -->", _reference())


def _links(path: str) -> list[str]:
    """The files that a page links, as paths from the repository's root."""
    pieces = FENCE.split((ROOT / path).read_text(encoding="utf-8"))
    return [_target(path, match[2]) for piece in pieces[::2] for match in LINK.finditer(piece)]


def _target(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _place(path: str) -> str:
    """Where a file of the repository is in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def _reference() -> str:
    """A heading for each group of `help(embark)`, and an entry for each name."""
    doc = ast.get_docstring(ast.parse((ROOT / "src/embark/__init__.py").read_text(encoding="utf-8"))) or ""
    lines: list[str] = []
    for block in doc.split("\n\n"):
        title, *rest = block.split("\n")
        if rest and all(line.startswith("    ") for line in rest):
            listed = [match[1] for line in rest if (match := re.match(r" {4}([\w.]+) {2,}\S", line))]
            names = listed or [f"types.{name}" for name in re.findall(r"\w+", " ".join(rest))]
            lines += [f"## {title}", "", *(f"::: embark.{name}\n" for name in names)]
    return "\n".join(lines)
