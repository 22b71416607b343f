"""Hours on GPUs elsewhere, by the rows' counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.engine.rates import GPUS, TYPICAL, seconds_per_item
from embark.planning import outline, workload
from embark.run.costs import FAMILIES
from embark.types import EmbarkError

SHARED = ("UniBench/clevr_count", "UniBench/clevr_distance")  # of one set of 15,000 pictures


def estimate(*words: Any, **options: Any) -> Any:
    [only] = embark.cost(*words, **options).estimates
    return only


def test_the_default_is_the_table_of_four_families() -> None:
    report = embark.cost()
    assert [(row["benchmark"], row["model"], row["gpus"]) for row in report.rows()] == [
        (benchmark, size, gpus) for benchmark in FAMILIES for size in ("100M", "1B", "8B") for gpus in (1, 8, 64)
    ]
    assert report.table().columns[-3:] == ("1 GPU", "8 GPUs", "64 GPUs")
    assert len(report.table().rows) == 12
    for row in report.estimates:
        assert 0 < row.least < row.gpu_hours < row.most
        assert row.gpu_hours <= row.task_by_task
        assert row.wall_hours == pytest.approx(row.gpu_hours / row.gpus)


@pytest.mark.parametrize("name", FAMILIES)
def test_items_are_those_of_the_plan_on_rows(name: str) -> None:
    tasks = embark.get_tasks(embark.get_benchmark(name).tasks)
    counts = outline(tasks)
    only = estimate(name, parameters="1B", gpus=1)
    assert (only.items, only.unique) == (counts.items, counts.unique)
    uncounted = workload(tasks).uncounted
    assert [task for task, sides in uncounted.items() if not sides] == list(counts.unknown)


def test_hours_by_hand() -> None:
    """Two tasks over the same 15,000 pictures: once, and task by task."""
    only = estimate(SHARED, parameters="8B", gpus=2)
    tasks = embark.get_tasks(SHARED)
    pictures = 15_000 * seconds_per_item(("image",), 8e9, GPUS["h200"])
    prompts = sum(pool.items for task in tasks for pool in task.pools if pool.side == "prompt")
    texts = prompts * 2 * 8e9 * 32 / (TYPICAL.utilization * 989e12)
    assert only.benchmark == "the chosen tasks"
    assert only.gpu_hours == pytest.approx((pictures + texts) / 3600)
    assert only.task_by_task == pytest.approx((2 * pictures + texts) / 3600)
    assert only.wall_hours == pytest.approx(only.gpu_hours / 2)


def test_tasks_without_counts_are_named() -> None:
    report = embark.cost("MMEB-V3", parameters="8B", gpus=8)
    uncounted = report.uncounted["MMEB-V3"]
    assert uncounted["MMEB/MCMR"] == ()  # nothing of it is counted
    assert uncounted["MMEB/OK-VQA"] == ("document",)
    assert "+" in str(report.table().rows[0].cells[2])
    [note] = [note for note in report.notes if note.startswith("MMEB-V3: not counted")]
    assert "18 tasks (MMEB/MCMR" in note
    assert "the document side of 57 tasks" in note
    assert json.loads(json.dumps(report.as_dict()))["uncounted"]["MMEB-V3"]["MMEB/OK-VQA"] == ["document"]
    assert embark.cost("ARK").uncounted == {}


def test_a_model_that_is_larger_than_a_gpu() -> None:
    report = embark.cost("ARK", parameters=72e9, gpu="h100", gpus=[1, 4, 6])
    too_few, four, six = report.estimates
    assert (too_few.copies, four.copies, six.copies) == (0, 1, 2)
    assert too_few.wall_hours is None
    assert four.wall_hours == pytest.approx(four.gpu_hours / 3)  # one of four GPUs is idle
    assert six.wall_hours == pytest.approx(six.gpu_hours / 6)
    assert "too few" in str(report)
    assert any("144 GB" in note and "a copy is spread over 3" in note for note in report.notes)


def test_the_size_of_a_card() -> None:
    only = estimate("ARK", model="openai/clip-vit-base-patch32", gpus=1)
    assert only.model == "openai/clip-vit-base-patch32 (151M)"
    assert only.parameters == embark.get_models("openai/clip-vit-base-patch32")[0].parameters


def test_only_the_h200_was_measured() -> None:
    measured, other = (str(embark.cost("ARK", gpu=gpu)) for gpu in ("h200", "a100"))
    assert "measured on an h200 alone" in other
    assert "measured on an h200 alone" not in measured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "b200"}, "Known are a100, h100, h200"),
        ({"gpus": 0}, "at least 1 GPU"),
        ({"gpus": []}, "at least 1 GPU"),
        ({"parameters": "big"}, "'big' is no number of parameters"),
        ({"parameters": 0}, "more than 0 parameters"),
        ({"model": "voyageai/voyage-multimodal-3"}, "behind an API"),
        ({"model": embark.types.ModelCard("mine/model", "1", "text", 8, ("text",))}, "is not known: state it"),
    ],
)
def test_what_cannot_be_estimated(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        embark.cost("ARK", **options)


def test_the_command_prints_what_the_function_returns() -> None:
    words = ["plan", "-b", "ARK", "--gpus", "1,8", "--gpu", "H200", "--parameters", "1B,8B"]
    report = embark.cost("ARK", gpus=[1, 8], parameters=["1B", "8B"])
    printed = CliRunner().invoke(app, words).stdout
    assert str(report.table()).splitlines()[:3] == printed.splitlines()[:3]
    assert json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).stdout) == json.loads(
        json.dumps(report.as_dict())
    )


@pytest.mark.parametrize("words", [("--gpus", "8"), ("--gpu", "a100"), ("--parameters", "8B")])
def test_any_of_the_options_asks_for_hours(words: tuple[str, ...]) -> None:
    assert "GPU hours" in CliRunner().invoke(app, ["plan", "-b", "ARK", *words]).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gpus", "many"), "'many' is no list of numbers"),
        (("--gpus", "8", "--data"), "leave out --data"),
        (("--gpus", "8", "--limit", "10"), "leave out --data and --limit"),
    ],
)
def test_words_that_the_command_refuses(words: tuple[str, ...], message: str) -> None:
    refused = CliRunner().invoke(app, ["plan", "-b", "ARK", *words])
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.replace("│", " ").split())
