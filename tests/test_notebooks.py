"""The notebooks: committed with what their cells show, small, and still showing those numbers when they are run."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SIZE = 300_000  # bytes
NEAR = 0.51  # how far a number may be from the committed one: points are printed with one digit


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8"))["cells"])


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["choose_a_model", "publish_my_numbers", "why_my_model_fails"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_committed_small_and_with_outputs(path: Path) -> None:
    assert path.stat().st_size < SIZE
    text = path.read_text(encoding="utf-8")
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert not re.search(r"/(tmp|home|root|work)/", text)  # of the machine that ran it
    assert json.loads(text)["metadata"].keys() == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in cells(path))
    assert cells(path)[0]["source"][0].startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_stay_offline(path: Path) -> None:
    """No cell names a model that is not shipped, but for those whose published scores are looked at."""
    code = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code")
    assert {*re.findall(r'"([\w-]+/[\w.-]+)"', code)} <= {
        "embark/pocket", "embark/handmade", "embark/random", "embark/pocket-rewrites", "embark/pocket-judgements",
        "me/thumbnails", "elsewhere/results",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_run_and_show_the_same_numbers(
    path: Path, tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # for the kernel, wherever embark is installed
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    import nbformat

    committed = tool.numbers(nbformat.read(path, as_version=4))
    (tmp_path / "work").mkdir()
    shown = tool.numbers(tool.execute(path, tmp_path / "work"))
    assert sum(map(len, committed)) > 50
    assert [len(of_cell) for of_cell in shown] == [len(of_cell) for of_cell in committed]
    for now, before in zip(shown, committed, strict=True):
        assert now == pytest.approx(before, abs=NEAR, rel=0.01)
