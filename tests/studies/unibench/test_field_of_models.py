"""UniBench's studies on a field of 59 models whose effects are known: each analysis finds them again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embark.boards.matrix import Matrix
from embark.catalogue import UnknownName
from embark.studies.model_filter import only_models
from embark.studies.scaling import fit_scaling
from embark.studies.unibench.extremes import OVERALL, group_extremes
from embark.studies.unibench.gains import gains, relative_gains
from embark.studies.unibench.medians import field_medians, median_interval
from embark.tasks import TASKS, get_benchmark
from embark.types import EmbarkError
from field import card, field

MODELS = 59
DATA = np.array([13, 128, 400, 2000, 12800])  # millions
SIZES = {"vit-b": 87, "vit-l": 304, "vit-g": 1000, "conv": 40}  # millions of parameters
SLOPES = {"recognition": 0.10, "texture": 0.05, "relation": 0.005, "counting": 0.0}  # for ten times the data
LEVELS = {"vit-b": 0.20, "vit-l": 0.30, "vit-g": 0.40, "conv": 0.05}
CHANCE = {"recognition": 0.01, "texture": 0.02, "relation": 0.5, "counting": 0.1}


@pytest.fixture
def models() -> Matrix:
    """Two tasks a capability: a level by architecture, a slope by data; larger models saw more data."""
    rng = np.random.default_rng(0)
    architecture = np.array(list(SIZES))[np.arange(MODELS) % 4]
    place = (np.arange(MODELS) // 4 + 2 * (np.arange(MODELS) % 4 < 3)) % 5
    data = np.sort(DATA)[np.clip(place - (architecture == "conv"), 0, 4)]
    columns = []
    for name, slope in SLOPES.items():
        level = np.array([LEVELS[kind] for kind in architecture])
        scores = level + slope * np.log10(data / 13)
        if name == "relation":
            scores = CHANCE[name] + 0 * level + slope * np.log10(data / 13)
        if name == "counting":
            scores = np.full(MODELS, CHANCE[name])
        columns += [scores + 0.004 * rng.normal(size=MODELS) for _ in range(2)]
    matrix = field(np.column_stack(columns), [name for name in SLOPES for _ in range(2)])
    rows = tuple(
        replace(task, name="UniBench/imagenet1k" if number == 0 else task.name, chance=CHANCE[task.category])
        for number, task in enumerate(matrix.tasks)
    )
    cards = {
        (name, "", ""): card(name, architecture=kind, parameters=int(1e6 * SIZES[kind]), data=float(seen))
        for name, kind, seen in zip(matrix.models, architecture, data, strict=True)
    }
    return replace(matrix, tasks=rows, own_cards=cards)


def test_figures_2_and_6_medians_against_chance(models: Matrix, tmp_path: Path) -> None:
    study = field_medians(models)
    assert (study.models, len(study.tasks)) == (59, 8)
    assert [row.group for row in study.tasks[:4]] == ["recognition"] * 2 + ["texture"] * 2
    assert {row.group for row in study.tasks if row.at_chance} == {"counting"}
    for row in study.tasks:
        column = models.values[:, models.names.index(row.task.name)]
        assert row.median == pytest.approx(float(np.median(column)))
        assert row.low <= row.median <= row.high
        assert models.values[models.models.index(row.best), models.names.index(row.task.name)] == column.max()
    study.plot(tmp_path / "medians.svg")
    assert "chance" in (tmp_path / "medians.svg").read_text()


def test_medians_take_the_models_that_a_task_has(models: Matrix) -> None:
    values = models.values.copy()
    values[5:, 0] = np.nan
    by_name = {row.task.name: row for row in field_medians(replace(models, values=values)).tasks}
    assert by_name["UniBench/imagenet1k"].models == 5
    assert np.isnan(by_name["UniBench/imagenet1k"].low)
    assert not by_name["UniBench/imagenet1k"].at_chance
    assert by_name["t1"].models == 59


def test_intervals_of_medians_cover() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        low, high = median_interval(rng.exponential(size=30))
        hits += low <= np.log(2) <= high
    assert 370 <= hits < 400
    assert median_interval(np.arange(6.0)) == (0.0, 5.0)
    assert np.isnan(median_interval(np.arange(5.0))).all()


@pytest.mark.slow
def test_figure_3_scaling_with_the_architecture_held_fixed(models: Matrix, tmp_path: Path) -> None:
    trends = {trend.group: trend for trend in fit_scaling(models, models.cards, "data", hold="architecture").trends}
    for name, slope in SLOPES.items():
        assert trends[name].slope == pytest.approx(100 * slope, abs=0.4)
    assert sum(trends[name].low <= 100 * slope <= trends[name].high for name, slope in SLOPES.items()) >= 3
    # Without it, larger models that saw more data look like an effect of data.
    free = {trend.group: trend.slope for trend in fit_scaling(models, models.cards, "data").trends}
    assert free["texture"] > trends["texture"].slope + 1
    study = fit_scaling(models, models.cards, "data", hold="architecture")
    assert "architecture held fixed" in study.title
    study.plot(tmp_path / "held.svg")


@pytest.mark.slow
def test_intervals_with_the_architecture_held_fixed_cover(models: Matrix) -> None:
    rng = np.random.default_rng(1)
    data = np.array([models.cards[name].data for name in models.models])
    level = np.array([LEVELS[models.cards[name].architecture] for name in models.models])
    hits = 0
    for _ in range(200):
        scores = level + 0.05 * np.log10(data) + 0.05 * rng.normal(size=MODELS)
        drawn = replace(models, tasks=models.tasks[:1], values=scores[:, None])
        [trend] = fit_scaling(drawn, models.cards, "data", hold="architecture").trends
        hits += trend.low <= 5 <= trend.high
    assert 180 <= hits < 200


def test_figure_3_scaling_of_models_with_the_same_data(models: Matrix) -> None:
    sizes = np.log10(list(SIZES.values()))
    expected = 100 * np.polyfit(sizes, list(LEVELS.values()), 1)[0]
    study = fit_scaling(models, models.cards, "parameters", hold="data")
    texture = next(trend for trend in study.trends if trend.group == "texture")
    assert texture.slope == pytest.approx(expected, abs=2)
    vits = only_models(models, where=["architecture=vit-*", "data=400"])
    assert {vits.cards[name].architecture for name in vits.models} == {"vit-b", "vit-l", "vit-g"}
    assert {vits.cards[name].data for name in vits.models} == {400.0}


def test_figure_4_gains_relative_to_imagenet(models: Matrix, tmp_path: Path) -> None:
    vit = only_models(models, where=["architecture=vit-b"])
    study = relative_gains(vit, "data", "category")
    ratios = {group.group: group for group in study.groups}
    assert study.reference == "UniBench/imagenet1k"
    assert list(ratios)[:2] == ["recognition", "texture"]
    for name, slope in SLOPES.items():
        assert ratios[name].ratio == pytest.approx(slope / SLOPES["recognition"], abs=0.07)
        assert ratios[name].slope_ratio == pytest.approx(slope / SLOPES["recognition"], abs=0.04)
        assert ratios[name].low <= slope / SLOPES["recognition"] + 0.03
        assert ratios[name].high >= slope / SLOPES["recognition"] - 0.03
    study.plot(tmp_path / "gains.svg")
    with pytest.raises(EmbarkError, match="name a reference"):
        relative_gains(models.only(tasks=lambda task: task.category == "texture"))


def test_tables_1_and_5_for_any_models(models: Matrix, tmp_path: Path) -> None:
    study = group_extremes(models)
    assert [row.group for row in study.groups] == [*SLOPES, OVERALL]
    recognition = study.groups[0]
    cards = models.cards
    assert (cards[recognition.best].architecture, cards[recognition.worst].architecture) == ("vit-g", "conv")
    assert recognition.parameters_ratio == pytest.approx(1000 / 40)
    assert recognition.data_ratio == (cards[recognition.best].data or 0) / (cards[recognition.worst].data or 1)
    assert recognition.mean == pytest.approx(float(models.values[:, :2].mean()))
    overall = study.groups[-1]
    assert overall.mean == pytest.approx(float(np.mean([row.mean for row in study.groups[:-1]])))
    study.plot(tmp_path / "extremes.svg")
    latex = study.table().format("latex")
    assert r"\toprule" in latex
    assert r"\bottomrule" in latex
    few = group_extremes(only_models(models, models=["m0", "m1", "m2"]))
    assert {row.models for row in few.groups} == {3}


def test_conditions_on_models(models: Matrix) -> None:
    assert len(only_models(models, where=["data=100..500", "parameters=..90"]).models) > 0
    with pytest.raises(EmbarkError, match="'architecture' is no condition"):
        only_models(models, where=["architecture"])
    with pytest.raises(UnknownName, match="no fact of models named 'color'"):
        only_models(models, where=["color=red"])
    with pytest.raises(EmbarkError, match="None of 59 models with scores meets data=1"):
        only_models(models, where=["data=1"])


def test_the_prompt_study_on_digits() -> None:
    rows = tuple(TASKS.match(get_benchmark("UniBench(MNIST prompts)").tasks))
    rng = np.random.default_rng(0)
    gain = np.linspace(0.3, 0.0, len(rows))  # words before digits, as the paper ranks the six variants
    values = 0.4 + gain + 0.1 * rng.normal(size=(MODELS, 1)) + 0.01 * rng.normal(size=(MODELS, len(rows)))
    study = field_medians(replace(field(values), tasks=rows), "task")
    assert [row.task.name for row in study.tasks] == [row.name for row in rows]
    assert not any(row.at_chance for row in study.tasks)


def test_one_model_has_no_extremes(models: Matrix) -> None:
    with pytest.raises(EmbarkError, match="two or more; there is only m0"):
        group_extremes(only_models(models, models="m0"))


def test_gains_are_by_category_where_tasks_have_no_capability() -> None:
    assert gains("MIEB(eng)", against="parameters").by == "category"
