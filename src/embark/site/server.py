"""Serves the page on this machine, and follows runs: a run's state is read from its file whenever the page asks."""

from __future__ import annotations

import hashlib
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
from threading import BoundedSemaphore, Lock, Thread
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from embark.boards.comparable_results import Include
from embark.field_types import checked
from embark.paths import Outside, inside
from embark.redaction import this_machine
from embark.reports.kept import FOLDER
from embark.results import Results, TaskResult
from embark.settings import Settings, load_settings
from embark.site.bundle import export
from embark.site.run_data import run_data
from embark.site.scripts import script
from embark.tasks import Tasks, Wanted
from embark.types import EmbarkError

PORT = 8017
COOKIE = "embark"
REQUEST_SECONDS = 30.0  # that a viewer may take over a request
VIEWERS = 64  # connections at once
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",  # data are scripts, which other sites could run otherwise
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """A page that is served; `address` is where it opens. Results that come later are shown after a reload."""

    daemon_threads = True
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __init__(
        self, host: str, port: int, token: str | None, settings: Settings, export: Callable[[Path], object]
    ) -> None:
        super().__init__((host, port), _Handler)  # first: where the port is taken, no page is written
        self.token = token
        self.settings = settings
        self.export = export
        self._folder = tempfile.TemporaryDirectory(prefix="embark-page-")
        self._pages = Path(self._folder.name)
        self._lock = Lock()
        self._free = BoundedSemaphore(VIEWERS)
        self._count = 0
        self._shown = _state(settings)
        self._own: tuple[object, list[TaskResult]] = (None, [])  # results, as of a state of their folder
        try:
            self.page = self._written()
        except BaseException:
            self.server_close()
            raise

    @property
    def address(self) -> str:
        """The address to open; it has the token, where there is one."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else host
        token = f"?token={quote(self.token, safe='')}" if self.token else ""
        return f"http://{name!s}:{port}/{token}"

    @property
    def cookie(self) -> str:
        """What a browser keeps that knows the token, whatever characters that has."""
        return hashlib.sha256(str(self.token).encode("utf-8", "surrogatepass")).hexdigest()

    def own_results(self) -> list[TaskResult]:
        """The results of one's own, read again when there are others."""
        if (state := _state(self.settings)) != self._own[0]:
            results = Results(self.settings.results).all()
            self._own = (state, [result for result in results if result.made_by == "embark"])
        return self._own[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; with too many viewers at once, not at all."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a viewer who is gone is no news."""

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
        self.export(self._pages / str(self._count))
        shutil.rmtree(self._pages / str(self._count - 2), ignore_errors=True)  # the one before may still be read
        return self._pages / str(self._count)

    def server_close(self) -> None:
        """Stop, and delete the page that was served."""
        super().server_close()
        if self._folder is not None:
            self._folder.cleanup()


@checked
def serve(
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    include: Include = "all",
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

    def write(folder: Path) -> object:
        return export(
            folder, tasks, models=models, include=include, with_media=with_media, live=True, settings=settings
        )

    try:
        return PageServer(host, port, token, settings, write)
    except OSError as error:
        raise EmbarkError(f"{host}:{port} cannot be served ({error.strerror}). Choose another port: --port.") from error


class _Handler(BaseHTTPRequestHandler):
    """Answers with files of the page, and with the states of runs."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, b"This is no address.")
            return
        offered = parse_qs(url.query).get("token", [""])[0]
        if not self._is_own_name() or self._is_asked_by_another_site():
            self._answer(HTTPStatus.FORBIDDEN, b"This address is not served.")
        elif self.server.token and not self._is_known(offered):
            self._answer(HTTPStatus.FORBIDDEN, b"This page needs the token that embark serve has printed.")
        elif self.server.token and offered:
            cookie = f"{COOKIE}={self.server.cookie}; HttpOnly; SameSite=Strict; Path=/"
            self._answer(HTTPStatus.SEE_OTHER, b"", more={"Location": "/", "Set-Cookie": cookie})
        elif url.path == "/data/runs.js":
            settings = self.server.settings
            text = script("runs", run_data(self.server.own_results(), settings), this_machine(settings))
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
        try:
            name = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        except ValueError:
            return False
        return _is_loopback(name)

    def _is_asked_by_another_site(self) -> bool:
        """Whether a page of another site asks for a part of this one; following a link to it is allowed."""
        return (
            self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
            and self.headers.get("Sec-Fetch-Mode") != "navigate"
        )

    def _is_known(self, offered: str) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            cookies.load(self.headers.get("Cookie", ""))
        cookie = cookies[COOKIE].value if COOKIE in cookies else ""
        pairs = ((offered, str(self.server.token)), (cookie, self.server.cookie))
        return any(
            hmac.compare_digest(text.encode("utf-8", "surrogatepass"), secret.encode("utf-8", "surrogatepass"))
            for text, secret in pairs
        )

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
    for path in chain(Results(settings.results).files(), settings.results.glob(f"{FOLDER}/*.json")):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return len(times), max(times, default=0.0)
