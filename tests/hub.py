"""A hub of datasets and models on this machine: a real HTTP server with the real paths, and with faults on demand."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import time
import wave
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image

from embark.hub import Hub
from embark.readers.layout import card_head
from embark.settings import load_settings
from local_server import LocalServer, QuietHandler

PAGE = 5  # files a page of a listing, so that small ones have several
LFS = (".parquet", ".tar", ".zip", ".gz", ".npy", ".png", ".jpg", ".wav", ".mp4", ".bin")  # kept apart, as hubs do


class FakeHub(LocalServer):
    """Repositories by id and revision, each a dataset and a model. `requests` are the (path, headers) that came.

    Faults: `truncate` cuts the next download after that many bytes, `busy` answers the next requests with those
    statuses, `corrupt` spoils that many downloads, `gated` are ids that need the token, without `ranges` every
    download starts at the beginning.
    """

    def __init__(self) -> None:
        self.data: dict[tuple[str, str], dict[str, bytes]] = {}
        self.branches: dict[tuple[str, str], str] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.truncate: list[int] = []
        self.busy: list[int] = []
        self.corrupt = 0
        self.sent = 0  # bytes of files
        self.gated: set[str] = set()
        self.private: set[str] = set()
        self.silent: set[str] = set()  # of which the hub does not tell who may get them
        self.token = "secret"
        self.next_pages = ""  # another address that listings go on at; else our own
        self.retry_after = "0"
        self.ranges = True
        self.pace = 0.0  # seconds for each 8 kB of an answer
        self.page = PAGE
        super().__init__(Handler, hub=self)
        self.storage = self.endpoint.replace("127.0.0.1", "localhost")  # large files are at another address

    def add(
        self, id: str, files: Mapping[str, bytes | str], revision: str = "", card: str = "", branch: str = "main"
    ) -> str:
        """Publish a repository; its revision is the commit that the branch now has."""
        held = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        if card:
            held["README.md"] = card.encode()
        text = repr(sorted((path, hashlib.sha1(data).hexdigest()) for path, data in held.items()))
        sha = revision or hashlib.sha1(text.encode()).hexdigest()
        self.data[id, sha] = held
        self.branches[id, branch] = sha
        return sha

    def asked(self, part: str) -> list[str]:
        """The paths with that part that were asked for; huggingface_hub looks at a file's headers, then gets it."""
        return [path for path, _ in self.requests if part in path]


def client(**options: Any) -> Hub:
    """The hub as embark sees it; the fixture `hub` makes the settings point to a FakeHub."""
    return Hub(load_settings(**options))


class Handler(QuietHandler):
    """Answers as the hub does: listing, revision, a file's headers, a redirect for large files, ranges."""

    hub: FakeHub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.hub.requests.append((self.path, {name.title(): value for name, value in self.headers.items()}))
        if self.hub.busy:
            self._answer(self.hub.busy.pop(0), b"busy", {"Retry-After": self.hub.retry_after})
            return
        address = urlsplit(self.path)
        path, query = unquote(address.path), parse_qs(address.query)
        if found := re.fullmatch(r"/api/(?:datasets|models)/([^/]+/[^/]+|[^/]+)/(tree|revision)/([^/]+)", path):
            self._about(found[1], found[2], found[3], int(query.get("cursor", ["0"])[0]))
        elif found := re.fullmatch(r"/api/(?:datasets|models)/(.+)", path):
            sha = self.hub.branches.get((found[1], "main"))
            self._json({"id": found[1], "sha": sha}) if sha else self._answer(404, b"no dataset")
        elif found := re.fullmatch(r"/(?:datasets/)?([^/]+/[^/]+|[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(found[1], found[2], found[3])
        elif found := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):
            files = (data for held in self.hub.data.values() for data in held.values())
            self._send(next(data for data in files if _sha256(data) == found[1]))
        else:
            self._answer(404, b"no such page")

    def _about(self, id: str, what: str, revision: str, cursor: int) -> None:
        sha = self.hub.branches.get((id, revision), revision)
        held = self.hub.data.get((id, sha))
        if held is None:
            self._answer(404, b"revision not found", {"X-Error-Code": "RevisionNotFound"})
        elif what == "revision":
            self._json({"id": id, "sha": sha} | self._terms(id, held))
        else:
            folders = sorted({path.rpartition("/")[0] for path in held} - {""})
            rows = [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in folders]
            rows += [_entry(path, data) for path, data in held.items()]
            end = cursor + self.hub.page
            more = end < len(rows)
            page = f"{urlsplit(self.path).path}?recursive=true&cursor={end}"
            link = f'<{self.hub.next_pages or self.hub.endpoint}{page}>; rel="next"'
            self._json(rows[cursor:end], {"Link": link} if more else {})

    def _terms(self, id: str, held: Mapping[str, bytes]) -> dict[str, Any]:
        """What a hub says of access and of the card."""
        if id in self.hub.silent:
            return {}
        head = yaml.safe_load(card_head(held.get("README.md", b"").decode())) or {}
        return {"gated": "auto" if id in self.hub.gated else False, "private": id in self.hub.private, "cardData": head}

    def _resolve(self, id: str, revision: str, path: str) -> None:
        revision = self.hub.branches.get((id, revision), revision)
        held = self.hub.data.get((id, revision), {})
        if id in self.hub.gated and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._answer(401, b"gated", {"X-Error-Code": "GatedRepo"})
        elif path not in held:
            self._answer(404, b"entry not found", {"X-Error-Code": "EntryNotFound"})
        elif path.endswith(LFS):
            sha = _sha256(held[path])
            linked = {"X-Linked-Etag": f'"{sha}"', "X-Linked-Size": str(len(held[path]))}
            self._answer(302, b"", {"Location": f"{self.hub.storage}/lfs/{sha}", "X-Repo-Commit": revision, **linked})
        else:
            etag = f'"{_entry(path, held[path])["oid"]}"'
            self._send(held[path], {"X-Repo-Commit": revision, "ETag": etag})

    def _send(self, data: bytes, more: Mapping[str, str] | None = None) -> None:
        if self.command == "HEAD":
            self._answer(200, data, more)
            return
        if self.hub.corrupt:
            self.hub.corrupt -= 1
            data = bytes([data[0] ^ 1]) + data[1:]
        headers, status, size = {"Accept-Ranges": "bytes", **(more or {})}, 200, len(data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and self.hub.ranges:
            start, stop = int(wanted[1]), min(int(wanted[2] or size), size - 1)
            headers["Content-Range"] = f"bytes {start}-{stop}/{size}"
            data, status = data[start : stop + 1], 206
        self.hub.sent += len(data)
        cut = self.hub.truncate.pop(0) if self.hub.truncate else None
        self._answer(status, data, headers, cut)

    def _json(self, value: Any, headers: Mapping[str, str] | None = None) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body[:cut]
        while body and self.hub.pace:
            self.wfile.write(body[:8192])
            body = body[8192:]
            time.sleep(self.hub.pace)
        self.wfile.write(body)
        if cut is not None:
            self.close_connection = True


@lru_cache(1 << 14)
def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(1 << 14)
def _entry(path: str, data: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": blob}
    if path.endswith(LFS):
        entry |= {"oid": "1" * 40, "lfs": {"oid": _sha256(data), "size": len(data)}}
    return entry


# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def parquet(
    columns: Mapping[str, Sequence[Any]],
    *,
    classes: Mapping[str, Sequence[str]] | None = None,
    rows: int = 100,
    types: Mapping[str, pa.DataType] | None = None,
) -> bytes:
    """A parquet file as hubs have it: bytes become {"bytes", "path"} structs, `classes` the names of class columns.

    `rows` are those of a row group.
    """
    arrays = {name: pa.array(_cells(cells), (types or {}).get(name)) for name, cells in columns.items()}
    features: dict[str, Any] = {name: {"_type": "Value", "dtype": str(array.type)} for name, array in arrays.items()}
    features |= {name: {"names": list(names), "_type": "ClassLabel"} for name, names in (classes or {}).items()}
    stored = {"huggingface": json.dumps({"info": {"features": features}})}
    out = io.BytesIO()
    pq.write_table(pa.table(arrays).replace_schema_metadata(stored), out, row_group_size=rows)
    return out.getvalue()


def _cells(cells: Iterable[Any]) -> list[Any]:
    def cell(value: Any) -> Any:
        if isinstance(value, bytes):
            return {"bytes": value, "path": "file"}
        return [cell(one) for one in value] if isinstance(value, (list, tuple)) else value

    return [cell(value) for value in cells]


def png(colour: tuple[int, int, int] | str = "red", size: tuple[int, int] = (8, 8)) -> bytes:
    """A plain picture."""
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def wav(pitch: float = 440.0, seconds: float = 0.1, rate: int = 16_000) -> bytes:
    """A tone."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        time = np.arange(int(seconds * rate)) / rate
        file.writeframes((np.sin(2 * np.pi * pitch * time) * 20_000).astype("<i2").tobytes())
    return out.getvalue()


def tar(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    """A tar; mode "w:gz" packs it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zipped(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()
