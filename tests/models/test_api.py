"""Models behind an API, over a real local server: right vectors or a clear error, and nothing is paid for twice."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from api_server import DIM, EVERY, KEY, NAMES, WORDS, FakeProvider, expected, model, texts
from embark import http, items
from embark.cli import app
from embark.items import key
from embark.models import api, get_model
from embark.models.api import Pace, Remote, RequestItem
from embark.models.providers import PROVIDERS
from embark.protocol import identity, vector_space
from embark.settings import load_settings
from embark.types import Content, EmbarkError, ModelCard

SEEING = [name for name in NAMES if "image" in PROVIDERS[name].modalities]
PASSING = ("429", "500", "reset", "hang", "short", "shuffled", "nan")


# ── what goes well ───────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_vectors_come_in_order_from_several_requests(server: FakeProvider, name: str) -> None:
    encoder, words = model(name), WORDS[: 3 * PROVIDERS[name].items]
    np.testing.assert_array_equal(encoder.embed(texts(encoder, words)), expected(encoder, words))
    assert len(server.requests) == 3
    assert {body["model"] for _, _, body in server.requests} == {"the-model"}
    assert set(server.billed.values()) == {1}


@EVERY
def test_requests_fly_together_but_not_too_many(server: FakeProvider, name: str) -> None:
    server.busy = 0.05
    encoder, words = model(name), WORDS[: 20 if name == "doubao" else 300]
    encoder.embed(texts(encoder, words))
    assert 1 < server.flown <= encoder.provider.flight


@EVERY
def test_queries_and_documents_differ_where_the_provider_tells_them_apart(server: FakeProvider, name: str) -> None:
    encoder = model(name)
    both = [*texts(encoder, ["one", "two"], "query"), *texts(encoder, ["one", "two"])]
    mixture = [both[0], both[2], both[1], both[3]]
    found = encoder.embed(mixture)
    np.testing.assert_array_equal(found[[0, 2]], expected(encoder, ["one", "two"], "query"))
    np.testing.assert_array_equal(found[[1, 3]], expected(encoder, ["one", "two"]))
    query, document = (encoder.render(items.text("one"), role, None) for role in ("query", "document"))
    apart = bool(encoder.provider.query)
    assert (key("space", query) != key("space", document)) == apart
    assert np.array_equal(found[0], found[1]) != apart
    assert encoder.render(items.text("one"), "item", None) == document


@pytest.mark.parametrize("name", SEEING)
def test_images_arrive_with_every_pixel_and_mixtures_in_order(server: FakeProvider, name: str) -> None:
    encoder = model(name)
    noise = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    picture = Image.fromarray(noise)
    alone = encoder.prepare([Content("image", picture)], encoder.provider.document)
    mixed = encoder.prepare([Content("text", "left"), Content("image", picture)], encoder.provider.document)
    turned = encoder.prepare([Content("image", picture), Content("text", "left")], encoder.provider.document)
    seen = f"<(7, 9) {hashlib.sha256(noise.tobytes()).hexdigest()[:8]}>"
    found = encoder.embed([alone, mixed, turned])
    np.testing.assert_array_equal(found, expected(encoder, [seen, f"left + {seen}", f"{seen} + left"]))
    assert encoder.card.fusion == "native"


def test_an_image_that_is_too_large_is_shrunk() -> None:
    wide = Image.new("RGB", (400, 100), "red")
    assert api._data_url(wide, 40_000) != api._data_url(wide, 10_000) == api._data_url(wide.resize((100, 25)), 40_000)


def test_a_wanted_dimension_is_asked_for(server: FakeProvider) -> None:
    encoder = model("openai", options={"dimensions": DIM})
    encoder.embed(texts(encoder, ["a"]))
    assert server.requests[0][2]["dimensions"] == DIM
    assert vector_space(encoder.card) != vector_space(model("openai").card)


def test_any_model_of_a_compatible_server_has_a_name(server: FakeProvider) -> None:
    encoder = get_model("openai:some-model")
    assert (encoder.card.modalities, encoder.card.dim, encoder.card.source) == (("text",), None, "some-model")
    assert encoder.embed(texts(encoder, ["a"])).shape == (1, DIM)  # type: ignore[arg-type,union-attr]


def test_an_address_with_a_password_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hunter2@example.org/v1")
    with pytest.raises(EmbarkError, match="belongs into OPENAI_API_KEY") as error:
        get_model("openai/text-embedding-3-small")
    assert "hunter2" not in str(error.value)


def test_another_address_is_another_space(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    there = model("openai").card
    monkeypatch.delenv("OPENAI_BASE_URL")
    here = model("openai").card
    assert "endpoint" not in here.options
    assert there.options["endpoint"] == server.endpoint
    assert vector_space(here) != vector_space(there)


# ── trouble that passes ──────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
@pytest.mark.parametrize("seed", [1, 2])
def test_trouble_that_passes_changes_nothing(
    server: FakeProvider, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "TIMEOUT", 0.5)
    encoder, words = model(name), WORDS[: 16 if name == "doubao" else 200]
    unfit = {"cohere": ("shuffled",), "doubao": ("short",)}.get(name, ())
    server.trouble(seed, 12, tuple(kind for kind in PASSING if kind not in unfit))
    np.testing.assert_array_equal(encoder.embed(texts(encoder, words)), expected(encoder, words))
    if encoder.provider.indexed:  # who does not say which vectors are missing is asked for all of them again
        assert set(server.billed.values()) == {1}


@pytest.mark.parametrize("name", ["openai", "voyage", "voyage-multimodal"])
@pytest.mark.parametrize("fault", ["short", "nan"])
def test_only_what_is_missing_is_asked_for_again(server: FakeProvider, name: str, fault: str) -> None:
    encoder, server.faults = model(name), [fault]
    np.testing.assert_array_equal(encoder.embed(texts(encoder, WORDS[:10])), expected(encoder, WORDS[:10]))
    asked = [len(body.get("input") or body["inputs"]) for _, _, body in server.requests]
    assert asked == [10, 5 if fault == "short" else 1]
    assert set(server.billed.values()) == {1}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that requests make, by a clock that stands still."""
    pauses: list[float] = []
    monkeypatch.setattr(sys.modules[Pace.__module__], "time", SimpleNamespace(monotonic=float, sleep=pauses.append))
    return pauses


def test_a_provider_that_says_when_to_come_back_is_left_alone_until_then(
    server: FakeProvider, pauses: list[float]
) -> None:
    encoder = model("openai")
    encoder.pace.hold(20)
    encoder.embed(texts(encoder, ["a"]))
    assert pauses == [20]


def test_requests_keep_to_the_limits_of_the_account(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setenv("EMBARK_REQUESTS_PER_MINUTE", "6")
    encoder = model("doubao")
    encoder.embed(texts(encoder, WORDS[:4]))
    assert sorted(pauses) == pytest.approx([10, 20, 30])
    pauses.clear()
    pace = Pace(None, 60)
    for tokens in (10, 10, 10):
        pace.take(tokens)
    assert pauses == pytest.approx([10, 20])


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_a_key_that_is_missing_or_wrong_is_told_by_its_name(
    server: FakeProvider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{PROVIDERS[name].variable}_API_KEY"
    monkeypatch.setenv(variable, "sk-wrong")
    with pytest.raises(EmbarkError, match=rf"HTTP 401\): set {variable} to a key that may") as caught:
        model(name).embed(texts(model(name), ["a"]))
    assert "sk-wrong" not in f"{caught.value!r} {caught.value.__cause__!r}"
    monkeypatch.setenv(variable, "sk-\nwrong")
    with pytest.raises(EmbarkError, match=f"^{variable} does not hold a key: there are characters in it"):
        model(name).embed(texts(model(name), ["a"]))
    monkeypatch.delenv(variable)
    monkeypatch.delenv(f"{PROVIDERS[name].variable}_BASE_URL")
    with pytest.raises(EmbarkError, match=f"needs your key: set {variable}"):
        model(name).embed(texts(model(name), ["a"]))


def test_the_key_goes_to_the_provider_and_nowhere_else(server: FakeProvider) -> None:
    server.poison, server.wrath = "poison", (400, f'{{"message": "you sent {KEY}"}}'.encode())
    encoder = model("cohere")
    encoder.embed(texts(encoder, ["a"]))
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    with pytest.raises(EmbarkError, match="you sent …") as caught:
        encoder.embed(texts(encoder, ["poison"]))
    shown = f"{caught.value!r} {encoder!r} {encoder.card!r} {vars(encoder)!r} {json.dumps(identity(encoder.card))}"
    assert KEY not in shown


def test_offline_means_no_request(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_OFFLINE", "1")
    with pytest.raises(EmbarkError, match="the setting 'offline' forbids"):
        model("openai").embed(texts(model("openai"), ["a"]))
    assert server.requests == []


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.tuples(st.integers(0, 150_000), st.sampled_from(["query", "document"])), max_size=200),
    st.sampled_from(NAMES),
)
def test_requests_take_every_item_once_and_keep_to_the_limits(sizes: list[tuple[int, str]], name: str) -> None:
    encoder = Remote(ModelCard("test/x", "1", name, ("text",)), "http://localhost", load_settings())
    batch = [RequestItem((("text", ""),), mode, tokens, 0) for tokens, mode in sizes]
    requests = encoder._split(batch)
    assert sorted(row for rows in requests for row in rows) == list(range(len(batch)))
    for rows in requests:
        assert len({batch[row].mode for row in rows}) == 1
        assert len(rows) <= encoder.provider.items
        assert len(rows) == 1 or sum(batch[row].tokens for row in rows) <= encoder.provider.tokens
        assert rows == sorted(rows)


def test_a_bill_is_tokens_at_the_list_price(server: FakeProvider) -> None:
    encoder = get_model("voyageai/voyage-multimodal-3")
    bill = encoder.capabilities.bill
    assert bill is not None
    text = bill(encoder.prepare([Content("text", "x" * 4_000)], ""))
    assert text == (1_000, pytest.approx(0.12e-3))
    for side, dollars in ((200, 0.000_03), (1000, 0.0006), (2000, 0.0012)):  # the provider's own examples
        image = bill(encoder.prepare([Content("image", Image.new("RGB", (side, side)))], ""))
        assert image.dollars == pytest.approx(dollars, rel=0.01)
    unpriced = Remote(replace(encoder.card, price=None), "", load_settings()).capabilities.bill
    assert unpriced is not None
    assert unpriced(encoder.prepare([Content("text", "x")], "")) == (1, None)
    assert server.requests == []


def test_a_plan_shows_the_price_and_needs_no_key(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY")
    monkeypatch.delenv("ARK_API_KEY")

    def plan(name: str, *more: str) -> str:
        return CliRunner().invoke(app, ["plan", "-m", name, "-t", "PocketNameClustering", *more]).stdout

    [found] = json.loads(plan("voyageai/voyage-3.5", "--format", "json"))["models"]
    assert found["tasks"][-1]["dollars"] == pytest.approx(found["tasks"][-1]["tokens"] * 0.06e-6)
    assert "seconds" not in found["tasks"][0]
    text = plan("Bytedance/Seed1.6-embedding-1215")
    heading, *lines = text.strip().splitlines()[1:]
    [whole] = [line for line in lines if line.startswith("all ")]
    assert heading.split()[-2:] == ["tokens", "dollars"]
    assert whole.split()[-1] == "?"
    assert "nothing was sent" in " ".join(text.split())
    assert server.requests == []
