"""Asking a hub over HTTP, careful with the token."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from embark.http import Again, Refused, send


def connect(endpoint: str, url: str, headers: Mapping[str, str] | None = None) -> closing[Any]:
    """An answer of the hub, to be closed. HF_TOKEN goes to the hub's own address and to nobody else."""
    full = url if "://" in url else endpoint + url
    request = urllib.request.Request(full, headers={"User-Agent": "embark", **(headers or {})})
    token = os.environ.get("HF_TOKEN", "").strip()
    if token and _origin(full) == _origin(endpoint):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        return send(request, _Redirect(endpoint))
    except Refused as refused:
        if _origin(refused.url) != _origin(endpoint):  # a link to storage may have run out
            raise Again(str(refused)) from None
        raise


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects; an unredirected header such as the token goes along only within the hub."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and req.has_header("Authorization") and _origin(newurl) == _origin(self.endpoint):
            new.add_unredirected_header("Authorization", req.get_header("Authorization"))
        return new


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
