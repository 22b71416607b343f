from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from cases import slow
from embark.studies.correlate import agreement, correlate_tasks, correlations
from embark.types import EmbarkError
from field import field, two_stories


@given(st.integers(0, 10_000), st.integers(4, 30), st.sampled_from(["spearman", "pearson"]))
def test_an_agreement_is_scipys_with_an_interval_around_it(seed: int, n: int, kind: str) -> None:
    x, y = np.random.default_rng(seed).integers(0, 9, size=(2, n)).astype(float)
    r = agreement(x, y, kind)
    if np.ptp(x) and np.ptp(y):
        assert r.value == pytest.approx({"spearman": spearmanr, "pearson": pearsonr}[kind](x, y).statistic)
    assert -1 <= r.low <= r.value <= r.high <= 1
    other = agreement(y, x, kind)
    assert (other.value, other.n) == (pytest.approx(r.value), n)


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
@pytest.mark.parametrize(("n", "rho"), [(8, 0.0), (8, 0.8), (38, 0.8)])
def test_intervals_cover_the_true_correlation(n: int, rho: float, kind: str) -> None:
    rng = np.random.default_rng(1)
    true = rho if kind == "pearson" else 6 / np.pi * np.arcsin(rho / 2)
    hits = 0
    for _ in range(200):
        x, e = rng.normal(size=(2, n))
        r = agreement(x, rho * x + np.sqrt(1 - rho**2) * e, kind)
        hits += r.low <= true <= r.high
    assert hits / 200 > 0.92


def test_few_models_and_constant_scores_say_nothing() -> None:
    assert agreement(np.array([1.0, 2, 3]), np.array([1.0, 2, 3])).low == -1
    r = agreement(np.ones(9), np.arange(9.0))
    assert (r.value, r.low, r.high) == (0, -1, 1)


def test_the_matrix_of_correlations_is_pairwise() -> None:
    values = np.random.default_rng(0).normal(size=(12, 5))
    r = correlations(values)
    assert np.allclose(r, r.T)
    assert np.diag(r) == pytest.approx(1)
    assert r[1, 3] == pytest.approx(spearmanr(values[:, 1], values[:, 3]).statistic)
    assert correlations(values, "pearson")[0, 4] == pytest.approx(pearsonr(values[:, 0], values[:, 4]).statistic)


def test_tasks_of_one_story_are_one_cluster() -> None:
    study = correlate_tasks(field(two_stories(), ["a"] * 4 + ["b"] * 4))
    assert len(set(study.clusters[:4])) == len(set(study.clusters[4:])) == 1
    assert set(study.clusters.tolist()) == {1, 2}
    table = study.table(pairs=3)
    assert [row.section for row in table.rows[:8]].count("cluster 1: 4 a") in (0, 4)
    strongest = [row for row in table.rows if row.section == "strongest pairs"]
    assert len(strongest) == 3
    assert all(row.cells[2] > 0.9 for row in strongest)
    assert "over 30 models" in table.notes[0]


def test_a_task_like_no_other_is_in_no_cluster() -> None:
    rng = np.random.default_rng(3)
    values = np.column_stack([two_stories(), rng.uniform(size=30)])
    assert correlate_tasks(field(values)).clusters[-1] == 0


def test_a_higher_threshold_makes_more_clusters() -> None:
    values = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 9))
    alone = [int((correlate_tasks(field(values), threshold=t).clusters == 0).sum()) for t in (0.2, 0.6, 0.99)]
    assert alone == sorted(alone)
    assert alone[-1] == 9


def test_models_with_gaps_are_left_out_and_too_few_are_an_error() -> None:
    values = two_stories()
    values[0, 0] = np.nan
    assert len(correlate_tasks(field(values)).matrix.models) == 29
    values[3:, 1] = np.nan
    with pytest.raises(EmbarkError, match="at least three models"):
        correlate_tasks(field(values))


@pytest.mark.parametrize("tasks", [8, *slow(50)])
def test_the_heat_map_is_drawn_and_grows(tmp_path: Path, tasks: int) -> None:
    study = correlate_tasks(field(two_stories(each=tasks // 2)))
    study.plot(tmp_path / "heat.svg")
    assert "t3" in (tmp_path / "heat.svg").read_text()
    assert study.size[0] >= 7


def test_only_clusters_have_boxes() -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    values = np.column_stack([two_stories(), np.random.default_rng(3).uniform(size=(30, 5))])
    study = correlate_tasks(field(values))
    assert (study.clusters == 0).sum() == 5
    figure = Figure()
    study.draw(figure)
    boxes = [patch for patch in figure.axes[1].patches if isinstance(patch, Rectangle)]
    held = [study.order[int(box.get_x() + 0.5) :][: int(box.get_width())] for box in boxes]
    assert sorted(sorted(members.tolist()) for members in held) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert not figure.axes[1].collections  # no line goes across all tasks


def test_a_constant_task_is_left_out_and_named() -> None:
    values = two_stories()
    values[:, 2] = 0.25
    study = correlate_tasks(field(values))
    assert study.matrix.names == ("t0", "t1", "t3", "t4", "t5", "t6", "t7")
    assert study.table().notes[-1] == "Left out, with one score for all models: t2."
    values[:, 1:-1] = 0
    with pytest.raises(EmbarkError, match="scores that differ"):
        correlate_tasks(field(values))


def test_umap_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    with pytest.raises(EmbarkError, match=r"embark-bench\[maps\]"):
        correlate_tasks(field(two_stories()), method="umap")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of numba, on the way in
def test_umap_finds_the_two_stories(tmp_path: Path) -> None:
    pytest.importorskip("umap", reason="needs umap-learn")
    study = correlate_tasks(field(two_stories(each=12)), method="umap")
    assert len(set(study.clusters[:12]) & set(study.clusters[12:]) - {0}) == 0
    study.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5_000


def test_unknown_kinds_and_methods_are_named() -> None:
    with pytest.raises(EmbarkError, match="spearman"):
        correlate_tasks(field(two_stories()), correlation="spearmann")
    with pytest.raises(EmbarkError, match="hierarchical"):
        correlate_tasks(field(two_stories()), method="hierarchic")


def test_files_have_names_in_full() -> None:
    matrix = field(two_stories())
    long = [f"Family/A-task-with-a-long-name-that-is-number-{number}-of-all" for number in range(8)]
    matrix = replace(
        matrix, tasks=tuple(replace(task, name=name) for task, name in zip(matrix.tasks, long, strict=True))
    )
    study = correlate_tasks(matrix)
    rows = json.loads(study.table().format("json"))["rows"]
    assert {row["task"] for row in rows[:8]} == set(long)
    assert {row["with"] for row in rows} <= set(long)
    assert "…" in str(study)


def test_notes_say_what_the_intervals_are() -> None:
    """They are Fisher's at least, and nothing is resampled."""
    study = correlate_tasks(field(two_stories()))
    [note] = [note for note in study.table().notes if "95 %" in note]
    assert "over other models, no narrower than Fisher's" in note
