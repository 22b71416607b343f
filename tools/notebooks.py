"""Run the notebooks of examples/notebooks anew and write them back without what differs from run to run:

    python tools/notebooks.py [NOTEBOOK…]

Each runs in an empty folder with a store and results of its own, offline. Needs nbclient and ipykernel (test-all).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"
SECONDS = 300  # that a cell may take
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?!\w)")


def execute(path: Path, folder: Path) -> Any:
    """The notebook after a run in `folder`; a cell that fails is an error."""
    notebook = nbformat.read(path, as_version=4)
    environment = os.environ | {
        "EMBARK_HOME": str(folder / "home"), "EMBARK_RESULTS": str(folder / "results"), "EMBARK_OFFLINE": "1",
        "XDG_CONFIG_HOME": str(folder / "config"), "IPYTHONDIR": str(folder / "ipython"), "COLUMNS": "120",
    }  # fmt: skip
    environment.pop("PYTHONWARNINGS", None)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    return clean(notebook)


def clean(notebook: Any) -> Any:
    """The notebook without ids, times and versions of the machine that ran it."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.pop("metadata", None)
            if "data" in output:
                output.metadata = {}
                if "text/html" in output.data:  # the same again, for viewers without HTML
                    output.data.pop("text/plain", None)
    return notebook


def numbers(notebook: Any) -> list[list[float]]:
    """The numbers that each cell shows, in their order; not those within drawings."""
    return [
        [float(number.replace(",", "")) for text in _texts(cell) for number in NUMBER.findall(text)]
        for cell in notebook.cells
    ]


def _texts(cell: Any) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        page = re.sub(r"<img[^>]*>|<[^>]*>", " ", "".join(data.get("text/html", "")))
        yield from ("".join(output.get("text", "")), "".join(data.get("text/plain", "")), page)


def main(paths: list[Path]) -> None:
    for path in paths:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, {path.stat().st_size / 1000:.0f} KB", flush=True)


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb")))
