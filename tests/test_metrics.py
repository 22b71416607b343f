"""Ranking measures against their definitions, written out slowly."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.metrics import CUTOFFS, RANKING, Measure, cutoffs, ranking
from embark.types import EmbarkError

Ranked = dict[int, int]  # rank → grade of a query's relevant documents


def oracle(hits: Ranked, k: int) -> dict[str, float]:
    """The measures of one query, from the ranked list itself."""
    listed = [hits.get(rank, 0) for rank in range(1, max(hits) + 1)]
    top = listed[:k]
    ideal = sorted(hits.values(), reverse=True)[:k]
    found = sum(grade > 0 for grade in top)
    first = next((rank for rank, grade in enumerate(top, 1) if grade > 0), None)
    precisions = [sum(g > 0 for g in top[:at]) / at for at, grade in enumerate(top, 1) if grade > 0]
    return {
        f"ndcg_at_{k}": gain(top) / gain(ideal),
        f"map_at_{k}": sum(precisions) / len(hits),
        f"recall_at_{k}": found / len(hits),
        f"precision_at_{k}": found / k,
        f"mrr_at_{k}": 1 / first if first else 0.0,
        f"hit_rate_at_{k}": float(first is not None),
        f"success_at_{k}": float(first is not None),
    }


def gain(grades: list[int]) -> float:
    return sum(grade / log2(rank + 1) for rank, grade in enumerate(grades, 1))


def columns(rankings: list[Ranked]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [(query, rank, grade) for query, hits in enumerate(rankings) for rank, grade in hits.items()]
    query, rank, grade = np.array(rows).T
    return query, rank, grade


rankings = st.lists(
    st.dictionaries(st.integers(1, 40) | st.integers(1, 1200), st.integers(1, 4), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


@given(st.sampled_from(RANKING) | st.text(min_size=1), st.none() | st.integers(1, 999_999_999))
def test_a_measure_parses_as_it_prints(name: str, cutoff: int | None) -> None:
    try:
        measure = Measure(name, cutoff)
    except EmbarkError:  # a name that ends with a cut-off
        assert cutoff is None
        measure = Measure.parse(name)
        assert measure.cutoff is not None
        assert str(measure) == name
    assert Measure.parse(str(measure)) == measure


@given(st.text() | st.from_regex(r"[a-z_]+_at_-?[0-9]+", fullmatch=True))
def test_a_measure_prints_as_it_was_written(text: str) -> None:
    assert str(Measure.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("accuracy", ("accuracy", None)), ("ndcg_at_7", ("ndcg", 7)), ("hit_rate_at_1000", ("hit_rate", 1000)),
        ("recall_at_0", ("recall_at_0", None)), ("recall_at_07", ("recall_at_07", None)), ("_at_3", ("_at_3", None)),
        ("ndcg_at_999999999", ("ndcg", 999_999_999)), ("ndcg_at_1000000000", ("ndcg_at_1000000000", None)),
    ],
)  # fmt: skip
def test_a_cutoff_is_a_whole_number_from_1(text: str, measure: tuple[str, int | None]) -> None:
    assert Measure.parse(text) == Measure(*measure)


def test_the_cutoff_of_a_metric_joins_those_that_every_ranking_has() -> None:
    assert cutoffs("recall_at_10") == cutoffs("accuracy") == CUTOFFS
    assert cutoffs("recall_at_7") == (1, 3, 5, 7, 10, 20, 100, 1000)
    for cutoff in (0, 1_000_000_000):
        with pytest.raises(EmbarkError, match=f"The cut-off of 'ndcg' must be from 1 to 999,999,999, not {cutoff}"):
            Measure("ndcg", cutoff)


@given(rankings, st.integers(1, 1500))
def test_every_measure_at_any_cutoff_is_its_definition(cases: list[Ranked], k: int) -> None:
    found = ranking(*columns(cases), len(cases), cutoffs(str(Measure("ndcg", k))))
    assert {Measure.parse(name).name for name in found} == {*RANKING}
    for at, hits in enumerate(cases):
        for name, value in oracle(hits, k).items():
            assert found[name][at] == pytest.approx(value, abs=1e-12), name


@given(rankings)
def test_every_measure_at_every_cutoff_is_its_definition(cases: list[Ranked]) -> None:
    found = ranking(*columns(cases), len(cases))
    assert len(found) == 7 * len(CUTOFFS)
    for at, hits in enumerate(cases):
        for k in CUTOFFS:
            for name, value in oracle(hits, k).items():
                assert found[name][at] == pytest.approx(value, abs=1e-12), name


@given(rankings)
def test_every_measure_lies_between_zero_and_one(cases: list[Ranked]) -> None:
    for name, values in ranking(*columns(cases), len(cases)).items():
        assert values.shape == (len(cases),)
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), name


@given(rankings, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(cases: list[Ranked], random: object) -> None:
    query, rank, grade = columns(cases)
    order = list(range(len(query)))
    random.shuffle(order)  # type: ignore[attr-defined]
    plain, shuffled = (
        ranking(query, rank, grade, len(cases)),
        ranking(query[order], rank[order], grade[order], len(cases)),
    )
    for name in plain:
        np.testing.assert_allclose(plain[name], shuffled[name], rtol=1e-13, err_msg=name)


@given(st.integers(1, 9))
def test_a_perfect_ranking_has_full_marks(count: int) -> None:
    grades = np.arange(count, 0, -1)
    found = ranking(np.zeros(count, int), np.arange(1, count + 1), grades, 1, cutoffs=(10,))
    for name in ("ndcg", "map", "recall", "mrr", "hit_rate"):
        assert found[f"{name}_at_10"][0] == pytest.approx(1)


def test_a_number_worked_out_by_hand() -> None:
    found = ranking(np.array([0, 0]), np.array([4, 2]), np.array([3, 1]), 1, cutoffs=(3, 5))
    assert found["ndcg_at_5"][0] == pytest.approx((1 / log2(3) + 3 / log2(5)) / (3 + 1 / log2(3)))
    assert found["ndcg_at_3"][0] == pytest.approx((1 / log2(3)) / (3 + 1 / log2(3)))
    assert found["map_at_5"][0] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["map_at_3"][0] == pytest.approx(1 / 4)
    assert found["mrr_at_3"][0] == 0.5
    assert found["precision_at_5"][0] == pytest.approx(2 / 5)


def test_the_columns_given_are_left_alone() -> None:
    given_columns = columns([{3: 1, 1: 2}, {2: 1}])
    before = [column.copy() for column in given_columns]
    ranking(*given_columns, 2)
    for column, copy in zip(given_columns, before, strict=True):
        np.testing.assert_array_equal(column, copy)
