"""Segments: what one commit added, as one file that appears whole and never changes.

    header   48 bytes: magic, format, bytes of the head, entries, rows, checksum of head and index, checksum of these
    head     JSON: space, dim, dtype, ragged
    index    for each entry its 32-byte key, its number of rows (uint32; 1 unless ragged) and the checksum of its bytes
    rows     from the next multiple of 4096 on: `dim` little-endian numbers each

A checksum is an xxh3_64; that of an entry is seeded by its key, so that bytes of another entry never pass for it. An
entry is checked when it is first read in a process; one that is damaged counts as absent from then on.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from xxhash import xxh3_64, xxh3_64_intdigest

from embark.atomic import NO_ROOM
from embark.items import KEY
from embark.store.disk import OVERLAYS, SUFFIX, Disk, Stamp, make_overlay
from embark.store.errors import Gone
from embark.types import Array, EmbarkError

FORMAT = 2
MAGIC = b"EMBARKV\n"
DTYPES = {"float16": "<f2", "float32": "<f4", "uint8": "|u1"}  # name → on disk
ALIGNMENT = 4096
BLOCK_ENTRIES = 512  # entries that are copied and checked together: they fit the processor's cache
LARGE_BYTES = 64 << 20  # bytes that several threads gather
HEADER_FIELDS = struct.Struct("<8sIIQQQ")  # all of the header but its own checksum
HEADER = HEADER_FIELDS.size + 8  # bytes
ENTRY = np.dtype([("key", KEY), ("rows", "<u4"), ("sum", "<u8")])


@dataclass(frozen=True)
class Head:
    """What kind of vectors a segment holds; it is the same for all segments of a space."""

    space: str
    dim: int
    dtype: str
    ragged: bool

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.dim * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{'ragged ' * self.ragged}{self.dtype} vectors of {self.dim} dimensions"


NO_HEAD = Head("", 0, "float32", ragged=False)


class Segment:
    """The entries of one segment, and what is known about them in this process."""

    def __init__(
        self, disk: Disk, path: Path, stamp: Stamp, head: Head, entries: Array, rows: int, offset: int, damage: str = ""
    ) -> None:
        self.disk = disk
        self.path = path
        self.stamp = stamp
        self.head = head
        self.entries = entries
        self.rows = rows  # that lie in the file
        self.offset = offset  # of the first row
        self.damage = damage  # of what describes the entries; without a head there are none
        if head.ragged:
            self._ends = np.cumsum(entries["rows"], dtype=np.int64)
        local = np.arange(len(entries))
        self.lost = self.first(local) + self.count(local) > rows  # damaged: counts as absent
        self.checked = np.zeros(len(entries), bool)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def place(self) -> str:
        return self.disk.shown(self.path)

    @property
    def keys(self) -> Array:
        return self.entries["key"]

    def count(self, local: Array) -> Array:
        """The number of rows of entries."""
        return self.entries["rows"][local].astype(np.int64) if self.head.ragged else np.ones(len(local), np.int64)

    def first(self, local: Array) -> Array:
        """The first row of entries."""
        return self._ends[local] - self.count(local) if self.head.ragged else local

    @property
    def matrix(self) -> Array:
        try:
            path = self.disk.file(self.path, self.stamp, rows=True)
            return _map(path, self.stamp, DTYPES[self.head.dtype], self.rows, self.head.dim, self.offset)
        except (FileNotFoundError, ValueError) as error:
            raise Gone(f"{self.place} was deleted or cut while it was read; run again.") from error

    def copy(self, local: Array, out: Array, places: Array) -> None:
        """Copy entries to rows of `out` that begin at `places`, and check those that were not checked before."""
        rows: Any
        start = time.monotonic()
        if self.head.ragged:
            matrix = self.matrix
            firsts, counts = self.first(local).tolist(), self.count(local).tolist()
            rows = [out[place : place + count] for place, count in zip(places.tolist(), counts, strict=True)]
            for target, first, count in zip(rows, firsts, counts, strict=True):
                target[:] = matrix[first : first + count]
        else:
            rows = self.matrix[local]
            out[places] = rows
        fresh = np.flatnonzero(~self.checked[local])
        if not len(fresh):
            return
        if len(fresh) < len(local):
            rows = [rows[row] for row in fresh] if self.head.ragged else rows[fresh]
        damaged = local[fresh][checksums(key_words(self.keys[local[fresh]]), rows) != self.entries["sum"][local[fresh]]]
        if len(damaged) and self.disk.renew(self.path, self.stamp, start):
            unmap()
            self.copy(local, out, places)
        else:
            self.lost[damaged] = True
            self.checked[local] = True

    def check(self, local: Array) -> int:
        """Check entries that were not checked before; how many of all these are damaged."""
        fresh = local[~(self.checked[local] | self.lost[local])]
        block = max(1, min(BLOCK_ENTRIES, int(LARGE_BYTES // (1 + self.head.width * self.count(fresh).max(initial=1)))))
        for start in range(0, len(fresh), block):
            part = fresh[start : start + block]
            count = self.count(part)
            self.copy(part, np.empty((count.sum(), self.head.dim), DTYPES[self.head.dtype]), np.cumsum(count) - count)
        return int(self.lost[local].sum())

    def sound(self) -> tuple[Array, Array]:
        """The entries that are not damaged, of those that were checked, and their rows."""
        local = np.flatnonzero(~self.lost)
        if len(local) == len(self):
            return self.entries, self.matrix  # mapped: however many vectors there are, none is copied
        count = self.count(local)
        rows = np.empty((count.sum(), self.head.dim), DTYPES[self.head.dtype])
        self.copy(local, rows, np.cumsum(count) - count)
        return self.entries[local], rows

    def problems(self) -> list[str]:
        """What is wrong with it; reads every byte."""
        lost = self.check(np.arange(len(self)))
        return [self.damage] * bool(self.damage) + [f"{lost:,} of {len(self):,} vectors are damaged"] * bool(lost)


def described_size(header: bytes) -> int | None:
    """The bytes of the head and the index that follow a header; None if it is damaged, or that of no segment."""
    if len(header) < HEADER or xxh3_64_intdigest(header[: HEADER - 8]).to_bytes(8, "little") != header[-8:]:
        return None
    magic, _, head_size, count, *_ = HEADER_FIELDS.unpack_from(header)
    return head_size + count * ENTRY.itemsize if magic == MAGIC else None


def read_segment(disk: Disk, path: Path, stamp: Stamp) -> Segment:
    """A segment with its head and index verified; without entries if they are damaged."""
    nothing = np.empty(0, ENTRY)
    damaged = Segment(disk, path, stamp, NO_HEAD, nothing, 0, 0, "its index is damaged: its vectors are lost")
    with disk.file(path, stamp).open("rb") as file:
        header = file.read(HEADER)
        if (size := described_size(header)) is None:
            return damaged
        _, version, head_size, count, rows, checksum = HEADER_FIELDS.unpack_from(header)
        if version > FORMAT:
            raise EmbarkError(
                f"{disk.shown(path)} was written by a newer embark (format {version}); "
                "upgrade, or set EMBARK_HOME to another folder."
            )
        described = file.read(size)
    if xxh3_64_intdigest(described) != checksum:
        return damaged
    head = read_head(json.loads(described[:head_size]))
    entries = np.frombuffer(described, ENTRY, count, head_size)
    offset = _aligned(len(header) + len(described))
    rows_there = max(0, stamp[0] - offset) // head.width if head.width else rows
    damage = "its end is cut off" if rows_there < rows else ""
    return Segment(disk, path, stamp, head, entries, min(rows, rows_there), offset, damage)


def read_head(fields: dict[str, Any]) -> Head:
    """A head as it was stored; a ValueError or TypeError if it describes no vectors."""
    head = Head(**fields)
    if head.dtype not in DTYPES or type(head.dim) is not int or head.dim < 0 or type(head.ragged) is not bool:
        raise ValueError(f"{head} cannot be stored.")
    return head


def write_segment(disk: Disk, folder: Path, head: Head, parts: Sequence[tuple[Array, Array]]) -> tuple[Path, int]:
    """Put entries and their rows as one segment, into the overlay where the store cannot be written; path and bytes."""
    count = sum(len(entries) for entries, _ in parts)
    rows = sum(len(flat) for _, flat in parts)
    raw = json.dumps(asdict(head)).encode()
    described: list[Any] = [raw, *(entries.view(np.uint8) for entries, _ in parts)]  # in pieces: there may be many
    checksum = xxh3_64()
    for piece in described:
        checksum.update(piece)
    header = HEADER_FIELDS.pack(MAGIC, FORMAT, len(raw), count, rows, checksum.intdigest())
    top = [header, xxh3_64_intdigest(header).to_bytes(8, "little"), *described]
    length = sum(map(len, top))
    chunks: list[Any] = [*top, bytes(_aligned(length) - length), *(flat.data for _, flat in parts if flat.size)]
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
    size = _aligned(length) + rows * head.width
    root = folder.parent
    try:
        if root not in OVERLAYS:
            try:
                disk.put(folder / name, chunks)
                return folder / name, size
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                OVERLAYS[root] = make_overlay(root, error)
        disk.put(OVERLAYS[root] / folder.name / name, chunks)
        return OVERLAYS[root] / folder.name / name, size
    except OSError as error:
        if error.errno in NO_ROOM:
            raise EmbarkError(
                f"There is no room in {root} for another {size:,} bytes ({error.strerror}). "
                "Everything committed is safe: make room and run again, and it goes on from there."
            ) from error
        text = f"The store at {root} could not be written ({error}); what was committed is safe."
        raise EmbarkError(f"{text} Solve that and run again.") from error


@lru_cache(maxsize=128)  # a mapping holds a file descriptor, and a space may have thousands of segments
def _map(path: Path, stamp: Stamp, dtype: str, rows: int, dim: int, offset: int) -> Array:
    if not rows * dim:
        return np.empty((rows, dim), dtype)
    return np.asarray(np.memmap(path, dtype, "r", offset, (rows, dim)))


def unmap() -> None:
    """Let go of all mapped files."""
    _map.cache_clear()


def checksums(words: Array, rows: Iterable[Any]) -> Array:
    """The checksum of each entry's rows."""
    return np.fromiter(map(xxh3_64_intdigest, rows, words[:, 0].tolist()), np.uint64, len(words))


def split_rows(flat: Array, count: Array) -> Iterator[Array]:
    """The rows of each entry."""
    ends = np.cumsum(count, dtype=np.int64)
    return (flat[end - rows : end] for end, rows in zip(ends.tolist(), count.tolist(), strict=True))


def key_words(keys: Array) -> Array:
    """Keys as four 64-bit numbers each."""
    if keys.dtype != KEY:
        raise EmbarkError(f"Keys are 32-byte records ({KEY}), not {keys.dtype}.")
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 4)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
