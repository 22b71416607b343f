"""Commands that read scores import nothing that makes them: no engine, no store, no Ray, no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import embark
from embark.results import Results

HEAVY = ("embark.engine", "embark.store", "embark.run", "ray", "torch")
CODE = """
import sys
from embark.cli import app
try:
    app(sys.argv[1:])
finally:
    print("imported:", *sys.modules)
"""
TASKS_FILE = """
[[task]]
name = "PagesSTS"
evaluator = "sts"
reader = "rendered-sts"
modalities = ["text"]
columns = { left = "left", right = "right", score = "score" }
source = { id = "pages" }
"""
OWN = ("-t", "PagesSTS", "--tasks-file", "tasks.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of two models on a built-in task and on one of a tasks file."""
    folder = tmp_path_factory.mktemp("scores")
    (folder / "pages").mkdir()
    (folder / "pages" / "test.csv").write_text("left,right,score\ncat,small cat,5\ndog,house,1\ncar,bus,3\n")
    (folder / "tasks.toml").write_text(TASKS_FILE)
    rows = [*embark.get_tasks("PocketNameSTS"), *embark.load_tasks(folder / "tasks.toml")]
    settings = embark.load_settings(folder / "home", folder / "results")
    embark.evaluate(["embark/handmade", "embark/random"], rows, settings=settings, show_progress=False)
    assert len(list(Results(settings.results).all())) == 4
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("leaderboard", "-b", "MIEB(lite)", "--include", "published"),
        ("leaderboard", "-b", "Pocket"),
        ("leaderboard", "--include", "own"),
        ("leaderboard", *OWN),
        ("compare", "embark/handmade", "embark/random"),
        ("compare", "embark/handmade", "embark/random", *OWN),
        ("recommend", "--need", "retrieval"),
        ("recommend", "--need", "STS", "--include", "own", *OWN),
        ("card", "-m", "embark/handmade"),
    ],
    ids=" ".join,
)
def test_a_command_that_reads_scores_imports_nothing_that_makes_them(folder: Path, words: tuple[str, ...]) -> None:
    env = {**os.environ, "EMBARK_HOME": str(folder / "home"), "EMBARK_RESULTS": str(folder / "results")}
    line = [sys.executable, "-c", CODE, *words]
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    imported = done.stdout.rpartition("imported:")[2].split()
    assert "embark.results" in imported
    assert not [name for name in imported if any(name == root or name.startswith(f"{root}.") for root in HEAVY)]
