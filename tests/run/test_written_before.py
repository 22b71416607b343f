"""Results and vectors that an earlier version wrote (tests/samples/before) stay valid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.settings import load_settings

BEFORE = Path(__file__).parents[1] / "samples" / "before"
TASK = "PocketFlagZeroShot"


@pytest.fixture
def before(elsewhere: Path) -> Path:
    """The home and the results of the earlier version, where the settings point to."""
    return shutil.copytree(BEFORE, elsewhere, dirs_exist_ok=True)


def test_nothing_is_embedded_or_computed_again(before: Path) -> None:
    run = embark.evaluate("embark/pocket", TASK, show_progress=False)
    assert (run.embedded, run.computed, run.skipped) == (0, 0, [])
    [result] = run.results
    [entry] = json.loads(next(BEFORE.glob(f"results/embark__pocket/*/{TASK}.json")).read_text())["scores"]["test"]
    assert result.score == entry["main_score"]


def test_stored_vectors_give_the_same_score(before: Path) -> None:
    [known] = embark.evaluate("embark/pocket", TASK, show_progress=False).results
    shutil.rmtree(load_settings().results)
    run = embark.evaluate("embark/pocket", TASK, show_progress=False)
    assert (run.embedded, run.computed) == (0, 1)
    [result] = run.results
    assert result.score == known.score
    assert known.interval[0] < result.score < known.interval[1]  # it was made otherwise then
    [record], [known_record] = result.records, known.records
    assert record.metrics == known_record.metrics
    assert record.fingerprint == known_record.fingerprint


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
