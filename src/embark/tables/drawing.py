"""What is seen both as a table and as a drawing, in a file or in a notebook."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any

from embark.outgoing import write_bytes
from embark.redaction import Private, redacted, redacted_value, this_machine
from embark.tables.notes import without_advice
from embark.tables.tabular import Tabular
from embark.types import EmbarkError

FORMATS = (".svg", ".pdf", ".png")
COLUMN, PAGE = 3.5, 7.0  # inches: the widths of a paper's column and page, at which a drawing is printed as it is
LETTERS = 15  # of the title, an inch
DPI = 300
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML file may have
# The one style sheet: no type below 6.5 points at these widths.
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,  # also there: journals refuse the other kind
    "text.parse_math": False,  # names with dollar signs are names
    "svg.hashsalt": "embark",  # the same drawing is the same file
}


class Drawn(Tabular, ABC):
    """A value that can be seen as a table and as a drawing."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The heading of the drawing."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing, in inches."""
        return PAGE, 4.5

    @abstractmethod
    def draw(self, figure: Any) -> None:
        """Draw it into an empty matplotlib figure."""

    @property
    def caption(self) -> str:
        """The words below it in a paper: its title, then what its table notes on n, units and intervals."""
        return " ".join([f"{self.title.rstrip('.')}.", *map(without_advice, self.table().notes)])

    def plot(self, path: Path | str) -> None:
        """Draw it into a file: .svg, .pdf or .png."""
        path = Path(path)
        if path.suffix not in FORMATS:
            raise EmbarkError(f"A plot can be written as {', '.join(FORMATS)}, not as '{path.suffix or path.name}'.")
        image = self._image(path.suffix.removeprefix("."))
        write_bytes(path, image)

    def svg(self) -> str:
        """The drawing as SVG."""
        return self._image("svg").decode()

    def _repr_html_(self) -> str:
        table = super()._repr_html_()
        try:
            image = b64encode(self._image("svg")).decode()
        except EmbarkError:  # without matplotlib the table stands alone
            return table
        title = redacted(self.title, this_machine())
        return f'{table}\n<img alt="{escape(title)}" src="data:image/svg+xml;base64,{image}">'

    def _image(self, format: str) -> bytes:
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise EmbarkError("Plots need matplotlib: pip install 'embark-bench[plots]'") from error
        image = BytesIO()
        with mpl.rc_context(STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")  # whoever shows an SVG has other fonts
            figure = Figure(figsize=self.size, layout="constrained")
            private = this_machine()
            title = redacted(self.title, private)  # before a path is broken into lines
            figure.suptitle("\n".join(wrap(title, int(self.size[0] * LETTERS))), fontsize=9)
            self.draw(figure)  # after the title, which takes room from it
            words = {"Title": self.title, "Subject" if format == "pdf" else "Description": self.caption}
            dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same drawing is the same file
            facts = redacted_value(words, private) | dates.get(format, {})
            figure.savefig(image, format=format, dpi=DPI, metadata=facts)
            if _redact(figure, private):  # labels of axes are texts only once they are drawn
                image = BytesIO()
                figure.savefig(image, format=format, dpi=DPI, metadata=facts)
        data = image.getvalue()
        return NOT_XML.sub("\ufffd", data.decode()).encode() if format == "svg" else data


def _redact(figure: Any, private: Private) -> bool:
    """Remove what must not leave this machine from the texts of a drawn figure; whether there was any."""
    from matplotlib.text import Text

    changed = False
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [label.get_text() for label in axis.get_ticklabels()]
            shown = redacted_value(labels, private)
            if shown != labels:
                axis.set_ticks(axis.get_ticklocs(), labels=shown)
                changed = True
    for text in figure.findobj(Text):
        shown = redacted(text.get_text(), private)
        if shown != text.get_text():
            text.set_text(shown)
            changed = True
    return changed
