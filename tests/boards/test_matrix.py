"""Which scores stand in which row of a field: through real files and the commands that read them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from embark.boards.cards import cards
from embark.boards.comparable_results import published_results
from embark.boards.leaderboards import Leaderboard, leaderboard
from embark.boards.matrix import Matrix, matrix, model_of
from embark.catalogue import UnknownName
from embark.cli import app
from embark.cli.analyze import scores
from embark.models import MODELS
from embark.results import Record, Results, TaskResult
from embark.run import parts
from embark.run.score import fingerprint_of
from embark.settings import load_settings
from embark.tasks import TASKS, get_benchmark
from embark.types import Task

ASKED = get_benchmark("MIEB(lite)")
ROWS = TASKS.match(ASKED.tasks)
CLIP = "openai/clip-vit-base-patch32"


def result(model: str, task: Task, score: float, revision: str = "1", made_by: str = "mteb") -> TaskResult:
    around, who = (math.nan, math.nan), (model, revision, task.name)
    records = tuple(
        Record(*who, *part, ("eng",), task.metric, score, around, {}, fingerprint_of(task, *part), "e")
        for part in parts(task)
    )
    return TaskResult(*who, "1", records, score, around, 0.0, made_by=made_by)


def written(folder: Path, *results: TaskResult) -> list[TaskResult]:
    """As the folder gives them back: in the order of the files' names."""
    for one in results:
        Results(folder).write(one, None)
    return list(Results(folder).all())


def cell(found: Matrix, model: str, task: Task) -> float:
    return float(found.values[found.models.index(model), found.names.index(task.name)])


def test_another_tools_score_does_not_replace_yours(tmp_path: Path) -> None:
    task = ROWS[0]
    both = written(tmp_path, result("org/a", task, 0.8, made_by="embark"), result("org/a", task, 0.1))
    assert [one.made_by for one in both] == ["embark", "mteb"]  # the other's comes last
    found = matrix(ROWS, both)
    assert found.models == ("org/a", "org/a (mteb)")
    assert found.values.tolist() == [[0.8], [0.1]]


def test_a_second_revision_has_its_own_row(tmp_path: Path) -> None:
    old = [result("org/a", task, 0.5, "1", "embark") for task in ROWS]
    new = [result("org/a", task, 0.9, "2", "embark") for task in ROWS[:3]]
    found = matrix(ROWS, written(tmp_path, *old, *new))
    assert found.models == ("org/a@1", "org/a@2")
    assert (found.values[0] == 0.5).all()
    assert np.isnan(found.values[1]).sum() == len(ROWS) - 3


def test_published_scores_fill_the_gaps_of_yours_and_of_nobody_else(tmp_path: Path) -> None:
    printed, task = published_results(ROWS)[0], ROWS[0]
    before = matrix(ROWS, printed)
    mine = written(tmp_path, result(CLIP, task, 0.99, made_by="embark"))
    joined = matrix(ROWS, [*printed, *mine])
    assert sorted(joined.models) == sorted(before.models)
    assert cell(joined, CLIP, task) == 0.99
    assert cell(joined, CLIP, ROWS[1]) == cell(before, CLIP, ROWS[1])
    theirs = written(tmp_path / "other", result(CLIP, task, 0.99))
    apart = matrix(ROWS, [*printed, *theirs])
    assert {*apart.models} - {*before.models} == {f"{CLIP} (published)", f"{CLIP} (mteb)"}
    assert cell(apart, f"{CLIP} (published)", task) == cell(before, CLIP, task)
    two = written(tmp_path, result(CLIP, task, 0.98, "2", "embark"))
    several = matrix(ROWS, [*printed, *two])
    assert {*several.models} - {*before.models} == {f"{CLIP} (published)", f"{CLIP}@1", f"{CLIP}@2"}


def test_a_score_that_is_not_a_number_fills_nothing(tmp_path: Path) -> None:
    printed, task = published_results(ROWS)[0], ROWS[0]
    mine = written(tmp_path, result(CLIP, task, math.nan, made_by="embark"))
    assert cell(matrix(ROWS, [*printed, *mine]), CLIP, task) == cell(matrix(ROWS, printed), CLIP, task)


@pytest.mark.parametrize("row", [CLIP, f"{CLIP}@1", f"{CLIP} (mteb)", f"{CLIP}@3d74acf (published)"])
def test_every_row_of_a_model_has_its_card(row: str) -> None:
    assert model_of(row) == CLIP
    assert cards([row], "MIEB") == {row: MODELS[CLIP]}


def test_commands_read_the_rows_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = ROWS[0]
    written(tmp_path, result(CLIP, task, 0.99, made_by="embark"), result(CLIP, task, 0.01))
    found = scores(ASKED.name, tmp_path)
    assert cell(found, CLIP, task) == 0.99
    assert cell(found, f"{CLIP} (mteb)", task) == 0.01
    assert f"yours count where there are published scores, too: {CLIP}" in capsys.readouterr().err
    need = ["recommend", "-b", ASKED.name, "--need", task.category, "--modality", "text", "--top", "99"]
    made = CliRunner().invoke(app, [*need, "--results", str(tmp_path), "--format", "json"])
    shown = {row["model"].split("/")[-1] for row in json.loads(made.stdout)["rows"]}
    assert {"clip-vit-base-patch32", "clip-vit-base-patch32 (mteb)"} <= shown


def test_tasks_are_weighed_by_one_row(tmp_path: Path) -> None:
    """`--weigh-by` takes the names of rows, and another tool's scores are not yours."""
    mine = [result("org/a", task, 0.2, made_by="embark") for task in ROWS]
    theirs = [result("org/a", task, 1.0 if task is ROWS[0] else 0.9) for task in ROWS]
    written(tmp_path, *mine, *theirs)

    def weighed(name: str) -> Leaderboard:
        return leaderboard(ASKED.name, published=False, weigh_by=name, settings=load_settings(results=tmp_path))

    def total(name: str) -> float:
        """Of the other tool's scores."""
        [entry] = [entry for entry in weighed(name).entries if entry.model.source == "mteb"]
        return entry.model.totals["weighted mean"].value

    assert total("org/a") == pytest.approx((1 + 0.9 * 50) / 51)  # all tasks are as hard
    assert total("org/a (mteb)") == pytest.approx(0.9)  # the first one is easy
    written(tmp_path, result("org/a", ROWS[0], 0.5, "2", "embark"))
    with pytest.raises(UnknownName, match="Did you mean org/a@2 or org/a@1"):
        weighed("org/a")
