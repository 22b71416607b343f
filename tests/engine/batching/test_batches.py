"""Batches by cost: what an item costs, and which items go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from embark import items
from embark.engine.batching.batches import (
    FIRST_BATCH,
    UNKNOWN_COST,
    WINDOW,
    Batch,
    BatchSize,
    Ready,
    Window,
    cost,
    costs_and_shapes,
    fixed_size,
)
from embark.items.decoding import UnreadableMedia
from embark.planning import Need
from embark.store import Store
from embark.types import Audio, Content, Encoded
from lengths import Lengths, needs, number, run

MUCH = 1 << 40  # bytes


class Source:
    """Prepared items that come in chunks, and how many were drawn."""

    def __init__(self, values: Sequence[Any], size_in_bytes: int = 0, chunk: int = 1) -> None:
        self.values = list(values)
        self.size_in_bytes = size_in_bytes
        self.chunk = chunk
        self.drawn = 0

    def __iter__(self) -> Iterator[Ready]:
        while self.drawn < len(self.values):
            values = self.values[self.drawn : self.drawn + self.chunk]
            rows = np.arange(self.drawn, self.drawn + len(values))
            self.drawn += len(values)
            yield Ready(rows, values, np.full(len(values), self.size_in_bytes))


def window_of(source: Source | Sequence[Any], size: BatchSize, most_bytes: int = MUCH, alike: bool = False) -> Window:
    """A window over prepared items, whose needs are numbered."""
    source = source if isinstance(source, Source) else Source(source)
    item = items.text("")
    needs = [Need(row.to_bytes(32), item, "item", None, 0, row) for row in range(len(source.values))]
    return Window(needs, iter(source), size, most_bytes, alike)


def batches(window: Window) -> list[Batch]:
    out = []
    while (batch := window.next_batch()) is not None:
        out.append(batch)
        assert len(out) < 10_000
    return out


def tokens(lengths: Sequence[int]) -> list[list[int]]:
    return [[1] * int(length) for length in lengths]


def test_an_item_costs_its_tokens_or_the_elements_of_its_largest_array() -> None:
    pixels = np.zeros((2, 3, 4))
    assert cost([5, 6, 7]) == 3
    assert cost("words") == 5
    assert cost({"ids": [1, 2], "mask": [1, 1], "pixels": pixels}) == 24
    assert cost([("text", [1, 2, 3])]) == 3
    assert cost([("image", {"pixels": pixels}), ("text", [1, 2, 3])]) == 27
    assert cost(([5, 6, 7], 2)) == 3  # tokens and how many of them are the prompt
    assert cost([pixels, pixels]) == 48  # frames
    assert cost([Content("text", "words"), Content("audio", Audio(np.zeros(100), 16_000))]) == 105
    assert cost(Image.new("RGB", (40, 30))) == cost(b"JPEG") == UNKNOWN_COST
    assert [cost(value) for value in ("", [], None, 7)] == [1] * 4
    several: list[tuple[list[Any], list[int]]] = [
        (["a", "", "abc"], [1, 1, 3]),
        (tokens([3, 0, 2]), [3, 1, 2]),
        ([[("text", [1, 2])], [("text", [1])]], [2, 1]),
        ([pixels, [1, 2]], [24, 2]),
    ]
    for values, expected in several:
        assert costs_and_shapes(values)[0].tolist() == expected


def test_tensors_cost_their_elements() -> None:
    torch = pytest.importorskip("torch")
    assert cost({"pixels": torch.zeros(3, 10), "ids": torch.zeros(4)}) == 30


@pytest.mark.parametrize("budget", [0, 2_000, 20_000])
def test_a_window_wastes_little_where_random_order_wastes_much(budget: int) -> None:
    lengths = np.random.default_rng(5).integers(8, 257, 6000)
    as_they_come = lengths[:5888].reshape(-1, 64)
    assert (64 * as_they_come.max(axis=1)).sum() / as_they_come.sum() - 1 > 0.4
    size = BatchSize(budget, growing=False)
    cut = batches(window_of(tokens(lengths), size))
    assert sorted(need.row for batch in cut for need in batch.needs) == list(range(6000))
    assert sum(batch.padded for batch in cut) / lengths.sum() - 1 < 0.1
    assert all(batch.padded <= size.budget for batch in cut)
    assert len(cut) < 2 * lengths.sum() / size.budget  # and they are well filled
    assert budget or size.budget == pytest.approx(FIRST_BATCH * 132, rel=0.4)  # a few as they come


def test_values_and_costs_stay_with_their_items() -> None:
    lengths = np.random.default_rng(6).integers(1, 50, 500).tolist()
    for batch in batches(window_of(tokens(lengths), BatchSize(400, growing=False))):
        assert [len(value) for value in batch.values] == batch.costs.tolist()
        assert batch.costs.tolist() == [lengths[need.row] for need in batch.needs]


def test_an_item_beyond_the_budget_goes_alone() -> None:
    cut = batches(window_of(tokens([5, 90, 5, 5]), BatchSize(20, growing=False)))
    assert sorted(sorted(batch.costs) for batch in cut) == [[5, 5, 5], [90]]


def test_equal_shapes_stay_together() -> None:
    shapes = [(2, 6), (3, 4), (6, 2)] * 40
    cut = batches(window_of([np.zeros(shape) for shape in shapes], BatchSize(12 * 120, unit=12)))
    order = [value.shape for batch in cut for value in batch.values]
    assert sum(before != after for before, after in pairwise(order)) == 2


def test_items_of_one_cost_do_not_wait_for_more_than_a_batch() -> None:
    source = Source(["abcd"] * 1000)
    window = window_of(source, BatchSize(4 * 32, growing=False, unit=4))
    assert len(window.next_batch() or []) == 32
    assert source.drawn == 32


def test_pictures_that_the_model_itself_brings_to_one_size_have_one_cost() -> None:
    pictures = [np.zeros((3, 8, 8)) if row % 5 else Encoded(b"JPEG", (640, 480), (2, 2)) for row in range(100)]
    cut = batches(window_of(pictures, BatchSize(40 * UNKNOWN_COST, growing=False, unit=UNKNOWN_COST), alike=True))
    assert [[need.row for need in batch.needs] for batch in cut] == [
        list(range(40)), list(range(40, 80)), list(range(80, 100))
    ]  # fmt: skip


def test_the_first_batches_do_not_wait_for_a_whole_window() -> None:
    source = Source(tokens([1, 2] * 5000))
    window = window_of(source, BatchSize(60, growing=False))
    window.next_batch()
    drawn = source.drawn
    for _ in range(3 * WINDOW):
        window.next_batch()
    assert drawn < 200
    assert drawn < source.drawn < drawn + 60 * 5 * WINDOW


def test_dear_items_that_are_rare_wait_for_their_like_and_are_not_forgotten() -> None:
    lengths = [200 if row % 50 == 0 else 10 for row in range(5000)]
    cut = batches(window_of(tokens(lengths), BatchSize(2000, growing=False)))
    dear = [batch for batch in cut if 200 in batch.costs]
    assert sum(batch.costs.tolist().count(200) for batch in dear) == 100
    assert len(dear) < 40
    assert sum(batch.padded for batch in cut) / sum(lengths) < 1.1


def test_bytes_bound_what_waits() -> None:
    source = Source(tokens(range(1, 100)), size_in_bytes=10)
    window = window_of(source, BatchSize(10_000, growing=False), 100)
    assert len(window.next_batch() or []) <= 10
    assert source.drawn == 10


@given(
    lengths=st.lists(st.integers(0, 40), max_size=60),
    chunk=st.integers(1, 20),
    budget=st.integers(1, 200),
    size_in_bytes=st.integers(0, 3),
)
def test_chunks_do_not_matter(lengths: list[int], chunk: int, budget: int, size_in_bytes: int) -> None:
    values = [UnreadableMedia(str(row)) if length == 13 else [1] * length for row, length in enumerate(lengths)]

    def cut(chunk: int) -> list[tuple[list[int], list[int], dict[bytes, str]]]:
        window = window_of(Source(values, size_in_bytes, chunk), BatchSize(budget, growing=False), 50)
        return [([need.row for need in cut.needs], cut.costs.tolist(), cut.unreadable) for cut in batches(window)]

    assert cut(chunk) == cut(1)
    assert sorted(row for rows, _, _ in cut(chunk) for row in rows) == [
        row for row, length in enumerate(lengths) if length != 13
    ]


def test_a_fixed_size_takes_items_as_they_come() -> None:
    lengths = [5, 1, 9, 2, 7]
    cut = batches(window_of(tokens(lengths), fixed_size(2)))
    assert [batch.costs.tolist() for batch in cut] == [[5, 1], [9, 2], [7]]
    assert [batch.padded for batch in cut] == [10, 18, 7]


def test_unreadable_items_are_named_and_are_in_no_batch() -> None:
    values = ["one", UnreadableMedia("broken"), "two"]
    cut = batches(window_of(values, BatchSize()))
    assert [batch.values for batch in cut] == [["one", "two"]]
    assert cut[0].unreadable == {(1).to_bytes(32): "broken"}
    only = batches(window_of(values[1:2], BatchSize()))
    assert [(len(batch), len(batch.unreadable)) for batch in only] == [(0, 1)]


class Tokens(Lengths):
    """Texts of one length in characters and of many in tokens; `embed` takes as long as padding makes it."""

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return [number(contents[0].value)] * int(contents[0].value.split()[1])

    def embed(self, batch: Sequence[Any]) -> Any:
        self.batches.append(len(batch))
        return np.array([[value[0], len(value), 1] for value in batch], np.float64)


def test_the_engine_reports_what_padding_adds(store: Store) -> None:
    lengths = np.random.default_rng(7).integers(8, 257, 4000)
    texts = [items.text(f"{row:04} {length:03}") for row, length in enumerate(lengths)]
    encoder = Tokens()
    wanted = needs(encoder, texts)
    fixed, _ = run(store, encoder, wanted, batch_size=64)
    assert fixed.padding > 0.4
    assert fixed.cost == lengths.sum()
    by_cost, _ = run(store, encoder, wanted)
    assert by_cost.cost == lengths.sum()
    assert by_cost.padding < 0.1
    fixed.add(by_cost)
    assert fixed.padded > by_cost.padded


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 50)), max_size=60),
    st.integers(1, 9),
    st.sampled_from([1, 100, MUCH]),
    st.sampled_from([0, 1, 7]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_every_item_is_in_one_batch_or_unreadable(
    parts: list[tuple[int, bool, int]], chunk: int, most_bytes: int, fixed: int, alike: bool, random: Random
) -> None:
    """Whatever comes in whatever order: lengths, errors, bytes beyond the limit, chunks of any size."""
    values = [
        [row] * length if readable else UnreadableMedia(str(row)) for row, (length, readable, _) in enumerate(parts)
    ]
    sizes = np.array([size if readable else 0 for _, readable, size in parts], np.int64)
    rows = list(range(len(parts)))
    random.shuffle(rows)
    places = [np.array(rows[start : start + chunk]) for start in range(0, len(rows), chunk)]
    ready = (Ready(place, [values[row] for row in place], sizes[place]) for place in places)
    needs = [Need(row.to_bytes(32), items.text(""), "item", None, 0, row) for row in range(len(parts))]
    cut = batches(Window(needs, ready, fixed_size(fixed) if fixed else BatchSize(), most_bytes, alike))
    embedded = [(need.row, value) for batch in cut for need, value in zip(batch.needs, batch.values, strict=True)]
    assert all(value is values[row] for row, value in embedded)
    unreadable = {key: reason for batch in cut for key, reason in batch.unreadable.items()}
    assert unreadable == {needs[row].key: str(row) for row, (_, readable, _) in enumerate(parts) if not readable}
    assert sorted([row for row, _ in embedded] + [int(reason) for reason in unreadable.values()]) == sorted(rows)
    assert all(len(batch.costs) == len(batch.needs) for batch in cut)
    assert not fixed or all(len(batch) <= fixed for batch in cut)
