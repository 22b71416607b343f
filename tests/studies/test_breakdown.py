"""Scores within groups of items, and how sure they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embark
from embark.boards.reasoning import reasoning_axis
from embark.protocol import fingerprint_of
from embark.results import ABOUT, Record, Results, TaskResult, outcome_columns
from embark.settings import load_settings
from embark.studies.breakdown import breakdown
from embark.tasks import TASKS
from embark.tasks.pocket import CONDITIONS
from embark.types import EmbarkError
from field import card

ROW = TASKS["PocketFlagZeroShot"]


@pytest.mark.parametrize("times", [1, 4])
def test_an_item_that_occurs_four_times_counts_once(elsewhere: Path, times: int) -> None:
    """Interval of a group: as wide as that of its distinct items."""
    values = np.repeat(np.random.default_rng(0).integers(0, 2, 50), times).astype(float)
    ids = [str(number) for number in np.repeat(np.arange(50), times)]
    [(split, subset)] = ROW.parts
    protocol = fingerprint_of(ROW, split, subset)
    score = float(values.mean())
    part = (split, subset, ("eng",))
    record = Record("m", "1", ROW.name, *part, ROW.metric, score, (0, 1), {}, protocol, "e", statistic="mean")
    result = TaskResult("m", "1", ROW.name, ROW.source.revision, (record,), score, (0, 1), 0.0)
    columns = {ROW.metric: values, f"{ABOUT}weather": np.full(len(values), "fog", object)}
    Results(load_settings().results).save(result, card("m"), [outcome_columns(split, subset, ids, columns)])
    [part] = breakdown(tasks=ROW).parts
    assert (part.fact, part.value, part.items) == ("weather", "fog", 50 * times)
    low, high = part.interval
    assert high - low == pytest.approx(0.27, abs=0.015)


def test_by_skill_over_all_tasks_as_the_leaderboard_has_it(elsewhere: Path) -> None:
    """Labels with several values: a query counts in the group of each; pooled, the groups are ARK's second axis."""
    tasks = ["PocketARK/Clocks", "PocketARK/Capitals"]
    results = embark.evaluate("embark/random", tasks, show_progress=False).results
    study = breakdown(tasks=tasks, by="skills", pool=True)
    parts = {part.value: part for part in study.parts}
    rows = [row for result in results for row in result.outcomes().to_pylist()]
    for skill in ("logical reasoning", "knowledge reasoning", "symbolic reasoning", "fine-grained visual reasoning"):
        own = [row["recall_at_1"] for row in rows if skill in row["about_skills"]]
        assert (parts[skill].score, parts[skill].items) == (np.mean(own), len(own))
    assert parts["logical reasoning"].items == 48 + 16
    of_tasks = breakdown(tasks=tasks, by="demand").parts
    assert {(part.task, part.value) for part in of_tasks} == {
        ("PocketARK/Clocks", "reasoning-intensive"),
        ("PocketARK/Capitals", "knowledge-intensive"),
        ("PocketARK/Capitals", "both"),
    }
    axis, _ = reasoning_axis([TASKS[task] for task in tasks], {result.task: result for result in results})
    skill = axis["logical reasoning"]
    assert parts["logical reasoning"].interval == pytest.approx((skill.low, skill.high))


def test_by_condition_of_a_robustness_task_and_by_class(pocket_home: Path) -> None:
    [robust, flags] = embark.evaluate(
        "embark/random", ["PocketRobustness", "PocketGroupZeroShot"], show_progress=False
    ).results
    conditions = {part.value: part.score for part in breakdown(tasks=robust.task, by="condition").parts}
    metrics = robust.records[0].metrics
    assert conditions == pytest.approx({name: metrics[name] for name in ("clean", *CONDITIONS)})
    classes = breakdown(tasks=flags.task, by="class").parts
    table = flags.outcomes().to_pydict()
    right = [value for value, label in zip(table["accuracy"], table["label"], strict=True) if label == "Flags"]
    assert {part.value: part.score for part in classes}["Flags"] == np.mean(right)
    with pytest.raises(EmbarkError, match="No result on disk has facts"):
        breakdown(tasks=flags.task)  # classes are broken down by on request alone
