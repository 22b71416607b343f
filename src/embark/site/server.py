"""Serves the page on this machine, and follows runs: a run's state is read from its file whenever the page asks."""

from __future__ import annotations

import hmac
import mimetypes
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from embark.paths import Outside, inside
from embark.results import Results
from embark.settings import Settings, load_settings
from embark.site.bundle import export_site
from embark.site.run_data import run_data
from embark.site.scripts import script
from embark.studies.reports import FOLDER
from embark.types import EmbarkError

PORT = 8017
COOKIE = "embark"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """A page that is served; `address` is where it opens. Results that come later are shown after a reload."""

    daemon_threads = True

    def __init__(
        self, host: str, port: int, token: str | None, settings: Settings, export: Callable[[Path], object]
    ) -> None:
        self.token = token
        self.settings = settings
        self.export = export
        self._folder = tempfile.TemporaryDirectory(prefix="embark-page-")
        self._lock = Lock()
        self._count = 0
        self._shown = _state(settings)
        self.page = self._written()
        super().__init__((host, port), _Handler)

    @property
    def address(self) -> str:
        """The address to open; it has the token, where there is one."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else host
        return f"http://{name!s}:{port}/{f'?token={self.token}' if self.token else ''}"

    def refresh(self) -> None:
        """Write the page anew in the background, if there are results that it does not show."""
        if (state := _state(self.settings)) != self._shown and self._lock.acquire(blocking=False):
            self._shown = state
            Thread(target=self._refresh, name="embark-page", daemon=True).start()

    def _refresh(self) -> None:
        try:
            with suppress(EmbarkError, OSError):  # the page that is there stays
                self.page = self._written()
        finally:
            self._lock.release()

    def _written(self) -> Path:
        self._count += 1
        pages = Path(self._folder.name)
        self.export(pages / str(self._count))
        shutil.rmtree(pages / str(self._count - 2), ignore_errors=True)  # the one before may still be read
        return pages / str(self._count)

    def server_close(self) -> None:
        """Stop, and delete the page that was served."""
        super().server_close()
        self._folder.cleanup()


def serve(
    benchmarks: str | list[str] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    with_media: bool = False,
    settings: Settings | None = None,
) -> PageServer:
    """A server of the page, on this machine alone; call its `serve_forever`. Port 0 is any that is free.

    At another address than the machine's own, everybody who knows the token may look; without one it is made up.
    """
    settings = settings or load_settings()
    if not _is_loopback(host):
        token = token or secrets.token_urlsafe(18)

    def export(folder: Path) -> object:
        return export_site(folder, benchmarks, with_media=with_media, live=True, settings=settings)

    try:
        return PageServer(host, port, token, settings, export)
    except OSError as error:
        raise EmbarkError(f"{host}:{port} cannot be served ({error.strerror}). Choose another port: --port.") from error


class _Handler(BaseHTTPRequestHandler):
    """Answers with files of the page, and with the states of runs."""

    server: PageServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        offered = parse_qs(url.query).get("token", [""])[0]
        if not self._is_own_name():
            self._answer(HTTPStatus.FORBIDDEN, b"This address is not served.")
        elif self.server.token and not self._is_known(offered):
            self._answer(HTTPStatus.FORBIDDEN, b"This page needs the token that embark serve has printed.")
        elif self.server.token and offered:
            cookie = f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            self._answer(HTTPStatus.SEE_OTHER, b"", more={"Location": "/", "Set-Cookie": cookie})
        elif url.path == "/data/runs.js":
            results = list(Results(self.server.settings.results).all())
            own = [result for result in results if result.made_by == "embark"]
            text = script("runs", run_data(own, self.server.settings))
            self._answer(HTTPStatus.OK, text.encode(), "text/javascript; charset=utf-8")
        else:
            self._file(unquote(url.path).lstrip("/") or "index.html")

    do_HEAD = do_GET

    def _file(self, path: str) -> None:
        if path == "index.html":
            self.server.refresh()
        try:
            data = inside(self.server.page, path).read_bytes()
        except (Outside, OSError):
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such file.")
            return
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        self._answer(HTTPStatus.OK, data, f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)

    def _is_own_name(self) -> bool:
        """Whether the browser asked for this machine: another site's name that leads here is not answered."""
        if self.server.token:
            return True
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        return name == "localhost" or _is_loopback(name)

    def _is_known(self, offered: str) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            cookies.load(self.headers.get("Cookie", ""))
        known = [offered, cookies[COOKIE].value if COOKIE in cookies else ""]
        return any(hmac.compare_digest(token.encode(), str(self.server.token).encode()) for token in known)

    def _answer(
        self, status: HTTPStatus, data: bytes, kind: str = "text/plain", more: dict[str, str] | None = None
    ) -> None:
        with suppress(OSError):  # nobody listens any more
            self.send_response(status)
            length = {"Content-Type": kind, "Content-Length": str(len(data))}
            for name, value in {**HEADERS, **length, **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: requests are no news."""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _state(settings: Settings) -> tuple[int, float]:
    """What changes when results or reports are added: how many there are, and when the last one was written."""
    times = []
    for path in chain(settings.results.glob("*/*/*.json"), settings.results.glob(f"{FOLDER}/*.json")):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return len(times), max(times, default=0.0)
