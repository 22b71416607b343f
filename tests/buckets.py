"""An S3 server of this machine in a process of its own, and its objects as paths, by plain HTTP."""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from embark.store import Store
from embark.store.buckets import Bucket

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "hidden-in-messages", "AWS_REGION": "us-east-1"}


@lru_cache
def server() -> str:
    """The address of a running server, started once for all tests of a process; it holds objects in memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(running.wait, 30)
    atexit.register(running.kill)
    address = f"http://127.0.0.1:{port}"
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            request("GET", address)
            return address
        except OSError:
            assert running.poll() is None, "moto's server ended"
            time.sleep(0.05)
    raise TimeoutError("moto's server does not answer")


HEADERS = {  # nobody checks the signature
    "Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, Signature=",
    "Content-Type": "application/octet-stream",
}


def request(method: str, url: str, data: bytes | None = None) -> bytes:
    """What the server answers."""
    question = urllib.request.Request(url, data, HEADERS, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(question, timeout=60) as answer:
        return bytes(answer.read())


def use_server(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Have S3 at an address, with credentials; children have it, too."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


def new_store(folder: Path) -> Store:
    """An empty store in a new bucket, with its mirror in a folder."""
    name = f"bucket-{secrets.token_hex(4)}"
    request("PUT", f"{server()}/{name}")
    mirror = folder / name
    return Store(mirror, Bucket(f"s3://{name}/some/prefix", mirror))


@dataclass(frozen=True, order=True)
class ObjectPath:
    """An object, or what begins like one, with the methods of a path that tests use."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def address(self) -> str:
        return f"{server()}/{quote(self.url.removeprefix('s3://'))}"

    def iterdir(self) -> Iterator[ObjectPath]:
        bucket, _, prefix = self.url.removeprefix("s3://").partition("/")
        token = ""
        while True:
            page = request("GET", f"{server()}/{bucket}?list-type=2&prefix={quote(prefix)}/{token}")
            tree = ElementTree.fromstring(page)
            yield from (ObjectPath(f"s3://{bucket}/{key.text}") for key in tree.findall("{*}Contents/{*}Key"))
            next_page = tree.findtext("{*}NextContinuationToken")
            if not next_page:
                return
            token = f"&continuation-token={quote(next_page)}"

    def exists(self) -> bool:
        try:
            request("HEAD", self.address)
        except urllib.error.HTTPError:
            return False
        return True

    def read_bytes(self) -> bytes:
        return request("GET", self.address)

    def write_bytes(self, content: bytes) -> None:
        request("PUT", self.address, content)

    def touch(self) -> None:
        self.write_bytes(b"")

    def mkdir(self) -> None:
        """As the consoles of providers make a folder."""
        ObjectPath(f"{self.url}/").touch()

    def unlink(self) -> None:
        request("DELETE", self.address)

    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(st_size=len(self.read_bytes()))


class Proxy(socketserver.ThreadingTCPServer):
    """Stands before the server. Connections that come first are answered by `answers`; `cut` closes those over which a
    client has sent so many bytes, or got so many if `back`, at most `most_cuts` times; `silent` never answers.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Passage)
        self.answers: list[bytes] = []
        self.cut: int | None = None
        self.back = False
        self.cuts = 0  # that were made
        self.most_cuts = 1000
        self.silent = False
        self.connections = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Passage(socketserver.BaseRequestHandler):
    """One connection through a proxy."""

    server: Proxy

    def handle(self) -> None:
        proxy = self.server
        proxy.connections += 1
        self.request.settimeout(30)
        if proxy.silent:
            time.sleep(5)
        elif proxy.answers:
            answer = proxy.answers.pop(0)
            with suppress(OSError):
                self.request.recv(65536)
                self.request.sendall(answer)
        else:
            self.forward()

    def forward(self) -> None:
        port = int(server().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 30) as behind:
            back = threading.Thread(target=self.pump, args=(behind, self.request, True), daemon=True)
            back.start()
            self.pump(self.request, behind, False)
            back.join(30)

    def pump(self, source: socket.socket, target: socket.socket, back: bool) -> None:
        """Pass on bytes until an end closes, or it is cut; then close both."""
        proxy = self.server
        passed = 0
        with suppress(OSError):
            while data := source.recv(8192):
                target.sendall(data)
                passed += len(data)
                if proxy.back == back and passed >= (proxy.cut or inf) and proxy.cuts < proxy.most_cuts:
                    proxy.cuts += 1
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def answer(status: int, reason: str, code: str) -> bytes:
    """An error as S3 sends it, after which the connection is closed."""
    page = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{reason}</Message></Error>".encode()
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(page)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + page
