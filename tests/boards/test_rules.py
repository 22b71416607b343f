"""Each family's rule: values by hand, and what holds for any scores."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.boards.aggregate import standings
from embark.boards.leaderboards import shared
from embark.boards.rules import RULES, by_difficulty, rule_of, summarize
from embark.catalogue import UnknownName
from embark.results import Record, TaskResult
from embark.seams import Rule, Subtotal
from embark.stats.means import mean
from embark.tasks import BENCHMARKS, TASKS
from embark.types import Benchmark, EmbarkError, Task

mean_of_categories = RULES["mean-of-categories"]
mean_of_types = RULES["mean-of-types"]
mean_of_capabilities = RULES["mean-of-capabilities"]
median_of_types = RULES["median-of-types"]
median_of_capabilities = RULES["median-of-capabilities"]
mmeb = RULES["mmeb"]
DEAF = ("audio",)  # what a model lacks


def rows(benchmark: str) -> list[Task]:
    return TASKS.match(BENCHMARKS[benchmark].tasks)


def result(task: Task, score: float, *warnings: str) -> TaskResult:
    interval = (score - 0.02, score + 0.02)
    parts = ("m", "1", task.name, "test", "default", ("eng",), task.metric, score, interval, {}, "p", "e")
    return TaskResult("m", "1", task.name, "1", (Record(*parts, warnings=warnings),), score, interval, 0.0)


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=lambda b: b.name)
def test_every_benchmark_has_a_rule_that_covers_its_tasks(benchmark: Benchmark) -> None:
    tasks = rows(benchmark.name)
    made = summarize(RULES[benchmark.rule], tasks, {task.name: 0.5 for task in tasks})
    for one in [*made.groups.values(), *made.totals.values()]:
        assert one.value == pytest.approx(0.5)
        assert not one.partial
    assert all(one.of == len(tasks) for one in list(made.totals.values())[:1])


@pytest.mark.parametrize(
    ("benchmark", "groups"),
    [
        ("MIEB(Multilingual)", 10),
        ("MIEB(eng)", 8),
        ("UniBench", 7),
        ("UniBench(capabilities)", 18),
        ("MMEB-V3", 6 + 23),
        ("ARK", 5),
    ],
)
def test_groups_are_the_columns_of_the_papers(benchmark: str, groups: int) -> None:
    tasks = rows(benchmark)
    assert len(summarize(RULES[BENCHMARKS[benchmark].rule], tasks, {task.name: 0.0 for task in tasks}).groups) == groups


@given(st.data())
def test_an_aggregate_is_the_weighted_sum_of_its_tasks(data: st.DataObject) -> None:
    benchmark = data.draw(st.sampled_from(["MIEB(lite)", "UniBench(capabilities)", "MMEB-V3(audio)", "ARK"]))
    tasks = rows(benchmark)
    some = data.draw(st.lists(st.sampled_from([task.name for task in tasks]), min_size=1, unique=True))
    values = {name: data.draw(st.floats(0, 1)) for name in some}
    made = summarize(RULES[BENCHMARKS[benchmark].rule], tasks, values)
    for one in [*made.groups.values(), *made.totals.values()]:
        assert one.value == pytest.approx(sum(w * values[name] for name, w in one.weights.items()), abs=1e-12)
        assert sum(one.weights.values()) == pytest.approx(1)
        assert one.count == len(one.weights) <= one.of
        assert one.partial == (one.count < one.of)
        assert one.zeros == 0


def test_a_group_without_scores_is_absent_and_a_mean_of_nothing_is_an_error() -> None:
    tasks = rows("MIEB(lite)")
    made = summarize(mean_of_types, tasks, {"VisualSTS17Multilingual": 0.5})
    assert list(made.groups) == ["VisualSTS(multi)"]
    assert list(made.totals) == ["mean"]  # no English task, so no English mean
    assert (made.totals["mean"].count, made.totals["mean"].of) == (1, 51)
    with pytest.raises(EmbarkError, match="at least one score"):
        mean(["STS13VisualSTS"], {})


def test_the_english_mean_leaves_two_types_out() -> None:
    tasks = rows("MIEB(Multilingual)")
    foreign = ("Any2AnyMultilingualRetrieval", "VisualSTS(multi)")
    made = summarize(mean_of_types, tasks, {task.name: float(task.tags["type"] in foreign) for task in tasks})
    assert made.totals["mean"].value == pytest.approx(0.2)
    assert made.totals["mean (en)"].value == 0
    assert made.totals["mean (en)"].of == 125


def test_categories_and_capabilities_count_alike_however_many_tasks_they_have() -> None:
    tasks = [t for t in rows("UniBench") if t.category in ("Texture", "Relation")]
    values = {task.name: float(task.category == "Texture") for task in tasks}
    assert summarize(mean_of_categories, tasks, values).totals["mean"].value == 0.5
    assert summarize(mean_of_capabilities, tasks, values).totals["mean"].value == 0.5


def test_audio_that_a_model_does_not_take_counts_as_zero_in_all_and_is_left_out_of_all_star() -> None:
    tasks = rows("MMEB-V3")
    values = {task.name: 0.6 for task in tasks if task.tags["group"] != "audio"}
    made = summarize(mmeb, tasks, values, DEAF)
    whole = made.totals["All"]
    assert (whole.count, whole.of, whole.zeros) == (179, 190, 11)  # zeros are no scores
    assert whole.value == pytest.approx(0.6 * 179 / 190)
    assert sum(whole.weights.values()) == pytest.approx(1)
    assert made.totals["All*"].value == pytest.approx(0.6)
    assert not made.totals["All"].partial
    assert not made.totals["All*"].partial
    assert "audio" not in made.groups
    values.pop("MMEB/VOC2007")
    made = summarize(mmeb, tasks, values, DEAF)
    assert made.totals["All"].value == pytest.approx(0.6 * 178 / 189)  # not run is not zero
    assert made.totals["All"].partial
    audio = next(task.name for task in tasks if task.tags["group"] == "audio")
    values |= {audio: 0.3}
    assert summarize(mmeb, tasks, values, DEAF) == summarize(mmeb, tasks, values)  # it hears


def test_audio_that_a_model_was_not_run_on_is_missing() -> None:
    tasks = rows("MMEB-V3")
    made = summarize(mmeb, tasks, {task.name: 0.6 for task in tasks if task.tags["group"] != "audio"})
    for whole in made.totals.values():
        assert whole.value == pytest.approx(0.6)
        assert (whole.count, whole.of, whole.zeros) == (179, 190, 0)
        assert whole.partial


def test_arks_knowledge_axis_is_the_mean_over_subtypes() -> None:
    tasks = rows("ARK")
    values = {task.name: float(task.category == "Formal Science") for task in tasks}
    assert summarize(RULES["ark"], tasks, values).totals["knowledge axis"].value == pytest.approx(2 / 17)  # not 1 / 5


def test_a_group_without_audio_has_one_total() -> None:
    tasks = rows("MMEB-V3(image)")
    assert list(summarize(mmeb, tasks, {task.name: 0.5 for task in tasks}).totals) == ["All"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_medians_are_the_scores_in_the_middle(scores: list[float]) -> None:
    tasks = rows("UniBench(relation)")
    values = dict(zip([task.name for task in tasks], scores, strict=False))
    made = summarize(median_of_types, tasks, values)
    for one in (made.groups["Relation"], made.totals["median"]):
        assert one.value == pytest.approx(median(scores))
        assert (one.count, one.of) == (len(scores), 6)
        assert sum(weight * values[task] for task, weight in one.weights.items()) == pytest.approx(one.value)
    assert summarize(median_of_capabilities, tasks, values).totals == made.totals


def test_hard_tasks_count_more_when_weighted_by_what_a_model_lacks() -> None:
    easy, hard, unknown = rows("UniBench(relation)")[:3]
    rule = by_difficulty("org/reference", {easy.name: 0.8, hard.name: 0.2})
    scores = {easy.name: 0.9, hard.name: 0.3, unknown.name: 1.0}
    made = summarize(rule, [easy, hard, unknown], scores).totals["weighted mean"]
    assert made.value == pytest.approx(0.2 * 0.9 + 0.8 * 0.3)
    assert (made.count, made.of) == (2, 2)
    assert rule_of(rule) is rule
    assert str(rule) == "mean weighted by what org/reference lacks"
    with pytest.raises(EmbarkError, match="weights are all zero"):
        summarize(rule, [unknown], {unknown.name: 1.0})


def test_a_rule_says_which_family_it_is_not_for() -> None:
    tasks = rows("MIEB(lite)")
    with pytest.raises(EmbarkError, match="not for MIEB"):
        summarize(mean_of_capabilities, tasks, {task.name: 0.5 for task in tasks})


def test_models_with_gaps_compare_over_the_tasks_that_all_have() -> None:
    tasks = rows("UniBench(relation)")[:3]
    one = [result(task, 0.5) for task in tasks]
    other = [replace(result(task, 0.5), model="n") for task in tasks[::2]]
    assert shared(tasks, standings(tasks, [*one, *other])) == tasks[::2]
    assert shared(tasks, standings(tasks, [one[1], *other])) == []
    assert shared(tasks, []) == []


def test_a_group_is_spelled_like_the_category_that_it_repeats() -> None:
    tasks = rows("UniBench")
    groups = summarize(mean_of_types, tasks, {task.name: 0.5 for task in tasks}).groups
    assert list(groups) == list(dict.fromkeys(task.category for task in tasks))


def test_standings_follow_the_rule_with_intervals_and_errata() -> None:
    tasks = rows("MMEB-V3(image)")
    found = [result(task, 0.5, *(["erratum x: y", "slow"] if at == 0 else [])) for at, task in enumerate(tasks)]
    [one] = standings(tasks, found, "mmeb")
    assert list(one.totals) == ["All"]
    assert one.mean == one.totals["All"]
    assert one.mean.marks == one.categories["I-CLS"].marks == ("erratum x: y",)
    assert one.categories["I-QA"].marks == ()
    assert one.mean.high - 0.5 == pytest.approx(0.02 / math.sqrt(37))  # as a mean of 37 independent scores
    noted = [result(task, 0.5, *["note x: y"] * (task.category == "I-CLS"), "slow") for task in tasks]
    [two] = standings(tasks, noted, "mmeb")
    assert two.categories["I-CLS"].marks == ("note x: y",)  # it holds for all of them
    assert two.mean.marks == ()
    [partial] = standings(tasks, found[:10], "mmeb")
    assert (partial.mean.count, partial.mean.of) == (10, 37)
    with pytest.raises(UnknownName, match="mean-of-types"):
        standings(tasks, found, "mean-of-type")
    assert standings([replace(task, protocol="other") for task in tasks], found, "mmeb") == []


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": ""}, "its `name` must not be empty"),
        ({"about": " "}, "its `about` must not be empty"),
        ({"by": "type"}, "its `by` must be a tuple of texts, not 'type'"),
        ({"by": ()}, "its `by` and `total` must not be empty"),
        ({"over": "models"}, "its `over` must be groups or tasks, not 'models'"),
        ({"over": "tasks", "average": 0.5}, "its `average` must be a function, not 0.5"),
        ({"over": "tasks", "weights": ["a"]}, "its `weights` must be a table of numbers"),
        ({"subtotal": ("part", ("a",))}, "its `subtotal` must be a Subtotal"),
        ({"zeros_without": "audio"}, "a total over groups has no `zeros_without`"),
        ({"over": "tasks", "subtotal": Subtotal("part", ("a",))}, "a total over tasks has no `subtotal`"),
        ({"over": "tasks", "weights": {"a": -1.0}}, "its `weights` must be numbers from 0"),
        ({"over": "tasks", "weights": {"a": math.nan}}, "its `weights` must be numbers from 0"),
        ({"over": "tasks", "zeros_without": "smell"}, "its `zeros_without` must be one of text, image, "),
        ({"subtotal": Subtotal("part", "ab")}, "its `without` must be a tuple of texts, not 'ab'"),  # type: ignore[arg-type]
        ({"subtotal": Subtotal("part", ())}, "its `subtotal` must have a name other than the total's, and groups"),
        ({"subtotal": Subtotal("mean", ("a",))}, "its `subtotal` must have a name other than the total's, and groups"),
        ({"over": "tasks", "weights": {}, "zeros_without": "audio"}, "has no `average` and no `zeros_without`"),
    ],
)
def test_a_rule_that_is_declared_wrongly_is_refused_when_it_is_made(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(EmbarkError, match=re.escape(fault)):
        Rule(**{"name": "mine", "about": "A rule.", **fields})


def test_every_rule_says_what_its_totals_are() -> None:
    assert all(rule.name == name and rule.about.endswith(".") for name, rule in RULES.items())
