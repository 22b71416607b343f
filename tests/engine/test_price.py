"""A provider's bill is estimated from the items, and adds up."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from embark import items
from embark.engine.price import SAMPLE, bills, total
from embark.models.encoder import Bill, Capabilities, Encoder
from embark.planning import Need
from embark.types import Content, Item, ModelCard

BILLS = st.builds(Bill, st.floats(0, 1e9), st.none() | st.floats(0, 1e3))


class Free(Encoder):
    """Runs here."""

    card = ModelCard("test/free", "1", "none", ("text", "image"))

    def embed(self, batch: Sequence[Any]) -> Any:
        raise AssertionError("nothing is embedded for a plan")


class Dear(Free):
    """A token is a character or a pixel, and costs a dollar."""

    def __init__(self) -> None:
        self.looked = 0
        self.capabilities = Capabilities(bill=self._bill)

    def _bill(self, prepared: Sequence[Content]) -> Bill:
        self.looked += 1
        sizes = [len(c.value) if c.kind == "text" else c.value.size[0] * c.value.size[1] for c in prepared]
        return Bill(sum(sizes), float(sum(sizes)))


def picture(side: int) -> Item:
    out = io.BytesIO()
    Image.new("RGB", (side, side)).save(out, "PNG")
    return items.media("image", out.getvalue())


def need(item: Item, demand: int) -> Need:
    return Need(bytes(32), item, "item", None, demand, 0)


def test_a_model_that_runs_here_sends_no_bill() -> None:
    assert bills(Free(), [need(items.text("abc"), 0)], 1) == []


def test_every_text_is_counted_and_each_demand_has_its_bill() -> None:
    wanted = [need(items.text("x" * n), n % 2) for n in range(100)]
    assert bills(Dear(), wanted, 3) == [(2450, 2450.0), (2500, 2500.0), (0, 0.0)]


def test_pictures_are_sampled() -> None:
    encoder = Dear()
    [bill] = bills(encoder, [need(picture(2), 0) for _ in range(100)], 1)
    assert encoder.looked == SAMPLE
    assert bill == (pytest.approx(400), pytest.approx(400))


def test_unreadable_pictures_cost_as_much_as_the_others() -> None:
    broken = items.media("image", b"no picture")
    assert bills(Dear(), [need(broken, 0), need(picture(3), 0)], 1) == [(18, 18.0)]
    assert bills(Dear(), [need(broken, 0)], 1) == [(0, 0.0)]


@given(st.lists(BILLS, max_size=6), st.floats(0, 100))
def test_a_total_is_the_sum_unless_a_price_is_unknown(several: list[Bill], times: float) -> None:
    found = total(several, times)
    assert found.tokens == pytest.approx(times * sum(bill.tokens for bill in several))
    if any(bill.dollars is None for bill in several):
        assert found.dollars is None
    else:
        assert found.dollars == pytest.approx(times * sum(bill.dollars or 0 for bill in several))
