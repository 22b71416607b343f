"""A comparison as a gate: when a candidate fails, what is printed, and the example of a workflow."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.stats.compare import Pair, Tally
from embark.stats.gate import losses

WORKFLOW = Path(__file__).parents[2] / "examples" / "compare.yml"
TASKS = ["PocketOtherSkinTone", "PocketClockReading"]


def pair(task: str, difference: float, holm: float) -> Pair:
    return Pair(task, "Retrieval", 0.5 + difference, 0.5, difference - 0.01, difference + 0.01, holm / 2, 100, holm)


@pytest.fixture
def two_models() -> embark.Run:
    embark.evaluate("embark/random", "PocketNameSTS", show_progress=False)
    return embark.evaluate(["embark/handmade", "embark/random"], TASKS, show_progress=False)


def test_14_13_worse_is_more_than_chance_and_more_than_the_margin() -> None:
    pairs = [pair("A", -0.02, 0.01), pair("B", -0.3, 0.2), pair("C", 0.2, 0.001)]
    level = Tally(1, 1, 1, -0.04, -0.1, 0.02, 0.3)
    assert losses(pairs, level) == ("A: -2.0 points (p = 0.01 after Holm's correction)",)
    assert losses(pairs, level, margin=2.5) == ()
    lower = Tally(1, 1, 1, -0.04, -0.06, -0.02, 0.00001)
    assert losses(pairs, lower, margin=2.5) == ("mean of 3 tasks: -4.0 points (p < 0.0001)",)
    assert losses(pairs, lower, margin=5) == ()
    assert losses(pairs[2:], Tally(1, 0, 0, 0.2)) == ()  # a mean without an interval


def test_14_13_compare_is_a_gate(two_models: embark.Run, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["compare", *words])
        return done.exit_code, done.stdout, done.stderr

    plot = tmp_path / "differences.svg"
    status, out, notes = run("embark/random", "embark/handmade", "--fail-if-worse", "--plot", str(plot))
    assert status == 1
    assert out.startswith("Over 2 tasks, embark/random is better than embark/handmade on 0, worse on 1")  # first of all
    lines = notes.splitlines()
    refused = "not comparable: 1 task: PocketNameSTS (only embark/random has a score)"
    assert lines[:2] == [f"drawn: {plot}", refused]
    assert re.fullmatch(r"worse: PocketOtherSkinTone: -\d+\.\d points \(p < 0.0001 after Holm's correction\)", lines[2])
    assert "embark/random − embark/handmade" in plot.read_text(encoding="utf-8")
    assert run("embark/random", "embark/handmade")[0] == 0  # no gate was asked for
    assert run("embark/random", "embark/handmade", "--fail-if-worse", "--margin", "99")[0] == 0
    status, out, notes = run("embark/handmade", "embark/random", "--fail-if-worse", "--format", "json")
    assert (status, json.loads(out)["worse"]) == (0, [])
    assert notes.splitlines()[-1] == "passed: embark/handmade is not worse than embark/random (0 points allowed)"
    comparison = embark.compare("embark/random", "embark/handmade")
    assert len(comparison.worse()) >= 1
    assert comparison.worse(margin=99) == ()


def test_14_13_the_example_workflow_runs_commands_that_exist() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    steps = workflow["jobs"]["compare"]["steps"]
    commands = [shlex.split(step["run"]) for step in steps if step.get("run", "").startswith("embark ")]
    assert [words[1] for words in commands] == ["run", "compare", "compare"]
    assert any("--fail-if-worse" in words for words in commands)
    for _, name, *words in commands:
        values = [re.sub(r"\$(\w+)", lambda name: str(workflow["env"].get(name[1], "x")), word) for word in words]
        values = values[: values.index(">>")] if ">>" in values else values
        command = get_command(app).commands[name]  # type: ignore[attr-defined]
        command.make_context(name, values)  # an unknown option would be an error
