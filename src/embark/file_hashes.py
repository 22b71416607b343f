"""Hashes of files' contents, kept in the home with the state of each file: a file in the same state is not read again.

    digests/files/00 … ff        lines: a key, a hash, and a check of both

A key is the hash of a file's path and state (inode, size, the times of its content and of its inode), so that a file
that was written, moved or replaced has another key. Devices are no part of it: they have other numbers when a disk is
mounted again, and on each machine that shares a home. Lines are appended without waiting for the disk: one that is torn
or damaged does not have its own check, and counts as absent. Files of one folder are in one file of lines.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock

SETTLED = 2_000_000_000  # nanoseconds after which a file that is written again has another time
SHA256 = "sha256"
KEY = 32  # characters of a key
CHECK = 8  # … of a check


def state_key(path: str | Path, kind: str, state: os.stat_result) -> str:
    """The key of what is known of a file in a state: `kind` names a kind of hash, or a column."""
    facts = f"\0{kind}\0{state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"
    return hashlib.sha256(os.fsencode(os.path.abspath(path)) + facts.encode()).hexdigest()[:KEY]


def is_settled(state: os.stat_result) -> bool:
    """Whether a file was written so long ago that its times will show the next write."""
    return time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED


@lru_cache(maxsize=8)
def file_hashes(home: Path) -> FileHashes:
    """The hashes that a home has; read once for each process."""
    return FileHashes(home)


class FileHashes:
    """The hashes that a home has of files."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "digests" / "files"
        self._lines: dict[str, dict[bytes, bytes]] = {}  # by file of lines, and key
        self._lock = Lock()

    def sha256(self, path: Path) -> str:
        """The SHA-256 of a file's content; it is kept unless the file was just written."""
        state = path.stat()
        if known := self.known(path, SHA256, state):
            return known
        with path.open("rb") as data:
            digest = hashlib.file_digest(data, SHA256).hexdigest()
        if is_settled(state):
            self.keep(path, SHA256, state, digest)
        return digest

    def known(self, path: Path, kind: str, state: os.stat_result) -> str | None:
        """The hash that a file in this state has; None where it is not known."""
        key = state_key(path, kind, state)
        digest, _, check = self._of_folder(path).get(key.encode(), b"").decode("ascii", "replace").partition(" ")
        return digest if check and check == _check(key, digest) else None

    def keep(self, path: Path, kind: str, state: os.stat_result, digest: str) -> None:
        """Keep the hash of a file, whose state was looked at before its content was read."""
        key = state_key(path, kind, state)
        rest = f"{digest} {_check(key, digest)}"
        self._of_folder(path)[key.encode()] = rest.encode()
        with suppress(OSError):  # it only saves time
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / _name(path)).open("ab", buffering=0) as out:
                out.write(f"\n{key} {rest}".encode())  # behind what may be half a line

    def _of_folder(self, path: Path) -> dict[bytes, bytes]:
        """The recorded lines about the files in the folder of a file, by key."""
        name = _name(path)
        with self._lock:
            if name not in self._lines:
                content = b""
                with suppress(OSError):
                    content = (self.folder / name).read_bytes()
                lines = (line.partition(b" ") for line in content.split(b"\n"))
                self._lines[name] = {key: rest for key, _, rest in lines}
            return self._lines[name]


def _name(path: Path) -> str:
    """The file of lines for the folder of a file."""
    return hashlib.sha256(os.fsencode(os.path.dirname(os.path.abspath(path)))).hexdigest()[:2]


def _check(key: str, digest: str) -> str:
    return hashlib.sha256(f"{key} {digest}".encode()).hexdigest()[:CHECK]
