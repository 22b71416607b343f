"""The examples: scripts that people copy, run as they stand on a folder of pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from embark.data import emoji
from embark.results.table import Table

EXAMPLES = Path(__file__).parents[1] / "examples"
CLASSES = ("animals & nature", "flags", "food & drink")
WRITTEN = {"confusion.png", "differences.png", "map.png", "results", "table.tex"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty emoji of each of three groups, a folder each."""
    folder = tmp_path_factory.mktemp("pictures")
    for group in CLASSES:
        place = folder / group.partition(" ")[0]
        place.mkdir()
        symbols = [symbol for symbol in emoji.untoned() if symbol.group.casefold() == group]
        for symbol in symbols[:40]:
            (place / f"{symbol.code}.png").write_bytes(symbol.art)
    return folder


def ran(out: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """An example, with embark's command on the path and vectors of its own."""
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": commands, "EMBARK_HOME": str(out / "home")}
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, env=environment, cwd=out, timeout=300, check=False
    )


@pytest.mark.slow
def test_14_own_data_in_the_shell_and_in_python(pictures: Path, tmp_path: Path) -> None:
    shell = ran(tmp_path, "sh", EXAMPLES / "own_data.sh", pictures, "shell")
    assert shell.returncode == 0, shell.stderr
    assert "passed: embark/pocket is not worse than embark/handmade" in shell.stderr
    assert {path.name for path in (tmp_path / "shell").iterdir()} == WRITTEN
    python = ran(tmp_path, sys.executable, EXAMPLES / "own_data.py", pictures, "python")
    assert python.returncode == 0, python.stderr
    assert {path.name for path in (tmp_path / "python").iterdir()} == WRITTEN
    latex = [(tmp_path / form / "table.tex").read_text() for form in ("shell", "python")]
    assert latex[0] == latex[1]
    assert latex[0].count(r"\mathbf") == 3  # the best mean, probe and zero-shot score
    assert "tie" not in latex[0]  # a column that is not there is not explained
    assert len((EXAMPLES / "own_data.py").read_text().splitlines()) <= 40


@pytest.mark.slow
def test_14_the_gate_of_the_examples_closes(pictures: Path, tmp_path: Path) -> None:
    for words in (["sh", EXAMPLES / "own_data.sh"], [sys.executable, EXAMPLES / "own_data.py"]):
        gate = ran(tmp_path, *words, pictures, "out", "embark/random", "embark/pocket")
        assert gate.returncode == 1, gate.stderr
        losses = re.findall(r"(\w[\w ]*): -\d\d\.\d points \(p < 0\.0001", gate.stderr)
        assert sorted(losses) == ["PicturesProbe", "PicturesZeroShot", "mean of 2 tasks"], gate.stderr


def test_explanations_of_columns_go_with_them() -> None:
    table = Table(("model", "tie"), (), ("tie: models with one letter", "2 tasks"))
    assert table.only("model").notes == ("2 tasks",)
    assert table.only("*").notes == table.notes
