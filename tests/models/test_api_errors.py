"""Models behind an API whose trouble does not pass: a clear error, and what was paid for is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from api_server import DIM, EVERY, WORDS, FakeProvider, expected, model, texts
from embark import http, items
from embark.engine.local import embed
from embark.items import as_keys, key
from embark.models import api, get_model
from embark.models.api import Remote
from embark.models.encoder import Interrupted
from embark.planning import Need
from embark.protocol import vector_space
from embark.run.plans import plan
from embark.store import Store
from embark.types import Content, EmbarkError
from folders import two_tasks
from local_server import LocalServer, QuietHandler

# ── trouble that does not ────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_a_wrong_dimension_is_an_error_that_names_both(server: FakeProvider, name: str) -> None:
    server.dim = 5
    with pytest.raises(
        EmbarkError, match=rf"test/{name} returned a vector of shape \(5,\) for 'a'; its card says dimension 8"
    ):
        model(name).embed(texts(model(name), ["a", "b"]))
    assert len(server.requests) <= 2


@EVERY
def test_a_provider_that_stays_busy_is_an_error(server: FakeProvider, name: str) -> None:
    server.faults = ["429"] * 100
    with pytest.raises(EmbarkError, match=r"Asking http.* for test/.* failed 6 times: HTTP 429 .*: too much\. Run the"):
        model(name).embed(texts(model(name), ["a"]))


def test_trying_ends_at_the_deadline(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "DEADLINE", 0.3)
    monkeypatch.setattr(http, "TIMEOUT", 0.25)
    server.faults = ["hang"] * 100
    with pytest.raises(EmbarkError, match=r"failed (2 times|once): .*timed out"):
        model("openai").embed(texts(model("openai"), ["a"]))


@pytest.mark.parametrize("fault", ["short", "nan"])
def test_a_vector_that_never_comes_is_an_error_that_names_the_item(server: FakeProvider, fault: str) -> None:
    server.faults = [fault] * 100
    with pytest.raises(EmbarkError, match=r"failed 6 times: .* for 1 items, the first is 'word 9"):
        model("openai").embed(texts(model("openai"), WORDS[9:10]))


def test_an_answer_of_another_kind_is_an_error(server: FakeProvider) -> None:
    server.poison, server.wrath = "a", (200, b"<html>hello</html>")
    with pytest.raises(EmbarkError, match=r"is not what its API promises \(JSONDecodeError"):
        model("openai").embed(texts(model("openai"), ["a"]))
    server.wrath = (200, json.dumps({"data": [{"index": 1, "embedding": [0.0] * DIM}]}).encode())
    with pytest.raises(EmbarkError, match="for items that it was not asked for, or twice"):
        model("openai").embed(texts(model("openai"), ["a"]))


@pytest.mark.parametrize(
    "page",
    [{"error": {"message": "too long"}}, {"message": "too long"}, {"detail": "too long"}, "too long"],
    ids=["openai", "cohere", "voyage", "plain"],
)
def test_a_refusal_comes_with_the_providers_words(server: FakeProvider, page: Any) -> None:
    server.poison, server.wrath = "a", (400, page.encode() if isinstance(page, str) else json.dumps(page).encode())
    with pytest.raises(EmbarkError, match=r"test/openai was refused for 'a' \(HTTP 400 Bad Request\): too long$"):
        model("openai").embed(texts(model("openai"), ["a"]))
    assert len(server.requests) == 1


# ── texts that a provider does not take ──────────────────────────────────────────────────────────────────────────────


LONG = "Rivers begin in the mountains and end in the sea. " * 40


def test_a_text_that_is_too_long_is_cut_for_whom_refuses_it(server: FakeProvider) -> None:
    encoder, server.longest = model("openai", context=100), 400  # four characters a token, as in English
    found = encoder.embed(texts(encoder, ["short", LONG]))
    sent = server.requests[0][2]["input"]
    assert sent[0] == "short"
    assert LONG.startswith(sent[1])
    assert 250 <= len(sent[1]) <= 400
    np.testing.assert_array_equal(found, expected(encoder, sent))
    assert encoder.capabilities.bill(texts(encoder, [LONG])[0]).tokens <= 100


def test_a_cut_is_in_the_fingerprint_and_none_is_made_where_the_provider_cuts(server: FakeProvider) -> None:
    assert model("openai", context=100).card.options["cut"] == api.CUT
    for uncut in (model("openai"), model("voyage", context=100)):
        assert "cut" not in uncut.card.options
        assert texts(uncut, [LONG])[0].parts == (("text", LONG),)


@pytest.mark.parametrize(
    "word", ["夕焼けの海", "🐘🎈", "3f9a0c7e", "1,2;3\t", "aGVsbG8gd29ybGQh", "\ud800x", "\n    if x:", "ACGT"]
)
def test_a_cut_ends_between_characters_and_is_tight_where_tokens_are_short(word: str) -> None:
    cut, left = api._cut(word * 500, 100)
    assert left == 0
    assert cut == (word * 500)[: len(cut)] or "\ud800" in word  # which no server takes
    assert 0 < len(cut.encode()) <= 300
    assert api._cut(cut, 100)[0] == cut
    assert api._cut(word, 100)[0] == word


def test_parts_of_an_item_share_the_room(server: FakeProvider) -> None:
    encoder = model("openai", context=10)
    parts = encoder.prepare([Content("text", "one two three"), Content("text", LONG)], "").parts
    assert [value for _, value in parts] == ["one two three", LONG[: len(parts[1][1])]]
    assert 0 < len(parts[1][1]) < 30


@EVERY
def test_an_empty_text_is_an_error_that_names_the_item(server: FakeProvider, name: str, tmp_path: Path) -> None:
    encoder = model(name)
    with pytest.raises(EmbarkError, match=r"cannot embed .*: the text is empty") as caught:
        run(Store(tmp_path), encoder, needs(encoder, ["a", ""]))
    assert needs(encoder, [""])[0].key.hex()[:12] in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize("status", api.BAD_INPUT)
def test_the_guilty_item_of_a_refused_request_is_named_and_the_others_are_kept(
    server: FakeProvider, status: int, tmp_path: Path
) -> None:
    encoder, store = model("openai"), Store(tmp_path)
    words = [f"word {n:03d}" for n in range(100)]
    words[70], server.poison, server.wrath = "poisoned", "poisoned", (status, b'{"message": "cannot read that"}')
    wanted = needs(encoder, words)
    with pytest.raises(Interrupted, match=rf"refused for 'poisoned' \(HTTP {status} .*\): cannot read that"):
        run(store, encoder, wanted)
    assert len(server.requests) < 16
    assert sum(server.billed.values()) == 70
    server.poison = ""
    run(store, encoder, wanted)
    assert len(server.billed) == 100
    assert set(server.billed.values()) == {1}


def test_a_request_that_is_wrong_as_a_whole_is_not_asked_for_every_item(server: FakeProvider) -> None:
    encoder, server.poison = model("openai"), "the-model"
    with pytest.raises(EmbarkError, match="refused for 'word 0' "):
        encoder.embed(texts(encoder, WORDS[:128]))
    assert len(server.requests) == 8
    server.requests.clear()
    server.wrath = (404, b"{}")
    with pytest.raises(EmbarkError, match="refused for 128 items "):
        encoder.embed(texts(encoder, WORDS[:128]))
    assert len(server.requests) == 1


# ── what was paid for is kept ────────────────────────────────────────────────────────────────────────────────────────


def needs(encoder: Remote, words: Sequence[str]) -> list[Need]:
    space = vector_space(encoder.card)
    wanted = [items.text(word) for word in words]
    return [Need(key(space, encoder.render(i, "item", None)), i, "item", None, 0, row) for row, i in enumerate(wanted)]


def run(store: Store, encoder: Remote, wanted: Sequence[Need]) -> None:
    space = store.space(vector_space(encoder.card))
    todo = [need for need in wanted if not space.has(as_keys([need.key]))[0]]
    with space.writer() as writer:
        embed(encoder, todo, writer)


@EVERY
def test_after_an_error_only_the_rest_is_asked_for(server: FakeProvider, name: str, tmp_path: Path) -> None:
    encoder, store = model(name), Store(tmp_path)
    count = encoder.capabilities.batch_size + 20
    words = [*(f"word {n}" for n in range(count)), "poison as a long text"]  # long texts come last
    wanted, server.poison = needs(encoder, words), "poison"
    server.trouble(7, 4, ("429", "500", "reset"))
    with pytest.raises(EmbarkError, match="HTTP 400"):
        run(store, encoder, wanted)
    before = sum(server.billed.values())
    assert before > 0
    assert int(store.space(vector_space(encoder.card)).has(as_keys([need.key for need in wanted])).sum()) == before
    server.poison = ""
    run(store, encoder, wanted)
    assert sum(server.billed.values()) == len(words)
    assert set(server.billed.values()) == {1}
    found = np.asarray(store.space(vector_space(encoder.card)).read(as_keys([need.key for need in wanted])))
    np.testing.assert_array_equal(found, expected(encoder, words))


def test_an_error_carries_what_was_answered(server: FakeProvider) -> None:
    encoder, server.poison = model("doubao"), "poison"
    server.busy = 0.1  # all of them are in flight when one is refused
    with pytest.raises(Interrupted) as caught:
        encoder.embed(texts(encoder, ["a", "poison", "b"]))
    assert sorted(caught.value.done) == [0, 2]


def test_an_evaluation_is_billed_once_and_scores_the_vectors(server: FakeProvider, pictures: Any) -> None:
    encoder, tasks = model("voyage-multimodal"), two_tasks(pictures())
    [planned] = plan(encoder, tasks, read_data=True).models
    assert server.requests == []
    assert planned.seconds == []
    assert sum(bill.tokens for bill in planned.bills) > 0
    assert {bill.dollars for bill in planned.bills} <= {None, 0.0}
    first = embark.evaluate(encoder, tasks, show_progress=False)
    assert sum(server.billed.values()) == first.embedded == planned.plan.total.missing
    embark.evaluate(encoder, tasks, rescore=True, show_progress=False)
    assert sum(server.billed.values()) == first.embedded


@pytest.mark.parametrize("odd", [range(200, 201), range(128, 256)], ids=["one vector", "a whole answer"])
def test_a_vector_of_another_dimension_is_an_error_and_the_others_are_kept(
    server: FakeProvider, odd: range, tmp_path: Path
) -> None:
    encoder, store = get_model("openai:some-model"), Store(tmp_path)
    assert isinstance(encoder, Remote)
    words = [f"text {n:03d}" for n in range(600)]
    wanted, server.odd = needs(encoder, words), {words[n]: 5 for n in odd}
    with pytest.raises(Interrupted, match=rf"shape \(5,\) for '{words[odd[0]]}'; others have dimension {DIM}\."):
        run(store, encoder, wanted)
    stored = int(store.space(vector_space(encoder.card)).has(as_keys([need.key for need in wanted])).sum())
    assert stored == sum(server.billed.values()) - len(odd) > 0
    server.odd = {}
    run(store, encoder, wanted)
    assert sum(server.billed.values()) == len(words) + len(odd)


def test_later_batches_have_the_dimension_of_the_first(server: FakeProvider) -> None:
    encoder = model("openai", dim=None)
    encoder.embed(texts(encoder, WORDS[:3]))
    server.dim = 5
    with pytest.raises(Interrupted, match=rf"shape \(5,\) for 'word 3'; others have dimension {DIM}\.") as caught:
        encoder.embed(texts(encoder, WORDS[3:6]))
    assert caught.value.done == {}


# ── servers that mean harm ───────────────────────────────────────────────────────────────────────────────────────────


class HostileHandler(QuietHandler):
    """Answers without an end: `way` says how. `sent` counts its bytes, `asked` the requests to `elsewhere`."""

    way = ""
    elsewhere = ""
    server_log: dict[str, Any]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server_log["requests"] += 1
        getattr(self, f"_{self.way}")()
        self.close_connection = True

    def do_GET(self) -> None:
        self.server_log["requests"] += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _write(self, data: bytes, pause: float = 0.0) -> None:
        """Again and again, until the client hangs up."""
        for _ in range(1 << 14):
            self.wfile.write(data)
            self.wfile.flush()
            self.server_log["sent"] += len(data)
            time.sleep(pause)

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        self._write(b" " * (1 << 16))

    def _chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._write(b"10000\r\n" + b" " * (1 << 16) + b"\r\n")

    def _trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        self._write(b" ", 0.05)

    def _slow_headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        self._write(b"y", 0.05)

    def _endless_refusal(self) -> None:
        self.send_response(400)
        self.end_headers()
        self._write(b" ", 0.05)

    def _continues(self) -> None:
        self._write(b"HTTP/1.1 100 Continue\r\n\r\n", 0.05)

    def _redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"{self.elsewhere}/embeddings")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, server: FakeProvider) -> Iterator[Callable[..., dict[str, Any]]]:
    """Put a hostile server in the provider's place; returns what it counts."""
    servers = []

    def start(way: str, **given: Any) -> dict[str, Any]:
        log: dict[str, Any] = {"requests": 0, "sent": 0}
        servers.append(LocalServer(HostileHandler, way=way, server_log=log, **given))
        monkeypatch.setenv("OPENAI_BASE_URL", servers[-1].endpoint)
        log["endpoint"] = servers[-1].endpoint
        return log

    yield start
    for started in servers:
        started.close()


@pytest.mark.parametrize("way", ["endless", "chunked"])
def test_an_endless_answer_is_refused_after_what_an_answer_can_need(
    hostile: Callable[..., dict[str, Any]], way: str
) -> None:
    log = hostile(way)
    encoder = model("openai")
    with pytest.raises(EmbarkError, match=r"answers with more than [\d,]+ bytes: check the address"):
        encoder.embed(texts(encoder, ["a"]))
    assert log["requests"] == 1  # the same server would send the same again
    assert log["sent"] < 64 << 20  # what the sockets hold beyond the limit


def test_an_answer_of_many_small_values_is_not_read(server: FakeProvider) -> None:
    """Its bytes are within what an answer can need; as objects they would take thirty times as much memory."""
    encoder = model("openai")
    page = b'{"data":[' + b"{}," * 370_000 + b"{}]}"
    assert len(page) < encoder._largest_answer(1)[0]
    server.poison, server.wrath = "a", (200, page)
    with pytest.raises(Interrupted, match=r"answers with more than [\d,]+ values: check the address"):
        encoder.embed(texts(encoder, ["a"]))


@pytest.mark.parametrize("way", ["trickle", "slow_headers", "continues", "endless_refusal"])
def test_an_answer_that_trickles_ends_with_the_time_of_a_try(
    hostile: Callable[..., dict[str, Any]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "ATTEMPT", 0.5)
    monkeypatch.setattr(api, "DEADLINE", 1.2)
    log = hostile(way)
    encoder = model("openai")
    began = time.monotonic()
    with pytest.raises(EmbarkError):
        encoder.embed(texts(encoder, ["a"]))
    assert time.monotonic() - began < 20
    assert 1 <= log["requests"] <= 4


def test_a_redirect_to_another_origin_is_not_followed(hostile: Callable[..., dict[str, Any]]) -> None:
    other = hostile("endless")
    log = hostile("redirect", elsewhere=other["endpoint"])
    encoder = model("openai")
    with pytest.raises(EmbarkError, match=rf"redirects to {other['endpoint']}, which is not asked"):
        encoder.embed(texts(encoder, ["a"]))
    assert (log["requests"], other["requests"]) == (1, 0)


@pytest.mark.parametrize("address", ["http://there:99999999/", "http://[::1/"])
def test_a_redirect_to_no_address_is_an_error(
    server: FakeProvider, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.poison, server.wrath = "a", (302, b"")
    monkeypatch.setattr("api_server.Handler.end_headers", _with_location(address))
    with pytest.raises(Interrupted, match="redirects to no valid address"):
        model("openai").embed(texts(model("openai"), ["a"]))


def _with_location(address: str) -> Callable[[QuietHandler], None]:
    def end_headers(handler: QuietHandler) -> None:
        handler.send_header("Location", address)
        QuietHandler.end_headers(handler)

    return end_headers


@pytest.mark.parametrize(
    "answer",
    [
        {"data": [{"index": 0, "embedding": [10**400] * DIM}]},
        {"data": [{"index": [0], "embedding": [0.5] * DIM}]},
        {"data": [{"index": 0.0, "embedding": [0.5] * DIM}]},
        {"data": [{"index": None, "embedding": [0.5] * DIM}, {"index": 0, "embedding": [0.5] * DIM}]},
        "[" * 200_000,
    ],
    ids=["a number too large", "a place in a list", "a broken place", "no place", "nested without end"],
)
def test_an_answer_that_cannot_be_read_is_an_error(server: FakeProvider, answer: Any) -> None:
    page = answer if isinstance(answer, str) else json.dumps(answer)
    server.poison, server.wrath = "poison", (200, page.encode())
    with pytest.raises(Interrupted, match="is not what its API promises"):
        model("openai").embed(texts(model("openai"), ["poison"]))


@pytest.mark.parametrize("status", [400, 503])
def test_a_refusal_that_is_nested_without_end_is_an_error(server: FakeProvider, status: int) -> None:
    server.poison, server.wrath = "a", (status, b"[" * 60_000)
    with pytest.raises(Interrupted, match=rf"HTTP {status} .*\[\[\["):
        model("openai").embed(texts(model("openai"), ["a"]))


def test_an_answer_whose_connection_is_cut_is_asked_for_again(server: FakeProvider) -> None:
    server.faults = ["cut", "cut"]
    encoder = model("openai")
    np.testing.assert_array_equal(encoder.embed(texts(encoder, ["a"])), expected(encoder, ["a"]))
    assert len(server.requests) == 3


def test_a_proxy_that_trickles_ends_with_the_time_of_a_try(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for the way to an encrypted API, and its answer has no end."""
    monkeypatch.setattr(api, "ATTEMPT", 0.3)
    monkeypatch.setattr(api, "DEADLINE", 0.7)
    proxy = LocalServer(SlowProxy)
    monkeypatch.setenv("https_proxy", proxy.endpoint)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example.com")
    encoder = model("openai")
    began = time.monotonic()
    with pytest.raises(EmbarkError, match="no complete answer within"):
        encoder.embed(texts(encoder, ["a"]))
    assert time.monotonic() - began < 3
    proxy.close()


class SlowProxy(QuietHandler):
    """Says that the way is open, and goes on with headers."""

    def do_CONNECT(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100):
            self.wfile.write(b"X: y\r\n")
            self.wfile.flush()
            time.sleep(0.05)
        self.close_connection = True
