"""Pareto fronts of score and cost."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.catalogue import UnknownName
from embark.results import Record, TaskResult
from embark.studies.pareto import embedding_times, on_front, pareto, pareto_front, sizes
from embark.types import EmbarkError
from field import card, field

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)


@given(POINTS)
def test_a_front_holds_exactly_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    cost, score = np.array(points, float).T
    front = on_front(cost, score)
    for row, (c, s) in enumerate(points):
        beaten = any(c2 <= c and s2 >= s and (c2, s2) != (c, s) for c2, s2 in points)
        assert front[row] == (not beaten)
    assert front.any()


def test_models_are_left_out_without_a_cost_or_a_score() -> None:
    matrix = field(np.array([[0.5], [0.6], [0.4], [np.nan], [0.9]]))
    front = pareto_front(matrix, {"m0": 1.0, "m1": 2.0, "m2": 3.0, "m3": 0.1})
    assert front.models == ("m0", "m1", "m2")
    assert front.unbeaten.tolist() == [True, True, False]
    assert front.unknown == ("m4",)
    with pytest.raises(EmbarkError, match=r"^No model with a score on every task has a known number of parameters\.$"):
        pareto_front(matrix, {})


def test_a_field_of_gaps_has_no_front_and_says_why() -> None:
    values = np.array([[0.5, 0.1, np.nan], [np.nan, 0.6, np.nan], [np.nan, np.nan, 0.3]])
    with pytest.raises(EmbarkError, match=r"No model has a score on all 3 tasks.*the most is 2\."):
        pareto_front(field(values), {"m0": 1.0, "m1": 2.0})


def test_an_unknown_cost_gets_suggestions() -> None:
    for call in (lambda: sizes({"a": card("a")}, "foo"), lambda: pareto_front(field(np.ones((3, 1))), {}, "foo")):
        with pytest.raises(UnknownName, match=r"no cost named 'foo'\. There are parameters, dim, time, price"):
            call()


def test_files_tell_the_front_from_the_beaten_and_costs_are_numbers() -> None:
    front = pareto_front(field(np.array([[0.5], [0.6], [0.4]])), {"m0": 8355.25, "m1": 9000, "m2": 8400})
    rows = csv.DictReader(io.StringIO(front.table().format("csv")))
    assert [(row["model"], float(row["parameters (millions)"]), row["section"]) for row in rows] == [
        ("m0", 8355.25, "on the front"),
        ("m1", 9000.0, "on the front"),
        ("m2", 8400.0, "beaten by another"),
    ]
    assert "8,355" in str(front)


def test_sizes_come_from_cards_and_times_from_runs() -> None:
    cards = {"a": card("a", parameters=5_000_000, dim=8), "b": card("b")}
    assert sizes(cards, "parameters") == {"a": 5.0}
    assert sizes(cards, "dim") == {"a": 8.0}
    shared = ("a", "1", "t", "test", "default", ("eng",), "m", 0.5, (0.4, 0.6), {}, "p", "e")
    fresh = Record(*shared, counts={"embedded": 200}, timings={"embed": 4.0})
    stored = Record(*shared, counts={"embedded": 0}, timings={"embed": 0.0})
    result = TaskResult("a", "1", "t", "1", (fresh, stored), 0.5, (0.4, 0.6), 0.0)
    assert embedding_times([result]) == {"a": 20.0, "a@1": 20.0}


def test_the_front_of_the_published_models(tmp_path: Path) -> None:
    front = pareto("MIEB(Multilingual)")
    unbeaten = [model for model, on in zip(front.models, front.unbeaten, strict=True) if on]
    assert "google/siglip-so400m-patch14-384" in unbeaten
    assert "openai/clip-vit-base-patch32" not in unbeaten
    assert any("known to be wrong" in note for note in front.notes)
    front.plot(tmp_path / "front.svg")
    assert "parameters (millions)" in (tmp_path / "front.svg").read_text()
