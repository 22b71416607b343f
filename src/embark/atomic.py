"""Atomic file writes: a file appears whole or not at all, whatever else writes, is killed or loses power."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a disk, a quota or a file that is full
NOT_FOR_FOLDERS = (errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ENOTSUP, errno.EPERM)
PART = ".part"  # ends the name of a file that is being written


@contextmanager
def atomically(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` if the block ends without an error.

    One that is not `durable` may be empty or torn after a loss of power: whoever reads it must be able to tell.
    """
    _make_folder(path.parent)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{PART}")  # machines that share a folder share no uuid
    try:
        with part.open("wb") as out:
            yield out
            if durable:
                out.flush()
                os.fsync(out.fileno())  # before the rename: a name must never come to stand for an empty file
        os.replace(part, path)
        if durable:
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def make_durable(folder: Path) -> None:
    """Make the files of a folder durable, before the folder gets the name that stands for them."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _sync(folder)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it that are not there, each durable in the one that holds it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable; a system that cannot do that for folders is left alone."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in NOT_FOR_FOLDERS:
            raise
