"""A diagnosis of a model: several studies of one kind of failure, as a report with tables and figures in a folder."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.catalogue import check_name
from embark.data.atomic import atomically
from embark.escape import markdown
from embark.results.drawing import FORMATS
from embark.results.table import Noted, Table
from embark.studies.study import Study

REPORT = "report.md"
TABLES, FIGURES = "tables", "figures"  # folders
LETTERS = 21  # of a caption's type that an inch has room for


@dataclass(frozen=True)
class CaptionedStudy(Study):
    """A study whose figure has a caption: what is shown, in which unit, of how many items."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """What the figure shows, with its unit and the number of items."""

    @abstractmethod
    def draw_panels(self, figure: Any) -> None:
        """Draw all but the caption."""

    def draw(self, figure: Any) -> None:
        """The panels, and the caption below them."""
        self.draw_panels(figure)
        lines = textwrap.wrap(self.caption, int(LETTERS * self.size[0]))
        figure.supxlabel("\n".join(lines), fontsize=6, color="#444444")


@dataclass(frozen=True)
class Diagnosis(Noted):
    """Studies by name, and what they come down to in sentences; `write` makes a folder of them.

    Its table is that of the first study.
    """

    title: str
    findings: tuple[str, ...]
    studies: Mapping[str, CaptionedStudy]

    def table(self) -> Table:
        """The table of the first study."""
        return next(iter(self.studies.values())).table()

    def write(self, folder: Path | str, figures: str = "svg") -> tuple[Path, ...]:
        """Write report.md, tables as CSV and figures (svg, pdf or png) into a folder; returns the files."""
        check_name("format of figures", f".{figures}", FORMATS)
        root = Path(folder)
        written = []
        for name, study in self.studies.items():
            image = root / FIGURES / f"{name}.{figures}"
            study.plot(image)
            written += [image, _write(root / TABLES / f"{name}.csv", study.table().format("csv"))]
        return (_write(root / REPORT, self.report(figures)), *written)

    def report(self, figures: str = "svg") -> str:
        """The whole in Markdown, with links to the figures."""
        blocks = [f"# {markdown(self.title)}", "\n".join(f"- {markdown(line)}" for line in self.findings)]
        blocks += [f"*{markdown(note)}*" for note in self.notes]
        for name, study in self.studies.items():
            title = markdown(study.title)
            blocks += [
                f"## {title}",
                study.table().format("markdown"),
                f"![{title}]({FIGURES}/{name}.{figures})",
                f"*{markdown(study.caption)}* ([table as CSV]({TABLES}/{name}.csv))",
            ]
        return "\n\n".join(block for block in blocks if block)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomically(path) as out:
        out.write(f"{text}\n".encode())
    return path
