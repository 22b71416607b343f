"""Where vectors live: key → vector, written once and kept; safe against crashes, damage and concurrent writers.

    ROOT/<space>/                               the vectors of one encoder, named by its fingerprint
        <utc time>-<pid>-<random>.vectors       a segment, what one commit added: appears whole, never changes

    header   48 bytes: magic, format, bytes of the head, entries, rows, checksum of head and index, checksum of these
    head     JSON: space, dim, dtype, ragged
    index    for each entry its 32-byte key, its number of rows (uint32; 1 unless ragged) and the checksum of its bytes
    rows     from the next multiple of 4096 on: `dim` little-endian numbers each

A checksum is an xxh3_64; that of an entry is seeded by its key, so that bytes of another entry never pass for it. An
entry is checked when it is first read in a process; one that is damaged counts as absent from then on, and the newest
sound entry of a key is the one that is read. Readers never write. Putting, listing, reading and deleting whole segments
is all that a store asks of its disk: see `Disk`, which is a folder, and `embark.object_store`, which has buckets.
Segments of format 1, which are folders, can still be read (see `_OldSegment`).
What was committed survives a kill and a power cut; what was only added is lost and embedded again (in a run at most the
commit window of `engine.sink`). Writing, refreshing and looking up cost the same per entry however large a space is.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import secrets
import shutil
import struct
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from xxhash import xxh3_64, xxh3_64_intdigest

from embark.data.atomic import NO_ROOM, PART, atomically
from embark.data.items import KEY
from embark.types import Array, EmbarkError

FORMAT = 2
SUFFIX = ".vectors"
DTYPES = {"float16": "<f2", "float32": "<f4", "uint8": "|u1"}  # name → on disk


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


class MissingVectors(EmbarkError):
    """Vectors that are not stored, or no more: a run embeds them."""


class DamagedVectors(MissingVectors):
    """Stored vectors do not match their checksums. They count as absent from now on, so a run embeds them again."""

    def __init__(self, place: str, segments: Sequence[str], keys: Array) -> None:
        self.keys = keys
        named = ", ".join(segments[:3]) + ("…" if segments[3:] else "")
        super().__init__(
            f"{len(keys):,} stored vectors in {place} are damaged (in {named}). A run that scores them embeds them "
            "again (--rescore); embark store check lists all damage."
        )


Stamp = tuple[tuple[int, int, int], ...]  # of each file of a segment: its size, and two numbers that tell it apart


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
        entries = (entry for entry in _entries(folder) if entry.name.endswith(SUFFIX) != entry.is_dir())
        return [(Path(entry.path), _stamp(entry.path)) for entry in entries]

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
        """Remove segments; one of format 1 is a folder."""
        for path in paths:
            if path.is_dir():
                with suppress(FileNotFoundError):  # somebody else removes it, too
                    shutil.rmtree(path)
            else:
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


@dataclass(frozen=True)
class Store:
    """A folder of spaces, or a bucket of them."""

    root: Path
    disk: Disk = FOLDER

    def space(self, name: str) -> Space:
        """The vectors of the encoder with this fingerprint; there may be none yet."""
        if not name.isalnum():
            raise EmbarkError(f"'{name}' cannot name a space of the store: it takes letters and digits.")
        return Space(self.root / name, self.disk)

    def spaces(self) -> list[str]:
        """The names of all spaces."""
        return sorted(name for name in self.disk.spaces(self.root) if name.isalnum())


class Space:
    """The vectors of one encoder, as they were committed when it was opened or last refreshed."""

    def __init__(self, path: Path, disk: Disk = FOLDER) -> None:
        self.path = path
        self.disk = disk
        self._segments: tuple[_Segment, ...] = ()  # oldest first
        self._last_index: _Index | None = None
        self._small: list[tuple[Path, int]] = []  # segments of its writers that shall become one, and their bytes
        self.refresh()

    def refresh(self) -> None:
        """Read what any writer has committed since."""
        segments = tuple(segment for segment in _open_all(self.disk, self._folders) if len(segment))
        for segment, other in pairwise(segments):
            if segment.head != other.head:
                heads = f"{segment.place} has {segment.head}, {other.place} has {other.head}"
                raise EmbarkError(f"{heads}: delete the wrong one.")
        self._segments = segments

    def __len__(self) -> int:
        return self._index.distinct()

    def has(self, keys: Array) -> Array:
        """Which of the keys are stored."""
        return np.asarray(self._index(keys) >= 0)

    def read(self, keys: Array) -> Vectors:
        """The vectors of the keys, in their order, without loading them yet."""
        index = self._index
        entries = index(keys)
        if (missing := np.flatnonzero(entries < 0)).size:
            first = ", ".join(keys[row].tobytes().hex()[:16] + "…" for row in missing[:3])
            raise MissingVectors(f"{self.place} lacks {len(missing)} of {len(keys)} vectors; the first are {first}")
        return Vectors(self, index.entries, keys, entries)

    def discard(self, keys: Array) -> int:
        """Check the stored ones of these keys; those that are damaged count as absent from now on. Returns how many."""
        damaged = 0
        retries = 3
        while True:  # below a damaged entry there may be an older one of the same key
            index = self._index
            entries = index(keys)
            entries = np.unique(entries[entries >= 0])
            try:
                index.entries.fetch(entries)
                lost = sum(segment.check(local) for segment, local in index.entries.by_segment(entries))
            except _Gone:  # a writer has merged small segments into one since
                if not retries:
                    raise
                retries -= 1
                self.refresh()
                continue
            if not lost:
                return damaged
            damaged += lost

    def verify(self) -> list[str]:
        """Check every byte that was ever committed; a text for each problem, with what to do about it."""
        segments = _open_all(self.disk, self._folders, again=True)
        return [
            f"{segment.place}: {problem}; embark store repair leaves out what is damaged"
            for segment in segments
            for problem in segment.problems()
        ]

    def repair(self) -> int:
        """Write the sound entries of damaged segments anew, and delete those segments; returns how many."""
        damaged = [segment for segment in _open_all(self.disk, self._folders, again=True) if segment.problems()]
        for segment in damaged:
            _replace([segment])
        self.refresh()
        return len(damaged)

    def collect(self, age: float = 86_400) -> int:
        """Delete what nobody reads: parts older than `age` seconds, and segments whose entries all stand in newer ones.

        Returns the bytes that are free now.
        """
        before = self.size
        self.disk.clean(self.path, age)
        if _superseded(_open_all(self.disk, self._folders)):
            segments = _open_all(self.disk, self._folders, again=True)
            for segment in segments:
                segment.check(np.arange(len(segment)))
            self.disk.delete([segment.path for segment in _superseded(segments)])
        self.refresh()
        return before - self.size

    def writer(self) -> Writer:
        """A writer of segments; readers see what it committed after their next refresh."""
        return Writer(self)

    @property
    def head(self) -> Head | None:
        """The kind of the vectors; None as long as there are none."""
        return self._segments[0].head if self._segments else None

    @property
    def segments(self) -> int:
        """How many segments hold its vectors."""
        return len(self._segments)

    @property
    def size(self) -> int:
        """Bytes on disk, leftovers included."""
        return sum(map(self.disk.size, self._folders))

    @property
    def place(self) -> str:
        """Where it lies: a path or an address."""
        return self.disk.shown(self.path)

    @property
    def _folders(self) -> list[Path]:
        overlay = _OVERLAYS.get(self.path.parent)
        return [self.path, *([overlay / self.path.name] if overlay else [])]

    @property
    def _index(self) -> _Index:  # made at first use: writing needs none
        segments = self._segments
        with _INDEXING:
            index = self._last_index or _INDEXES.get(self.path)
            if index is None or not index.is_current(segments):
                index = _index(index, segments)
            self._last_index = _INDEXES[self.path] = index
        return index


class Vectors:
    """A lazy (n, dim) matrix, gathered from the mapped segments and checked when indexed.

    In a ragged space every entry is a (rows, dim) matrix: indexing gives a list of them, `np.asarray` stacks them all,
    and entry i is then rows `offsets[i]` to `offsets[i + 1]`.
    """

    def __init__(self, space: Space, stored: _Entries, keys: Array, entries: Array) -> None:
        self.dtype = np.dtype(DTYPES[stored.head.dtype])
        self.dim = stored.head.dim
        self.ragged = stored.head.ragged
        self.offsets = np.concatenate([[0], np.cumsum(stored.count(entries))])
        self._path = space.path
        self._disk = space.disk
        self._keys = keys
        self._stored = stored, entries  # together: threads that gather may find both anew

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the whole matrix: in a ragged space the rows of all entries together."""
        return int(self.offsets[-1]), self.dim

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        chosen = np.arange(*index.indices(len(self))) if isinstance(index, slice) else np.arange(len(self))[index]
        flat = self._gather(np.atleast_1d(chosen))
        if np.ndim(chosen) == 0:
            return flat if self.ragged else flat[0]
        return np.split(flat, np.cumsum(np.diff(self.offsets)[chosen]))[:-1] if self.ragged else flat

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("Stored vectors cannot become an array without a copy.")
        return self._gather(np.arange(len(self))).astype(dtype or self.dtype, copy=False)

    def _gather(self, chosen: Array, retries: int = 3) -> Array:
        try:
            stored, entries = self._stored
            return stored.gather(self._disk.shown(self._path), entries[chosen])
        except _Gone:  # a writer has merged small segments into one since
            if not retries:
                raise
            self._stored = Space(self._path, self._disk).read(self._keys)._stored
            return self._gather(chosen, retries - 1)


class Writer(AbstractContextManager["Writer"]):
    """Adds vectors to a space. What was added is durable after `commit`, which writes one segment; leaving the `with`
    block commits. Small segments of the space's writers become one, each of them once: so nothing is written more often
    than twice, and a space has few segments whatever a commit holds.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._head: Head | None = None
        self._parts: list[tuple[Array, Array]] = []  # entries and rows that are not committed
        self._closed = False

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, keys: Array, vectors: Array | Sequence[Array], dtype: Any = None, copy: bool = True) -> None:
        """Append an (n, dim) matrix or, ragged, a list of n (rows, dim) matrices; stored as `dtype` if one is given.

        They are written by `commit`: without a `copy`, nobody may change them until then.
        """
        if self._closed:
            raise EmbarkError("This writer was closed, or stopped at an earlier error; ask the space for a new one.")
        if len(keys) != len(vectors):
            raise EmbarkError(f"{len(keys)} keys came with {len(vectors)} vectors.")
        if len(keys) == 0:
            return
        ragged = not (isinstance(vectors, np.ndarray) and vectors.ndim == 2)
        flat = _flat(list(vectors) if ragged else [np.asarray(vectors)], dtype, copy)
        words = _words(keys)
        head = Head(self._space.path.name, flat.shape[1], flat.dtype.name, ragged)
        if self._head is None:
            self._space.refresh()
        if (known := self._head or self._space.head) and known != head:
            raise EmbarkError(f"{self._space.place} holds {known}; {head} cannot be added to it.")
        entries = np.empty(len(keys), _ENTRY)
        entries["key"] = words.view(KEY)[:, 0]
        entries["rows"] = [len(rows) for rows in vectors] if ragged else 1
        entries["sum"] = _checksums(words, _split(flat, entries["rows"]) if ragged else flat)
        self._head = head
        self._parts.append((entries, flat))

    def commit(self) -> None:
        """Make durable what was added so far."""
        if not self._parts or self._head is None:
            return
        self._closed = True  # for good, if this fails
        path, size = _write(self._space.disk, self._space.path, self._head, self._parts)
        self._closed = False
        self._parts = []
        if size < SMALL:
            self._space._small.append((path, size))
        self._merge(MANY)

    def close(self) -> None:
        """Commit. After a failed write the space is left as it was last committed."""
        if not self._closed:
            self.commit()
            self._merge(FEW)
        self._closed = True

    def _merge(self, most: int) -> None:
        small = self._space._small
        if len(small) > most or sum(size for _, size in small) >= MERGED:
            self._space._small = []
            disk = self._space.disk
            with suppress(FileNotFoundError, _Gone):  # somebody else has collected or repaired one of them
                stamps = dict(entry for folder in {path.parent for path, _ in small} for entry in disk.segments(folder))
                if not all(stamps.get(path) for path, _ in small):
                    return
                opened = [_open(disk, path, stamp) for path, _ in small if (stamp := stamps[path])]
                segments = [segment for segment in opened if len(segment)]
                disk.fetch([(segment.path, segment.stamp) for segment in segments], rows=True)
                if not any(segment.check(np.arange(len(segment))) for segment in segments):  # damage stays to be seen
                    _replace(segments)


# ── segments ──────────────────────────────────────────────────────────────────────────────────────────────────────────
SMALL = 8 << 20  # bytes of a segment that is merged with others: a space of larger ones has few for its size
MERGED = 64 << 20  # bytes of small segments that are merged at once
MANY = 256  # small segments that are left while a writer writes
FEW = 16  # and when it closes
ALIGNMENT = 4096
BLOCK = 512  # entries that are copied and checked together: they fit the processor's cache
LARGE = 64 << 20  # bytes that several threads gather
MAGIC = b"EMBARKV\n"
_HEADER = struct.Struct("<8sIIQQQ")  # magic, format, bytes of the head, entries, rows, checksum; followed by its own
HEADER = _HEADER.size + 8  # bytes
_ENTRY = np.dtype([("key", KEY), ("rows", "<u4"), ("sum", "<u8")])
_NO_HEAD = Head("", 0, "float32", ragged=False)


class _Gone(EmbarkError):
    """A segment was deleted or cut since it was opened."""


class _Segment:
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
            return _map(self._file(), self.stamp, DTYPES[self.head.dtype], self.rows, self.head.dim, self.offset)
        except (FileNotFoundError, ValueError) as error:
            raise _Gone(f"{self.place} was deleted or cut while it was read; run again.") from error

    def _file(self) -> Path:
        return self.disk.file(self.path, self.stamp, rows=True)

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
        damaged = self._check(local[fresh], rows)
        if len(damaged) and self.disk.renew(self.path, self.stamp, start):
            _map.cache_clear()
            self.copy(local, out, places)
        else:
            self.lost[damaged] = True
            self.checked[local] = True

    def _check(self, local: Array, rows: Any) -> Array:
        """Those that are damaged, of entries with these rows."""
        sound = _checksums(_words(self.keys[local]), rows) == self.entries["sum"][local]
        return np.asarray(local[~sound])

    def check(self, local: Array) -> int:
        """Check entries that were not checked before; how many of all these are damaged."""
        fresh = local[~(self.checked[local] | self.lost[local])]
        block = max(1, min(BLOCK, int(LARGE // (1 + self.head.width * self.count(fresh).max(initial=1)))))
        for start in range(0, len(fresh), block):
            part = fresh[start : start + block]
            count = self.count(part)
            self.copy(part, np.empty((count.sum(), self.head.dim), DTYPES[self.head.dtype]), np.cumsum(count) - count)
        return int(self.lost[local].sum())

    def problems(self) -> list[str]:
        """What is wrong with it; reads every byte."""
        lost = self.check(np.arange(len(self)))
        return [self.damage] * bool(self.damage) + [f"{lost:,} of {len(self):,} vectors are damaged"] * bool(lost)


class _OldSegment(_Segment):
    """A segment of format 1: the folder of one writer, checked commit by commit.

    head.json      format, space, dim, dtype, ragged
    vectors.bin    the rows
    keys.bin       for each entry its 32-byte key and its number of rows (uint32)
    commits.bin    for each commit: entries and rows so far, crc32 of the keys and of the vectors that it added, crc32
                   of the record itself, carried on from the record before (first: the head)
    """

    commits: tuple[_Commit, ...] = ()

    def _file(self) -> Path:
        return self.path / "vectors.bin"

    def _check(self, local: Array, rows: Any) -> Array:
        damaged = [local[:0]]
        ends = [commit.entries for commit in self.commits]
        for position in np.unique(np.searchsorted(ends, local, side="right")).tolist():
            before = self.commits[position - 1] if position else _Commit()
            commit = self.commits[position]
            entries = slice(before.entries, commit.entries)
            if zlib.crc32(self.matrix[before.rows : commit.rows].data) != commit.vectors:
                damaged.append(np.arange(before.entries, commit.entries))
            self.checked[entries] = True
        return np.concatenate(damaged)


class _Commit(NamedTuple):
    entries: int = 0
    rows: int = 0
    keys: int = 0  # crc32 of the bytes added since the commit before
    vectors: int = 0


_OLD_ENTRY = np.dtype([("key", KEY), ("rows", "<u4")])
_COMMIT = struct.Struct("<QQII")  # followed by its crc32
_OLD_FILES = ("head.json", "vectors.bin", "keys.bin", "commits.bin")
_OPENED: dict[Path, dict[str, _Segment]] = {}  # by folder and name: segments of this process, as they were opened


def _open_all(disk: Disk, folders: Iterable[Path], again: bool = False) -> list[_Segment]:
    """The segments of a space, oldest first; `again` forgets what is known about them."""
    segments = [segment for folder in folders for segment in _open_folder(disk, folder, again)]
    return sorted(segments, key=lambda segment: segment.path.name)


def _open_folder(disk: Disk, folder: Path, again: bool, listings: int = 20) -> list[_Segment]:
    entries = disk.segments(folder)
    opened = _OPENED.get(folder, {})
    for name in set(opened).difference(path.name for path, _ in entries):
        opened.pop(name, None)
    listed = [(path, stamp) for path, stamp in entries if stamp is not None]
    disk.fetch([entry for entry in listed if again or not _is_open(*entry)], rows=again, again=again)
    segments = []
    for path, stamp in listed:
        with suppress(FileNotFoundError):
            segments.append(_open(disk, path, stamp, again))
    if len(segments) < len(entries) and listings:  # what was deleted is in a segment that may be newer than the list
        return _open_folder(disk, folder, again, listings - 1)
    return segments


def _is_open(path: Path, stamp: Stamp) -> bool:
    segment = _OPENED.get(path.parent, {}).get(path.name)
    return segment is not None and segment.stamp == stamp


def _open(disk: Disk, path: Path, stamp: Stamp, again: bool = False) -> _Segment:
    opened = _OPENED.setdefault(path.parent, {})
    known = opened.get(path.name)
    if known is None or known.stamp != stamp or again:
        start = time.monotonic()
        known = _open_old(path, stamp) if path.suffix != SUFFIX else _open_segment(disk, path, stamp)
        if known.damage and disk.renew(path, stamp, start):
            known = _open_segment(disk, path, stamp)
        opened[path.name] = known
    return known


def described_size(header: bytes) -> int | None:
    """The bytes of the head and the index that follow a header; None if it is damaged, or that of no segment."""
    if len(header) < HEADER or xxh3_64_intdigest(header[: HEADER - 8]).to_bytes(8, "little") != header[-8:]:
        return None
    magic, _, head_size, count, *_ = _HEADER.unpack_from(header)
    return head_size + count * _ENTRY.itemsize if magic == MAGIC else None


def _open_segment(disk: Disk, path: Path, stamp: Stamp) -> _Segment:
    """A segment with its head and index verified; without entries if they are damaged."""
    nothing = np.empty(0, _ENTRY)
    damaged = _Segment(disk, path, stamp, _NO_HEAD, nothing, 0, 0, "its index is damaged: its vectors are lost")
    with disk.file(path, stamp).open("rb") as file:
        header = file.read(HEADER)
        if (size := described_size(header)) is None:
            return damaged
        _, version, head_size, count, rows, checksum = _HEADER.unpack_from(header)
        if version > FORMAT:
            raise EmbarkError(
                f"{disk.shown(path)} was written by a newer embark (format {version}); "
                "upgrade, or set EMBARK_HOME to another folder."
            )
        described = file.read(size)
    if xxh3_64_intdigest(described) != checksum:
        return damaged
    head = _read_head(json.loads(described[:head_size]))
    entries = np.frombuffer(described, _ENTRY, count, head_size)
    offset = _aligned(len(header) + len(described))
    rows_there = max(0, stamp[0][0] - offset) // head.width if head.width else rows
    damage = "its end is cut off" if rows_there < rows else ""
    return _Segment(disk, path, stamp, head, entries, min(rows, rows_there), offset, damage)


def _read_head(fields: dict[str, Any]) -> Head:
    """A head as it was stored; a ValueError or TypeError if it describes no vectors."""
    head = Head(**fields)
    if head.dtype not in DTYPES or type(head.dim) is not int or head.dim < 0 or type(head.ragged) is not bool:
        raise ValueError(f"{head} cannot be stored.")
    return head


def _open_old(path: Path, stamp: Stamp) -> _Segment:
    """A segment's commits, as far as records and keys are sound and all vectors are there."""
    empty = np.empty(0, _ENTRY)
    try:
        raw = (path / "head.json").read_bytes()
        records = (path / "commits.bin").read_bytes()
    except FileNotFoundError:  # a writer was just creating it, or died while doing so
        return _OldSegment(FOLDER, path, stamp, _NO_HEAD, empty, 0, 0)
    try:
        fields = json.loads(raw)
        if fields.pop("format") != 1:
            raise ValueError
        head = _read_head(fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return _OldSegment(FOLDER, path, stamp, _NO_HEAD, empty, 0, 0, "head.json cannot be read" if records else "")
    keys = (path / "keys.bin").read_bytes() if (path / "keys.bin").exists() else b""
    rows_there = stamp[1][0] // head.width if head.width else 1 << 60
    chain = zlib.crc32(raw)
    commits: list[_Commit] = []
    damage = ""
    for end in range(_COMMIT.size, len(records) - 3, _COMMIT.size + 4):
        chain = zlib.crc32(records[end - _COMMIT.size : end], chain)
        if records[end : end + 4] != chain.to_bytes(4, "little"):
            damage = f"head.json or commit record {len(commits) + 1} is damaged"
            break
        commit = _Commit(*_COMMIT.unpack_from(records, end - _COMMIT.size))
        before = commits[-1] if commits else _Commit()
        added = keys[before.entries * _OLD_ENTRY.itemsize : commit.entries * _OLD_ENTRY.itemsize]
        if len(keys) < commit.entries * _OLD_ENTRY.itemsize or commit.rows > rows_there:
            damage = f"its files are shorter than commit {len(commits) + 1} says"
            break
        if zlib.crc32(added) != commit.keys:
            damage = f"the keys of commit {len(commits) + 1} are damaged"
            break
        commits.append(commit)
    last = commits[-1] if commits else _Commit()
    plain = np.frombuffer(keys, _OLD_ENTRY, last.entries)
    entries = np.zeros(last.entries, _ENTRY)
    entries["key"], entries["rows"] = plain["key"], plain["rows"]
    segment = _OldSegment(FOLDER, path, stamp, head, entries, last.rows, 0, damage)
    segment.commits = tuple(commits)
    return segment


def _write(disk: Disk, folder: Path, head: Head, parts: Sequence[tuple[Array, Array]]) -> tuple[Path, int]:
    """Put entries and their rows as one segment, into the overlay where the store cannot be written; path and bytes."""
    count = sum(len(entries) for entries, _ in parts)
    rows = sum(len(flat) for _, flat in parts)
    raw = json.dumps(asdict(head)).encode()
    described: list[Any] = [raw, *(entries.view(np.uint8) for entries, _ in parts)]  # in pieces: there may be many
    checksum = xxh3_64()
    for piece in described:
        checksum.update(piece)
    header = _HEADER.pack(MAGIC, FORMAT, len(raw), count, rows, checksum.intdigest())
    top = [header, xxh3_64_intdigest(header).to_bytes(8, "little"), *described]
    length = sum(map(len, top))
    chunks: list[Any] = [*top, bytes(_aligned(length) - length), *(flat.data for _, flat in parts if flat.size)]
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
    size = _aligned(length) + rows * head.width
    root = folder.parent
    try:
        if root not in _OVERLAYS:
            try:
                disk.put(folder / name, chunks)
                return folder / name, size
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                _OVERLAYS[root] = _overlay(root, error)
        disk.put(_OVERLAYS[root] / folder.name / name, chunks)
        return _OVERLAYS[root] / folder.name / name, size
    except OSError as error:
        if error.errno in NO_ROOM:
            raise EmbarkError(
                f"There is no room in {root} for another {size:,} bytes ({error.strerror}). "
                "Everything committed is safe: make room and run again, and it goes on from there."
            ) from error
        text = f"The store at {root} could not be written ({error}); what was committed is safe."
        raise EmbarkError(f"{text} Solve that and run again.") from error


def _superseded(segments: Sequence[_Segment]) -> list[_Segment]:
    """Those whose entries all stand in newer ones; damage is for repair, not silently deleted."""
    superseded = []
    newer = _index(None, ())
    for segment in reversed(segments):
        sound = not segment.damage and not segment.lost.any()
        if len(segment) and sound and (newer(segment.keys) >= 0).all():
            superseded.append(segment)
        else:
            newer = _index(newer, (segment, *newer.segments))
    return superseded


def _replace(segments: Sequence[_Segment]) -> None:
    """One new segment with the sound entries of these, which were checked; then no more these, nor memory for them."""
    heads = [segment.head for segment in segments if not segment.lost.all()]
    parts = []
    for segment in segments:
        sound = np.flatnonzero(~segment.lost)
        if len(sound) == len(segment):
            entries = segment.entries
            out = segment.matrix  # mapped: however many vectors are merged, none is copied
        else:
            count = segment.count(sound)
            entries = segment.entries[sound]
            out = np.empty((count.sum(), segment.head.dim), DTYPES[segment.head.dtype])
            segment.copy(sound, out, np.cumsum(count) - count)
        if isinstance(segment, _OldSegment):
            entries = entries.copy()
            entries["sum"] = _checksums(_words(entries["key"]), _split(out, entries["rows"]))
        parts += [(entries, out)] * bool(len(sound))
    if parts:
        _write(segments[0].disk, segments[0].path.parent, heads[0], parts)
    segments[0].disk.delete([segment.path for segment in segments])
    for segment in segments:
        _OPENED.get(segment.path.parent, {}).pop(segment.path.name, None)
    _map.cache_clear()  # a file that is deleted has its room on the disk as long as it is mapped


@lru_cache(maxsize=128)  # a mapping holds a file descriptor, and a space may have thousands of segments
def _map(path: Path, stamp: Stamp, dtype: str, rows: int, dim: int, offset: int) -> Array:
    if not rows * dim:
        return np.empty((rows, dim), dtype)
    return np.asarray(np.memmap(path, dtype, "r", offset, (rows, dim)))


def _checksums(words: Array, rows: Iterable[Any]) -> Array:
    """The checksum of each entry's rows."""
    return np.fromiter(map(xxh3_64_intdigest, rows, words[:, 0].tolist()), np.uint64, len(words))


def _split(flat: Array, count: Array) -> Iterator[Array]:
    """The rows of each entry."""
    ends = np.cumsum(count, dtype=np.int64)
    return (flat[end - rows : end] for end, rows in zip(ends.tolist(), count.tolist(), strict=True))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


# ── the index of a space ─────────────────────────────────────────────────────────────────────────────────────────────


class _Entries:
    """The entries of several segments, numbered one segment after the other."""

    def __init__(self, segments: Sequence[_Segment]) -> None:
        self.segments = segments
        self.head = segments[0].head if segments else _NO_HEAD
        self.bases = np.cumsum([0] + [len(segment) for segment in segments])  # the number of each one's first entry

    def by_segment(self, entries: Array) -> Iterator[tuple[_Segment, Array]]:
        """Sorted entries as numbers within their segments."""
        cuts = np.searchsorted(entries, self.bases)
        for segment, base, (start, stop) in zip(self.segments, self.bases, pairwise(cuts), strict=False):
            if start < stop:
                yield segment, entries[start:stop] - base

    def count(self, entries: Array) -> Array:
        """The number of rows of each entry."""
        count = np.ones(len(entries), np.int64)
        if self.head.ragged:
            order = np.argsort(entries)
            parts = [segment.count(local) for segment, local in self.by_segment(entries[order])]
            count[order] = _join(parts, count[:0])
        return count

    def fetch(self, entries: Array) -> None:
        """Have the rows of sorted entries at hand."""
        segments = [segment for segment, _ in self.by_segment(entries)]
        if segments:
            segments[0].disk.fetch([(segment.path, segment.stamp) for segment in segments], rows=True)

    def gather(self, place: str, entries: Array) -> Array:
        """The rows of these entries, all of them checked; copied in the order of the disk."""
        count = self.count(entries)
        out = np.empty((count.sum(), self.head.dim), DTYPES[self.head.dtype])
        order = np.argsort(entries, kind="stable")
        ordered = entries[order]
        places = (np.cumsum(count) - count)[order]
        self.fetch(ordered)
        blocks = []
        start = 0
        for segment, local in self.by_segment(ordered):
            for first in range(0, len(local), BLOCK):
                part = local[first : first + BLOCK]
                blocks.append((segment, part, places[start + first : start + first + len(part)]))
            start += len(local)

        def copy(block: tuple[_Segment, Array, Array]) -> Array:
            segment, local, rows = block
            segment.copy(local, out, rows)
            return local[segment.lost[local]]

        if out.nbytes < LARGE:
            lost = list(map(copy, blocks))
        else:
            with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
                lost = list(pool.map(copy, blocks))
        if any(map(len, lost)):
            damaged = [(segment, local) for (segment, _, _), local in zip(blocks, lost, strict=True) if len(local)]
            names = list(dict.fromkeys(segment.path.name for segment, _ in damaged))
            keys = np.concatenate([segment.keys[np.unique(local)] for segment, local in damaged])
            raise DamagedVectors(place, names, keys)
        return out


class _Run(NamedTuple):
    """The sound entries of some segments, sorted by the first 64 bits of their keys; a key may have several."""

    segments: tuple[_Segment, ...]
    lost: int  # entries of the segments that are left out, because they are damaged
    prefix: Array  # the first 64 bits of each key, sorted
    rest: Array  # the other three times 64
    entry: Array  # the number of each entry, over the segments of the run


class _Index:
    """Finds the newest sound entry of a key, in a few runs; the longest is mostly the longer part of all.

    A new segment is a run of its own, until the next longer run is less than twice as long: then they become one. So an
    entry is sorted once and copied a few times, however often a space grows. Entries are numbered over all runs.
    """

    def __init__(self, segments: tuple[_Segment, ...], runs: Sequence[_Run]) -> None:
        position = {segment: number for number, segment in enumerate(segments)}
        self.segments = segments  # oldest first
        self.runs = runs
        self.entries = _Entries([segment for run in runs for segment in run.segments])
        self.age = np.array([position[segment] for segment in self.entries.segments], np.int64)  # small is old

    def is_current(self, segments: tuple[_Segment, ...]) -> bool:
        """Whether these are its segments, and nothing more of them is known to be damaged."""
        return self.segments == segments and all(run.lost == _count_lost(run.segments) for run in self.runs)

    def __call__(self, keys: Array) -> Array:
        """The entry of each key, -1 where there is none."""
        order = np.argsort(_words(keys)[:, 0])  # a search in order keeps to the cache: twice as fast with its sort
        wanted = _words(keys).take(order, axis=0)
        prefix = wanted[:, 0].copy()
        entries = np.full(len(wanted), -1)  # in that order
        base = 0
        for run in self.runs:
            place = np.searchsorted(run.prefix, prefix)
            rows = np.flatnonzero(place < len(run.prefix))
            while len(rows := rows[run.prefix[place[rows]] == prefix[rows]]):  # in practice once: few keys are alike
                near = place[rows]
                equal = run.rest.take(near, axis=0) == wanted.take(rows, axis=0)[:, 1:]
                same = np.flatnonzero(equal[:, 0] & equal[:, 1] & equal[:, 2])
                self._enter(entries, rows[same], base + run.entry[near[same]].astype(np.int64))
                place += 1
                rows = rows[near + 1 < len(run.prefix)]
            base += sum(map(len, run.segments))
        numbers = np.empty_like(entries)
        numbers[order] = entries
        return numbers

    def _enter(self, entries: Array, rows: Array, candidates: Array) -> None:
        """Enter candidates for keys, unless a newer entry is there: of a newer segment, or later in the same."""
        rivals = entries[rows]
        if (rivals >= 0).any():
            age, age_of_rivals = (
                self.age[np.searchsorted(self.entries.bases, numbers, side="right") - 1]
                for numbers in (candidates, np.maximum(rivals, 0))
            )
            newer = (age > age_of_rivals) | ((age == age_of_rivals) & (candidates > rivals)) | (rivals < 0)
            rows, candidates = rows[newer], candidates[newer]
        entries[rows] = candidates

    def distinct(self) -> int:
        """The number of distinct keys."""
        run = reduce(_merge_runs, self.runs or [_new_run(())])
        alike = np.flatnonzero(run.prefix[1:] == run.prefix[:-1])
        places = np.union1d(alike, alike + 1)
        words = np.column_stack([run.prefix[places], run.rest[places]])
        return len(run.prefix) - len(places) + len(np.unique(words, axis=0))


_INDEXES: WeakValueDictionary[Path, _Index] = WeakValueDictionary()  # the last one of each space: the next extends it
_INDEXING = threading.Lock()


def _index(index: _Index | None, segments: tuple[_Segment, ...]) -> _Index:
    """The index of segments; what another one has sorted is not sorted again."""
    current = set(segments)
    runs = [_sound_part(run, current) for run in index.runs] if index else []
    known = {segment for run in runs for segment in run.segments}
    runs = sorted([run for run in runs if run.segments], key=lambda run: -len(run.prefix))
    if fresh := tuple(segment for segment in segments if segment not in known):
        runs.append(_new_run(fresh))
    while len(runs) > 1 and len(runs[-2].prefix) < 2 * len(runs[-1].prefix):
        runs.append(_merge_runs(runs.pop(-2), runs.pop()))
    return _Index(segments, runs)


def _new_run(segments: tuple[_Segment, ...]) -> _Run:
    """The run of segments."""
    words = _join([_words(segment.keys) for segment in segments], np.empty((0, 4), np.uint64))
    order = np.argsort(words[:, 0])
    lost = _join([segment.lost for segment in segments], np.empty(0, bool))
    count = int(np.count_nonzero(lost))
    if count:
        order = order[~lost[order]]
    return _Run(segments, count, words[order, 0], words[:, 1:].take(order, axis=0), order.astype(np.uint32))


def _merge_runs(run: _Run, other: _Run) -> _Run:
    """Two runs as one."""
    places = np.searchsorted(run.prefix, other.prefix)
    numbers = other.entry + np.uint32(sum(map(len, run.segments)))
    return _Run(
        run.segments + other.segments,
        run.lost + other.lost,
        np.insert(run.prefix, places, other.prefix),
        np.insert(run.rest, places, other.rest, axis=0),
        np.insert(run.entry, places, numbers),
    )


def _sound_part(run: _Run, current: Collection[_Segment]) -> _Run:
    """The run without segments that are no longer current, and without entries that are known to be damaged by now."""
    left = tuple(segment for segment in run.segments if segment in current)
    lost = _count_lost(left)
    if left == run.segments and lost == run.lost:
        return run
    sound = [~segment.lost if segment in current else np.zeros(len(segment), bool) for segment in run.segments]
    gone = np.array([0 if segment in current else len(segment) for segment in run.segments])
    before = np.repeat(np.cumsum(gone) - gone, [len(segment) for segment in run.segments])
    places = np.flatnonzero(np.concatenate(sound)[run.entry])
    entry = run.entry[places]
    entry -= before[entry].astype(np.uint32)
    return _Run(left, lost, run.prefix[places], run.rest[places], entry)


def _count_lost(segments: Iterable[_Segment]) -> int:
    return sum(int(np.count_nonzero(segment.lost)) for segment in segments)


def _join(arrays: Sequence[Array], none: Array) -> Array:
    """The arrays as one, without a copy of a single one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([none, *arrays])


def _words(keys: Array) -> Array:
    """Keys as four 64-bit numbers each."""
    if keys.dtype != KEY:
        raise EmbarkError(f"Keys are 32-byte records ({KEY}), not {keys.dtype}.")
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 4)


def _flat(parts: list[Array], dtype: Any, copy: bool) -> Array:
    """The matrices as one, in the dtype that is stored; not a single one itself if a `copy` is asked for."""
    if any(np.ndim(part) != 2 for part in parts) or len({part.shape[1] for part in parts}) > 1:
        raise EmbarkError("Vectors come as one (n, dim) matrix, or as a list of (rows, dim) matrices of one width.")
    whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
    name = np.dtype(dtype or whole.dtype).name
    if name not in DTYPES or not np.can_cast(whole.dtype, DTYPES[name], "same_kind"):
        raise EmbarkError(f"{whole.dtype} vectors cannot be stored as {name}; the store holds {', '.join(DTYPES)}.")
    try:
        with np.errstate(over="raise"):
            convert = np.array if copy and len(parts) == 1 else np.asarray
            return convert(whole, DTYPES[name], order="C")
    except FloatingPointError as error:
        raise EmbarkError(f"Some values are too large for {name}; store these vectors as float32.") from error


# ── files and folders ────────────────────────────────────────────────────────────────────────────────────────────────
_OVERLAYS: dict[Path, Path] = {}  # stores that cannot be written → folders of this process


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
    """What changes when the files of a segment are written; None if it is gone."""
    if name.endswith(SUFFIX):
        try:
            state = os.stat(name)
        except FileNotFoundError:
            return None
        return ((state.st_size, state.st_mtime_ns, state.st_ino),)
    stamps = []
    for file in _OLD_FILES:
        try:
            state = os.stat(os.path.join(name, file))
            stamps.append((state.st_size, state.st_mtime_ns, state.st_ino))
        except FileNotFoundError:
            stamps.append((0, 0, 0))
    return tuple(stamps)


def _overlay(root: Path, error: OSError) -> Path:
    """A folder of this process, deleted when it ends, for the vectors of a store that cannot be written."""
    folder = Path(tempfile.mkdtemp(prefix="embark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings.warn(
        f"{root} cannot be written ({error.strerror}): new vectors are kept in {folder} until this process ends. "
        "Set EMBARK_HOME to a folder of your own to keep them.",
        stacklevel=2,
    )
    return folder
