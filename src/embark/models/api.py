"""Models behind an API: asked politely, several requests at once, and never twice for what was answered.

The key is read from the environment when a request is made; it is kept nowhere, and nothing that is shown contains it.
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from math import isqrt
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request

import numpy as np

from embark import http
from embark.http import Again, Refused
from embark.models.encoder import Bill, Encoder, Interrupted
from embark.models.loading import Loading
from embark.models.providers import PROVIDERS, Part, Parts
from embark.settings import Settings, load_settings
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered

BYTES_A_TOKEN = 4  # of text, about
CUT = 1  # version of the cut, in the settings of whoever is cut here
PIECE = re.compile(rb" ?(?:[A-Z]?[a-z]{1,3}|[A-Z])|[0-9]{1,3}|[ \t]{1,4}|.", re.DOTALL)  # seldom more than a token
LARGEST_REQUEST = 16 << 20  # bytes; an item that is larger goes alone
DEADLINE = 900.0  # seconds for a request, with all its tries
JITTER = 0.5
UNFIT = (400, 413, 422)  # refusals that a single item of many can cause


class Unfit(EmbarkError):
    """What was asked for is refused, not who asks."""


class Prepared(NamedTuple):
    """An item as it will be sent, and about how many tokens it counts as."""

    parts: Parts
    mode: str
    texts: int  # tokens
    images: int  # tokens

    @property
    def tokens(self) -> int:
        """Of everything."""
        return self.texts + self.images

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(len(value) for _, value in self.parts)


def load(card: ModelCard, loading: Loading) -> Remote:
    """The model that the card's loader knows how to ask; nothing is sent yet, and no key is needed."""
    provider = PROVIDERS[card.loader]
    stated = card.options.get("endpoint") or os.environ.get(f"{provider.variable}_BASE_URL", "").strip()
    endpoint = str(stated or provider.base).rstrip("/")
    if "@" in urlsplit(endpoint).netloc:  # the address is written into every record
        raise EmbarkError(
            f"The address of {card.name} holds a password: a key belongs into {provider.variable}_API_KEY."
        )
    if endpoint != provider.base:  # somebody else's vectors, whatever the model is called there
        card = replace(card, options={**card.options, "endpoint": endpoint})
    if card.context and not provider.cuts:
        card = replace(card, options={**card.options, "cut": CUT})
    kinds = card.modalities or provider.modalities
    fusion = card.fusion or ("native" if len(kinds) > 1 else None)
    card = replace(card, modalities=kinds, fusion=fusion, loaded={"endpoint": endpoint})
    return Remote(card, endpoint, loading.settings or load_settings())


class Remote(Encoder):
    """An encoder that asks a provider."""

    def __init__(self, card: ModelCard, endpoint: str, settings: Settings) -> None:
        self.card, self.provider, self.endpoint = card, PROVIDERS[card.loader], endpoint
        self.batch_size = self.provider.items * self.provider.flight
        self.pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)
        self.offline = settings.offline
        self.dim = card.dim  # or what the first answers have

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item, and whether the provider is told that it is a query."""
        return Rendered(item.parts, self.provider.query if role == "query" else self.provider.document)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prepared:
        """Texts as they are, or as much of them as the model takes; images as PNG."""
        if not any(content.kind != "text" or content.value for content in contents):
            raise EmbarkError("the text is empty, and a provider embeds no empty text.")
        parts: list[Part] = []
        texts = images = 0
        room = self.card.context if "cut" in self.card.options else None
        for content in contents:
            if content.kind == "text":
                value = content.value
                if room is not None:
                    value, room = _cut(value, room)
                parts.append(("text", value))
                texts += -(-len(value.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN)
            else:
                parts.append(("image", _data_url(content.value, self.provider.largest)))
                least, most = self.provider.billed
                width, height = content.value.size
                images += -(-min(max(width * height, least), most) // self.provider.pixels)
        return Prepared(tuple(parts), mode, texts, images)

    def embed(self, batch: Sequence[Prepared]) -> Array:
        """All items in several requests at once; on an error, what was answered goes along with it."""
        found: dict[int, Array] = {}
        failed = threading.Event()

        def ask(rows: list[int]) -> None:
            if failed.is_set():
                return
            try:
                self._ask(batch, rows, found)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(self.provider.flight) as pool:
            asked = [pool.submit(ask, rows) for rows in self._requests(batch)]
            try:
                wait(asked)
            except BaseException:  # the user's, who will not wait for what is queued
                failed.set()
                raise
        for error in filter(None, (self._odd(batch, found), *(request.exception() for request in asked))):
            if isinstance(error, EmbarkError):
                raise Interrupted(str(error), found) from error
            raise error
        return np.stack([found[row] for row in range(len(batch))])

    def bill(self, prepared: Prepared) -> Bill:
        """What the provider would charge for an item, about."""
        price = self.card.price
        if price is None:
            return Bill(prepared.tokens, None)
        seen = price if self.card.image_price is None else self.card.image_price
        return Bill(prepared.tokens, (prepared.texts * price + prepared.images * seen) / 1e6)

    def _requests(self, batch: Sequence[Prepared]) -> list[list[int]]:
        """Rows of the batch that go together: of one mode, and within the provider's limits."""
        out: list[list[int]] = []
        for mode in dict.fromkeys(item.mode for item in batch):
            rows: list[int] = []
            tokens = size = 0
            for row, item in enumerate(batch):
                if item.mode != mode:
                    continue
                tokens, size = tokens + item.tokens, size + item.size
                full = len(rows) == self.provider.items or tokens > self.provider.tokens or size > LARGEST_REQUEST
                if rows and full:
                    out.append(rows)
                    rows, tokens, size = [], item.tokens, item.size
                rows.append(row)
            out.append(rows)
        return out

    def _ask(self, batch: Sequence[Prepared], rows: Sequence[int], found: dict[int, Array]) -> None:
        """One request, and further ones for what its answer left out; a refused one in halves, down to one item."""
        while missing := [row for row in rows if row not in found]:
            items = [batch[row] for row in missing]
            what = f"Asking {self.endpoint} for {self.card.name}"
            try:
                answer = http.patiently(what, partial(self._post, items), jitter=JITTER, deadline=DEADLINE)
            except Unfit:
                if len(missing) == 1:
                    raise
                half = len(missing) // 2
                self._ask(batch, missing[:half], found)
                self._ask(batch, missing[half:], found)
                return
            found.update({missing[position]: vector for position, vector in answer})

    def _odd(self, batch: Sequence[Prepared], found: dict[int, Array]) -> EmbarkError | None:
        """Take vectors of another dimension out: than the card's, or than most in the first batch have."""
        if self.dim is None and found:
            self.dim = Counter(vector.size for vector in found.values()).most_common(1)[0][0]
        odd = {row: found.pop(row) for row in sorted(found) if found[row].shape != (self.dim,)}
        if not odd:
            return None
        row, vector = next(iter(odd.items()))
        said = "its card says" if self.card.dim else "others have"
        return EmbarkError(
            f"{self.card.name} returned a vector of shape {vector.shape} for {_shown(batch[row])}; "
            f"{said} dimension {self.dim}."
        )

    def _post(self, items: Sequence[Prepared]) -> list[tuple[int, Array]]:
        """At least one of the items' vectors, by their positions."""
        body = {"model": self.card.source, **self.provider.body([item.parts for item in items], items[0].mode)}
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
            with http.send(request) as answer:
                page = http.receive(answer)
        except Again as again:
            self.pace.hold(again.wait or 0.0)
            told = self._message(again.page, key)
            raise Again(f"{again}: {told}" if told else str(again), again.wait) from None
        except Refused as refused:
            raise self._explained(refused, key, items) from None
        rows = [(at, row) for at, row in self._vectors(page, len(items)) if np.isfinite(row).all()]
        if not rows:
            first = _shown(items[0])
            raise Again(f"it returned no vector of finite numbers for {len(items)} items, the first is {first}")
        return rows

    def _vectors(self, page: bytes, asked: int) -> list[tuple[int, Array]]:
        try:
            rows = [(at, np.array(row, np.float32)) for at, row in self.provider.vectors(json.loads(page))]
        except (ValueError, TypeError, LookupError) as error:
            raise EmbarkError(
                f"{self.card.name}: the answer of {self.endpoint} is not what its API promises "
                f"({type(error).__name__}: {error}). Is that its address?"
            ) from None
        if not self.provider.indexed and len(rows) != asked:
            raise Again(f"it returned {len(rows)} vectors for {asked} items and does not say which")
        if sorted({at for at, _ in rows} & set(range(asked))) != sorted(at for at, _ in rows):
            raise EmbarkError(f"{self.card.name} returned vectors for items that it was not asked for, or twice.")
        return rows

    def _key(self) -> str:
        """The key in the environment; needed at the provider's own address."""
        if self.offline:
            raise EmbarkError(f"{self.card.name} is asked over the network, and the setting 'offline' forbids that.")
        variable = f"{self.provider.variable}_API_KEY"
        key = os.environ.get(variable, "").strip()
        if not key and self.endpoint == self.provider.base:
            raise EmbarkError(f"{self.card.name} is asked over the network with your key: set {variable}.")
        if not (key.isascii() and key.isprintable()):  # the library's own error would show it
            raise EmbarkError(f"{variable} does not hold a key: there are characters in it that no key has.")
        return key

    def _explained(self, refused: Refused, key: str, items: Sequence[Prepared]) -> EmbarkError:
        """What a refusal means."""
        variable = f"{self.provider.variable}_API_KEY"
        if refused.status in (401, 403):
            return EmbarkError(
                f"{self.endpoint} does not let you use {self.card.source} (HTTP {refused.status}): set {variable} to a "
                "key that may."
            )
        what = _shown(items[0]) if len(items) == 1 else f"{len(items)} items"
        said = f"{self.card.name} was refused for {what} ({refused}): {self._message(refused.page, key)}"
        return Unfit(said) if refused.status in UNFIT else EmbarkError(said)

    def _message(self, page: bytes, key: str) -> str:
        """The sentence in a provider's page of refusal; a key that it repeats is struck out."""
        text = page.decode("utf-8", "replace")
        try:
            told = json.loads(text)
        except ValueError:
            told = text.strip()
        for name in ("error", "message", "detail"):
            if isinstance(told, dict) and name in told:
                told = told[name]
        return (str(told).replace(key, "…") if key else str(told))[:500]


class Pace:
    """Spreads requests over the minutes that limits are given for."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self.requests, self.tokens = requests, tokens
        self.next, self.lock = 0.0, threading.Lock()

    def take(self, tokens: int) -> None:
        """Wait for one's turn to send a request of that many tokens."""
        share = max(1 / self.requests if self.requests else 0.0, tokens / self.tokens if self.tokens else 0.0)
        with self.lock:
            now = time.monotonic()
            turn = max(now, self.next)
            self.next = turn + 60 * share
        if turn > now:
            time.sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Nobody sends anything for so long: the provider asked for it."""
        with self.lock:
            self.next = max(self.next, time.monotonic() + min(seconds, http.PATIENCE))


def _shown(item: Prepared) -> str:
    kind, value = item.parts[0]
    return f"'{value[:60]}'" if kind == "text" else "an image"


def _cut(text: str, tokens: int) -> tuple[str, int]:
    """The text up to so many tokens, estimated rather too many than too few; and how many of them are left."""
    data = text.encode("utf-8", "surrogatepass")
    ends = [piece.end() for piece in islice(PIECE.finditer(data), tokens)]
    end = ends[-1] if ends else 0
    return text if end == len(data) else data[:end].decode("utf-8", "ignore"), tokens - len(ends)


def _data_url(image: Any, largest: int) -> str:
    """The pixels without loss; shrunk where they are more than a provider takes."""
    from PIL import Image

    width, height = image.size
    if width * height > largest:
        scale = isqrt(largest) / max(width, height)
        image = image.resize((max(1, int(width * scale)), max(1, int(height * scale))), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.convert("RGB").save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
