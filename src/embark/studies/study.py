"""What an analysis found: a table to read, and a drawing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.results.table import Table
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
    "svg.fonttype": "none",  # words stay words
    "svg.hashsalt": "embark",  # the same study is the same file
}


@dataclass(frozen=True)
class Study:
    """A table, and how to draw it: `draw` gets an empty figure of `size` inches."""

    title: str
    table: Table
    draw: Callable[[Any], None]
    size: tuple[float, float] = (7.0, 4.5)

    def save(self, path: Path) -> None:
        """Draw it into a file: SVG or PDF (vectors), or PNG."""
        if path.suffix not in FORMATS:
            raise EmbarkError(f"A plot can be written as {', '.join(FORMATS)}, not as '{path.suffix or path.name}'.")
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise EmbarkError("Plots need matplotlib: pip install 'embark[plots]'") from error
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=self.size, layout="constrained")
            self.draw(figure)
            figure.suptitle(self.title, fontsize=10)
            about = {"Date": None} if path.suffix == ".svg" else None
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=200, metadata=about)
