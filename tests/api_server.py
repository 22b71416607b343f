"""Providers of embeddings on this machine: a real HTTP server that speaks their JSON, counts, and fails on demand."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark import http
from embark.items import text
from embark.models import Loading, api
from embark.models.api import Remote, RequestItem
from embark.models.providers import PROVIDERS
from embark.settings import load_settings
from embark.types import Content, ModelCard
from local_server import LocalServer, QuietHandler

DIM = 8
KEY = "sk-very-secret-0123"
TOO_LONG = b'{"error": {"message": "This model\'s maximum context length is exceeded"}}'


def vector(item: str, mode: str) -> list[float]:
    """What the model behind the server thinks of an item."""
    seed = int.from_bytes(hashlib.sha256(f"{mode} {item}".encode()).digest()[:8])
    return [float(np.float32(x)) for x in np.random.default_rng(seed).normal(size=DIM)]


class FakeProvider(LocalServer):
    """`requests` are (path, headers, body) as they came; `billed` how often an item was answered for.

    Faults come from `faults`, one a request: "429", "500", "reset" (hangs up), "hang" (answers too late), "cut" (hangs
    up in the middle of the answer), "short" (half of the vectors), "shuffled", "nan" (one vector has one), or nothing.
    `wrath` is (status, page) for requests that contain `poison`. Items in `odd` get vectors of that dimension; where
    `longest` is set, an empty text or one of more characters is refused, with all that came along.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.billed: Counter[str] = Counter()
        self.faults: list[str] = []
        self.dim = DIM
        self.odd: dict[str, int] = {}
        self.longest = 0
        self.poison, self.wrath = "", (400, b"{}")
        self.busy = 0.0  # seconds a request takes
        self.flying = self.flown = 0
        self.lock = threading.Lock()
        super().__init__(Handler, provider=self)

    def trouble(self, seed: int, count: int, kinds: tuple[str, ...]) -> None:
        """About half of the next requests go wrong."""
        dice = random.Random(seed)
        self.faults = [dice.choice(kinds) if dice.random() < 0.5 else "" for _ in range(count)]


class Handler(QuietHandler):
    """Reads a request as strictly as the provider does; whatever it does not know is refused."""

    provider: FakeProvider

    def do_POST(self) -> None:
        served = self.provider
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with served.lock:
            served.requests.append((self.path, dict(self.headers.items()), body))
            fault = served.faults.pop(0) if served.faults else ""
            served.flying += 1
            served.flown = max(served.flown, served.flying)
        time.sleep(served.busy)
        with served.lock:
            served.flying -= 1  # before the answer: whoever has it may send the next request at once
        self._respond(body, fault)

    def _respond(self, body: dict[str, Any], fault: str) -> None:
        served = self.provider
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            said = self.headers.get("Authorization")
            self._answer(401, json.dumps({"error": {"message": f"Incorrect API key: {said}"}}).encode())
        elif served.poison and served.poison in json.dumps(body):
            self._answer(*served.wrath)
        elif fault in ("429", "500"):
            self._answer(int(fault), b'{"message": "too much"}', {"Retry-After": "0"} if fault == "429" else {})
        elif fault == "reset":
            self.close_connection = True
        else:
            items, mode, pack = READ[self.path](body)
            if served.longest and not all(0 < len(item) <= served.longest for item in items):
                self._answer(400, TOO_LONG)
                return
            rows = [(at, vector(item, mode)[: served.odd.get(item, served.dim)]) for at, item in enumerate(items)]
            if fault == "short":
                rows = rows[: len(rows) // 2]
            if fault == "shuffled":
                rows = rows[::-1]
            if fault == "nan" and rows:
                rows[-1] = (rows[-1][0], [float("nan")] * DIM)
            if fault == "hang":
                time.sleep(0.8)
                self.close_connection = True
                return
            if fault == "cut":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"data": [')
                self.close_connection = True
                return
            with served.lock:
                served.billed.update(f"{mode} {items[at]}" for at, row in rows if row[0] == row[0])
            self._answer(200, json.dumps(pack(rows)).encode())

    def _answer(self, status: int, page: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


def _indexed(rows: list[tuple[int, list[float]]]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in rows]
    return {"object": "list", "data": data, "usage": {"total_tokens": 1}}


def _image(url: str) -> str:
    head, data = url.split(",")
    assert head == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.format == "PNG"
    return f"<{image.size} {hashlib.sha256(image.convert('RGB').tobytes()).hexdigest()[:8]}>"


def _openai(body: dict[str, Any]) -> Any:
    assert {"model", "input", "encoding_format"} <= set(body) <= {"model", "input", "encoding_format", "dimensions"}
    return body["input"], "", _indexed


def _voyage(body: dict[str, Any]) -> Any:
    assert body["input_type"] in ("query", "document")
    return body["input"], body["input_type"], _indexed


def _texts_or_voyage(body: dict[str, Any]) -> Any:
    return _voyage(body) if "input_type" in body else _openai(body)


def _voyage_multimodal(body: dict[str, Any]) -> Any:
    assert body["input_type"] in ("query", "document")
    return [_joined(item["content"]) for item in body["inputs"]], body["input_type"], _indexed


def _cohere(body: dict[str, Any]) -> Any:
    assert body["input_type"] in ("search_query", "search_document")
    assert body["embedding_types"] == ["float"]
    items = [_joined(item["content"]) for item in body["inputs"]]
    return items, body["input_type"], lambda rows: {"id": "1", "embeddings": {"float": [row for _, row in rows]}}


def _doubao(body: dict[str, Any]) -> Any:
    item = _joined(body["input"])
    return [item], "", lambda rows: {"object": "list", "data": {"object": "embedding", "embedding": rows[0][1]}}


def _joined(content: list[dict[str, Any]]) -> str:
    def one(part: dict[str, Any]) -> str:
        if part["type"] == "text":
            return str(part["text"])
        return _image(part["image_base64"] if part["type"] == "image_base64" else part["image_url"]["url"])

    return " + ".join(map(one, content))


def _chat(body: dict[str, Any]) -> Any:
    [turn] = body["messages"]
    assert turn["role"] == "user"
    item = _joined(turn["content"])
    return [item], "", lambda rows: {"choices": [{"message": {"role": "assistant", "content": f" about {item}\n"}}]}


READ = {
    "/chat/completions": _chat,
    "/embeddings": _texts_or_voyage,
    "/multimodalembeddings": _voyage_multimodal,
    "/embed": _cohere,
    "/embeddings/multimodal": _doubao,
}


# ── and how tests ask them ───────────────────────────────────────────────────────────────────────────────────────────

NAMES = [name for name in PROVIDERS if name != "openai-chat"]  # those of vectors
EVERY = pytest.mark.parametrize("name", NAMES)
WORDS = [f"word {n}" * (1 + n % 3) for n in range(300)]


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """All providers at one address of this machine; failed requests are tried again at once."""
    served = FakeProvider()
    for variable in {provider.variable for provider in PROVIDERS.values()}:
        monkeypatch.setenv(f"{variable}_BASE_URL", served.endpoint)
        monkeypatch.setenv(f"{variable}_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setattr(http, "PAUSE", 0.0)
    try:
        yield served
    finally:
        served.close()


def model(name: str, **changes: Any) -> Remote:
    """A model of that provider."""
    facts = {"dim": DIM, "stored": "float32", "source": "the-model", **changes}
    return api.load(ModelCard(f"test/{name}", "1", name, (), **facts), Loading(settings=load_settings()))


def texts(encoder: Remote, words: Sequence[str], role: str = "document") -> list[RequestItem]:
    """The words as they will be sent."""
    mode = encoder.render(text("any"), role, "ignored").mode
    return [encoder.prepare([Content("text", word)], mode) for word in words]


def expected(encoder: Remote, words: Sequence[str], role: str = "document") -> Any:
    """Their vectors."""
    mode = encoder.provider.query if role == "query" else encoder.provider.document
    return np.array([vector(word, mode) for word in words], np.float32)
