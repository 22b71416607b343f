"""Models that a run is about: objects that leave out methods of the protocol are completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embark.models.functions import generator, reranker
from embark.run.models import as_encoder
from embark.run.workbench import ModelAsEncoder
from embark.types import Content, ModelCard

BATCH = [[Content("text", "a")], [Content("text", "b")]]


class Bare:
    """An encoder that inherits nothing."""

    card = ModelCard("local/bare", "1", "none", ("text",), dim=1)

    def embed(self, batch: Sequence[Any]) -> Any:
        return np.ones((len(batch), 1), np.float32)


class Preparing(Bare):
    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return f"{contents[0].value}{mode}"


class Rendering(Preparing):
    """All that encoders had before many items were prepared at once."""

    def render(self, item: Any, role: str, instruction: str | None) -> Any:
        raise NotImplementedError


class Batching(Rendering):
    def prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Any:
        return ["many"] * len(batch)


@pytest.mark.parametrize(
    ("model", "expected"),
    [(Bare(), BATCH), (Preparing(), ["a1", "b2"]), (Rendering(), ["a1", "b2"]), (Batching(), ["many", "many"])],
)
def test_many_items_are_prepared_as_the_object_prepares_them(model: Any, expected: list[Any]) -> None:
    assert list(as_encoder(model).prepare_many(BATCH, ["1", "2"])) == expected


def test_rerankers_and_generators_prepare_many_as_one() -> None:
    contents = [[Content("text", "query"), Content("text", word)] for word in ("one", "two")]
    for model in (reranker(lambda pairs: [1.0] * len(pairs)), generator(lambda values, prompt: ["x"] * len(values))):
        encoder = ModelAsEncoder(model)
        together = encoder.prepare_many(contents, ["1", "1"])
        assert list(together) == [("query", "one"), ("query", "two")]
        assert list(together) == [encoder.prepare(parts, "1") for parts in contents]
