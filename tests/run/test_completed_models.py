"""Models that a run is about: objects that leave out methods of the protocol are completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embark.models.adapt import as_encoder, as_generator, as_reranker
from embark.models.encoder import Capabilities, prepare_many
from embark.models.functions import generator, reranker
from embark.run.workbench import ModelAsEncoder
from embark.types import Content, EmbarkError, Item, ModelCard, Text

BATCH = [[Content("text", "a")], [Content("text", "b")]]


class Bare:
    """An encoder that inherits nothing."""

    card = ModelCard("local/bare", "1", "none", ("text",), dim=1)

    def embed(self, batch: Sequence[Any]) -> Any:
        return np.ones((len(batch), 1), np.float32)


class Preparing(Bare):
    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return f"{contents[0].value}{mode}"


class Batching(Preparing):
    """Prepares many at once, and says so."""

    def __init__(self) -> None:
        self.capabilities = Capabilities(prepare_many=lambda batch, modes: ["many"] * len(batch))


class Silent(Preparing):
    """Has an attribute that is no part of the protocol."""

    def prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Any:
        raise NotImplementedError


class Passing:
    """Passes on to another model what it lacks, and prepares otherwise."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return "own"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Bare(), BATCH),
        (Preparing(), ["a1", "b2"]),
        (Batching(), ["many", "many"]),
        (Silent(), ["a1", "b2"]),
        (Passing(Batching()), ["own", "own"]),
    ],
)
def test_many_items_are_prepared_as_the_object_prepares_them(model: Any, expected: list[Any]) -> None:
    encoder = as_encoder(model)
    assert list(prepare_many(encoder, BATCH, ["1", "2"])) == expected
    assert as_encoder(encoder) is encoder


def test_an_object_of_other_facts_is_refused() -> None:
    bare = Bare()
    with pytest.raises(EmbarkError, match="is no model: give a name or an encoder"):
        as_encoder(object())
    with pytest.raises(EmbarkError, match="is no re-ranker"):
        as_reranker(bare)
    with pytest.raises(EmbarkError, match="is no generator"):
        as_generator(bare)
    bare.capabilities = {"lanes": 3}  # type: ignore[attr-defined]
    with pytest.raises(EmbarkError, match="The capabilities of local/bare are no Capabilities"):
        as_encoder(bare)
    bare.card = "local/bare"  # type: ignore[assignment]
    with pytest.raises(EmbarkError, match=r"is no embark\.types\.ModelCard"):
        as_encoder(bare)
    with pytest.raises(EmbarkError, match="1 lane or more"):
        Capabilities(lanes=0)


def test_rerankers_and_generators_need_only_their_own_method() -> None:
    class Judge:
        card = ModelCard("local/judge", "1", "none", ("text",), kind="reranker", dim=1)

        def score(self, batch: Sequence[Any]) -> Any:
            return np.ones(len(batch), np.float32)

    class Writer:
        card = ModelCard("local/writer", "1", "none", ("text",), kind="generator", dim=1)

        def generate(self, batch: Sequence[Any]) -> list[str]:
            return ["x"] * len(batch)

    one, other = Item((Text("a"),)), Item((Text("b"), Text("c")))
    rendered = as_reranker(Judge()).render(one, other, None)
    assert (rendered.parts, rendered.mode) == ((*one.parts, *other.parts), "1")
    assert as_generator(Writer()).render(one, "Say it.").parts == (Text("Say it."), *one.parts)
    assert as_generator(Writer()).generate([[]]) == ["x"]


def test_rerankers_and_generators_prepare_many_as_one() -> None:
    contents = [[Content("text", "query"), Content("text", word)] for word in ("one", "two")]
    for model in (reranker(lambda pairs: [1.0] * len(pairs)), generator(lambda values, prompt: ["x"] * len(values))):
        encoder = ModelAsEncoder(model)
        together = prepare_many(encoder, contents, ["1", "1"])
        assert list(together) == [("query", "one"), ("query", "two")]
        assert list(together) == [encoder.prepare(parts, "1") for parts in contents]
