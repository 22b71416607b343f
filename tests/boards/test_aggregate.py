"""How models stand, from results on disk: what is missing, and which models are known to take no audio."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from embark.boards.aggregate import ZEROS, standings
from embark.boards.leaderboards import leaderboard
from embark.models import MODELS
from embark.results import Record, Results, TaskResult
from embark.settings import load_settings
from embark.stats.means import by_model, names
from embark.tasks import BENCHMARKS, TASKS
from embark.types import ModelCard, Task
from field import card

ROWS = TASKS.match(BENCHMARKS["MMEB-V3"].tasks)
SILENT = [task for task in ROWS if task.tags["group"] != "audio"]
DEAF = next(one.name for one in MODELS.values() if one.modalities == ("text", "image"))
HEARING = next(one.name for one in MODELS.values() if "audio" in one.modalities)


def result(model: str, task: Task, score: float, made_by: str = "mmeb", revision: str = "1") -> TaskResult:
    around = (math.nan, math.nan)
    parts = (model, revision, task.name, "test", "default", ("eng",), task.metric, score, around, {}, "p", "e")
    return TaskResult(model, revision, task.name, "1", (Record(*parts),), score, around, 0.0, made_by=made_by)


def written(folder: Path, model: str, made_by: str = "mmeb", facts: ModelCard | None = None) -> list[TaskResult]:
    """Results on all tasks without audio, through files."""
    for task in SILENT:
        Results(folder).write(result(model, task, 0.6, made_by), facts)
    return list(Results(folder).all())


@pytest.mark.parametrize(
    ("model", "made_by", "facts", "deaf"),
    [
        (DEAF, "mmeb", None, True),
        (HEARING, "mmeb", None, False),
        ("org/unknown", "mmeb", None, False),
        ("org/mine", "embark", card("org/mine", modalities=("text", "image")), True),
        ("org/mine", "embark", card("org/mine", modalities=("text", "audio")), False),
        ("org/paper", "published", None, True),
    ],
    ids=["card without audio", "card with audio", "no card", "own card without", "own card with", "published"],
)
def test_only_models_known_to_take_no_audio_get_zeros(
    tmp_path: Path, model: str, made_by: str, facts: ModelCard | None, deaf: bool
) -> None:
    [one] = standings(ROWS, written(tmp_path, model, made_by, facts), "mmeb")
    assert (one.mean.count, one.mean.of, one.mean.zeros) == (179, 190, 11 if deaf else 0)
    assert one.mean.value == pytest.approx(0.6 * 179 / 190 if deaf else 0.6)
    assert one.mean.partial is not deaf
    assert one.mean.marks == ((ZEROS.format(11),) if deaf else ())
    assert one.totals["All*"].value == pytest.approx(0.6)


def test_the_board_says_that_audio_was_not_run(tmp_path: Path) -> None:
    written(tmp_path, HEARING)
    board = leaderboard("MMEB-V3", include="own", settings=load_settings(results=tmp_path))
    content = json.loads(board.table().format("json"))
    [row] = content["rows"]
    assert (row["tasks"], row["All"]["score"]) == ("179/190", pytest.approx(0.6))
    assert any("not over all" in note for note in content["notes"])


def test_a_score_that_is_not_a_number_is_missing(tmp_path: Path) -> None:
    one, other = TASKS["CIFAR10ZeroShot"], TASKS["STL10ZeroShot"]
    for task, score in ((one, 0.4), (other, math.nan)):  # on disk: null
        Results(tmp_path).write(result("org/model", task, score, "mteb"), None)
    [found] = standings([one, other], Results(tmp_path).all())
    assert (found.mean.value, found.mean.count, found.mean.of) == (0.4, 1, 2)
    assert list(found.tasks) == list(found.results) == [one.name]
    assert standings([other], Results(tmp_path).all()) == []
    board = leaderboard("MIEB(Multilingual)", include="own", settings=load_settings(results=tmp_path))
    assert board.notes == ("left out, because the score is not a number: STL10ZeroShot of org/model",)


def test_revisions_and_sources_stay_apart_and_other_protocols_out() -> None:
    task = TASKS["CIFAR10ZeroShot"]
    first = result("a", task, 0.1, "embark")
    found = [first, replace(first, revision="2"), replace(first, made_by="mteb"), replace(first, protocol="other")]
    kept = list(by_model([task], found))
    assert kept == [("a", "1", "embark"), ("a", "2", "embark"), ("a", "1", "mteb")]
    assert names(kept) == ["a@1", "a@2", "a"]
