"""Lists of files: what a hub says that a commit has, checked and kept on disk; and the files of a folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from embark.file_hashes import SHA256
from embark.http import HASH
from embark.paths import relative_path
from embark.types import EmbarkError

LONGEST_PATH = 4096
LARGEST_FILE = 1 << 50


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a dataset; `sha256` of its content, or where that is empty, `oid` as git has it."""

    path: str
    size: int
    sha256: str = ""
    oid: str = ""

    @property
    def kind(self) -> str:
        """The kind of hash that the hub states of it."""
        return SHA256 if self.sha256 else "git object"

    @property
    def hash(self) -> str:
        """What its content must hash to."""
        return self.sha256 or self.oid

    @property
    def checksum(self) -> str:
        """Both in words."""
        return f"{self.kind} {self.hash}"


def is_local(id: str) -> bool:
    """Whether a dataset is a folder of this machine and not one of the hub."""
    return Path(id).is_absolute()


def safe_path(path: str) -> str:
    """A path that came from elsewhere, which must not lead out of its folder."""
    return relative_path(path, "The hub")


def is_hash(value: Any) -> bool:
    """Whether a value names a commit, or what a file's content hashes to."""
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def remote_file(row: Any) -> RemoteFile | None:
    """The file or folder of a listing's row; None where the row is not one."""
    if not isinstance(row, dict) or row.get("type") not in ("file", "directory"):
        return None
    path = row.get("path")
    lfs = row.get("lfs") or {}
    if not isinstance(path, str) or len(path) > LONGEST_PATH or "\0" in path or not isinstance(lfs, dict):
        return None
    size = lfs.get("size", row.get("size", 0))
    if type(size) is not int or not 0 <= size <= LARGEST_FILE:
        return None
    sha256 = lfs.get("oid", "")
    if not is_hash(row.get("oid")) or (lfs and not is_hash(sha256)):
        return None
    return RemoteFile(safe_path(path), size, sha256, row["oid"])


@lru_cache(maxsize=64)
def load_listing(path: str) -> dict[str, RemoteFile]:
    """A stored list of files; it never changes, because it is a commit's."""
    stored = json.loads(Path(path).read_bytes())
    if stored["checksum"] != listing_checksum(stored["files"]):
        raise ValueError("it is not what was written")  # a file that is not in the list would not be missed
    return {row["path"]: RemoteFile(**row) for row in stored["files"]}


def listing_checksum(rows: Any) -> str:
    """The hash of a stored list's rows."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def files_in(folder: Path) -> dict[str, RemoteFile]:
    """The files of a folder and below, by path; their hashes are not stated."""
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    return {name: RemoteFile(name, size) for name, size in files_below(folder)}


def files_below(folder: Path | str, prefix: str = "", linked: bool = False) -> Iterator[tuple[str, int]]:
    """The files of a folder and below, with their sizes, also those in folders that links lead to.

    Hidden links are left out, as they lead anywhere, and links in a linked folder, as they could lead in circles.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        return
    for entry in entries:
        name = prefix + entry.name
        link = entry.is_symlink()
        if link and any(part.startswith(".") for part in name.split("/")):
            continue
        if entry.is_dir():
            if not (link and linked):
                yield from files_below(entry.path, f"{name}/", linked or link)
        elif entry.is_file():
            yield name, entry.stat().st_size
