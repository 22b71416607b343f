"""Files that are there whole or not at all, whoever else writes them and whenever a process is killed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomically(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")  # machines that share a folder share no uuid
    try:
        with part.open("wb") as out:
            yield out
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
