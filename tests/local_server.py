"""A real HTTP server on this machine, in a thread; the tests' hubs and providers are made of it."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LocalServer:
    """Serves with a handler class, whose attributes are `given`, until it is closed."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], **given: Any) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), given))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """Says nothing, and minds nobody hanging up."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass
