"""Ranks, their intervals and ties, on totals whose answers are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from embark.boards.aggregate import standings
from embark.boards.leaderboards import rank_models, shared
from embark.results import Record, TaskResult
from embark.stats import ranking
from embark.stats.intervals import mean_interval
from embark.stats.outcomes import Readings
from embark.stats.ranking import ItemSpread, Place, over_items, over_kinds, places, points
from embark.tables import Table
from embark.types import Source, Task

DOCS = Path(__file__).parents[2] / "docs"
RNG = np.random.default_rng(7)
UNEVEN = RNG.normal(0.5, 0.1, 60)


def equal(models: int, tasks: int) -> np.ndarray:
    return np.full((models, tasks), 1 / tasks)


def ranked(values: np.ndarray) -> list[Place]:
    """Of tasks of different kinds."""
    return places(values.mean(axis=1), over_kinds(values, equal(*values.shape), range(values.shape[1])))


def test_a_model_that_is_better_everywhere_is_first_for_sure() -> None:
    """What all models find hard does not blur the ranking: differences are paired."""
    values = np.stack([UNEVEN + 0.01, UNEVEN, UNEVEN - 0.2])
    assert ranked(values) == [Place(1, 1, 1, "A"), Place(2, 2, 2, "B"), Place(3, 3, 3, "C")]


def test_models_that_differ_by_chance_share_a_letter_and_their_ranks() -> None:
    noise = RNG.normal(0, 0.05, (3, 60))
    values = np.stack([*(UNEVEN + noise - noise.mean(axis=1, keepdims=True)), UNEVEN - 0.3])
    values[0] += 0.002
    *alike, last = ranked(values)
    assert {place.tie for place in alike} == {"A"}
    assert {(place.low, place.high) for place in alike} == {(1, 3)}
    assert last == Place(4, 4, 4, "B")


def test_equal_models_have_one_rank() -> None:
    assert ranked(np.stack([UNEVEN, UNEVEN])) == [Place(1, 1, 1, "A"), Place(1, 1, 1, "A")]
    assert places(np.array([0.1, 0.3, 0.3]), None) == [Place(3), Place(1), Place(1)]


@pytest.mark.parametrize("apart", [0.0, 0.002, 0.02])
def test_intervals_hold_the_true_rank(apart: float) -> None:
    """Also where models hardly differ, which resampling alone is too sure of: it gives 85 % there."""
    truth, held = -apart * np.arange(8), []
    for _ in range(40):
        found = ranked(truth[:, None] + RNG.normal(0.5, 0.1, 30) + RNG.normal(0, 0.06, (8, 30)))
        held += [place.low <= rank <= place.high for rank, place in enumerate(found, 1)]
    assert np.mean(held) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("models", "tasks"), [(2, 6), (12, 30), (30, 60)])
def test_models_of_one_quality_are_rarely_told_apart(models: int, tasks: int) -> None:
    """However many they are, though the best and the worst of them were picked by their scores."""
    parted = 0
    for _ in range(60):
        found = ranked(RNG.normal(0.5, 0.1, tasks) + RNG.normal(0, 0.05, (models, tasks)))
        parted += any(place.tie != "A" for place in found)
    assert parted <= 8  # 3 are expected at the most; 9 or more by chance once in 300


def test_equal_models_among_others_are_parted_more_often_as_the_page_says() -> None:
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    low, high = map(int, re.findall(r"on (\d+) to (\d+) % of 1,000 simulated boards", page)[0])
    rng, parted = np.random.default_rng(5), []
    for _ in range(150):
        quality = np.concatenate([[0, 0], rng.normal(0, 0.02, 10)])
        found = ranked(quality[:, None] + rng.normal(0.5, 0.1, 30) + rng.normal(0, 0.05, (12, 30)))
        parted.append(found[0].tie != found[1].tie)
    assert 0.05 < low / 100 <= np.mean(parted) <= high / 100
    assert "models that are equal are parted in at most 5 %" not in " ".join(page.split())


def test_scores_of_other_items_lie_in_the_interval_as_often_as_the_page_says() -> None:
    page = (DOCS / "intervals.md").read_text(encoding="utf-8")
    [share] = re.findall(r"about (\d+) % of cases", page)
    rng, next_one, true_one = np.random.default_rng(6), [], []
    for _ in range(1000):
        low, high = mean_interval((rng.random(400) < 0.7).astype(float))
        next_one.append(low <= (rng.random(400) < 0.7).mean() <= high)
        true_one.append(low <= 0.7 <= high)
    assert np.mean(next_one) == pytest.approx(int(share) / 100, abs=0.03)
    assert np.mean(true_one) == pytest.approx(0.95, abs=0.02)


def test_a_noisy_model_does_not_hold_a_tie_group_together() -> None:
    """Whoever cannot be told from an erratic leader can still be told from others."""
    erratic = np.tile([0.5, -0.5], 30)
    values = np.stack([UNEVEN + 0.03 + erratic, UNEVEN, UNEVEN - 0.01])
    assert [place.tie for place in ranked(values)] == ["A", "A", "B"]


@given(st.integers(1, 12), st.integers(0, 99))
def test_places_are_consistent(models: int, seed: int) -> None:
    """Letters follow the ranks, and an interval holds its rank and those of its tie group."""
    rng = np.random.default_rng(seed)
    found = sorted(ranked(rng.normal(0, 0.02, (models, 1)) + rng.normal(0.5, 0.05, (models, 12))), key=lambda p: p.rank)
    assert [place.tie for place in found] == sorted(place.tie for place in found)
    for place in found:
        group = [other.rank for other in found if other.tie == place.tie]
        assert 1 <= place.low <= min(group) <= max(group) <= place.high <= models


def test_gaps_and_weights() -> None:
    values = np.array([[0.2, 0.4, 0.9], [0.2, np.nan, 0.9]])
    weights = np.array([[0.25, 0.25, 0.5], [0.5, 0.0, 0.5]])
    assert over_kinds(values, weights, "abc") is None  # too few to tell
    values, weights = np.tile(values, 3), np.tile(weights, 3) / 3
    assert over_kinds(values, weights, range(9)) is not None  # six of them are counted for both
    weights[0, 2:] = 0
    assert over_kinds(values, weights, range(9)) is None


def test_a_task_that_one_model_has_no_score_on_is_no_difference() -> None:
    """Of two equal models, one lacks the hardest kind: its total is higher, and that means nothing."""
    level = np.linspace(0.1, 0.9, 12)
    values = np.stack([level, level])
    values[1, 0] = np.nan
    weights = np.where(np.isnan(values), 0, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    totals = (weights * np.nan_to_num(values)).sum(axis=1)
    assert totals[1] > totals[0]
    assert [place.tie for place in places(totals, over_kinds(values, weights, range(12)))] == ["A", "A"]


@given(st.floats(0, 12), st.floats(4, 300))
def test_p_values_are_student_s(t: float, freedom: float) -> None:
    spread = ItemSpread(np.array([[0.0, 1.0], [1.0, 0.0]]), np.full((2, 2), freedom))
    assert spread._p(np.array([0.0, t]))[0, 1] == pytest.approx(2 * student.sf(t, freedom))


def test_signs_are_flipped_in_every_way() -> None:
    signs = ranking._signs(6)
    assert signs.shape == (32, 6)
    assert len({tuple(row) for row in (*signs, *-signs)}) == 64
    assert (signs[0] == 1).all()
    assert ranking._signs(40).shape == (ranking.FLIPS, 40)


def test_six_kinds_that_agree_part_two_models_and_five_cannot() -> None:
    """All flips but one make less of it: p = 1/32."""
    values = np.stack([np.full(6, 0.5), np.full(6, 0.4) + np.arange(6) / 100])
    assert [place.tie for place in ranked(values)] == ["A", "B"]
    assert [place.tie for place in ranked(values[:, :5])] == ["", ""]


@given(st.lists(st.lists(st.sampled_from([0.1, 0.5, 0.9, np.nan]), min_size=4, max_size=4), min_size=1, max_size=5))
def test_borda_points_of_a_task_are_shared_out(rows: list[list[float]]) -> None:
    values = np.array(rows)
    there = (~np.isnan(values)).sum(axis=0)
    assert points(values).sum(axis=0) == pytest.approx(there * (there - 1) / 2)


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=6))
def test_borda_points_follow_the_order_of_scores(scores: list[list[int]]) -> None:
    totals = points(np.array(scores, float)).sum(axis=1)
    assert totals.sum() == pytest.approx(3 * len(scores) * (len(scores) - 1) / 2)
    for row, total in zip(scores, totals, strict=True):
        for other, other_total in zip(scores, totals, strict=True):
            if all(a >= b for a, b in zip(row, other, strict=True)):
                assert total >= other_total


def test_a_missing_score_gets_no_borda_points() -> None:
    values = np.array([[0.9, 0.5], [0.1, np.nan], [0.5, 0.5]])
    assert points(values).sum(axis=1).tolist() == [2.5, 0, 1.5]


# ── leaderboards ─────────────────────────────────────────────────────────────────────────────────────────────────────


def task(at: int) -> Task:
    category = f"Kind {at % 6}"
    return Task(f"T{at}", "Test", "retrieval", "none", Source("test/data", "1"), "accuracy", category, ("text",))


TASKS = [task(at) for at in range(12)]


def result(model: str, name: str, score: float, made_by: str = "embark", path: Path | None = None) -> TaskResult:
    part = ("test", "default", ("eng",))
    record = Record(model, "1", name, *part, "accuracy", score, (score, score), {}, "p", "e", statistic="mean")
    return TaskResult(model, "1", name, "1", (record,), score, (score, score), 0.0, path, made_by=made_by)


def rows(*models: tuple[str, float, int, str]) -> list[TaskResult]:
    """Results of models: (name, score, on how many tasks, made by)."""
    return [
        result(name, TASKS[at].name, value + at / 100, made_by)
        for name, value, count, made_by in models
        for at in range(count)
    ]


def board(tasks: Sequence[Task], results: Sequence[TaskResult], borda: bool = False) -> Table:
    return rank_models(tasks, results, borda=borda).table()


def test_means_over_the_same_tasks_are_ranked_and_others_shown_without_rank() -> None:
    made = board(TASKS, rows(("a", 0.5, 12, "published"), ("b", 0.8, 11, "embark"), ("c", 0.9, 3, "embark")))
    assert made.columns[:7] == ("#", "95 %", "tie", "model", "source", "tasks", "mean")
    assert [row.cells[:6] for row in made.rows] == [
        ("1", "1", "A", "a", "published", "12/12"),
        ("–", "", "", "b", "yours", "11/12"),
        ("–", "", "", "c", "yours", "3/12"),
    ]
    more = (("a", 0.5, 12, "published"), ("b", 0.8, 11, "embark"), ("d", 0.7, 11, "embark"), ("c", 0.9, 3, "embark"))
    made = board(TASKS, rows(*more))
    assert [row.cells[:6] for row in made.rows] == [
        ("1", "1", "A", "b", "yours", "11/12"),
        ("2", "2", "B", "d", "yours", "11/12"),
        ("–", "", "", "a", "published", "12/12"),
        ("–", "", "", "c", "yours", "3/12"),
    ]
    none = board(TASKS, rows(("a", 0.5, 8, "published"), ("b", 0.8, 8, "embark")))
    assert [row.cells[0] for row in none.rows] == ["–", "–"]
    assert "#: no model has scores on 90 % of the tasks, so none is ranked" in none.notes
    assert made.note_lines()[0] == "(a) mean over the tasks with a score, not over all tasks"
    assert made.notes[0] == "12 tasks by the rule mean-of-categories, protocol paper"
    assert made.notes[1] == (
        "#: the ranked means are over the same 11 tasks of 12; a mean over other tasks is not ranked (–)"
    )
    assert (
        made.notes[2] == "95 %: interval of the rank of the 2 models if the 6 task types were replaced by similar ones"
    )
    assert made.notes[3].startswith("per-item results are missing")
    common = shared(TASKS, standings(TASKS, rows(("a", 0.5, 12, "published"), ("c", 0.9, 3, "embark"))))
    assert [one.name for one in common] == ["T0", "T1", "T2"]
    assert shared(TASKS, standings(TASKS, [result("a", "T0", 1.0), result("b", "T1", 1.0)])) == []


def test_published_and_own_scores_of_a_model_stay_apart() -> None:
    made = board(TASKS, rows(("a", 0.5, 12, "published"), ("a", 0.6, 12, "embark")))
    assert [row.cells[4] for row in made.rows] == ["yours", "published"]


def test_revisions_are_named_where_a_model_has_several() -> None:
    old = rows(("a", 0.5, 12, "embark"))
    made = board(TASKS, [*old, *(replace(one, revision="2", score=0.9) for one in old)])
    assert [row.cells[3] for row in made.rows] == ["a@2", "a@1"]


def test_borda_ranks_by_tasks_won() -> None:
    scores = {"a": [0.9] + [0.1] * 11, "b": [0.2] * 12}
    found = [
        result(model, one.name, value) for model, own in scores.items() for one, value in zip(TASKS, own, strict=True)
    ]
    made = board(TASKS, found, borda=True)
    assert [(row.cells[3], row.cells[5]) for row in made.rows] == [("b", "11.0"), ("a", "1.0")]


def test_a_few_tasks_tell_nothing_about_others() -> None:
    few = TASKS[:3]
    made = board(few, [result(model, one.name, 0.1 * at) for at, model in enumerate("ab") for one in few])
    assert [row.cells[:3] for row in made.rows] == [("1", "", ""), ("2", "", "")]
    assert "fewer than 6 task types" in made.notes[-1]


def test_an_empty_leaderboard_is_a_table() -> None:
    empty = board(TASKS, [result("a", "Elsewhere", 1.0)])
    assert empty.format("csv") == "#,95 %,tie,model,source,mean"


def with_outcomes(folder: Path, model: str, name: str, right: np.ndarray) -> TaskResult:
    path = folder / model / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    count = len(right)
    columns = {"split": ["test"] * count, "subset": ["default"] * count, "id": [f"{at:04}" for at in range(count)]}
    pq.write_table(pa.table(columns | {"accuracy": right.astype(float)}), path.with_suffix(".parquet"))
    return result(model, name, float(right.mean()), path=path)


def test_items_are_resampled_where_their_outcomes_are_here(tmp_path: Path) -> None:
    """Two tasks say nothing about other tasks, and much about their own 400 items."""
    few, hard = TASKS[:2], RNG.random(400)
    found = [
        with_outcomes(tmp_path, model, one.name, hard < ability)
        for model, ability in (("good", 0.7), ("fair", 0.62), ("poor", 0.3))
        for one in few
    ]
    made = board(few, found)
    assert [row.cells[:4] for row in made.rows] == [
        ("1", "1", "A", "good"),
        ("2", "2", "B", "fair"),
        ("3", "3", "C", "poor"),
    ]
    assert "if the items were replaced" in made.notes[1]
    mixed = [*found, *(result("paper", one.name, 0.5, "published") for one in few)]
    assert "fewer than 6 task types" in board(few, mixed).notes[-1]
    Path(str(found[0].path)).with_suffix(".parquet").unlink()
    assert over_items([Readings({"T0": found[0]})], [{"T0": 1.0}]) is None
