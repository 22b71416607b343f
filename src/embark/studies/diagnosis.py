"""A diagnosis of a model: several analyses of one kind of failure, as a report with tables and figures in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from embark.catalogue import check_name
from embark.documents import FIGURES, TABLES, render
from embark.escape import markdown
from embark.outgoing import write_text
from embark.redaction import Content, redacted, this_machine
from embark.studies.analysis import Analysis
from embark.tables import Noted, Table
from embark.tables.drawing import FORMATS
from embark.types import EmbarkError

REPORT = "report.md"
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
        return (write_text(root / REPORT, Content(self.report(figures)), private), *images, *written)

    def report(self, figures: str = "svg") -> str:
        """The whole in Markdown, with links to the figures."""
        private = this_machine()
        return render(
            "diagnosis.md",
            lambda text: markdown(redacted(text, private)),
            {"table": lambda table: table.outgoing(private).format("markdown")},
            title=self.title,
            findings=self.findings,
            notes=self.notes,
            analyses=list(self.analyses.items()),
            further=list(self.further_tables),
            figures=figures,
        )


def make_folder(folder: Path | str) -> None:
    """Make the folder of a report, before anything is computed for it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbarkError(f"No report can be written to {folder}: {error.strerror}. Name another folder.") from error
