"""Several copies of one encoder give what one gives, in order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embark.models.encoder import Encoder, Interrupted
from embark.models.parallel import Replicas
from embark.types import Array, Content, Item, ModelCard, Rendered, Text


class Copy(Encoder):
    card = ModelCard("tiny/copy", "1", "own", ("text",), dim=2)

    def __init__(self, ragged: bool = False, fails: bool = False) -> None:
        self.ragged, self.fails, self.batches, self.threads = ragged, fails, [], set[int]()

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered(item.parts, mode=role)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return len(contents[0].value), len(mode)

    def embed(self, batch: Sequence[tuple[int, int]]) -> Array | list[Array]:
        if self.fails:
            raise MemoryError("out of memory")
        self.batches.append(len(batch))
        self.threads.add(threading.get_ident())
        return [np.ones((size, 2)) for size, _ in batch] if self.ragged else np.array(batch, np.float32)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("ragged", [False, True])
def test_shares_come_back_in_order(count: int, ragged: bool) -> None:
    copies = [Copy(ragged) for _ in range(3)]
    many = Replicas(copies)
    rendered = many.render(Item((Text("x"),)), "query", None)
    assert rendered.mode == "query"
    ready = [many.prepare([Content("text", "x" * (1 + at))], rendered.mode) for at in range(count)]
    out, expected = many.embed(ready), Copy(ragged).embed(ready)
    assert len(out) == count
    for row, wanted in zip(out, expected, strict=True):
        np.testing.assert_array_equal(row, wanted)
    assert sum(sum(copy.batches) for copy in copies) == count
    assert max(max(copy.batches, default=0) for copy in copies) <= -(-count // 3)


def test_an_error_of_one_copy_is_the_batchs_error() -> None:
    with pytest.raises(MemoryError):  # which the engine answers with smaller batches
        Replicas([Copy(), Copy(fails=True)]).embed([(1, 1)] * 4)


def test_what_was_done_before_an_error_keeps_its_place_in_the_batch() -> None:
    class Cut(Copy):
        batch_size = 4

        def embed(self, batch: Sequence[tuple[int, int]]) -> Array:
            raise Interrupted("enough", {1: np.array(batch[1], np.float32)})

    class Late(Copy):
        batch_size = 4

    many = Replicas([Late(), Cut()])
    assert many.batch_size == 4
    with pytest.raises(Interrupted, match="enough") as cut:
        many.embed([(at, at) for at in range(4)])
    assert {row: vector.tolist() for row, vector in cut.value.done.items()} == {3: [3, 3]}
