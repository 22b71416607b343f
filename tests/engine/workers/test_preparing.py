"""Texts are prepared many at a time, where the encoder can; an error still names its item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from embark import items
from embark.engine.workers.preparing import CHARACTERS, CHUNK, TOGETHER, chunked
from embark.models.encoder import Capabilities
from embark.store import Store
from embark.types import Content, EmbarkError
from lengths import Lengths, needs, run, stored_numbers, text


class Together(Lengths):
    """Prepares many texts in one call; `change` may spoil what comes out."""

    def __init__(self, change: Callable[[list[str]], Any] = lambda values: values) -> None:
        super().__init__()
        self.chunks: list[int] = []
        self.prepared = change
        self.capabilities = Capabilities(prepare_many=self._prepare_many)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        if contents[0].value.startswith("13 "):
            raise EmbarkError("the number is unlucky.")
        return contents[0].value

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Any:
        self.chunks.append(len(batch))
        return self.prepared([self.prepare(contents, mode) for contents, mode in zip(batch, modes, strict=True)])


def test_texts_are_prepared_in_few_calls(store: Store) -> None:
    encoder = Together()
    wanted = needs(encoder, [text(n) for n in range(20, 2000)])
    run(store, encoder, wanted)
    assert stored_numbers(store, encoder, wanted) == list(range(1980))
    assert len(encoder.chunks) <= 1 + -(-1980 // TOGETHER)  # a few come first, to learn what they cost


def test_of_texts_that_are_prepared_together_the_one_that_is_refused_is_named(store: Store) -> None:
    encoder = Together()
    with pytest.raises(EmbarkError, match="test/engine cannot embed item 3: the number is unlucky"):
        run(store, encoder, needs(encoder, [text(n) for n in range(10, 40)]))


@pytest.mark.parametrize("spoilt", [lambda values: values[1:], lambda values: values[len(values)]])
def test_what_fails_for_many_alone_is_no_secret(store: Store, spoilt: Callable[[list[str]], Any]) -> None:
    encoder = Together(spoilt)
    with pytest.raises((EmbarkError, IndexError)) as error:
        run(store, encoder, needs(encoder, [text(n) for n in range(20, 40)]))
    assert "one by one, but not together" in error.value.__notes__[0]


def test_long_texts_are_handed_over_few_at_a_time() -> None:
    lengths = [10] * 2000 + [1000] * 1000 + [10**6] * 9
    wanted = needs(Lengths(), [items.text("x" * length) for length in lengths])
    sizes = [len(chunk) for chunk in chunked(wanted, TOGETHER)]
    assert sum(sizes) == len(wanted)
    assert sizes[0] == TOGETHER
    assert CHARACTERS * TOGETHER // 1000 in sizes
    assert sizes[-3:-1] == [CHUNK, CHUNK]
