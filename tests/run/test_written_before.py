"""Results and vectors that an earlier version wrote (tests/samples/before) are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app

BEFORE = Path(__file__).parents[1] / "samples" / "before"
TASK = "PocketFlagZeroShot"


@pytest.fixture
def before(elsewhere: Path) -> Path:
    """The home and the results of the earlier version, where the settings point to."""
    return shutil.copytree(BEFORE, elsewhere, dirs_exist_ok=True)


def test_vectors_that_were_stored_as_float16_are_found_with_that_precision(before: Path) -> None:
    run = embark.evaluate("embark/pocket", TASK, loading=embark.Loading(stored_dtype="float16"), show_progress=False)
    assert (run.embedded, run.computed) == (0, 1)
    [known] = json.loads(next(BEFORE.glob(f"results/embark__pocket/*/{TASK}.json")).read_text())["scores"]["test"]
    [result] = run.results
    assert result.score == known["main_score"]
    [record] = result.records
    assert record.metrics == {name: known[name] for name in record.metrics}


def test_results_of_two_models_are_compared(before: Path) -> None:
    done = CliRunner().invoke(app, ["compare", "embark/pocket", "embark/handmade", "--json"])
    assert done.exit_code == 0, done.output
    comparison = json.loads(done.stdout)
    scores = {
        (path.parts[-3], path.stem): json.loads(path.read_text())["scores"]["test"][0]["main_score"]
        for path in BEFORE.glob("results/*/*/Pocket*.json")
    }
    assert {row["task"]: row["difference"] for row in comparison["tasks"]} == pytest.approx(
        {
            task: scores["embark__pocket", task] - scores["embark__handmade", task]
            for task in (TASK, "PocketGroupProbe")
        }
    )
