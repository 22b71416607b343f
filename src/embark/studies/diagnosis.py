"""A diagnosis of a model: several analyses of one kind of failure, as a report with tables and figures in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from embark.catalogue import check_name
from embark.escape import markdown
from embark.outgoing import write_text
from embark.redaction import Content, redacted, this_machine
from embark.studies.analysis import Analysis
from embark.tables import Noted, Table
from embark.tables.drawing import FORMATS
from embark.types import EmbarkError

REPORT = "report.md"
TABLES, FIGURES = "tables", "figures"  # folders
STYLES = {"csv": "csv", "tex": "latex"}  # of tables, by the ending of their files


@dataclass(frozen=True)
class Diagnosis(Noted, ABC):
    """Analyses by name, and what they come down to in sentences; `write` makes a folder of them."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The heading of the report."""

    @property
    @abstractmethod
    def findings(self) -> tuple[str, ...]:
        """The conclusions from the analyses, in sentences."""

    @property
    @abstractmethod
    def analyses(self) -> Mapping[str, Analysis]:
        """The analyses by the names of their files."""

    @property
    def further_tables(self) -> Mapping[str, Table]:
        """Tables that the report links to, by the names of their files."""
        return {}

    def table(self) -> Table:
        """The table of the first analysis."""
        return next(iter(self.analyses.values())).table()

    def write(self, folder: Path | str, figures: str = "svg") -> tuple[Path, ...]:
        """Write report.md, tables (CSV and LaTeX) and figures (svg, pdf or png) into a folder; returns the files."""
        check_name("format of figures", f".{figures}", FORMATS)
        root = Path(folder)
        images = [root / FIGURES / f"{name}.{figures}" for name in self.analyses]
        for image, analysis in zip(images, self.analyses.values(), strict=True):
            analysis.plot(image)
        private = this_machine()
        tables = {**{name: analysis.table() for name, analysis in self.analyses.items()}, **self.further_tables}
        written = [
            write_text(
                root / TABLES / f"{name}.{ending}", Content(f"{table.outgoing(private).format(style)}\n"), private
            )
            for name, table in tables.items()
            for ending, style in STYLES.items()
        ]
        return (write_text(root / REPORT, Content(f"{self.report(figures)}\n"), private), *images, *written)

    def report(self, figures: str = "svg") -> str:
        """The whole in Markdown, with links to the figures."""
        private = this_machine()

        def shown(text: str) -> str:
            return markdown(redacted(text, private))

        blocks = [f"# {shown(self.title)}", "\n".join(f"- {shown(line)}" for line in self.findings)]
        blocks += [f"*{shown(note)}*" for note in self.notes]
        for name, analysis in self.analyses.items():
            title = shown(analysis.title)
            blocks += [
                f"## {title}",
                analysis.table().outgoing(private).format("markdown"),
                f"![{title}]({FIGURES}/{name}.{figures})",
                f"*{shown(analysis.caption)}* ({_links(name)})",
            ]
        if self.further_tables:
            lines = [f"- {name} ({_links(name)})" for name in self.further_tables]
            blocks += ["## Further tables", "\n".join(lines)]
        return "\n\n".join(block for block in blocks if block)


def make_folder(folder: Path | str) -> None:
    """Make the folder of a report, before anything is computed for it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbarkError(f"No report can be written to {folder}: {error.strerror}. Name another folder.") from error


def _links(name: str) -> str:
    return ", ".join(f"[{ending}]({TABLES}/{name}.{ending})" for ending in STYLES)
