"""A comparison as a gate: when a candidate fails, what is printed, and the example of a workflow."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.settings import load_settings
from embark.stats.compare import Comparison
from embark.stats.gate import ModelPair, Tally, losses
from embark.tasks import TASKS
from embark.types import Array, ModelCard

WORKFLOW = Path(__file__).parents[2] / "examples" / "compare.yml"


def pair(task: str, difference: float, holm: float) -> ModelPair:
    return ModelPair(
        task, "Retrieval", 0.5 + difference, 0.5, difference - 0.01, difference + 0.01, holm / 2, 100, holm
    )


def put(model: str, task: str, right: Array) -> None:
    """Keep a result with these outcomes."""
    row = TASKS[task]
    [part] = row.parts
    score = float(right.mean())
    record = Record(model, "1", task, *part, ("eng",), row.metric, score, (0, 1), {}, "p", "e", statistic="mean")
    result = TaskResult(model, "1", task, "r", (record,), score, (0, 1), 0.0)
    columns = outcome_columns(*part, [str(item) for item in range(len(right))], {row.metric: right})
    Results(load_settings().results).save(result, ModelCard(model, "1", "none", ("text",)), [columns])


@pytest.fixture
def two_models(elsewhere: Path) -> None:
    items = np.random.default_rng(0).random((2, 200))
    put("x/new", "PocketFlagZeroShot", (items[0] < 0.3).astype(float))
    put("x/old", "PocketFlagZeroShot", (items[0] < 0.6).astype(float))
    put("x/new", "PocketClockReading", (items[1] < 0.5).astype(float))
    put("x/old", "PocketClockReading", (items[1][::-1] < 0.5).astype(float))
    put("x/new", "PocketCounting", (items[0] < 0.3).astype(float))


def test_worse_is_more_than_chance_and_more_than_the_margin() -> None:
    pairs = [pair("A", -0.02, 0.01), pair("B", -0.3, 0.2), pair("C", 0.2, 0.001)]
    level = Tally(1, 1, 1, -0.04, -0.1, 0.02, 0.3)
    assert losses(pairs, level) == ("A: -2.0 points (p = 0.01 after Holm's correction)",)
    assert losses(pairs, level, margin=2.5) == ()
    lower = Tally(1, 1, 1, -0.04, -0.06, -0.02, 0.00001)
    assert losses(pairs, lower, margin=2.5) == ("mean of 3 tasks: -4.0 points (p < 0.0001)",)
    assert losses(pairs, lower, margin=5) == ()
    assert losses(pairs[2:], Tally(1, 0, 0, 0.2)) == ()  # a mean without an interval
    assert len(losses(pairs[:1], lower)) == 1  # one task is no mean


def test_the_first_sentence_says_what_the_gate_says() -> None:
    pairs = (pair("A", -0.1, 0.1), pair("B", -0.1, 0.1))
    worse = Comparison("new", "old", pairs, {}, Tally(0, 2, 0, -0.1, -0.19, -0.01, 0.03), {})
    assert worse.worse() == ("mean of 2 tasks: -10.0 points (p = 0.03)",)
    assert worse.sentence() == (
        "Over 2 tasks, new is worse than old in the mean (-10.0 points [-19.0, -1.0]), though on no task alone."
    )
    level = replace(worse, total=replace(worse.total, p=0.5))
    assert level.sentence() == "On 2 tasks, no difference between new and old is significant."


def test_compare_is_a_gate(two_models: None, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["compare", *words])
        return done.exit_code, done.stdout, done.stderr

    plot = tmp_path / "differences.svg"
    status, out, notes = run("x/new", "x/old", "--fail-if-worse", "--plot", str(plot))
    assert status == 1
    assert out.startswith("Over 2 tasks, x/new is better than x/old on 0, worse on 1")  # first of all
    lines = notes.splitlines()
    assert lines[:2] == [f"drawn: {plot}", "not comparable: 1 task: PocketCounting (only x/new has a score)"]
    assert re.fullmatch(r"worse: PocketFlagZeroShot: -\d+\.\d points \(p < 0.0001 after Holm's correction\)", lines[2])
    assert "x/new − x/old" in plot.read_text(encoding="utf-8")
    assert run("x/new", "x/old")[0] == 0  # no gate was asked for
    assert run("x/new", "x/old", "--fail-if-worse", "--margin", "99")[0] == 0
    status, out, notes = run("x/old", "x/new", "--fail-if-worse", "--format", "json")
    assert (status, json.loads(out)["worse"]) == (1, ["PocketCounting: x/old has no score"])
    status, _, notes = run("x/old", "x/new", "--fail-if-worse", "-t", "PocketFlag*")
    assert (status, notes.splitlines()[-1]) == (0, "passed: x/old is not worse than x/new (a loss of 0 allowed)")
    assert run("x/new", "x/old", "--fail-if-worse", "--margin", "99")[2].splitlines()[-1] == (
        "passed: x/new is not worse than x/old on the 2 of 3 tasks that can be compared (a loss of 99 allowed)"
    )
    comparison = embark.compare("x/new", "x/old")
    assert comparison.worse()[0] == lines[2].removeprefix("worse: ")
    assert comparison.worse(margin=99) == ()


def test_the_example_workflow_runs_commands_that_exist() -> None:
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
