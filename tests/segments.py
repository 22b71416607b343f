"""Objects of a space whose vectors follow from their keys: what is read can be told from what was written."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from embark.data.items import as_keys
from embark.store import Space
from embark.types import Array

RECORD = 28
ENTRY = 36


def keys(numbers: Iterable[int]) -> Array:
    """Keys that look random, one for each number."""
    return as_keys([hashlib.sha256(b"%d" % n).digest() for n in numbers])


def vectors(numbers: Iterable[int], dim: int = 3, dtype: str = "float32") -> Array:
    """The vector that belongs to each number's key."""
    return np.array([[n % 240 + d for d in range(dim)] for n in numbers], dtype).reshape(-1, dim)


def write_segment(space: Space, *commits: Iterable[int], seal: bool = True) -> Path:
    """A segment of format 1 with several commits, byte by byte as embark 0.1 wrote it; its folder."""
    folder = space.path / f"20260101T000000-1-{len(list(space.path.iterdir())) if space.path.exists() else 0:08x}"
    folder.mkdir(parents=True)
    head = json.dumps({"space": space.path.name, "dim": 3, "dtype": "float32", "ragged": False, "format": 1}).encode()
    (folder / "head.json").write_bytes(head)
    chain = zlib.crc32(head)
    total = 0
    content = {"keys.bin": b"", "vectors.bin": b"", "commits.bin": b""}
    for numbers in [*map(list, commits), *([[]] if seal else [])]:
        total += len(numbers)
        entries = b"".join(key.tobytes() + struct.pack("<I", 1) for key in keys(numbers))
        rows = vectors(numbers).tobytes()
        body = struct.pack("<QQII", total, total, zlib.crc32(entries), zlib.crc32(rows))
        chain = zlib.crc32(body, chain)
        content["keys.bin"] += entries
        content["vectors.bin"] += rows
        content["commits.bin"] += body + chain.to_bytes(4, "little")
    for name, raw in content.items():
        (folder / name).write_bytes(raw)
    space.refresh()
    return folder


def write(space: Space, *commits: Iterable[int]) -> Path:
    """Objects, one a commit; the path of the last."""
    before = set(space.path.iterdir()) if space.path.exists() else set()
    with space.writer() as writer:
        for numbers in commits:
            writer.add(keys(numbers), vectors(numbers))
            writer.commit()
    space.refresh()
    return max(set(space.path.iterdir()) - before)


def alter(path: Path, content: bytes) -> None:
    """Write a file anew, with a time of its own even where the clock is coarse."""
    state = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(state.st_mtime_ns, state.st_mtime_ns + 1_000_000))


def flip(path: Path, position: int, bits: int = 64) -> None:
    """Flip bits of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= bits
    alter(path, bytes(content))


def holds(space: Space, numbers: Iterable[int]) -> bool:
    """Whether the space has exactly these numbers, each with its vector."""
    numbers = list(numbers)
    if len(space) != len(numbers):
        return False
    return not numbers or np.array_equal(np.asarray(space.read(keys(numbers))), vectors(numbers))
