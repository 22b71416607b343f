"""Models behind an API: several requests at the same time, retries, and no second request for what was answered.

The key is read from the environment when a request is made; it is stored nowhere, and no message contains it.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import isqrt
from operator import index
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request

import numpy as np

from embark import http
from embark.halving import by_halves
from embark.http import RequestRefused, TemporaryFailure, without_secret
from embark.models.encoder import Bill, Capabilities, Encoder, Interrupted
from embark.models.loading import Loading
from embark.models.providers import PROVIDERS, RequestPart, RequestParts
from embark.settings import Settings, load_settings
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered

BYTES_PER_TOKEN = 4  # of text, about
CUT = 1  # version of `_cut`, in the options of models whose texts are cut here
PIECE = re.compile(rb" ?(?:[A-Z]?[a-z]{1,3}|[A-Z])|[0-9]{1,3}|[ \t]{1,4}|.", re.DOTALL)  # rarely more than one token
LARGEST_REQUEST = 16 << 20  # bytes; an item that is larger goes alone
DEADLINE = 900.0  # seconds for a request, with all its tries
ATTEMPT = 300.0  # seconds for one try, until the last byte of its answer
JITTER = 0.5
LARGEST_WORDS = 1 << 16  # bytes of an answer besides its numbers, for each item
MOST_VALUES = 1 << 12  # values of an answer besides its numbers, for each item: one of 3 bytes takes 90 once it is read
BYTES_PER_NUMBER = 32  # of a vector, written as text
MOST_DIMENSIONS = 1 << 13  # of a model whose dimension is not known
LONGEST_MESSAGE = 500  # characters of a provider's answer
BAD_INPUT = (400, 413, 422)  # HTTP statuses that a single item of many can cause


class BadInput(EmbarkError):
    """A request that was refused because of its items, not because of the key."""


class RequestItem(NamedTuple):
    """An item as it will be sent, with an estimate of its tokens."""

    parts: RequestParts
    mode: str
    text_tokens: int
    image_tokens: int

    @property
    def tokens(self) -> int:
        """Those of texts and images."""
        return self.text_tokens + self.image_tokens

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return sum(len(value) for _, value in self.parts)


def load(card: ModelCard, loading: Loading) -> Remote:
    """The model of a provider, which is the card's loader; nothing is sent yet, and no key is needed."""
    provider = PROVIDERS[card.loader]
    stated = card.options.get("endpoint") or os.environ.get(f"{provider.variable}_BASE_URL", "").strip()
    endpoint = str(stated or provider.base).rstrip("/")
    if "@" in urlsplit(endpoint).netloc:  # the address is recorded with every result
        raise EmbarkError(
            f"The address of {card.name} holds a password: a key belongs into {provider.variable}_API_KEY."
        )
    if endpoint != provider.base:  # another server's vectors are kept apart, whatever the model is called there
        card = replace(card, options={**card.options, "endpoint": endpoint})
    if card.context and not provider.cuts:
        card = replace(card, options={**card.options, "cut": CUT})
    kinds = card.modalities or provider.modalities
    fusion = card.fusion or ("native" if len(kinds) > 1 else None)
    card = replace(card, modalities=kinds, fusion=fusion, loaded={"endpoint": endpoint})
    return Remote(card, endpoint, loading.settings or load_settings())


class Remote(Encoder):
    """An encoder behind a provider's API."""

    def __init__(self, card: ModelCard, endpoint: str, settings: Settings) -> None:
        self.card = card
        self.provider = PROVIDERS[card.loader]
        self.endpoint = endpoint
        self.settings = settings
        at_once = self.provider.items * self.provider.flight
        self.capabilities = Capabilities(batch_size=at_once, bill=self._bill)
        self.pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)
        self.offline = settings.offline
        self.dim = card.dim  # None: that of the first answers

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item; the mode is the provider's word for its role."""
        return Rendered(item.parts, self.provider.query if role == "query" else self.provider.document)

    def prepare(self, contents: Sequence[Content], mode: str) -> RequestItem:
        """Texts, cut where the provider would refuse long ones; images as PNG."""
        if not any(content.kind != "text" or content.value for content in contents):
            raise EmbarkError("the text is empty, and a provider embeds no empty text.")
        parts: list[RequestPart] = []
        text_tokens = image_tokens = 0
        room = self.card.context if "cut" in self.card.options else None
        for content in contents:
            if content.kind == "text":
                value = content.value
                if room is not None:
                    value, room = _cut(value, room)
                parts.append(("text", value))
                text_tokens += -(-len(value.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
            else:
                parts.append(("image", _data_url(content.value, self.provider.largest)))
                least, most = self.provider.billed
                width, height = content.value.size
                image_tokens += -(-min(max(width * height, least), most) // self.provider.pixels)
        return RequestItem(tuple(parts), mode, text_tokens, image_tokens)

    def embed(self, batch: Sequence[RequestItem]) -> Array:
        """All items, in several requests at the same time; an error carries the vectors that were answered."""
        return np.stack(self.outputs(batch))

    def outputs(self, batch: Sequence[RequestItem]) -> list[Any]:
        """What the provider returns for each item: its vector."""
        vectors: dict[int, Any] = {}
        failed = threading.Event()

        def request(rows: list[int]) -> None:
            if failed.is_set():
                return
            try:
                for answer in self._request(batch, rows):
                    vectors.update(answer)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(self.provider.flight) as pool:
            requests = [pool.submit(request, rows) for rows in self._split(batch)]
            try:
                wait(requests)
            except BaseException:  # an interrupt by the user, who will not wait for queued requests
                failed.set()
                raise
        wrong_shape = self._remove_wrong_shapes(batch, vectors)
        for error in filter(None, (wrong_shape, *(request.exception() for request in requests))):
            if isinstance(error, EmbarkError):
                raise Interrupted(str(error), vectors) from error
            raise error
        return [vectors[row] for row in range(len(batch))]

    def _bill(self, prepared: RequestItem) -> Bill:
        """An estimate of what the provider would charge for an item."""
        price = self.card.price
        if price is None:
            return Bill(prepared.tokens, None)
        image_price = price if self.card.image_price is None else self.card.image_price
        return Bill(prepared.tokens, (prepared.text_tokens * price + prepared.image_tokens * image_price) / 1e6)

    def _split(self, batch: Sequence[RequestItem]) -> list[list[int]]:
        """The rows of each request: of one mode, and within the provider's limits."""
        out: list[list[int]] = []
        last: dict[str, list[int]] = {}  # the rows of each mode's last request
        for row, item in enumerate(batch):
            rows = last.get(item.mode, [])
            if rows and self._fit([*(batch[other] for other in rows), item]):
                rows.append(row)
            else:
                last[item.mode] = [row]
                out.append(last[item.mode])
        return out

    def _fit(self, items: Sequence[RequestItem]) -> bool:
        """Whether one request may have these items."""
        return (
            len(items) <= self.provider.items
            and sum(item.tokens for item in items) <= self.provider.tokens
            and sum(item.size for item in items) <= LARGEST_REQUEST
        )

    def _request(self, batch: Sequence[RequestItem], rows: Sequence[int]) -> Iterator[dict[int, Array]]:
        """The vectors of the rows, with further requests for what an answer left out; bad input goes in halves."""
        missing = list(rows)

        def ask(asked: Sequence[int]) -> Iterator[dict[int, Array]]:
            what = f"Asking {self.endpoint} for {self.card.name}"
            post = partial(self._post, [batch[row] for row in asked])
            answer = http.with_retries(what, post, jitter=JITTER, deadline=DEADLINE)
            yield {asked[position]: vector for position, vector in answer}

        while missing:
            for vectors in by_halves(missing, ask, BadInput):
                yield vectors
                missing = [row for row in missing if row not in vectors]

    def _remove_wrong_shapes(self, batch: Sequence[RequestItem], vectors: dict[int, Array]) -> EmbarkError | None:
        """Remove vectors of a wrong dimension; returns the error about them, or None.

        The right dimension is the card's, else that of most vectors of the first batch.
        """
        if self.dim is None and vectors:
            self.dim = Counter(vector.size for vector in vectors.values()).most_common(1)[0][0]
        wrong = {row: vectors.pop(row) for row in sorted(vectors) if vectors[row].shape != (self.dim,)}
        if not wrong:
            return None
        row, vector = next(iter(wrong.items()))
        source = "its card says" if self.card.dim else "others have"
        return EmbarkError(
            f"{self.card.name} returned a vector of shape {vector.shape} for {_preview(batch[row])}; "
            f"{source} dimension {self.dim}."
        )

    def _post(self, items: Sequence[RequestItem]) -> list[tuple[int, Any]]:
        """At least one of the items' vectors, with their positions."""
        body = {"model": self.card.source, **self.provider.body([item.parts for item in items], items[0].mode)}
        body |= self.card.options.get("parameters", {})
        if "dimensions" in self.card.options:
            body[self.provider.dimensions] = self.card.options["dimensions"]
        request = Request(
            self.endpoint + self.provider.path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "User-Agent": "embark"},
        )
        if key := self._key():
            request.add_unredirected_header("Authorization", f"Bearer {key}")
        self.pace.take(sum(item.tokens for item in items))
        try:
            page = http.post(request, most=self._largest_answer(len(items))[0], seconds=ATTEMPT)
        except TemporaryFailure as failure:
            self.pace.hold(failure.wait or 0.0)
            message = _provider_message(failure.page)
            text = without_secret(key, f"{failure}: {message}" if message else str(failure))
            raise TemporaryFailure(text, failure.wait) from None
        except RequestRefused as refused:
            raise self._refusal(refused, key, items) from None
        return self._outputs(page, items, key)

    def _largest_answer(self, items: int) -> tuple[int, int]:
        """Bytes and values that an answer about so many items can need, generously: vectors, and words around them."""
        numbers = items * (self.dim or MOST_DIMENSIONS)
        return LARGEST_WORDS * (16 + items) + BYTES_PER_NUMBER * numbers, MOST_VALUES * (16 + items) + numbers

    def _outputs(self, page: bytes, items: Sequence[RequestItem], key: str) -> list[tuple[int, Any]]:
        """The finite vectors in an answer about these items, with their positions; at least one."""
        finite = [(position, row) for position, row in self._vectors(page, len(items), key) if np.isfinite(row).all()]
        if not finite:
            raise TemporaryFailure(
                f"it returned no vector of finite numbers for {len(items)} items, the first is {_preview(items[0])}"
            )
        return finite

    def _vectors(self, page: bytes, count: int, key: str) -> list[tuple[int, Any]]:
        """The vectors in an answer about so many items, with their positions."""
        _, most = self._largest_answer(count)
        if page.count(b",") > most:
            raise EmbarkError(f"{self.endpoint} answers with more than {most:,} values: check the address.")
        try:
            answer = self.provider.vectors(json.loads(page))
            vectors = [(index(position), self._decoded(output)) for position, output in answer]
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise EmbarkError(
                f"{self.card.name}: the answer of {self.endpoint} is not what its API promises "
                f"({type(error).__name__}: {without_secret(key, str(error)[:LONGEST_MESSAGE])}). Is that its address?"
            ) from None
        positions = [position for position, _ in vectors]
        if not self.provider.indexed and len(vectors) != count:
            raise TemporaryFailure(f"it returned {len(vectors)} vectors for {count} items and does not say which")
        if sorted(set(positions) & set(range(count))) != sorted(positions):
            raise EmbarkError(f"{self.card.name} returned vectors for items that it was not asked for, or twice.")
        return vectors

    def _decoded(self, output: Any) -> Any:
        return np.array(output, np.float32)

    def _key(self) -> str:
        """The key in the environment; the provider's own address needs one."""
        if self.offline:
            raise EmbarkError(f"{self.card.name} runs behind an API, which the setting 'offline' forbids.")
        variable = f"{self.provider.variable}_API_KEY"
        key = os.environ.get(variable, "").strip()
        if not key and self.endpoint == self.provider.base:
            raise EmbarkError(f"{self.card.name} runs behind an API and needs your key: set {variable}.")
        if not (key.isascii() and key.isprintable()):  # the library's own error would show the key
            raise EmbarkError(f"{variable} does not hold a key: there are characters in it that no key has.")
        return key

    def _refusal(self, refused: RequestRefused, key: str, items: Sequence[RequestItem]) -> EmbarkError:
        """The error for a refused request."""
        variable = f"{self.provider.variable}_API_KEY"
        if refused.status in (401, 403):
            return EmbarkError(
                f"{self.endpoint} does not let you use {self.card.source} (HTTP {refused.status}): set {variable} to a "
                "key that may."
            )
        what = _preview(items[0]) if len(items) == 1 else f"{len(items)} items"
        answer = without_secret(key, f"({refused}): {_provider_message(refused.page)}")
        message = f"{self.card.name} was refused for {what} {answer}"
        return BadInput(message) if refused.status in BAD_INPUT else EmbarkError(message)


@dataclass
class Pace:
    """Spreads requests evenly, within limits of requests and tokens a minute."""

    requests: int | None
    tokens: int | None
    next: float = 0.0
    lock: Any = field(default_factory=threading.Lock)

    def take(self, tokens: int) -> None:
        """Wait until a request of that many tokens may be sent."""
        share = max(1 / self.requests if self.requests else 0.0, tokens / self.tokens if self.tokens else 0.0)
        with self.lock:
            now = time.monotonic()
            turn = max(now, self.next)
            self.next = turn + 60 * share
        if turn > now:
            time.sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Send no request for so many seconds, as the provider asked."""
        with self.lock:
            self.next = max(self.next, time.monotonic() + min(seconds, http.LONGEST_PAUSE_SECONDS))


def _provider_message(page: bytes) -> str:
    """The message in a provider's answer."""
    text = page.decode("utf-8", "replace")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = text.strip()
    for name in ("error", "message", "detail"):
        if isinstance(message, dict) and name in message:
            message = message[name]
    return str(message)[:LONGEST_MESSAGE]


def _preview(item: RequestItem) -> str:
    """An item for messages."""
    kind, value = item.parts[0]
    return f"'{value[:60]}'" if kind == "text" else "an image"


def _cut(text: str, tokens: int) -> tuple[str, int]:
    """(the text up to so many tokens, the number of tokens left); tokens are rather over- than underestimated."""
    data = text.encode("utf-8", "surrogatepass")
    ends = [piece.end() for piece in islice(PIECE.finditer(data), tokens)]
    end = ends[-1] if ends else 0
    return text if end == len(data) else data[:end].decode("utf-8", "ignore"), tokens - len(ends)


def _data_url(image: Any, largest: int) -> str:
    """The image as PNG in a data URL; shrunk where it has more pixels than a provider takes."""
    from PIL import Image

    width, height = image.size
    if width * height > largest:
        scale = isqrt(largest) / max(width, height)
        image = image.resize((max(1, int(width * scale)), max(1, int(height * scale))), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.convert("RGB").save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
