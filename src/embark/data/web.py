"""Asking a hub over HTTP: patient with what passes, plain about what does not, and careful with the token."""

from __future__ import annotations

import http.client
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from embark.types import EmbarkError

TRIES = 6  # without a byte gained
PAUSE = 1.0  # seconds before the second try; doubled each time
PATIENCE = 300.0  # the longest pause, also when the hub asks for a longer one
TIMEOUT = 60.0  # seconds without a byte
BUSY = (408, 429, 500, 502, 503, 504)

T = TypeVar("T")


class Again(Exception):
    """A failure that may pass, and how long the hub asks to wait; `absent` when nobody is at its address."""

    def __init__(self, why: str, wait: float | None = None, absent: bool = False) -> None:
        super().__init__(why)
        self.wait, self.absent = wait, absent


class Refused(Exception):
    """An answer that another try will not change."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status} {reason}")
        self.status = status


def patiently(what: str, attempt: Callable[[], T], pause: Callable[[float], object] = time.sleep) -> T:
    """The result of the first attempt that works, with longer and longer pauses between them."""
    for tried in range(TRIES):
        try:
            return attempt()
        except Again as again:
            why = again
            if tried + 1 < TRIES:
                pause(min(PAUSE * 2**tried if again.wait is None else again.wait, PATIENCE))
    raise EmbarkError(f"{what} failed {TRIES} times: {why}. Run the same command to go on where it stopped.")


def connect(endpoint: str, url: str, headers: Mapping[str, str] | None = None) -> closing[Any]:
    """An answer of the hub, to be closed. HF_TOKEN goes to the hub's own address and to nobody else."""
    full = url if "://" in url else endpoint + url
    request = urllib.request.Request(full, headers={"User-Agent": "embark", **(headers or {})})
    token = os.environ.get("HF_TOKEN", "").strip()
    if token and _origin(full) == _origin(endpoint):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        return closing(urllib.request.build_opener(_Redirect(endpoint)).open(request, timeout=TIMEOUT))
    except urllib.error.HTTPError as error:
        with closing(error):
            why = f"HTTP {error.code} {error.reason}"
            elsewhere = _origin(error.url or full) != _origin(endpoint)  # a link to storage may have run out
            if error.code in BUSY or elsewhere:
                raise Again(why, _wait(error.headers)) from None
            raise Refused(error.code, str(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        cause: object = getattr(error, "reason", None) or error
        absent = isinstance(cause, (socket.gaierror, ConnectionRefusedError))
        raise Again(str(cause) or type(cause).__name__, absent=absent) from None


def receive(answer: Any, size: int | None = None) -> bytes:
    """Some bytes of an answer, or all of it."""
    try:
        return bytes(answer.read(size) if size else answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise Again(str(error) or type(error).__name__) from None


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects; an unredirected header such as the token goes along only within the hub."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and req.has_header("Authorization") and _origin(newurl) == _origin(self.endpoint):
            new.add_unredirected_header("Authorization", req.get_header("Authorization"))
        return new


def _wait(headers: Message) -> float | None:
    """Retry-After, in seconds or as a date."""
    stated = headers.get("Retry-After", "")
    try:
        return max(0.0, float(stated) if stated.isdigit() else parsedate_to_datetime(stated).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
