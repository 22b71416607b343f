"""Which scores stand in which row of a field: through real files and the commands that read them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embark.boards.comparable_results import published_results
from embark.boards.leaderboards import Leaderboard, leaderboard
from embark.boards.matrix import Matrix, load_matrix, matrix
from embark.catalogue import UnknownName
from embark.models import MODELS
from embark.protocol import fingerprint_of
from embark.results import Record, Results, TaskResult
from embark.settings import load_settings
from embark.studies.recommend import recommend
from embark.tasks import TASKS, get_benchmark
from embark.types import EmbarkError, Task

ASKED = get_benchmark("MIEB(lite)")
ROWS = TASKS.match(ASKED.tasks)
CLIP = "openai/clip-vit-base-patch32"


def result(model: str, task: Task, score: float, revision: str = "1", made_by: str = "mteb") -> TaskResult:
    around, who = (math.nan, math.nan), (model, revision, task.name)
    records = tuple(
        Record(*who, *part, ("eng",), task.metric, score, around, {}, fingerprint_of(task, *part), "e")
        for part in task.parts
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


def test_every_row_of_a_model_has_its_card(tmp_path: Path) -> None:
    """Whatever the revision and the source; a name that only looks like it has none."""
    rows = [(CLIP, "1", "embark"), (CLIP, "2", "embark"), (CLIP, "1", "mteb"), (f"{CLIP} (mine)", "1", "embark")]
    loaded = matrix(ROWS, written(tmp_path, *(result(model, ROWS[0], 0.5, *which) for model, *which in rows)))
    assert set(loaded.model_keys) == set(rows)
    names = [f"{CLIP}@1", f"{CLIP}@2", f"{CLIP} (mteb)"]
    assert loaded.cards == dict.fromkeys(names, MODELS[CLIP])
    assert set(loaded.models) == {*names, f"{CLIP} (mine)"}
    part = loaded.only(models=np.array([model == names[1] for model in loaded.models]))
    assert (part.models, part.model_keys) == ((names[1],), (rows[1],))
    assert Matrix((CLIP, "org/x"), (), np.zeros((2, 0))).cards == {CLIP: MODELS[CLIP]}  # rows of plain names


def test_loaded_rows_stand_apart_and_a_note_names_yours(tmp_path: Path) -> None:
    task = ROWS[0]
    written(tmp_path, result(CLIP, task, 0.99, made_by="embark"), result(CLIP, task, 0.01))
    settings = load_settings(results=tmp_path)
    loaded = load_matrix(ASKED.name, settings=settings)
    assert (loaded.rule, loaded.names) == (ASKED.rule, ASKED.tasks)
    assert cell(loaded, CLIP, task) == 0.99
    assert cell(loaded, f"{CLIP} (mteb)", task) == 0.01
    assert f"your own scores are used instead of the published ones: {CLIP}" in loaded.notes
    own = load_matrix(ASKED.name, include="own", settings=settings)
    assert (own.models, own.names, own.notes) == ((CLIP, f"{CLIP} (mteb)"), (task.name,), ())
    models = recommend(task.category, ASKED.name, modalities="text", settings=settings).models
    assert {CLIP, f"{CLIP} (mteb)"} <= {model.name for model in models}


def test_tasks_are_an_alternative_to_a_benchmark(tmp_path: Path) -> None:
    own_task = replace(ROWS[0], name="MyTask", family="Mine")
    settings = load_settings(results=tmp_path)
    of_own_task = replace(result("org/a", own_task, 0.5, made_by="embark"), row=own_task)
    written(tmp_path, of_own_task, result("org/a", ROWS[1], 0.5, made_by="embark"))
    loaded = load_matrix(tasks=["MyTask", ROWS[1].name], include="own", settings=settings)
    assert (loaded.models, loaded.names, loaded.rule) == (("org/a",), ("MyTask", ROWS[1].name), "mean-of-categories")
    with pytest.raises(EmbarkError, match="no scores for the chosen tasks"):
        load_matrix(tasks=["PocketFlagZeroShot"], settings=settings)
    with pytest.raises(EmbarkError, match=r"no scores for Pocket\. Make some: embark run -b 'Pocket'"):
        load_matrix("Pocket", settings=settings)


def test_tasks_are_weighed_by_one_row(tmp_path: Path) -> None:
    """`--weigh-by` takes the names of rows, and another tool's scores are not yours."""
    mine = [result("org/a", task, 0.2, made_by="embark") for task in ROWS]
    theirs = [result("org/a", task, 1.0 if task is ROWS[0] else 0.9) for task in ROWS]
    written(tmp_path, *mine, *theirs)

    def weighed(name: str) -> Leaderboard:
        return leaderboard(ASKED.name, include="own", weigh_by=name, settings=load_settings(results=tmp_path))

    def total(name: str) -> float:
        """Of the other tool's scores."""
        [entry] = [entry for entry in weighed(name).entries if entry.model.source == "mteb"]
        return entry.model.totals["weighted mean"].value

    assert total("org/a") == pytest.approx((1 + 0.9 * 50) / 51)  # all tasks are as hard
    assert total("org/a (mteb)") == pytest.approx(0.9)  # the first one is easy
    written(tmp_path, result("org/a", ROWS[0], 0.5, "2", "embark"))
    with pytest.raises(UnknownName, match="Did you mean org/a@2 or org/a@1"):
        weighed("org/a")
