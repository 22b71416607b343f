"""Segments of a space whose vectors follow from their keys: what is read can be told from what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from embark.data.items import as_keys
from embark.store import Space, Writer
from embark.types import Array

RECORD = 28
ENTRY = 36


def keys(numbers: Iterable[int]) -> Array:
    """Keys that look random, one for each number."""
    return as_keys([hashlib.sha256(b"%d" % n).digest() for n in numbers])


def vectors(numbers: Iterable[int], dim: int = 3, dtype: str = "float32") -> Array:
    """The vector that belongs to each number's key."""
    return np.array([[n % 240 + d for d in range(dim)] for n in numbers], dtype).reshape(-1, dim)


def write(space: Space, *commits: Iterable[int], seal: bool = True) -> Path:
    """A segment of several commits; its folder."""
    before = set(space.path.iterdir()) if space.path.exists() else set()
    writer = space.writer()
    for numbers in commits:
        writer.add(keys(numbers), vectors(numbers))
        writer.commit()
    if seal:
        writer.close()
    else:
        abandon(writer)
    space.refresh()
    (path,) = set(space.path.iterdir()) - before
    return path


def abandon(writer: Writer) -> None:
    """What a crash does: nothing more is written."""
    for file in writer._files:
        file.close()


def holds(space: Space, numbers: Iterable[int]) -> bool:
    """Whether the space has exactly these numbers, each with its vector."""
    numbers = list(numbers)
    if len(space) != len(numbers):
        return False
    return not numbers or np.array_equal(np.asarray(space.read(keys(numbers))), vectors(numbers))
