"""Objects of a space whose vectors follow from their keys: what is read can be told from what was written."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from buckets import ObjectPath
from embark.items import as_keys
from embark.store import DamagedVectors, Space, Store
from embark.store.buckets import Bucket
from embark.types import Array

on_every_store = pytest.mark.parametrize(  # for modules whose tests take `store` or `space`
    "store", ["folder", pytest.param("bucket", marks=pytest.mark.slow)], indirect=True
)


def place(space: Space) -> Path | ObjectPath:
    """Where the segments of a space are: a folder, or objects of a bucket."""
    if not isinstance(space.disk, Bucket):
        return space.path
    return ObjectPath(space.place) if space.place.startswith("s3://") else Path(space.place.removeprefix("file://"))


def files(space: Space) -> list[Path | ObjectPath]:
    """The segments of a space, and whatever lies beside them."""
    folder = place(space)
    return sorted(folder.iterdir()) if isinstance(folder, ObjectPath) or folder.exists() else []


def reopened(space: Space) -> Space:
    """The same space, as it is now."""
    return Space(space.path, space.disk)


def keys(numbers: Iterable[int]) -> Array:
    """Keys that look random, one for each number."""
    return as_keys([hashlib.sha256(b"%d" % n).digest() for n in numbers])


def vectors(numbers: Iterable[int], dim: int = 3, dtype: str = "float32") -> Array:
    """The vector that belongs to each number's key."""
    return np.array([[n % 240 + d for d in range(dim)] for n in numbers], dtype).reshape(-1, dim)


def write(space: Space, *commits: Iterable[int]) -> Path | ObjectPath:
    """Objects, one a commit; the path of the last."""
    before = set(files(space))
    with space.writer() as writer:
        for numbers in commits:
            writer.add(keys(numbers), vectors(numbers))
            writer.commit()
    space.refresh()
    return max(set(files(space)) - before)


def alter(path: Path | ObjectPath, content: bytes) -> None:
    """Write a file anew, with a time of its own even where the clock is coarse."""
    if isinstance(path, ObjectPath):
        return path.write_bytes(content)
    state = path.stat()
    path.write_bytes(content)
    return os.utime(path, ns=(state.st_mtime_ns, state.st_mtime_ns + 1_000_000))


def flip(path: Path | ObjectPath, position: int, bits: int = 64) -> None:
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


def sound_or_missing(space: Space, count: int) -> None:
    """Read all that is there, by ones and together; what is damaged must be gone after its error."""
    for number in range(count):
        try:
            if space.has(keys([number]))[0]:
                np.testing.assert_array_equal(space.read(keys([number]))[:], vectors([number]))
        except DamagedVectors as error:
            assert (error.keys == keys([number])).all()  # noqa: PT017
    there = np.flatnonzero(space.has(keys(range(count))))
    np.testing.assert_array_equal(np.asarray(space.read(keys(there))).reshape(-1, 3), vectors(there))


def damage_at_random(data: st.DataObject, store: Store) -> None:
    """Damage segments of a space; it gives sound vectors or none, before and after repair."""
    space = store.space(secrets.token_hex(8))
    write(space, range(4), range(4, 7))
    write(space, range(5, 12), range(10, 16))
    segments = files(space)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(segments))
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()) or not content:
            del content[data.draw(st.integers(0, len(content))) :]
        else:
            start = data.draw(st.integers(0, len(content) - 1))
            noise = data.draw(st.binary(min_size=1, max_size=40))
            content[start : start + len(noise)] = noise
        alter(path, bytes(content))
    sound_or_missing(reopened(space), 16)
    reopened(space).repair()
    assert reopened(space).verify() == []
    sound_or_missing(reopened(space), 16)
