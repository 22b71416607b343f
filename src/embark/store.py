"""The vector store: key → vector, written once and never changed; safe against crashes and concurrent writers.

    ROOT/<space>/              the vectors of one encoder, named by its fingerprint
        <segment>/             what one writer added; no other process ever writes here
            head.json          format, space, dim, dtype, ragged
            vectors.bin        rows of `dim` little-endian numbers
            keys.bin           for each entry its 32-byte key and its number of rows (uint32; 1 unless ragged)
            commits.bin        for each commit: entries and rows so far, crc32 of the keys and of the vectors that it
                               added, crc32 of the record itself, carried on from the record before (first: the head)

A commit makes keys and vectors durable before its record is written, so that only what an intact record covers exists;
whatever comes after is a torn tail and is ignored. A record that adds nothing seals the segment. Readers never write.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from embark.data.items import KEY
from embark.types import Array, EmbarkError

FORMAT = 1
DTYPES = {"float16": "<f2", "float32": "<f4", "uint8": "|u1"}  # name → on disk


@dataclass(frozen=True)
class Head:
    """What kind of vectors a segment holds; it is the same for all segments of a space."""

    space: str
    dim: int
    dtype: str
    ragged: bool
    format: int = FORMAT

    def __str__(self) -> str:
        return f"{'ragged ' * self.ragged}{self.dtype} vectors of {self.dim} dimensions"


@dataclass(frozen=True)
class Store:
    """A folder of spaces."""

    root: Path

    def space(self, name: str) -> Space:
        """The vectors of the encoder with this fingerprint; there may be none yet."""
        if not name.isalnum():
            raise EmbarkError(f"'{name}' cannot name a space of the store: it takes letters and digits.")
        return Space(self.root / name)

    def spaces(self) -> list[str]:
        """The names of all spaces."""
        return [path.name for path in _folders(self.root)]


class Space:
    """The vectors of one encoder, as they were committed when it was opened or last refreshed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._segments: tuple[_Segment, ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """Read what other writers have committed since it was opened or last refreshed."""
        segments = tuple(segment for path in _folders(self.path) if (segment := _open(path)).commits)
        for segment, other in pairwise(segments):
            if segment.head != other.head:
                raise EmbarkError(
                    f"{segment.path} has {segment.head}, {other.path} has {other.head}: delete the wrong one."
                )
        if segments != self._segments:
            self._segments = segments
            self.__dict__.pop("_index", None)

    def __len__(self) -> int:
        return len(self._index.count)

    def has(self, keys: Array) -> Array:
        """Which of the keys are stored."""
        return np.asarray(self._index(keys) >= 0)

    def read(self, keys: Array) -> Vectors:
        """The vectors of the keys, in their order, without loading them yet."""
        index = self._index  # one object throughout: another thread's refresh may replace it
        places = index(keys)
        if (missing := np.flatnonzero(places < 0)).size:
            first = ", ".join(keys[row].tobytes().hex()[:16] + "…" for row in missing[:3])
            raise EmbarkError(f"{self.path} lacks {len(missing)} of {len(keys)} vectors; the first are {first}")
        return Vectors(index.segments, index.first[places], index.count[places])

    def verify(self) -> list[str]:
        """Check every byte that was ever committed; a text for each problem, with what to do about it."""
        segments = [_scan(path) for path in _folders(self.path)]
        problems = [
            (segment.path, replace(segment, commits=segment.commits[:count]).problem())
            for segment in segments
            for count in range(1, len(segment.commits) + 1)
        ]
        problems += [(segment.path, segment.damage) for segment in segments]
        return [f"{path}: {text}; delete this folder to embed its items again" for path, text in problems if text]

    def writer(self) -> Writer:
        """A writer with a segment of its own; readers see what it committed after their next refresh."""
        return Writer(self)

    @property
    def head(self) -> Head | None:
        """The kind of the vectors; None as long as there are none."""
        return self._segments[0].head if self._segments else None

    @cached_property
    def _index(self) -> _Index:  # built at first use: writing needs none
        return _Index(self._segments)


class Vectors:
    """A lazy (n, dim) matrix, gathered from the mapped segments when indexed.

    In a ragged space every entry is a (rows, dim) matrix: indexing gives a list of them, `np.asarray` stacks them all,
    and entry i is then rows `offsets[i]` to `offsets[i + 1]`.
    """

    def __init__(self, segments: Sequence[_Segment], first: Array, count: Array) -> None:
        head = segments[0].head if segments else _NO_HEAD
        self.dtype = np.dtype(DTYPES[head.dtype])
        self.dim = head.dim
        self.ragged = head.ragged
        self.offsets = np.concatenate([[0], np.cumsum(count)])
        self._segments = segments
        self._first = first  # row of each entry, numbered over all segments
        self._count = count  # rows of each entry
        self._bases = np.cumsum([0] + [segment.commits[-1].rows for segment in segments])  # first row of each segment

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the whole matrix: in a ragged space the rows of all entries together."""
        return int(self.offsets[-1]), self.dim

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, index: Any) -> Any:
        first, count = self._first[index], self._count[index]
        flat = self._gather(np.atleast_1d(first), np.atleast_1d(count))
        if np.ndim(first) == 0:
            return flat if self.ragged else flat[0]
        return np.split(flat, np.cumsum(count))[:-1] if self.ragged else flat

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("Stored vectors cannot become an array without a copy.")
        return self._gather(self._first, self._count).astype(dtype or self.dtype, copy=False)

    def _gather(self, first: Array, count: Array, block: int = 512) -> Array:
        """The rows of these entries; copied in the order of the disk, in blocks that fit the processor's cache."""
        rows = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())  # over all segments
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows, self._bases, sorter=order)
        out = np.empty((len(rows), self.dim), self.dtype)
        for segment, base, (start, stop) in zip(self._segments, self._bases, pairwise(cuts), strict=False):
            for block_start in range(start, stop, block):
                positions = order[block_start : min(block_start + block, stop)]
                out[positions] = segment.matrix[rows[positions] - base]
        return out


class Writer(AbstractContextManager["Writer"]):
    """Adds vectors to a space. What was added is durable after `commit`; leaving the `with` block commits and seals."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._head: Head | None = None
        self._files: list[BinaryIO] = []  # keys, vectors, commits
        self._committed = self._added = _Commit()
        self._intact = True  # False during a write; stays False after an interrupted one, which leaves a torn tail

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, keys: Array, vectors: Array | Sequence[Array], dtype: Any = None) -> None:
        """Append an (n, dim) matrix or, ragged, a list of n (rows, dim) matrices; stored as `dtype` if one is given."""
        if len(keys) != len(vectors):
            raise EmbarkError(f"{len(keys)} keys came with {len(vectors)} vectors.")
        if len(keys) == 0:
            return
        ragged = not (isinstance(vectors, np.ndarray) and vectors.ndim == 2)
        flat = _flat(list(vectors) if ragged else [np.asarray(vectors)], dtype)
        entries = np.empty(len(keys), _ENTRY)
        entries["key"] = _words(keys).view(KEY)[:, 0]
        entries["rows"] = [len(rows) for rows in vectors] if ragged else 1
        head = Head(self._space.path.name, flat.shape[1], flat.dtype.name, ragged)
        if self._head is None:
            self._space.refresh()
        if (known := self._head or self._space.head) and known != head:
            raise EmbarkError(f"{self._space.path} holds {known}; {head} cannot be added to it.")
        with self._writing():
            if self._head is None:
                self._begin(head)
            self._files[0].write(entries.data)
            self._files[1].write(flat.data)
            before = self._added
            self._added = _Commit(
                entries=before.entries + len(entries),
                rows=before.rows + len(flat),
                keys=zlib.crc32(entries.data, before.keys),
                vectors=zlib.crc32(flat.data, before.vectors),
            )

    def commit(self) -> None:
        """Make durable what was added so far."""
        if self._added.entries > self._committed.entries:
            self._record()

    def close(self) -> None:
        """Commit and seal. After a failed write the segment is left as it was last committed."""
        try:
            if self._files and self._intact:
                self.commit()
                self._record()
        finally:
            self._intact = False
            for file in self._files:
                with suppress(OSError):  # a full disk was reported when it was met; this is its unwritten tail
                    file.close()

    def _begin(self, head: Head) -> None:
        name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}-{secrets.token_hex(4)}"
        path = self._space.path / name
        new_folders = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True)
        raw = json.dumps(asdict(head)).encode()
        (path / "head.json").write_bytes(raw)
        self._files = [(path / f"{name}.bin").open("xb", buffering=1 << 20) for name in ("keys", "vectors", "commits")]
        for place in {path / "head.json", path, *path.parents[:2], *(folder.parent for folder in new_folders)}:
            _sync(place)  # a new name is durable when the folder that holds it is
        self._head = head
        self._chain = zlib.crc32(raw)

    def _record(self) -> None:
        body = _COMMIT.pack(*self._added)
        self._chain = zlib.crc32(body, self._chain)
        with self._writing():
            for file, last in zip(self._files, (b"", b"", body + self._chain.to_bytes(4, "little")), strict=True):
                file.write(last)  # the record goes out once keys and vectors are on the disk, and not before
                file.flush()
                os.fsync(file.fileno())
            self._committed = self._added = _Commit(self._added.entries, self._added.rows)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if not self._intact:
            raise EmbarkError("This writer was closed, or stopped at an earlier error; ask the space for a new one.")
        self._intact = False
        try:
            yield
        except OSError as error:
            text = "The store at {} could not be written ({}); what was committed is safe. Solve that and run again."
            raise EmbarkError(text.format(self._space.path.parent, error)) from error
        self._intact = True


# ── segments ─────────────────────────────────────────────────────────────────────────────────────────────────────────
_ENTRY = np.dtype([("key", KEY), ("rows", "<u4")])
_COMMIT = struct.Struct("<QQII")  # followed by its crc32
_NO_HEAD = Head("", 0, "float32", ragged=False)


class _Commit(NamedTuple):
    entries: int = 0
    rows: int = 0
    keys: int = 0  # crc32 of the bytes added since the commit before
    vectors: int = 0


@dataclass(frozen=True)
class _Segment:
    path: Path
    head: Head
    commits: tuple[_Commit, ...]
    damage: str = ""  # of its head or its records

    @property
    def matrix(self) -> Array:
        return _map(self.path / "vectors.bin", DTYPES[self.head.dtype], self.commits[-1].rows, self.head.dim)

    def entries(self, start: int = 0) -> Array:
        return np.fromfile(
            self.path / "keys.bin", _ENTRY, self.commits[-1].entries - start, offset=start * _ENTRY.itemsize
        )

    def problem(self) -> str:
        """What is wrong with the last commit, or "". Quick for a sealed segment: its last commit added nothing."""
        last = self.commits[-1]
        before = self.commits[-2] if self.commits[1:] else _Commit()
        width = self.head.dim * np.dtype(self.head.dtype).itemsize
        for name, size in ("keys.bin", last.entries * _ENTRY.itemsize), ("vectors.bin", last.rows * width):
            file = self.path / name
            if not file.exists() or file.stat().st_size < size:
                return f"{name} is shorter than commit {len(self.commits)} says"
        if zlib.crc32(self.entries(before.entries).data) != last.keys:
            return f"the keys of commit {len(self.commits)} are damaged"
        if zlib.crc32(self.matrix[before.rows :].data) != last.vectors:
            return f"the vectors of commit {len(self.commits)} are damaged"
        return ""


def _open(path: Path) -> _Segment:
    """A segment up to its last intact commit."""
    segment = _scan(path)
    while segment.commits and segment.problem():
        segment = replace(segment, commits=segment.commits[:-1])
    return segment


def _scan(path: Path) -> _Segment:
    """A segment as its intact commit records describe it."""
    try:
        raw, records = (path / "head.json").read_bytes(), (path / "commits.bin").read_bytes()
        fields = json.loads(raw)
        if fields["format"] > FORMAT:
            raise EmbarkError(
                f"{path} was written by a newer embark (format {fields['format']}); "
                "upgrade, or set EMBARK_HOME to another folder."
            )
        head = Head(**fields)
    except FileNotFoundError:  # a writer is just creating it, or died while doing so
        return _Segment(path, _NO_HEAD, ())
    except (ValueError, TypeError, KeyError):
        return _Segment(path, _NO_HEAD, (), "head.json cannot be read" if records else "")
    chain = zlib.crc32(raw)
    commits: list[_Commit] = []
    for end in range(_COMMIT.size, len(records) - 3, _COMMIT.size + 4):
        chain = zlib.crc32(records[end - _COMMIT.size : end], chain)
        if records[end : end + 4] != chain.to_bytes(4, "little"):
            return _Segment(path, head, tuple(commits), f"head.json or commit record {len(commits) + 1} is damaged")
        commits.append(_Commit(*_COMMIT.unpack_from(records, end - _COMMIT.size)))
    return _Segment(path, head, tuple(commits))


@lru_cache(maxsize=128)  # a mapping holds a file descriptor, and a space may have thousands of segments
def _map(path: Path, dtype: str, rows: int, dim: int) -> Array:
    return np.asarray(np.memmap(path, dtype, "r", shape=(rows, dim))) if rows * dim else np.empty((rows, dim), dtype)


class _Index:
    """The place of each distinct key: sorted by key, looked up by the first 64 bits, verified on all of them."""

    def __init__(self, segments: Sequence[_Segment]) -> None:
        entries = np.concatenate([np.empty(0, _ENTRY), *(segment.entries() for segment in segments)])
        words = _words(entries["key"])
        count = entries["rows"].astype(np.int64)
        if count.sum() != sum(segment.commits[-1].rows for segment in segments):
            raise EmbarkError(f"{segments[0].path.parent} is damaged: its keys and vectors disagree; verify it.")
        order = np.argsort(words[:, 0])
        if (words[order[1:], 0] == words[order[:-1], 0]).any():  # duplicates, or different keys with equal prefixes
            order = np.lexsort(words.T[::-1])
            order = order[np.append(True, (words[order[1:]] != words[order[:-1]]).any(axis=1))]
        self.segments = segments
        self.words = words[order]
        self.prefix = words[order, 0]
        self.count = count[order]
        self.first = (np.cumsum(count) - count)[order]
        edges = np.flatnonzero(np.diff(self.prefix)) + 1  # where the next prefix begins
        self.longest = int(np.diff(np.concatenate([[0], edges, [len(order)]])).max())  # in practice 1: no collision

    def __call__(self, keys: Array) -> Array:
        """The place of each key, -1 where there is none."""
        wanted = _words(keys)
        order = np.argsort(wanted[:, 0])  # a search in order keeps to the cache, and is twice as fast with its sort
        start = np.empty(len(wanted), np.int64)
        start[order] = np.searchsorted(self.prefix, wanted[order, 0])
        places = np.full(len(wanted), -1)
        for step in range(self.longest):
            candidate = np.minimum(start + step, len(self.prefix) - 1)
            equal = (self.words[candidate] == wanted).all(axis=1)
            places[equal] = candidate[equal]
        return places


def _words(keys: Array) -> Array:
    """Keys as four 64-bit numbers each."""
    if keys.dtype != KEY:
        raise EmbarkError(f"Keys are 32-byte records ({KEY}), not {keys.dtype}.")
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 4)


def _flat(parts: list[Array], dtype: Any) -> Array:
    """The matrices as one, in the dtype that is stored."""
    if any(np.ndim(part) != 2 for part in parts) or len({part.shape[1] for part in parts}) > 1:
        raise EmbarkError("Vectors come as one (n, dim) matrix, or as a list of (rows, dim) matrices of one width.")
    whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
    name = np.dtype(dtype or whole.dtype).name
    if name not in DTYPES or not np.can_cast(whole.dtype, DTYPES[name], "same_kind"):
        raise EmbarkError(f"{whole.dtype} vectors cannot be stored as {name}; the store holds {', '.join(DTYPES)}.")
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(whole, DTYPES[name])
    except FloatingPointError as error:
        raise EmbarkError(f"Some values are too large for {name}; store these vectors as float32.") from error


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else []


def _sync(path: Path) -> None:
    if os.name != "nt":  # Windows cannot open a folder
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
