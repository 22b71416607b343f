"""Vectors in a bucket: the store on S3, Google Cloud, or whatever else fsspec has an address for.

    URL/<space>/<segment>.vectors            the objects: one upload each, never changed
    MIRROR/<space>/<segment>.<tag>.vectors   a copy on this machine, which is memory-mapped
    MIRROR/<space>/<segment>.<tag>.top       header, head and index alone: enough to look up keys

A segment is fetched once: its top when a space is opened, its rows when one of them is read; one listing and a few
threads, however many segments there are. The tag is of the object's ETag, or of its time where it has none. A mirror
can be deleted at any time. A copy that is damaged is fetched again before its vectors count as lost.

What was committed is in the bucket: `put` returns when the object has all its bytes. An upload that is cut leaves no
object, or one whose end is missing, which checksums tell. Names are unique, so that writers need no lock; what a
writer has put must be seen by whoever reads or lists next, as on S3 and Google Cloud. Every request has a time-out,
and is repeated with growing pauses if its failure may pass. Credentials are the business of fsspec's libraries.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from xxhash import xxh3_64_intdigest

from embark.atomic import NO_ROOM, PART
from embark.http import TemporaryFailure, with_retries
from embark.paths import component
from embark.settings import Settings
from embark.store import Store
from embark.store.disk import SUFFIX, Disk, Stamp
from embark.store.segments import HEADER, described_size
from embark.types import EmbarkError

THREADS = 16  # requests at once
TIMEOUT = 60.0  # seconds for a request
SLOWEST = 100_000  # bytes in a second: a transfer may take that much longer
DEADLINE = 180.0  # seconds after which nothing is tried again
WHOLE = 256 << 10  # bytes up to which an object is fetched with its rows: one request, as for its top
TOP_BYTES = 64 << 10  # bytes that are asked for where only the top is needed: mostly all of it
IDENTITY = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")  # the first that is stated
SEGMENT = re.compile(rf"[\w.-]+{re.escape(SUFFIX)}", re.ASCII)  # whatever else somebody puts there is no file of ours
PERMANENT = (EmbarkError, PermissionError, ImportError, ValueError, TypeError, NotImplementedError)
CREDENTIALS = re.compile("Credential|Token|Profile|SSO|Refresh")  # in the name of an error about them
ADVICE = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE and ~/.aws",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
}

T = TypeVar("T")
_RENEWED: dict[tuple[Bucket, Path, Stamp], float] = {}  # when a copy was last deleted to have the object itself
_FETCHING: defaultdict[Path, Lock] = defaultdict(Lock)  # by copy


def open_store(settings: Settings) -> Store:
    """The store of these settings: a folder, or a bucket with a mirror under `home`."""
    if isinstance(settings.store, Path):
        return Store(settings.store)
    mirror = settings.home / "mirrors" / component(settings.store)
    return Store(mirror, Bucket(settings.store, mirror))


@dataclass(frozen=True)
class Bucket(Disk):
    """The segments below a URL (`s3://bucket/prefix`), with a folder for copies of them."""

    url: str
    mirror: Path

    def shown(self, path: Path) -> str:
        """The address of an object or a space."""
        return "/".join((self.url, *path.relative_to(self.mirror).parts))

    # ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def spaces(self, root: Path) -> list[str]:
        """The names of what may be spaces."""
        return [_name(entry) for entry in self._entries(root) if entry["type"] == "directory"]

    def segments(self, folder: Path) -> list[tuple[Path, Stamp | None]]:
        """The segments of a space, by one listing."""
        files = ((_name(entry), entry) for entry in self._entries(folder) if entry["type"] == "file")
        return [(folder / name, _stamp(entry)) for name, entry in files if SEGMENT.fullmatch(name)]

    def size(self, folder: Path) -> int:
        """The bytes of all objects of a space."""
        return sum(entry["size"] for entry in self._entries(folder) if entry["type"] == "file")

    def _entries(self, folder: Path) -> list[Mapping[str, Any]]:
        try:
            return list(self._retry("Listing", folder, lambda: self._call("ls", folder, detail=True)))
        except FileNotFoundError:
            return []

    # ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def fetch(self, segments: Sequence[tuple[Path, Stamp]], rows: bool = False, again: bool = False) -> None:
        """Copy segments that are not here yet, several at a time; one that is gone is left out."""
        if again:
            for path, stamp in segments:
                self._forget(path, stamp)
        missing = [entry for entry in segments if self._copy(*entry, rows) is None]

        def fetch(entry: tuple[Path, Stamp]) -> None:
            with suppress(FileNotFoundError):
                self._fetch(*entry, rows)

        if missing:
            with ThreadPoolExecutor(min(THREADS, len(missing))) as pool:
                list(pool.map(fetch, missing))

    def file(self, path: Path, stamp: Stamp, rows: bool = False) -> Path:
        """The copy of a segment, or of its top; fetched if it is not here."""
        return self._copy(path, stamp, rows) or self._fetch(path, stamp, rows)

    def renew(self, path: Path, stamp: Stamp, start: float) -> bool:
        """Forget the copy of a damaged segment; once, for the next time it is the object that is damaged."""
        if renewed := _RENEWED.get((self, path, stamp)):
            return renewed > start  # another thread has met the damage, too
        self._forget(path, stamp)
        return True

    def _forget(self, path: Path, stamp: Stamp) -> None:
        for copy in _copies(path, stamp):
            copy.unlink(missing_ok=True)
        _RENEWED[self, path, stamp] = time.monotonic()

    def _copy(self, path: Path, stamp: Stamp, rows: bool) -> Path | None:
        """The copy of a segment, or of its top, that is on this machine."""
        whole, top = _copies(path, stamp)
        with suppress(FileNotFoundError):
            if whole.stat().st_size == stamp[0]:
                return whole
        return top if not rows and top.exists() else None

    def _fetch(self, path: Path, stamp: Stamp, rows: bool) -> Path:
        whole, top = _copies(path, stamp)
        size = stamp[0]
        with _FETCHING[whole], self._part(whole) as part:
            if copy := self._copy(path, stamp, rows):  # another thread was faster
                return copy
            if rows or size <= WHOLE:
                self._retry("Reading", path, lambda: self._download(path, part, size))
                part.replace(whole)
                return whole
            content = self._range(path, 0, TOP_BYTES)
            end = HEADER + (described_size(content[:HEADER]) or 0)
            part.write_bytes(content[:end] + (self._range(path, TOP_BYTES, end) if end > TOP_BYTES else b""))
            part.replace(top)
            return top

    def _range(self, path: Path, start: int, end: int) -> bytes:
        call = lambda: self._call("cat_file", path, start=start, end=end, size=end - start)  # noqa: E731
        return bytes(self._retry("Reading", path, call))

    def _download(self, path: Path, part: Path, size: int) -> None:
        self._call("get_file", path, str(part), size=size)
        if (length := part.stat().st_size) != size:
            raise TemporaryFailure(f"{length:,} of {size:,} bytes arrived")

    # ── put and delete ───────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, path: Path, chunks: Sequence[Any]) -> None:
        """Upload a segment: it is in the bucket on return, and a copy of it in the mirror."""
        with self._part(path) as part:
            stamp = self._retry("Writing", path, lambda: self._upload(path, part, chunks))
            with suppress(FileNotFoundError):
                part.replace(_copies(path, stamp)[0])

    def _upload(self, path: Path, part: Path, chunks: Sequence[Any]) -> Stamp:
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
            size = part.stat().st_size
            self._call("put_file", path, part, size=size)
            stamp = _stamp(self._call("info", path))
        except FileNotFoundError as error:  # somebody has deleted the mirror
            raise TemporaryFailure(f"{error.filename or path.name} is gone") from error
        if stamp[0] != size:
            raise TemporaryFailure(f"{stamp[0]:,} of {size:,} bytes arrived")
        return stamp

    def delete(self, paths: Sequence[Path]) -> None:
        """Remove objects, then their copies."""

        def remove(path: Path) -> None:
            with suppress(FileNotFoundError):  # somebody else removes it, too
                self._retry("Deleting", path, lambda: self._call("rm_file", path))
            for copy in path.parent.glob(f"{path.name.removesuffix(SUFFIX)}.*"):
                copy.unlink(missing_ok=True)

        if paths:
            with ThreadPoolExecutor(min(THREADS, len(paths))) as pool:
                list(pool.map(remove, paths))

    def clean(self, folder: Path, age: float) -> None:
        """Delete copies of what is gone and leftovers of killed processes, if they are older than `age` seconds."""
        copies = {copy for path, stamp in self.segments(folder) if stamp for copy in _copies(path, stamp)}
        old = time.time() - age
        for file in folder.iterdir() if folder.exists() else ():
            with suppress(FileNotFoundError):
                if file not in copies and file.stat().st_mtime < old:
                    file.unlink()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _part(self, path: Path) -> Iterator[Path]:
        """A file beside a path of the mirror, which is gone afterwards unless it got a name."""
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{PART}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.touch()  # what is wrong here is no error of the bucket
            yield part
        except FileNotFoundError:
            raise
        except OSError as error:
            raise EmbarkError(
                f"Copies of {self.url} cannot be written to {self.mirror} ({error.strerror or error}). "
                "Make room there, or set EMBARK_HOME to another folder of your own."
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _retry(self, what: str, path: Path, attempt: Callable[[], T]) -> T:
        """What an attempt returns; tried again after failures that may pass."""
        return with_retries(f"{what} {self.shown(path)}", attempt, jitter=0.5, deadline=DEADLINE)

    def _call(self, method: str, path: Path, *others: Path | str, size: int = 0, **options: Any) -> Any:
        """One request about a path, with a time-out that allows for so many bytes."""
        filesystem, prefix = _filesystem(self.url, os.getpid())
        key = "/".join((prefix, *path.relative_to(self.mirror).parts))
        places = (str(others[0]), key) if method == "put_file" else (key, *map(str, others))
        try:
            if filesystem.async_impl:
                from fsspec.asyn import sync

                call = getattr(filesystem, f"_{method}")
                return sync(filesystem.loop, call, *places, timeout=TIMEOUT + size / SLOWEST, **options)
            if method == "put_file":  # of a disk, which has folders
                filesystem.makedirs(key.rpartition("/")[0], exist_ok=True)
            return getattr(filesystem, method)(*places, **options)
        except FileNotFoundError:
            if not _has_bucket(self.url, prefix.partition("/")[0]):
                text = f"There is no bucket for {self.url}, or you may not see it."
                raise EmbarkError(f"{text} Make it, or set EMBARK_STORE to another address.") from None
            raise
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Exception:
        """An error of a request as one that may pass or one that says what to do; that of a full disk as it is."""
        text = next(iter(str(error).strip().splitlines()), "")[:300].rstrip(".") or type(error).__name__
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return error
        advice = ADVICE.get(self.url.partition("://")[0], "see its library's documentation")
        if CREDENTIALS.search(type(error).__name__):
            return EmbarkError(f"There are no valid credentials for {self.url} ({text}). Set {advice}.")
        if isinstance(error, PermissionError):
            return EmbarkError(f"Access to {self.url} is denied ({text}). Check the credentials: {advice}.")
        if isinstance(error, PERMANENT):
            return EmbarkError(f"{self.url} cannot be used ({text}). Check the address: EMBARK_STORE.")
        return TemporaryFailure(text)


@lru_cache
def _filesystem(url: str, process: int) -> tuple[Any, str]:
    """What fsspec has for a URL, and the path that it calls it; one for each `process`, as it may have threads."""
    try:
        import fsspec
        from fsspec.core import url_to_fs

        scheme = url.partition("://")[0]
        options: dict[str, Any] = {}
        if scheme in ("s3", "s3a"):  # whose library would repeat what we repeat
            config = fsspec.config.conf.get("s3", {}).get("config_kwargs", {})
            retries = {"mode": "standard", "total_max_attempts": 1}
            options["config_kwargs"] = {"max_pool_connections": THREADS, "retries": retries, **config}
        filesystem, prefix = url_to_fs(url, skip_instance_cache=True, use_listings_cache=False, **options)
    except ImportError as error:
        raise EmbarkError(f"{url} needs more of fsspec ({error}): pip install 'embark-bench[object-store]'") from None
    except ValueError as error:
        raise EmbarkError(f"{url} is no address of a store ({error}). It is one such as s3://bucket/prefix.") from None
    if scheme in ("s3", "s3a"):
        filesystem.retries = 1
    return filesystem, prefix.rstrip("/")


_BUCKETS: set[str] = set()  # URLs whose bucket is known to be there


def _has_bucket(url: str, name: str) -> bool:
    """Whether a URL's bucket is there; a path that begins with / has none."""
    if name and url not in _BUCKETS and not _filesystem(url, os.getpid())[0].exists(name):
        return False
    _BUCKETS.add(url)
    return True


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def _stamp(entry: Mapping[str, Any]) -> Stamp:
    """The size of an object, and what changes with its content."""
    identity = next((str(entry[field]) for field in IDENTITY if entry.get(field) is not None), "")
    return int(entry["size"]), xxh3_64_intdigest(identity.encode()), 0


def _copies(path: Path, stamp: Stamp) -> tuple[Path, Path]:
    """Where the copy of a segment is in the mirror, and that of its top."""
    name = f"{path.name.removesuffix(SUFFIX)}.{stamp[1]:016x}"
    return path.with_name(f"{name}{SUFFIX}"), path.with_name(f"{name}.top")
