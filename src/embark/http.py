"""HTTP requests: temporary failures are retried with growing pauses, other failures are raised at once."""

from __future__ import annotations

import http.client
import logging
import random
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from email.message import Message
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any, TypeVar
from urllib.parse import urlsplit

from embark.types import EmbarkError

TRIES = 6
PAUSE = 1.0  # seconds before the second try; doubled each time
LONGEST_PAUSE_SECONDS = 300.0  # the longest pause in seconds, even if the server asks for a longer one
TIMEOUT = 60.0  # seconds without a byte
NOTICE = 2.0  # seconds of a pause from which on a line says why we wait
TELLING = 4  # characters of a secret that are not shown
BUSY = (408, 429, 500, 502, 503, 504)
UNREACHABLE = (socket.gaierror, ConnectionRefusedError)  # no server at the address

T = TypeVar("T")
logger = logging.getLogger("embark")  # where nobody set up logging, Python shows its warnings on the screen


class TemporaryFailure(Exception):
    """A failure after which the request may be repeated.

    `wait` is the pause in seconds that the server asked for; `unreachable` means that there is no server at the
    address.
    """

    def __init__(self, why: str, wait: float | None = None, unreachable: bool = False, page: bytes = b"") -> None:
        super().__init__(why)
        self.wait = wait
        self.unreachable = unreachable
        self.page = page


class RequestRefused(Exception):
    """A refusal by the server, which repeating the request would not change: HTTP status and the page that was sent."""

    def __init__(self, status: int, reason: str, page: bytes = b"") -> None:
        super().__init__(f"HTTP {status} {reason}")
        self.status = status
        self.page = page


def with_retries(
    what: str,
    attempt: Callable[[], T],
    pause: Callable[[float], object] = time.sleep,
    *,
    jitter: float = 0.0,
    deadline: float = inf,
) -> T:
    """The result of the first attempt that succeeds; pauses between attempts double.

    `what` names the request in the error. `jitter` lengthens every pause by a random share up to this one, so that many
    clients do not retry at the same time. No attempt begins later than `deadline` seconds after the first.
    """
    start = time.monotonic()
    for tried in range(1, TRIES + 1):
        try:
            return attempt()
        except TemporaryFailure as failure:
            why = failure
            wait = min(PAUSE * 2 ** (tried - 1) if failure.wait is None else failure.wait, LONGEST_PAUSE_SECONDS)
            wait *= 1 + jitter * random.random()
            if tried == TRIES or time.monotonic() + wait > start + deadline:
                break
            if wait >= NOTICE:
                logger.warning("%s: %s. Waiting %.0f s (try %d of %d).", what, why, wait, tried + 1, TRIES)
            pause(wait)
    times = f"{tried} times" if tried > 1 else "once"
    raise EmbarkError(f"{what} failed {times}: {why}. Run the same command to go on where it stopped.")


def send(request: urllib.request.Request, opener: urllib.request.OpenerDirector | None = None) -> closing[Any]:
    """The server's answer to a request; the caller closes it."""
    try:
        return closing((opener or urllib.request.build_opener()).open(request, timeout=TIMEOUT))
    except urllib.error.HTTPError as error:
        with closing(error):
            page = b""
            with suppress(OSError, http.client.HTTPException):
                page = error.read(1 << 16)
            if error.code in BUSY:
                reason = f"HTTP {error.code} {error.reason}"
                raise TemporaryFailure(reason, retry_after(error.headers), page=page) from None
            raise RequestRefused(error.code, str(error.reason), page) from None
    except (OSError, http.client.HTTPException) as error:
        cause: object = getattr(error, "reason", None) or error
        raise TemporaryFailure(str(cause) or type(cause).__name__, unreachable=isinstance(cause, UNREACHABLE)) from None


def post(request: urllib.request.Request, *, most: int, seconds: float) -> bytes:
    """The page that answers a request with a body: at most so many bytes, within so many seconds in all.

    A redirect is an error: body and key belong to the address that the user named.
    """
    with _Watch(seconds) as watch:
        opener = urllib.request.build_opener(_NoRedirects, _Http(watch), _Https(watch))
        try:
            with send(request, opener) as answer:
                page = receive(answer, most + 1)
        except TemporaryFailure:
            if watch.expired:
                raise TemporaryFailure(f"no complete answer within {seconds:.0f} s") from None
            raise
        if watch.expired:  # an answer without a length ends where the connection was cut
            raise TemporaryFailure(f"no complete answer within {seconds:.0f} s")
    if len(page) > most:
        origin = _shown_origin(request.full_url)
        raise EmbarkError(f"{origin} answers with more than {most:,} bytes: check the address.")
    return page


class _Watch(AbstractContextManager["_Watch"]):
    """Cuts the connections that were opened inside it when its time is over, however slowly bytes come."""

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def add(self, opened: socket.socket) -> None:
        """Watch a socket; a copy of it, since encryption takes the first over."""
        self._sockets.append(opened.dup())
        if self.expired:
            self._expire()

    def _expire(self) -> None:
        self.expired = True
        for opened in list(self._sockets):
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()
        for opened in self._sockets:
            opened.close()


class _WatchedConnection(http.client.HTTPConnection):
    """Watched from its first byte on: before a proxy is asked for the way, and before the handshake."""

    watch: _Watch

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._create_connection = self._watched_connection

    def _watched_connection(self, *given: Any) -> socket.socket:
        opened = socket.create_connection(*given)
        self.watch.add(opened)
        return opened


class _WatchedSecureConnection(_WatchedConnection, http.client.HTTPSConnection):
    """The same with encryption."""


class _Http(urllib.request.HTTPHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._kind: Any = type("Connection", (_WatchedConnection,), {"watch": watch})

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._kind, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._kind: Any = type("Connection", (_WatchedSecureConnection,), {"watch": watch})

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._kind, req)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> None:
        try:
            super().http_error_302(req, fp, code, msg, headers)
        except ValueError as error:
            fp.close()
            raise EmbarkError(f"{_shown_origin(req.full_url)} redirects to no valid address: {error}.") from None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        origin, target = _shown_origin(req.full_url), _shown_origin(newurl)
        fp.close()
        raise EmbarkError(f"{origin} redirects to {target}, which is not asked. If the API is there, set its address.")


def _shown_origin(address: str) -> str:
    scheme, host, port = _origin(address)
    return f"{scheme}://{host}:{port}"


def receive(answer: Any, size: int) -> bytes:
    """The next `size` bytes of an answer, or fewer at its end; an answer that ends before its stated length is cut."""
    try:
        data = bytes(answer.read(size))
    except (OSError, http.client.HTTPException) as error:
        raise TemporaryFailure(str(error) or type(error).__name__) from None
    if len(data) < size and answer.length:
        raise TemporaryFailure(f"the connection was cut, {answer.length:,} bytes before the end of the answer")
    return data


def without_secret(secret: str, text: str) -> str:
    """A text without any part of the secret: servers repeat its beginning or its end."""
    out = []
    position = 0
    while position < len(text):
        end = position
        while end < len(text) and text[position : end + 1] in secret:
            end += 1
        shown = end - position < min(TELLING, len(secret) or 1)
        out.append(text[position] if shown else "…")
        position = position + 1 if shown else end
    return "".join(out)


def hub_message(text: str) -> str:
    """The first line of what a hub says, without any part of the user's token."""
    from huggingface_hub import get_token

    return without_secret((get_token() or "").removeprefix("hf_"), next(iter(text.strip().splitlines()), ""))


def retry_after(headers: Mapping[str, str] | Message) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date."""
    stated = headers.get("Retry-After", "")
    try:
        return max(0.0, float(stated) if stated.isdigit() else parsedate_to_datetime(stated).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


# ── huggingface_hub ──────────────────────────────────────────────────────────────────────────────────────────────────

HASH = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")  # a commit, or what a file's content hashes to
_ORIGINS: set[tuple[str, str | None, int | None]] = set()  # that may have a token


def guard_huggingface_hub(endpoint: str) -> None:
    """Give huggingface_hub a client that sends a token only to its own hubs and to `endpoint`, and nobody's odd names.

    It sends the token wherever a listing's next page is, and makes paths of the commits and ETags that it is told. A
    token that no header can hold is an error: the library's own message would show it.
    """
    from huggingface_hub import constants, get_token, set_client_factory
    from huggingface_hub.utils import _http

    token = get_token() or ""
    if not (token.isascii() and token.isprintable()):
        raise EmbarkError("HF_TOKEN (or what `hf auth login` stored) holds characters that no token has: set it again.")
    _ORIGINS.update(map(_origin, (endpoint, constants.ENDPOINT, "https://huggingface.co")))
    factory = _http._GLOBAL_CLIENT_FACTORY  # a user's own, it may be
    if getattr(factory, "guarded", False):
        return

    def client() -> Any:
        client = factory()
        hooks = client.event_hooks
        client.event_hooks = {
            "request": [*hooks.get("request", []), _check_request],
            "response": [*hooks.get("response", []), _check_response],
        }
        return client

    client.guarded = True  # type: ignore[attr-defined]
    set_client_factory(client)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _check_request(request: Any) -> None:
    if "authorization" in request.headers and _origin(str(request.url)) not in _ORIGINS:
        raise EmbarkError(f"The hub names a page at {request.url.host}: a token is not sent there. Check the endpoint.")


def _check_response(response: Any) -> None:
    """Refuse the name of a file or commit that is no hash; headers of other answers name neither."""
    commit = response.headers.get("X-Repo-Commit")
    if commit is None:
        return
    names = [commit]
    if response.request.method == "HEAD" and response.status_code < 400:
        tag = response.headers.get("X-Linked-Etag") or response.headers.get("ETag") or ""
        names.append(tag.removeprefix("W/").strip('"'))
    for name in names:
        if not HASH.fullmatch(name):
            raise EmbarkError(f"{response.url.host} calls a file or commit {name!r}, which is no hash: it is refused.")
