"""A plan predicts, and the run that follows says how well."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.models.encoder import Bill, Capabilities
from embark.planning import Demand
from embark.run import evaluate, predictions
from embark.run.plans import plan
from embark.run.predictions import TimePrediction, prediction_file, scoring_seconds
from embark.run.workbench import Workbench
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import Array

TASK = "PocketNameSTS"  # 300 texts


def slow(seconds: float = 0.002, name: str = "test/slow") -> embark.Encoder:
    """A model that sleeps for each text."""

    def embed(texts: list[str]) -> Array:
        time.sleep(seconds * len(texts))
        return np.array([[len(text), text.count("e") + 1, sum(map(ord, text)) % 97] for text in texts], np.float32)

    return embark.encoder(text=embed, name=name, revision="1")


def only_prediction() -> TimePrediction:
    [path] = (load_settings().home / "predictions").iterdir()
    return TimePrediction(**json.loads(path.read_text()))


def test_a_prediction_is_within_a_factor_two() -> None:
    def ratio(name: str) -> float:
        predicted = plan(slow(name=name), TASK, seconds=1.5).rows()[-1]["seconds"]
        return float(predicted / evaluate(slow(name=name), TASK).seconds)

    attempts = map(ratio, ("test/first", "test/second", "test/third"))  # other work may slow down one half of one
    assert any(0.5 < value < 2 for value in attempts)


def test_a_run_says_what_was_predicted_and_records_what_it_took() -> None:
    report = plan(slow(), TASK, seconds=1.0)
    [of_model] = report.models
    assert of_model.plan.total.missing == 300
    assert sum(of_model.seconds) > 0.6
    predicted = report.rows()[-1]["seconds"]
    assert predicted == pytest.approx(sum(of_model.stages().values()))
    assert set(of_model.stages()) == {"load", "read", "embed", "score"}
    run = evaluate(slow(), TASK)
    assert run.predicted == pytest.approx(predicted)
    assert any(line.startswith("The plan predicted ") and "it took" in line for line in run.summary())
    assert only_prediction().took == run.seconds


def test_a_run_of_something_else_is_not_compared() -> None:
    plan(slow(0.0), TASK, seconds=0.2)
    assert evaluate(slow(0.0), [TASK, "PocketNameClustering"]).predicted is None  # other tasks
    assert evaluate(slow(0.0), TASK).predicted is None  # a score on disk by now
    assert evaluate(slow(0.0), TASK, rescore=True).predicted is None  # vectors in the store by now
    assert evaluate(slow(0.0, "test/other"), TASK).predicted is None
    assert only_prediction().took is None


def test_a_prediction_of_another_day_or_in_another_form_is_none() -> None:
    model = slow(0.0)
    path = prediction_file(load_settings(), [model.card], [TASKS[TASK]])
    TimePrediction(1, 300, 5.0, time.time() - 2 * 24 * 3600).save(path)
    assert evaluate(model, TASK).predicted is None
    path.write_text('{"seconds": 3}')
    assert TimePrediction.load(path) is None
    path.write_text("[")
    assert TimePrediction.load(path) is None


def test_a_home_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    settings = replace(load_settings(), home=tmp_path / "home")
    [of_model] = plan(slow(0.0), TASK, seconds=0.2, settings=settings).models
    assert sum(of_model.seconds) > 0


def test_several_models_are_predicted_together() -> None:
    models = [slow(0.0), slow(0.0, "test/other")]
    report = plan(models, TASK, seconds=0.2)
    run = evaluate(models, TASK)
    assert run.predicted == pytest.approx(sum(row["seconds"] for row in report.rows() if row["task"] == "all"))


def test_a_paid_model_is_not_measured() -> None:
    class Paid(type(slow())):  # type: ignore[misc]
        def embed(self, batch: Any) -> Any:
            raise AssertionError("nothing is sent")

    model = slow(0.0)
    paid = Paid.__new__(Paid)
    paid.__dict__ |= model.__dict__
    paid.capabilities = Capabilities(bill=lambda prepared: Bill(1.0, 0.5))
    [of_model] = plan(paid, TASK).models
    assert of_model.stages() == {}
    assert of_model.rows()[-1]["dollars"] == 150
    assert not (load_settings().home / "predictions").exists()


def test_a_limit_plans_the_sample_that_a_run_would_draw() -> None:
    whole = plan(slow(0.0), TASK, seconds=0.2).models[0].plan.total
    [of_model] = plan(slow(0.0), TASK, limit=20, seconds=0.2).models
    assert of_model.plan.total.items < whole.items
    run = evaluate(slow(0.0), TASK, limit=20)
    assert run.embedded == of_model.plan.total.missing
    assert run.predicted is not None
    outline = plan(tasks="CIFAR10ZeroShot", limit=20)
    assert outline.summary()[0].startswith("1 task with all their items, by the rows' own counts")


def test_the_command_has_a_limit_and_a_time() -> None:
    words = ["plan", "-m", "embark/random", "-t", TASK, "--limit", "20", "--seconds", "0.2", "--format", "json"]
    [of_model] = json.loads(CliRunner().invoke(app, words).stdout)["models"]
    assert of_model["tasks"][-1]["to embed"] < 300
    assert set(of_model["seconds"]) == {"load", "read", "embed", "score"}
    text = CliRunner().invoke(app, words[:-2]).stdout
    assert "Seconds as measured on this machine just now, one stage after another: load " in text


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def scored(names: list[str], seconds: float = 1.0) -> tuple[list[Demand], list[float]]:
    """The demands of tasks, and the seconds that scoring them takes."""
    bench = Workbench(load_settings(), show_progress=False)
    model = embark.get_model("embark/random")
    demands = [demand for name in names for demand in bench.demands(TASKS[name], model)]
    return demands, scoring_seconds(bench, model.card, demands, seconds)


def test_scoring_is_estimated_for_each_evaluator() -> None:
    _, taken = scored(["PocketNameSTS", "PocketFlagZeroShot", "PocketFlagCapital", "PocketClockReading"])
    assert all(0 < seconds < 5 for seconds in taken)


def test_large_parts_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "MOST_ITEMS", 100)
    [demand], taken = scored(["PocketNameClustering"])
    assert taken == [predictions.USUAL * sum(map(len, demand.keys.values()))]


def test_rankings_are_estimated_by_their_queries_and_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "SMALL", (2, 2))
    monkeypatch.setattr(predictions, "LARGE", (64, 512))
    demands, taken = scored(["PocketClockReading", "PocketHeldOutNameToImage", "PocketNameToImage"])
    sizes = [len(demand.keys.get("query", ())) * len(demand.keys.get("document", ())) for demand in demands]
    assert sizes[1] < sizes[2]
    assert 0 < taken[1] <= taken[2] < 60


def test_late_interaction_is_not_estimated() -> None:
    bench = Workbench(load_settings(), show_progress=False)
    model = embark.get_model("embark/random")
    demands = bench.demands(TASKS[TASK], model)
    assert scoring_seconds(bench, replace(model.card, similarity="maxsim"), demands, 1.0) == [0.0]
