"""Files of hub datasets at a pinned revision: fetched once, verified, resumed after a break, and used offline.

Under `home/hub/<id>`: `<commit>/` holds files, `<commit>.json` the list of all, `ref-<branch>.json` a branch's commit.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from embark.data.atomic import atomically
from embark.data.web import connect
from embark.http import Again, Refused, patiently, receive
from embark.settings import Settings
from embark.types import EmbarkError

CONNECTIONS = 4  # files downloaded at once
BLOCK = 1 << 18
LARGE = 16 << 20  # bytes that are worth a progress line
ABANDONED = 3600.0  # seconds after which another machine's unfinished file may be taken over


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a dataset; `sha256` of its content, or where that is empty, `oid` as git has it."""

    path: str
    size: int
    sha256: str = ""
    oid: str = ""

    @property
    def checksum(self) -> str:
        """What its content must hash to."""
        return f"sha256 {self.sha256}" if self.sha256 else f"git object {self.oid}"


class Hub:
    """The datasets of one hub, kept under `home`."""

    def __init__(self, settings: Settings) -> None:
        self.endpoint, self.home, self.offline = settings.endpoint, settings.home, settings.offline
        self.opened: dict[tuple[str, str], dict[str, RemoteFile]] = {}  # by dataset and revision
        self._resolved: dict[tuple[str, str], str] = {}
        self._heard = False  # whether it ever answered: patience is for a network that was there
        self._absent: EmbarkError | None = None

    def resolve(self, id: str, revision: str) -> str:
        """The commit that a revision stands for; a branch is looked up once for each Hub."""
        if re.fullmatch("[0-9a-f]{40}", revision) or is_local(id):
            return revision
        if (id, revision) not in self._resolved:
            kept = self._folder(id) / f"ref-{quote(revision, safe='')}.json"
            if self.offline:
                known = _load(kept)
                if known is None:
                    raise _missing(f"revision {revision} of dataset {id}")
            else:
                known = self._json(f"/api/datasets/{id}/revision/{quote(revision, safe='')}", id, revision)[0]["sha"]
                _save(kept, known)
            self._resolved[id, revision] = known
        return self._resolved[id, revision]

    def commit(self, id: str, revision: str) -> str:
        """The commit that a revision was found to stand for, without asking; the revision if nothing was opened."""
        return self._resolved.get((id, revision), revision)

    def files(self, id: str, revision: str) -> list[RemoteFile]:
        """Every file of the dataset at that revision."""
        return list(self._tree(id, revision).values())

    def path(self, id: str, revision: str, path: str) -> Path:
        """Where a file is, or will be."""
        return Path(id, path) if is_local(id) else self._folder(id) / self.resolve(id, revision) / path

    def has(self, id: str, revision: str, file: RemoteFile) -> bool:
        """Whether a file is here already; it was verified when it came."""
        local = self.path(id, revision, file.path)
        return local.is_file() and local.stat().st_size == file.size

    def get(self, id: str, revision: str, path: str) -> Path:
        """The file on this machine; downloaded and verified if it is not here."""
        return self.get_all(id, revision, [path])[0]

    def get_all(self, id: str, revision: str, paths: Sequence[str]) -> list[Path]:
        """The files on this machine; those that are not here are downloaded, several at once."""
        tree, sha = self._tree(id, revision), self.resolve(id, revision)
        for path in paths:
            if path not in tree:
                same = [name for name in tree if PurePosixPath(name).name == PurePosixPath(path).name]
                advice = f" Did you mean {' or '.join(same[:3])}?" if same else ""
                raise EmbarkError(f"Dataset {id} has no file '{path}' at revision {revision}.{advice}")
        self.opened.setdefault((id, revision), {}).update((path, tree[path]) for path in paths)
        lacking = [tree[path] for path in dict.fromkeys(paths) if not self.has(id, sha, tree[path])]
        if lacking and self.offline:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise _missing(f"file '{lacking[0].path}'{more} of dataset {id} ({revision})")
        if lacking:
            self._download_all(id, sha, lacking)
        return [self.path(id, sha, path) for path in paths]

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tree(self, id: str, revision: str) -> dict[str, RemoteFile]:
        if is_local(id):
            return _in_folder(Path(id))
        sha = self.resolve(id, revision)
        kept = self._folder(id) / f"{sha}.json"
        if not kept.exists():
            if self.offline:
                raise _missing(f"the list of files of dataset {id} ({revision})")
            _save(kept, [asdict(file) for file in self._listing(id, sha)])
        return _listed(str(kept))

    def _listing(self, id: str, sha: str) -> Iterator[RemoteFile]:
        url: str | None = f"/api/datasets/{id}/tree/{sha}?recursive=true"
        while url:
            rows, link = self._json(url, id, sha)
            for row in rows:
                if row["type"] == "file":
                    lfs = row.get("lfs") or {}
                    yield RemoteFile(
                        safe_path(row["path"]), lfs.get("size", row["size"]), lfs.get("oid", ""), row["oid"]
                    )
            following = re.search(r'<([^>]+)>;\s*rel="next"', link)
            url = following[1] if following else None

    def _json(self, url: str, id: str, revision: str) -> tuple[Any, str]:
        """An answer of the hub's API, and its Link header."""

        def ask() -> tuple[Any, str]:
            try:
                with connect(self.endpoint, url) as answer:
                    self._heard = True
                    return json.loads(receive(answer)), answer.headers.get("Link", "")
            except ValueError as error:
                raise Again(f"the answer is not JSON: {error}") from None
            except Again as again:
                if again.absent and not self._heard:
                    advice = "Check the network, or name a mirror with EMBARK_ENDPOINT; --offline uses what is here."
                    self._absent = EmbarkError(f"{self.endpoint} cannot be reached: {again}. {advice}")
                    raise self._absent from None
                raise

        if self._absent:
            raise self._absent
        try:
            return patiently(f"Asking {self.endpoint} about dataset {id}", ask)
        except Refused as refused:
            raise self._explained(refused, id, revision) from None

    def _explained(self, refused: Refused, id: str, revision: str, path: str = "") -> EmbarkError:
        """What a user can do about a refusal."""
        page = f"{self.endpoint}/datasets/{id}"
        if refused.status in (401, 403):
            return EmbarkError(
                f"Dataset {id} is gated, private or not there (HTTP {refused.status}): "
                f"accept its terms at {page} and set HF_TOKEN to a token of yours."
            )
        if refused.status != 404:
            return EmbarkError(f"{page} answered {refused}.")
        try:
            with connect(self.endpoint, f"/api/datasets/{id}") as answer:
                there = str(json.loads(receive(answer)).get("sha"))
        except (Refused, Again, ValueError):
            return EmbarkError(f"There is no dataset {id} at {self.endpoint}.")
        if path and there == revision:
            return EmbarkError(f"File '{path}' of dataset {id} is gone from revision {revision}.")
        return EmbarkError(f"Revision {revision} of dataset {id} is gone (the hub has {there}).")

    # ── download ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _download_all(self, id: str, sha: str, files: Sequence[RemoteFile]) -> None:
        with _Meter(id, sum(file.size for file in files)) as meter, ThreadPoolExecutor(CONNECTIONS) as pool:
            try:
                for _ in pool.map(lambda file: self._download(id, sha, file, meter), files):
                    pass
            except BaseException:
                meter.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _download(self, id: str, sha: str, file: RemoteFile, meter: _Meter) -> None:
        """Fetch to an unfinished file of our own, verify, then put it in place: other processes never see a part."""
        target, found = self.path(id, sha, file.path), ""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part = _part(target)
            for _ in range(2):
                self._fill(part, id, sha, file, meter)
                found = _checksum(part, file)
                if found == file.checksum:
                    os.replace(part, target)
                    return
                part.unlink()
        except OSError as error:
            raise _on_disk(error, target, file.size) from error
        raise EmbarkError(
            f"File '{file.path}' of dataset {id} came wrong twice: expected {file.checksum}, found {found}."
        )

    def _fill(self, part: Path, id: str, sha: str, file: RemoteFile, meter: _Meter) -> None:
        url = f"/datasets/{id}/resolve/{sha}/{quote(file.path)}"
        part.touch()
        meter.add(part.stat().st_size)
        while part.stat().st_size < file.size:
            try:
                what = f"Downloading '{file.path}' of dataset {id}"
                patiently(what, lambda: self._append(url, part, file.size, meter), meter.stop.wait)
            except Refused as refused:
                raise self._explained(refused, id, sha, file.path) from None

    def _append(self, url: str, part: Path, size: int, meter: _Meter) -> None:
        """Add what one connection yields; a connection that yields nothing new counts as a failure."""
        have = part.stat().st_size
        meter.add(0)
        with connect(self.endpoint, url, {"Range": f"bytes={have}-"} if have else {}) as answer:
            if answer.status == 206 and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise Again(f"asked for the bytes from {have:,} on, got {answer.headers.get('Content-Range')}")
            with part.open("ab" if answer.status == 206 else "wb") as out:
                while out.tell() <= size:
                    try:
                        block = receive(answer, BLOCK)
                    except Again:
                        if out.tell() > have:
                            return
                        raise
                    if not block:
                        break
                    out.write(block)
                    meter.add(len(block))
                if out.tell() <= have:
                    raise Again("the connection closed without a new byte")

    def _folder(self, id: str) -> Path:
        return self.home / "hub" / safe_path(id).replace("/", "__")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Meter:
    """A line on the terminal that counts a large download, and the sign to stop it."""

    def __init__(self, id: str, total: int) -> None:
        self.id, self.total, self.done, self.stop, self._lock = id, total, 0, threading.Event(), threading.Lock()
        self.shown = total >= LARGE and sys.stderr.isatty()

    def add(self, count: int) -> None:
        if self.stop.is_set():
            raise EmbarkError("The download was stopped.")
        with self._lock:
            self.done += count
            if self.shown:
                print(f"\r{self.id}  {self.done >> 20:,} of {self.total >> 20:,} MB", end="", file=sys.stderr)

    def __enter__(self) -> _Meter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            print(file=sys.stderr)


def _part(target: Path) -> Path:
    """An unfinished file of this thread's own; it goes on from one that a dead process left."""
    host = re.sub(r"\W", "_", socket.gethostname())
    mine = target.with_name(f"{target.name}.{host}-{os.getpid()}-{threading.get_ident()}.part")
    for other in target.parent.glob(f"{glob.escape(target.name)}.*-*-*.part"):
        if mine.exists():
            break
        if _abandoned(other, host):
            try:
                os.rename(other, mine)
            except FileNotFoundError:  # somebody else took it
                continue
    return mine


def _abandoned(part: Path, host: str) -> bool:
    """Whether its process, or within our own process its thread, is gone."""
    _, _, owner = part.name.removesuffix(".part").rpartition(".")
    where, process, thread = (*owner.split("-"), "", "")[:3]
    try:
        if where != host or not process.isdigit():
            return time.time() - part.stat().st_mtime > ABANDONED
        if int(process) == os.getpid():
            return thread not in {str(one.ident) for one in threading.enumerate()}
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # alive and not ours, or just gone
        return False
    return False


def _checksum(path: Path, file: RemoteFile) -> str:
    size = path.stat().st_size
    if size != file.size:
        return f"{size:,} bytes instead of {file.size:,}"
    found = hashlib.sha256() if file.sha256 else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as data:
        while block := data.read(BLOCK):
            found.update(block)
    return f"{'sha256' if file.sha256 else 'git object'} {found.hexdigest()}"


def _on_disk(error: OSError, target: Path, size: int) -> EmbarkError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EmbarkError(
            f"The disk is full: {target} needs {size:,} bytes. Make room, or set --home (EMBARK_HOME) to a larger disk."
        )
    return EmbarkError(f"Cannot write {target}: {error.strerror or error}.")


def is_local(id: str) -> bool:
    """Whether a dataset is a folder of this machine and not one of the hub."""
    return Path(id).is_absolute()


def _in_folder(folder: Path) -> dict[str, RemoteFile]:
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    found = ((path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file())
    return {name: RemoteFile(name, path.stat().st_size) for name, path in found}


@lru_cache(maxsize=64)
def _listed(kept: str) -> dict[str, RemoteFile]:
    """A kept list of files, which never changes: it is a commit's."""
    return {row["path"]: RemoteFile(**row) for row in json.loads(Path(kept).read_bytes())}


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def _save(path: Path, value: Any) -> None:
    text = json.dumps(value).encode()
    try:
        with atomically(path) as out:
            out.write(text)
    except OSError as error:
        raise _on_disk(error, path, len(text)) from error


def safe_path(path: str) -> str:
    """A path that came from elsewhere, which must not lead out of its folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise EmbarkError(f"The hub names '{path}', which is not a path inside a dataset.")
    return path


def _missing(what: str) -> EmbarkError:
    return EmbarkError(f"Offline, and {what} is not on this machine: get it beforehand with `embark fetch`.")
