"""Leaving items out keeps sides and truth in agreement, whatever is left out."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import items
from embark.items.consistency import problems
from embark.items.drop_items import sample, without
from embark.types import Classes, Dataset, EmbarkError, Gold, Groups, Matches, Qrels, Side, Split, Truth

ROLES: dict[type[Any], tuple[str, ...]] = {
    Qrels: ("query", "document"),
    Classes: ("item", "prompt"),
    Split: ("train", "test"),
    Groups: ("item",),
    Matches: ("image", "text"),
    Gold: ("left", "right"),
}


def side(role: str, count: int) -> Side:
    ids = tuple(f"{role}-{at}" for at in range(count))
    return Side(ids, tuple(map(items.text, ids)))


@st.composite
def datasets(draw: st.DrawFn) -> tuple[Dataset, dict[str, set[int]]]:
    kind = draw(st.sampled_from(list(ROLES)))
    sizes = {role: draw(st.integers(1, 6)) for role in ROLES[kind]}
    dropped = {role: draw(st.sets(st.integers(0, size - 1))) for role, size in sizes.items()}
    rows = draw(st.integers(0, 8))
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def positions(role: str, *shape: int) -> Any:
        return rng.integers(0, sizes[role], shape)

    def each(role: str) -> Any:
        return np.arange(sizes[role]) * 10

    names = ("a", "b")
    a, b = (ROLES[kind] * 2)[:2]
    truths: dict[type[Any], Truth] = {
        Qrels: Qrels(positions(a, rows), positions(b, rows), np.arange(rows), each(a)),
        Classes: Classes(each(a), each(b), names),
        Split: Split(np.eye(sizes[a], 3, dtype=bool), np.eye(sizes[b], 3, dtype=bool), names),
        Groups: Groups(each(a), names),
        Matches: Matches(positions(a, rows, 2), positions(b, rows, 3)),
        Gold: Gold(positions(a, rows), positions(b, rows), np.arange(rows) / 2),
    }
    return Dataset({role: side(role, size) for role, size in sizes.items()}, truths[kind]), dropped


def named(data: Dataset) -> set[tuple[Any, ...]]:
    """The truth's rows with ids in place of positions."""
    ids = {role: np.array(kept.ids) for role, kept in data.sides.items()}
    table: list[list[Any]] = []
    facts: set[tuple[Any, ...]] = set()
    for spec in fields(data.truth):
        values = getattr(data.truth, spec.name)
        if "index" in spec.metadata:
            table.append([np.ravel(row).tolist() for row in ids[spec.metadata["index"]][values]])
        elif isinstance(values, np.ndarray) and "aligned" in spec.metadata:
            owners = ids[spec.metadata["aligned"]].tolist()
            facts |= {(one, str(value)) for one, value in zip(owners, values, strict=True)}
        elif isinstance(values, np.ndarray):
            table.append([[value] for value in values.tolist()])
    return facts | {tuple(chain(*row)) for row in zip(*table, strict=True)}


@given(datasets())
def test_what_is_left_is_what_did_not_mention_the_dropped(case: tuple[Dataset, dict[str, set[int]]]) -> None:
    data, dropped = case
    gone = {data.sides[role].ids[at] for role, positions in dropped.items() for at in positions}
    left = without(data, dropped)
    expected = ("is empty", "2 classes")  # the labels here are positions
    assert not [problem for problem in problems(left) if not any(part in problem for part in expected)]
    assert all(set(kept.ids).isdisjoint(gone) for kept in left.sides.values())
    assert sum(map(len, left.sides.values())) == sum(map(len, data.sides.values())) - len(gone)
    assert named(left) == {row for row in named(data) if gone.isdisjoint(row)}
    assert all(kept.items == tuple(map(items.text, kept.ids)) for kept in left.sides.values())


@given(datasets())
def test_leaving_nothing_out_changes_nothing(case: tuple[Dataset, dict[str, set[int]]]) -> None:
    data, _ = case
    assert named(without(data, {})) == named(data)
    assert without(data, {}).sides == data.sides


def test_unknown_sides_and_positions_are_errors() -> None:
    data = Dataset({"item": side("item", 2)}, Groups(np.zeros(2, int), ("a",)))
    with pytest.raises(EmbarkError, match=r"no side 'query'.*only item"):
        without(data, {"query": [0]})
    with pytest.raises(EmbarkError, match="has 2 items"):
        without(data, {"item": [2]})


@given(datasets(), st.integers(1, 8))
def test_a_sample_keeps_sides_and_truth_agreed(made: tuple[Dataset, dict[str, set[int]]], most: int) -> None:
    data, _ = made
    part, size = sample(data, most)
    # Where nothing is judged there is nothing to draw; class numbers are out of range on purpose here.
    assert not [problem for problem in problems(part) if "is empty" not in problem and "classes" not in problem]
    if isinstance(data.truth, Matches | Gold):
        table = [getattr(part.truth, spec.name) for spec in fields(part.truth)]
        assert {len(column) for column in table} == {min(most, size)}
        return
    unit = {Qrels: "query", Split: "test"}.get(type(data.truth), "item")
    assert len(part.sides[unit]) == min(most, size)
    assert set(part.sides[unit].ids) <= set(sample(data, most + 1)[0].sides[unit].ids)
    assert {name: len(side) for name, side in part.sides.items() if name != unit} == {
        name: len(side) for name, side in data.sides.items() if name != unit
    }


def test_documents_that_no_drawn_query_lists_may_be_left_out() -> None:
    truth = Qrels(np.repeat(np.arange(4), 2), np.arange(8), np.tile([1, 0], 4))
    data = Dataset({"query": side("query", 5), "document": side("document", 9), "query:noise": side("q", 5)}, truth)
    part, size = sample(data, 2, listed_only=True)
    assert (size, {name: len(of_side) for name, of_side in part.sides.items()}) == (
        4,  # the fifth query has no judgement
        {"query": 2, "document": 4, "query:noise": 2},
    )
    part_truth: Any = part.truth
    documents = np.array(part.sides["document"].ids)[part_truth.document]
    queries = np.array(part.sides["query"].ids)[part_truth.query]
    assert [int(d[-1]) // 2 for d in documents] == [int(q[-1]) for q in queries]
