"""A generator behind an address that speaks OpenAI's chat API, asked over real HTTP on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embark
from api_server import KEY, FakeProvider, serving
from embark.models.encoder import Interrupted
from embark.protocol import identity
from embark.types import Content, EmbarkError


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    with serving(monkeypatch) as served:
        yield served


def prepared(model: embark.models.Generator, words: str) -> object:
    return model.prepare([Content("text", "Rewrite this."), Content("text", words)], "")


def test_prompt_and_item_are_one_turn(provider: FakeProvider) -> None:
    model = embark.models.get_generator("openai-chat:some-model")
    assert model.card.kind == "generator"
    assert model.generate([prepared(model, "a dog"), prepared(model, "a cat")]) == [
        "about Rewrite this. + a dog",
        "about Rewrite this. + a cat",
    ]
    path, headers, body = provider.requests[0]
    assert (path, headers["Authorization"], body["model"]) == ("/chat/completions", f"Bearer {KEY}", "some-model")
    assert set(body) == {"model", "messages"}  # nothing about sampling that a server could refuse


def test_a_picture_is_sent_as_png(provider: FakeProvider) -> None:
    from PIL import Image

    model = embark.models.get_generator("openai-chat:some-model")
    item = model.prepare([Content("text", "Describe."), Content("image", Image.new("RGB", (5, 4)))], "")
    [answer] = model.generate([item])
    assert answer.startswith("about Describe. + <(5, 4) ")


def test_the_name_may_state_parameters_which_make_it_another_model(provider: FakeProvider) -> None:
    plain = embark.models.get_generator("openai-chat:some-model")
    greedy = embark.models.get_generator("openai-chat:some-model?temperature=0&max_tokens=30")
    greedy.generate([prepared(greedy, "a dog")])
    body = provider.requests[0][2]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("some-model", 0, 30)
    assert identity(plain.card) != identity(greedy.card)


def test_failures_are_tried_again_and_refusals_carry_what_was_written(provider: FakeProvider) -> None:
    model = embark.models.get_generator("openai-chat:some-model")
    provider.faults = ["429", "500"]
    assert len(model.generate([prepared(model, "a dog")])) == 1
    provider.poison, provider.wrath = "poison", (400, b'{"error": {"message": "not this"}}')
    with pytest.raises(Interrupted, match="not this") as refused:
        model.generate([prepared(model, "a dog"), prepared(model, "poison")])
    assert refused.value.done in ({0: "about Rewrite this. + a dog"}, {})  # unless the refusal came first
    with pytest.raises(EmbarkError, match="Name the model"):
        embark.models.get_generator("openai-chat:")


def test_a_run_asks_once_for_each_query(provider: FakeProvider) -> None:
    stages = embark.Stages(rewrite="openai-chat:some-model")
    run = embark.evaluate("embark/random", "PocketARK/Negation", stages=stages, show_progress=False)
    assert [result.model for result in run.results] == ["embark/random + openai-chat:some-model"]
    assert len(provider.requests) == 40
    embark.evaluate("embark/handmade", "PocketARK/Negation", stages=stages, show_progress=False)
    assert len(provider.requests) == 40  # what was written is kept


def test_what_was_written_before_a_refusal_is_kept(provider: FakeProvider) -> None:
    from embark.run.stages import _GeneratorAsEncoder

    model = embark.models.get_generator("openai-chat:some-model")
    provider.poison, provider.wrath = "poison", (400, b"{}")
    provider.busy = 0.05
    with pytest.raises(Interrupted) as refused:
        _GeneratorAsEncoder(model).embed([prepared(model, words) for words in ("a dog", "a cat", "poison")])
    assert all(bytes(text).startswith(b"about Rewrite") for text in refused.value.done.values())
