"""Where segments lie: a folder of this machine, or an overlay of this process where the folder cannot be written."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embark.atomic import PART, atomically

SUFFIX = ".vectors"  # of a segment
OVERLAYS: dict[Path, Path] = {}  # stores that cannot be written → folders of this process
Stamp = tuple[int, int, int]  # of a segment's file: its size, and two numbers that tell it apart


@dataclass(frozen=True)
class Disk:
    """Where segments lie: put, list, read and delete whole ones. This is a folder of this machine, and the default."""

    def shown(self, path: Path) -> str:
        """How messages name what lies at a path."""
        return str(path)

    def spaces(self, root: Path) -> list[str]:
        """The names of what may be spaces."""
        return [entry.name for entry in _entries(root) if entry.is_dir()]

    def segments(self, folder: Path) -> list[tuple[Path, Stamp | None]]:
        """The segments of a space, each with what changes when it is written; None of one that is gone by now."""
        entries = (entry for entry in _entries(folder) if entry.name.endswith(SUFFIX) and not entry.is_dir())
        return [(Path(entry.path), _stamp(entry.path)) for entry in entries]

    def ignored(self, folder: Path) -> list[Path]:
        """The folders in a space that are segments of format 1, which is not read."""
        return [Path(entry.path) for entry in _entries(folder) if Path(entry.path, "head.json").exists()]

    def fetch(self, segments: Sequence[tuple[Path, Stamp]], rows: bool = False, again: bool = False) -> None:
        """Have segments at hand that are opened next, or whose `rows` are read next; `again`, if they are copies."""

    def file(self, path: Path, stamp: Stamp, rows: bool = False) -> Path:
        """The file of this machine with the header, head and index of a segment, or with its `rows` as well.

        FileNotFoundError: the segment is gone.
        """
        return path

    def renew(self, path: Path, stamp: Stamp, start: float) -> bool:
        """Whether a segment that was damaged when read from `start` on may be sound if it is read again: a copy."""
        return False

    def put(self, path: Path, chunks: Sequence[Any]) -> None:
        """Write a segment that appears whole or not at all, and is durable on return."""
        with atomically(path) as file:
            for chunk in chunks:
                file.write(chunk)

    def delete(self, paths: Sequence[Path]) -> None:
        """Remove segments."""
        for path in paths:
            path.unlink(missing_ok=True)

    def clean(self, folder: Path, age: float) -> None:
        """Delete what killed writers left, if it is older than `age` seconds."""
        old = datetime.now(UTC).timestamp() - age
        for entry in _entries(folder):
            with suppress(FileNotFoundError):  # it has got its name since
                if entry.name.endswith(PART) and entry.stat().st_mtime < old:
                    self.delete([Path(entry.path)])

    def size(self, folder: Path) -> int:
        """The bytes of a space, leftovers included."""
        return sum(_size(Path(place, name)) for place, _, names in os.walk(folder) for name in names)


FOLDER = Disk()


def make_overlay(root: Path, error: OSError) -> Path:
    """A folder of this process, deleted when it ends, for the vectors of a store that cannot be written."""
    folder = Path(tempfile.mkdtemp(prefix="embark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings.warn(
        f"{root} cannot be written ({error.strerror}): new vectors are kept in {folder} until this process ends. "
        "Set EMBARK_HOME to a folder of your own to keep them.",
        stacklevel=2,
    )
    return folder


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing if there is none."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(path: Path) -> int:
    """Bytes of a file; none if it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _stamp(name: str) -> Stamp | None:
    """Size, time and inode of a segment's file, which change when it is written; None if it is gone."""
    try:
        state = os.stat(name)
    except FileNotFoundError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino
