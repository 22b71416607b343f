from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.boards.matrix import Matrix
from embark.boards.rederive import lite_agreement
from embark.studies.distill import LiteSet, choose_lite_set, distill, judge_lite_set, remove_tasks
from embark.studies.fidelity import fidelity
from embark.studies.representatives import Representatives, find_representatives
from embark.tables import named
from embark.tasks import TASKS, get_benchmark
from embark.types import EmbarkError
from field import field, two_stories


@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(2, 9))
def test_removals_fall_in_strength_and_leave_one_task_a_group(seed: int, models: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, size=tasks)
    removals = remove_tasks(rng.normal(size=(models, tasks)), groups)
    assert [removal.r for removal in removals] == sorted((removal.r for removal in removals), reverse=True)
    left = set(range(tasks)) - {removal.column for removal in removals}
    assert sorted(groups[list(left)].tolist()) == sorted(set(groups.tolist()))
    assert len({removal.column for removal in removals}) == len(removals) == tasks - len(left)


def test_a_repeated_task_goes_first_and_the_telling_one_stays() -> None:
    rng = np.random.default_rng(0)
    skill = rng.uniform(size=30)
    near = np.column_stack([skill + 0.01 * rng.normal(size=30) for _ in range(3)])
    odd = skill + 0.4 * rng.normal(size=30)
    repeat = odd + 0.0001 * rng.normal(size=30)
    lite_set = choose_lite_set(field(np.column_stack([near, odd, repeat])), size=4)
    assert len({3, 4} & set(lite_set.columns)) == 1
    assert {0, 1, 2} <= set(lite_set.columns)


@pytest.mark.slow
def test_a_threshold_stops_where_no_pair_of_a_group_is_above_it() -> None:
    matrix = field(two_stories(), ["a", "a", "b", "b"] * 2)
    lite_set = choose_lite_set(matrix, threshold=0.9)
    assert sorted(matrix.tasks[column].category for column in lite_set.columns) == ["a", "a", "b", "b"]
    assert choose_lite_set(matrix, threshold=1.0).columns == tuple(range(8))
    assert len(choose_lite_set(matrix, size=2).columns) == 2


def test_sizes_that_cannot_be() -> None:
    matrix = field(two_stories(), ["a", "b"] * 4)
    for size in (1, 9):
        with pytest.raises(EmbarkError, match=rf"between 2 tasks \(one a category\) and 8, not {size}"):
            choose_lite_set(matrix, size=size)


def test_all_tasks_are_perfectly_faithful_and_noise_is_not() -> None:
    matrix = field(two_stories(noise=0.0))
    whole = fidelity(matrix, range(8), [range(8)] * 30)
    assert (whole.spearman.value, whole.pearson.value, whole.kendall) == pytest.approx((1, 1, 1))
    assert whole.error == pytest.approx(0, abs=1e-9)
    half = fidelity(matrix, range(4), [range(4)] * 30)
    assert half.spearman.value < 0.95
    assert half.error > 1


def test_held_out_errors_are_those_of_a_line_fitted_without_the_model() -> None:
    rng = np.random.default_rng(5)
    matrix = field(rng.uniform(size=(9, 4)))
    measured = fidelity(matrix, [0, 1], [[0, 1]] * 9)
    full, part, off = matrix.values.mean(axis=1), matrix.values[:, :2].mean(axis=1), []
    for model in range(9):
        others = np.arange(9) != model
        off.append(100 * abs(np.polyval(np.polyfit(part[others], full[others], 1), part[model]) - full[model]))
    assert (measured.error, measured.worst) == pytest.approx((np.mean(off), max(off)))


@pytest.mark.slow
def test_mieb_lite_on_the_published_scores() -> None:
    lite_set = distill("MIEB(Multilingual)", check="MIEB(lite)")
    expected = lite_agreement()
    assert set(lite_set.tasks) == set(get_benchmark("MIEB(lite)").tasks)
    assert (lite_set.fidelity.tasks, lite_set.fidelity.spearman.n) == (51, 38)
    assert lite_set.fidelity.spearman.value == pytest.approx(expected.spearman, abs=1e-9)
    assert lite_set.fidelity.pearson.value == pytest.approx(expected.pearson, abs=1e-9)
    assert (round(expected.spearman, 3), round(expected.pearson, 3)) == (0.991, 0.987)
    assert "The paper says Spearman 0.992 and Pearson 0.986" in lite_set.table().notes[-1]


@pytest.mark.slow
def test_the_table_tells_where_each_task_went_and_the_plot_is_drawn(tmp_path: Path) -> None:
    study = choose_lite_set(field(two_stories(), ["a", "b"] * 4), size=4)
    rows = study.table().rows
    assert [row.cells[1] for row in rows].count("kept") == 4
    assert all(row.cells[2] for row in rows if row.cells[1] == "left out")
    judged = judge_lite_set(study.matrix, [task for task in study.matrix.names if task not in study.tasks])
    replace(judged, reference="Lite").plot(tmp_path / "size.svg")
    drawn = (tmp_path / "size.svg").read_text()
    assert "Lite" in drawn
    assert "tasks kept" in drawn


@pytest.mark.slow
def test_the_plot_is_of_the_sets_that_the_method_chooses(tmp_path: Path) -> None:
    """A line of sets that another method chose would contradict the agreement below it."""
    matrix = field(two_stories(), ["a", "b"] * 4)
    for method in ("totals", "repeats"):
        study = choose_lite_set(matrix, size=4, method=method)
        spearman = {size: spearman for size, spearman, _ in study.agreement_by_size}
        assert sorted(spearman) == [*range(2, 9)]
        assert spearman[4] == pytest.approx(study.fidelity.spearman.value)
        study.plot(tmp_path / "size.svg")
        assert ("repeats are removed" in (tmp_path / "size.svg").read_text()) == (method == "repeats")


def test_the_representative_is_the_task_in_the_middle() -> None:
    rng = np.random.default_rng(2)
    skill = rng.uniform(size=40)
    values = np.column_stack([skill, *(skill + 0.5 * rng.normal(size=40) for _ in range(3)), rng.uniform(size=40)])
    first, alone = find_representatives(field(values, ["a"] * 4 + ["b"])).groups
    assert first.columns[0] == 0
    assert list(first.r) == sorted(first.r, reverse=True)
    assert (alone.columns, alone.r) == ((4,), (1.0,))


@pytest.mark.slow
def test_representatives_are_what_removal_ends_with_on_the_published_scores() -> None:
    representatives = distill(by="type", representatives=True)
    lite_set = distill(by="type", size=10, method="repeats")
    assert isinstance(representatives, Representatives)
    assert isinstance(lite_set, LiteSet)
    assert set(representatives.tasks) == set(lite_set.tasks)


def test_unibenchs_groups_stand_beside_the_papers_choice(tmp_path: Path) -> None:
    tasks = tuple(TASKS.match(get_benchmark("UniBench").tasks))
    values = np.random.default_rng(0).uniform(size=(12, len(tasks)))
    study = find_representatives(Matrix(tuple(map(str, range(12))), tasks, values), "capability")
    rows = study.table().rows
    chosen = {row.cells[0]: row.cells[5:] for row in rows}
    assert chosen["geographic diversity"] == (named("UniBench/dollar_street", 26), 0.89)
    assert {row.cells[2].value for row in rows} <= {task.name for task in tasks}
    assert all(paper for paper, _ in chosen.values())
    study.plot(tmp_path / "groups.png")
    assert (tmp_path / "groups.png").stat().st_size > 10_000


def test_files_name_tasks_as_commands_take_them() -> None:
    table = distill("ARK", threshold=0.5).table()
    rows = list(csv.DictReader(io.StringIO(table.format("csv"))))
    assert {row["task"] for row in rows} == set(get_benchmark("ARK").tasks)
    kept = {row["task"] for row in rows if row["lite set"] == "kept"}
    near = [row["nearest kept"] for row in rows if row["lite set"] == "left out"]
    assert near
    assert set(near) <= kept


@pytest.mark.slow
def test_a_lite_set_stands_beside_random_ones() -> None:
    """Removing repeats, and MIEB-lite itself, are no better than lots; following the totals is, also held out."""
    sets = {method: distill(by="type", size=51, method=method) for method in ("repeats", "totals")}
    sets["lite"] = distill(by="type", check="MIEB(lite)")
    chance = {name: lite_set.fidelity.chance for name, lite_set in sets.items() if isinstance(lite_set, LiteSet)}
    assert chance["repeats"].spearman == pytest.approx(0.982, abs=0.004)
    assert chance["repeats"].better > 0.85
    assert chance["repeats"].verdict == "drawing lots does better"
    assert chance["lite"].spearman == pytest.approx(0.990, abs=0.003)
    assert chance["lite"].rest == pytest.approx(0.972, abs=0.002)  # against the other 79 tasks
    assert chance["totals"].smaller <= 0.05
    assert sets["totals"].fidelity.error < 0.6 * chance["totals"].error
    assert "random sets with the same counts by type" in "".join(sets["totals"].table().notes)


@pytest.mark.slow
def test_mieb_lites_own_rule() -> None:
    lite_set = distill(by="type", method="average")
    assert isinstance(lite_set, LiteSet)
    assert len(lite_set.tasks) == 72
    assert {task.tags["type"] for task in lite_set.matrix.tasks if task.name in lite_set.tasks} == {
        task.tags["type"] for task in lite_set.matrix.tasks
    }
    with pytest.raises(EmbarkError, match="takes no size"):
        distill(by="type", method="average", size=51)
    with pytest.raises(EmbarkError, match="needs a size"):
        distill(by="type", method="totals")
    with pytest.raises(EmbarkError, match="method"):
        distill(by="type", method="magic", size=51)
