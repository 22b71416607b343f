from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.boards.rederive import lite_agreement
from embark.cli.analyze import scores
from embark.results.table import named
from embark.studies.distill import beside, distill, fidelity, judged, removals
from embark.studies.representatives import representatives
from embark.tasks import get_benchmark
from embark.types import EmbarkError
from field import field, two_stories

RULE = "mean-of-categories"


@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(2, 9))
def test_removals_fall_in_strength_and_leave_one_task_a_group(seed: int, models: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, size=tasks)
    path = removals(rng.normal(size=(models, tasks)), groups)
    assert [one.r for one in path] == sorted((one.r for one in path), reverse=True)
    left = set(range(tasks)) - {one.column for one in path}
    assert sorted(groups[list(left)].tolist()) == sorted(set(groups.tolist()))
    assert len({one.column for one in path}) == len(path) == tasks - len(left)


def test_a_repeated_task_goes_first_and_the_telling_one_stays() -> None:
    rng = np.random.default_rng(0)
    skill = rng.uniform(size=30)
    near = np.column_stack([skill + 0.01 * rng.normal(size=30) for _ in range(3)])
    odd = skill + 0.4 * rng.normal(size=30)
    repeat = odd + 0.0001 * rng.normal(size=30)
    made = distill(field(np.column_stack([near, odd, repeat])), RULE, size=4)
    assert len({3, 4} & set(made.kept)) == 1
    assert {0, 1, 2} <= set(made.kept)


def test_a_threshold_stops_where_no_pair_of_a_group_is_above_it() -> None:
    matrix = field(two_stories(), ["a", "a", "b", "b"] * 2)
    made = distill(matrix, RULE, threshold=0.9)
    assert sorted(matrix.tasks[at].category for at in made.kept) == ["a", "a", "b", "b"]
    assert distill(matrix, RULE, threshold=1.0).kept == tuple(range(8))
    assert len(distill(matrix, RULE, size=2).kept) == 2


def test_sizes_that_cannot_be() -> None:
    matrix = field(two_stories(), ["a", "b"] * 4)
    for size in (1, 9):
        with pytest.raises(EmbarkError, match=rf"between 2 tasks \(one a category\) and 8, not {size}"):
            distill(matrix, RULE, size=size)


def test_all_tasks_are_perfectly_faithful_and_noise_is_not() -> None:
    matrix = field(two_stories(noise=0.0))
    whole = fidelity(matrix, RULE, range(8), [range(8)] * 30)
    assert (whole.spearman.value, whole.pearson.value, whole.kendall) == pytest.approx((1, 1, 1))
    assert whole.error == pytest.approx(0, abs=1e-9)
    half = fidelity(matrix, RULE, range(4), [range(4)] * 30)
    assert half.spearman.value < 0.95
    assert half.error > 1


def test_held_out_errors_are_those_of_a_line_fitted_without_the_model() -> None:
    rng = np.random.default_rng(5)
    matrix = field(rng.uniform(size=(9, 4)))
    found = fidelity(matrix, RULE, [0, 1], [[0, 1]] * 9)
    full, part, off = matrix.values.mean(axis=1), matrix.values[:, :2].mean(axis=1), []
    for model in range(9):
        others = np.arange(9) != model
        off.append(100 * abs(np.polyval(np.polyfit(part[others], full[others], 1), part[model]) - full[model]))
    assert (found.error, found.worst) == pytest.approx((np.mean(off), max(off)))


def test_mieb_lite_on_the_published_scores() -> None:
    matrix = scores("MIEB(Multilingual)")
    made = judged(matrix, "mean-of-types", get_benchmark("MIEB(lite)").tasks)
    expected = lite_agreement()
    assert (made.fidelity.tasks, made.fidelity.spearman.n) == (51, 38)
    assert made.fidelity.spearman.value == pytest.approx(expected.spearman, abs=1e-9)
    assert made.fidelity.pearson.value == pytest.approx(expected.pearson, abs=1e-9)
    assert (round(expected.spearman, 3), round(expected.pearson, 3)) == (0.991, 0.987)


def test_the_table_tells_where_each_task_went_and_the_plot_is_drawn(tmp_path: Path) -> None:
    made = beside(distill(field(two_stories(), ["a", "b"] * 4), RULE, size=4), "Lite", ["t0", "t1"])
    study = made.study()
    assert [row.cells[1] for row in study.table.rows].count("kept") == 4
    assert all(row.cells[2] for row in study.table.rows if row.cells[1] == "left out")
    study.save(tmp_path / "size.svg")
    drawn = (tmp_path / "size.svg").read_text()
    assert "Lite" in drawn
    assert "tasks kept" in drawn


def test_the_representative_is_the_task_in_the_middle() -> None:
    rng = np.random.default_rng(2)
    skill = rng.uniform(size=40)
    values = np.column_stack([skill, *(skill + 0.5 * rng.normal(size=40) for _ in range(3)), rng.uniform(size=40)])
    found = representatives(field(values, ["a"] * 4 + ["b"]), RULE)
    first, alone = found.groups
    assert first.columns[0] == 0
    assert list(first.r) == sorted(first.r, reverse=True)
    assert (alone.columns, alone.r) == ((4,), (1.0,))


def test_representatives_are_what_removal_ends_with_on_the_published_scores() -> None:
    matrix = scores("MIEB(Multilingual)").complete()
    one_each = representatives(matrix, "mean-of-types", "type")
    last = distill(matrix, "mean-of-types", "type", size=10)
    assert {group.columns[0] for group in one_each.groups} == set(last.kept)


def test_unibenchs_groups_stand_beside_the_papers_choice(tmp_path: Path) -> None:
    from embark.boards.matrix import Matrix
    from embark.tasks import TASKS

    tasks = tuple(TASKS.match(get_benchmark("UniBench").tasks))
    values = np.random.default_rng(0).uniform(size=(12, len(tasks)))
    study = representatives(Matrix(tuple(map(str, range(12))), tasks, values), "mean-of-types", "capability").study()
    chosen = {row.cells[0]: row.cells[5:] for row in study.table.rows}
    assert chosen["geographic diversity"] == (named("UniBench/dollar_street", 26), 0.89)
    assert {row.cells[2].value for row in study.table.rows} <= {task.name for task in tasks}
    assert all(paper for paper, _ in chosen.values())
    study.save(tmp_path / "groups.png")
    assert (tmp_path / "groups.png").stat().st_size > 10_000


def test_files_name_tasks_as_commands_take_them() -> None:
    table = distill(scores("ARK"), "mean-of-categories", threshold=0.5).study().table
    rows = list(csv.DictReader(io.StringIO(table.format("csv"))))
    assert {row["task"] for row in rows} == set(get_benchmark("ARK").tasks)
    kept = {row["task"] for row in rows if row["lite set"] == "kept"}
    near = [row["nearest kept"] for row in rows if row["lite set"] == "left out"]
    assert near
    assert set(near) <= kept
