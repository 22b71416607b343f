"""ARK's reasoning axis from the outcomes of single queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embark.boards.reasoning import AXIS, pooled
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.tasks import TASKS
from embark.tasks.ark import SKILLS
from field import card

ART, METRO = TASKS["ARK/Art"], TASKS["ARK/Metro"]
A1, A3, M1 = (ART.name, "1"), (ART.name, "3"), (METRO.name, "1")  # ids repeat from subtype to subtype


@pytest.fixture
def results(tmp_path: Path) -> dict[str, TaskResult]:
    """Two subtypes on disk: 1 and 3 of art are found, 1 of metro is not."""
    found = {}
    for task, values in ((ART, {"1": 1.0, "2": 0.0, "3": 1.0}), (METRO, {"1": 0.0})):
        score = float(np.mean(list(values.values())))
        one = ("m", "1", task.name, "test", "default", ("eng",), task.metric, score, (0.0, 1.0), {}, "p", "e")
        made = TaskResult("m", "1", task.name, "1", (Record(*one, statistic="mean"),), score, (0.0, 1.0), 0.0)
        columns = outcome_columns("test", "default", list(values), {task.metric: np.array(list(values.values()))})
        found[task.name] = Results(tmp_path).save(made, card("m"), [columns])
    return found


def test_a_skill_pools_the_queries_of_all_subtypes(results: dict[str, TaskResult]) -> None:
    found = pooled(results, {A1: ("logical reasoning", "both"), A3: ("logical reasoning",), M1: ("both",)})
    assert found["both"].value == 0.5
    assert found["logical reasoning"].value == 1
    assert found["logical reasoning"].low < 0.9  # two queries say little
    assert (found["logical reasoning"].count, found["logical reasoning"].of) == (2, SKILLS["logical reasoning"])
    assert AXIS not in found  # five skills are missing


def test_the_axis_is_the_mean_over_skills_however_many_queries_they_have(results: dict[str, TaskResult]) -> None:
    first, *others = SKILLS
    found = pooled(results, {A1: (first,), (ART.name, "2"): (first,), M1: tuple(others)})
    assert found[AXIS].value == pytest.approx(0.5 / 6)
    assert found[AXIS].low <= found[AXIS].value < found[AXIS].high


def test_a_query_with_several_skills_moves_the_axis_by_all_of_them(tmp_path: Path) -> None:
    """With the same 60 queries under every skill, the axis is as uncertain as one of them, not 6 times surer."""
    values = np.random.default_rng(0).integers(0, 2, 60).astype(float)
    score = float(values.mean())
    record = Record(
        "m", "1", ART.name, "test", "default", ("eng",), ART.metric, score, (0.0, 1.0), {}, "p", "e", statistic="mean"
    )  # fmt: skip
    result = TaskResult("m", "1", ART.name, "1", (record,), score, (0.0, 1.0), 0.0)
    columns = outcome_columns("test", "default", list(map(str, range(60))), {ART.metric: values})
    results = {ART.name: Results(tmp_path).save(result, card("m"), [columns])}
    shared = pooled(results, {(ART.name, str(query)): tuple(SKILLS) for query in range(60)})
    apart = pooled(results, {(ART.name, str(query)): (list(SKILLS)[query % 6],) for query in range(60)})
    skill = shared[next(iter(SKILLS))]
    assert shared[AXIS].value == pytest.approx(skill.value)
    assert shared[AXIS].high - shared[AXIS].low == pytest.approx(skill.high - skill.low, rel=0.05)
    assert apart[AXIS].high - apart[AXIS].low == pytest.approx(skill.high - skill.low, rel=0.1)  # 6 tenths of them


def test_without_labels_or_outcomes_there_is_no_axis(results: dict[str, TaskResult]) -> None:
    assert pooled(results, {}) == {}
    path = results[ART.name].path
    assert path is not None
    path.with_suffix(".parquet").unlink()
    assert pooled(results, {A1: ("both",)}) == {}
