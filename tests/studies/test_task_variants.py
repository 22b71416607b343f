"""Tasks set otherwise: what is known about shots, prompts, cut-offs and conditions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import evaluators
from embark.run.embedded_task import Embedded
from embark.studies import task_variants
from embark.types import Array, Classes, EmbarkError, Groups, Qrels, Split
from embedded import embedded, gaussian


def classified(seed: int = 0, several: bool = False) -> Embedded:
    """Sixty items of six classes; three prompts a class, of which the third is noise."""
    centres, label = 2 * gaussian(6, 12, seed), np.arange(60) % 6
    items = centres[label] + 2 * gaussian(60, 12, seed + 1)
    prompts = np.repeat(centres, 3, axis=0) + 0.5 * gaussian(18, 12, seed + 2)
    prompts[2::3] = gaussian(6, 12, seed + 3)
    truth: Array = np.eye(6, dtype=bool)[label] if several else label
    names = tuple("abcdef")
    return embedded("zeroshot", Classes(truth, np.repeat(np.arange(6), 3), names), {"item": items, "prompt": prompts})


def points(sweep: task_variants.Sweep) -> dict[str, float]:
    return {point.variant.name: point.score.value for point in sweep.curves[0].points}


def test_prompts_alone_and_together() -> None:
    task = classified()
    scores = points(task_variants.by_prompt([task], {task.task.name: 2}))
    assert list(scores) == ["2 together", "“{}”", "“a picture of {}”", "“an emoji of {}”"]
    assert scores["2 together"] > scores["“an emoji of {}”"] + 0.2
    whole = points(task_variants.by_prompt([task], {task.task.name: 3}))
    assert whole["3 together"] == task.parts[0].scores().value


def test_a_single_prompt_is_no_ensemble() -> None:
    task = classified()
    assert next(iter(points(task_variants.by_prompt([task], {task.task.name: 1})))) == "“{}”"


def test_prompts_that_the_data_brings_have_numbers() -> None:
    task = classified()
    task = replace(task, task=replace(task.task, templates=("{}", "a {}", "the {}", "one {}")))
    sweep = task_variants.by_prompt([task], {task.task.name: 4})
    assert list(points(sweep)) == ["3 together", "“prompt 1”", "“prompt 2”", "“prompt 3”"]
    assert "takes its prompts from its data" in sweep.definitions[0]


def test_what_has_no_prompts() -> None:
    task = embedded("clustering", Groups(np.arange(20) % 2, ("a", "b")), {"item": gaussian(20, 4)})
    with pytest.raises(EmbarkError, match="has no prompts"):
        task_variants.by_prompt([task], {})
    with pytest.raises(EmbarkError, match="ranks nothing"):
        task_variants.by_cutoff([task])
    with pytest.raises(EmbarkError, match="no corrupted variant"):
        task_variants.by_condition([task])


@pytest.mark.slow
@given(st.integers(0, 50), st.booleans())
def test_a_classification_is_a_ranking_of_classes(seed: int, several: bool) -> None:
    task = classified(seed, several)
    metrics = task.parts[0].scores().metrics
    scores = points(task_variants.by_cutoff([task]))
    assert scores["hit_rate at 1"] == pytest.approx(metrics["accuracy"])
    assert scores["hit_rate at 5"] == pytest.approx(metrics["top5_accuracy"])


def test_top_k_rises_and_stops_before_everything_is_a_hit() -> None:
    rows = gaussian(60, 6)
    truth = Qrels(np.arange(60), np.arange(60), np.ones(60, int))
    sweep = task_variants.by_cutoff(
        [embedded("retrieval", truth, {"query": rows + gaussian(60, 6, 1), "document": rows})]
    )
    scores = list(points(sweep).values())
    assert [point.variant.x for point in sweep.curves[0].points] == [1, 3, 5, 10, 20]
    assert scores == sorted(scores)
    assert all(point.difference is None for point in sweep.curves[0].points)
    assert sweep.curves[0].metric == "hit_rate"


def test_a_choice_has_as_many_ks_as_candidates() -> None:
    truth = Qrels(np.repeat(np.arange(10), 4), np.arange(40), np.tile([1, 0, 0, 0], 10))
    task = embedded("choice", truth, {"query": gaussian(10, 4), "document": gaussian(40, 4, 1)})
    assert [point.variant.x for point in task_variants.by_cutoff([task], "recall").curves[0].points] == [1, 3]
    with pytest.raises(EmbarkError, match="no ranking measure 'accuracy'"):
        task_variants.by_cutoff([task], "accuracy")


def test_conditions_are_compared_with_the_clean_items() -> None:
    rows = gaussian(50, 16)
    truth = Qrels(np.arange(50), np.arange(50), np.ones(50, int))
    sides = {"query": rows, "document": rows, "document:same": rows.copy(), "document:lost": gaussian(50, 16, 1)}
    task = embedded("robustness", truth, sides)
    sweep = task_variants.by_condition([task])
    scores = points(sweep)
    metrics = task.parts[0].scores().metrics
    assert scores == {"clean": metrics["clean"], "same": metrics["same"], "lost": metrics["lost"]}
    lost = sweep.curves[0].points[2].difference
    assert lost is not None
    assert lost.high < -0.8
    assert sweep.curves[0].metric == "hit_rate_at_1"


def learning(k: int) -> Embedded:
    label = np.arange(200) % 4
    rows = 2 * gaussian(4, 10)[label] + 2 * gaussian(200, 10, 1)
    truth = Split(label[:120], label[120:], tuple("abcd"))
    drawn, needed = evaluators.narrow("probe", truth, {"shots": k})
    assert isinstance(drawn, Split)
    assert drawn.drawn is not None
    needed_rows = needed["train"]
    cut = replace(drawn, train=drawn.train[needed_rows], drawn=drawn.drawn[needed_rows])
    return embedded("probe", cut, {"train": rows[:120][needed_rows], "test": rows[120:]}, shots=k, probe="sound")


def test_more_examples_teach_more() -> None:
    sweep = task_variants.by_shots([[learning(1), learning(4), learning(16)]])
    scores = points(sweep)
    assert list(scores) == ["1 a class", "4 a class", "16 a class"]
    assert scores["1 a class"] < scores["16 a class"]
    gain = sweep.curves[0].points[2].difference
    assert gain is not None
    assert gain.low > 0


@pytest.mark.parametrize("kind", ["probe", "multilabel"])
@given(st.integers(1, 6), st.integers(0, 20))
def test_the_examples_of_fewer_shots_are_among_those_of_more(kind: str, k: int, seed: int) -> None:
    """What makes learning curves free up to the row's own number."""
    rng = np.random.default_rng(seed)
    label: Array = rng.integers(0, 4, 60) if kind == "probe" else rng.random((60, 4)) < 0.3
    truth = Split(label, label, tuple("abcd"))
    few, more = (evaluators.narrow(kind, truth, {"shots": n})[1]["train"] for n in (k, k + 3))
    assert not (few & ~more).any()


def test_the_default_shots_are_the_evaluators() -> None:
    for kind, shots in task_variants.SHOTS.items():
        label: Array = np.arange(100) % 2 if kind == "probe" else np.eye(2, dtype=bool)[np.arange(100) % 2]
        truth = Split(label, label, ("a", "b"))
        stated, silent = (evaluators.narrow(kind, truth, params)[1]["train"] for params in ({"shots": shots}, {}))
        assert stated.tolist() == silent.tolist()
        assert 0 < stated.sum() < 100


def test_plots(tmp_path: Path) -> None:
    task = classified()
    for number, sweep in enumerate(
        (task_variants.by_prompt([task], {task.task.name: 3}), task_variants.by_cutoff([task, task]))
    ):
        sweep.plot(tmp_path / f"{number}.svg")
        assert sweep.title in (tmp_path / f"{number}.svg").read_text()
        assert max(map(len, str(sweep).splitlines())) <= 100
