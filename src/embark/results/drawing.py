"""What is seen both as a table and as a drawing, in a file or in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from embark.results.table import Tabular
from embark.types import EmbarkError

FORMATS = (".svg", ".pdf", ".png")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
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
        return 7.0, 4.5

    @abstractmethod
    def draw(self, figure: Any) -> None:
        """Draw it into an empty matplotlib figure."""

    def plot(self, path: Path | str) -> None:
        """Draw it into a file: .svg, .pdf or .png."""
        path = Path(path)
        if path.suffix not in FORMATS:
            raise EmbarkError(f"A plot can be written as {', '.join(FORMATS)}, not as '{path.suffix or path.name}'.")
        image = self._image(path.suffix.removeprefix("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image)

    def _repr_html_(self) -> str:
        table = super()._repr_html_()
        try:
            image = b64encode(self._image("svg")).decode()
        except EmbarkError:  # without matplotlib the table stands alone
            return table
        return f'{table}\n<img alt="{escape(self.title)}" src="data:image/svg+xml;base64,{image}">'

    def _image(self, format: str) -> bytes:
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise EmbarkError("Plots need matplotlib: pip install 'embark[plots]'") from error
        image = BytesIO()
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=self.size, layout="constrained")
            self.draw(figure)
            figure.suptitle(self.title, fontsize=10)
            # Without a date, the same drawing is the same file.
            figure.savefig(image, format=format, dpi=200, metadata={"Date": None} if format == "svg" else None)
        return image.getvalue()
