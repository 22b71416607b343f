"""Atomic file writes: a file appears whole or not at all, even with several writers or a killed process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomically(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` if the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")  # machines that share a folder share no uuid
    try:
        with part.open("wb") as out:
            yield out
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
