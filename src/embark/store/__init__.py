"""Where vectors live: key → vector, written once and kept; safe against crashes, damage and concurrent writers.

    ROOT/<space>/                               the vectors of one encoder, named by its fingerprint
        <utc time>-<pid>-<random>.vectors       a segment, what one commit added: see `segments`

The newest sound entry of a key is the one that is read. Readers never write. Putting, listing, reading and deleting
whole segments is all that a store asks of its disk: see `disk`, which is a folder, and `buckets`.
What was committed survives a kill and a power cut; what was only added is lost and embedded again (in a run at most the
commit window of `engine.sink`). Writing, refreshing and looking up cost the same per entry however large a space is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embark import public
from embark.items import KEY
from embark.store.disk import FOLDER, OVERLAYS, Disk
from embark.store.errors import DamagedVectors, Gone, MissingVectors
from embark.store.index import Entries, Index, current_index, extended_index
from embark.store.opening import forget, open_all, open_segment
from embark.store.segments import DTYPES, ENTRY, Head, Segment, checksums, key_words, split_rows, write_segment
from embark.types import Array, EmbarkError

__all__ = ["DamagedVectors", "MissingVectors", "Space", "Store", "Vectors", "Writer"]

if TYPE_CHECKING:  # public names that later rooms have: loaded at first use
    from embark.run.store_health import check as check
    from embark.run.store_health import clean as clean
    from embark.run.store_health import repair as repair
    from embark.run.store_health import size as size
else:
    __getattr__, __dir__ = public.names_of("store")

SMALL_BYTES = 8 << 20  # bytes of a segment that is merged with others: a space of larger ones has few for its size
MERGED = 64 << 20  # bytes of small segments that are merged at once
MANY = 256  # small segments that are left while a writer writes
FEW = 16  # and when it closes


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
        self._segments: tuple[Segment, ...] = ()  # oldest first
        self._last_index: Index | None = None
        self._small: list[tuple[Path, int]] = []  # segments of its writers that shall become one, and their bytes
        self.refresh()

    def refresh(self) -> None:
        """Read what any writer has committed since."""
        segments = tuple(segment for segment in open_all(self.disk, self._folders) if len(segment))
        for segment, other in pairwise(segments):
            if segment.head != other.head:
                heads = f"{segment.place} has {segment.head}, {other.place} has {other.head}"
                raise EmbarkError(f"{heads}: delete the wrong one.")
        self._segments = segments

    def __len__(self) -> int:
        return self._index.distinct()

    def keys(self) -> Array:
        """The distinct keys, in the order of their bytes."""
        stored = sorted({key.tobytes() for segment in self._segments for key in segment.keys})
        return np.frombuffer(b"".join(stored), KEY)

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
            except Gone:  # a writer has merged small segments into one since
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
        segments = open_all(self.disk, self._folders, again=True)
        return [
            f"{segment.place}: {problem}; embark store repair leaves out what is damaged"
            for segment in segments
            for problem in segment.problems()
        ]

    def ignored(self) -> list[str]:
        """A text for each folder with vectors of format 1, which is not read, with what to do about it."""
        folders = [path for folder in self._folders for path in self.disk.ignored(folder)]
        return [f"{path} has vectors in a format that embark does not read: delete this folder." for path in folders]

    def repair(self) -> int:
        """Write the sound entries of damaged segments anew, and delete those segments; returns how many."""
        damaged = [segment for segment in open_all(self.disk, self._folders, again=True) if segment.problems()]
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
        if _superseded(open_all(self.disk, self._folders)):
            segments = open_all(self.disk, self._folders, again=True)
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
        overlay = OVERLAYS.get(self.path.parent)
        return [self.path, *([overlay / self.path.name] if overlay else [])]

    @property
    def _index(self) -> Index:  # made at first use: writing needs none
        self._last_index = current_index(self.path, self._last_index, self._segments)
        return self._last_index


class Vectors:
    """A lazy (n, dim) matrix, gathered from the mapped segments and checked when indexed.

    In a ragged space every entry is a (rows, dim) matrix: indexing gives a list of them, `np.asarray` stacks them all,
    and entry i is then rows `offsets[i]` to `offsets[i + 1]`.
    """

    def __init__(self, space: Space, stored: Entries, keys: Array, entries: Array) -> None:
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
        except Gone:  # a writer has merged small segments into one since
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
        words = key_words(keys)
        head = Head(self._space.path.name, flat.shape[1], flat.dtype.name, ragged)
        if self._head is None:
            self._space.refresh()
        if (known := self._head or self._space.head) and known != head:
            raise EmbarkError(f"{self._space.place} holds {known}; {head} cannot be added to it.")
        entries = np.empty(len(keys), ENTRY)
        entries["key"] = words.view(KEY)[:, 0]
        entries["rows"] = [len(rows) for rows in vectors] if ragged else 1
        entries["sum"] = checksums(words, split_rows(flat, entries["rows"]) if ragged else flat)
        self._head = head
        self._parts.append((entries, flat))

    def commit(self) -> None:
        """Make durable what was added so far."""
        if not self._parts or self._head is None:
            return
        self._closed = True  # for good, if this fails
        path, size = write_segment(self._space.disk, self._space.path, self._head, self._parts)
        self._closed = False
        self._parts = []
        if size < SMALL_BYTES:
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
            with suppress(FileNotFoundError, Gone):  # somebody else has collected or repaired one of them
                stamps = dict(entry for folder in {path.parent for path, _ in small} for entry in disk.segments(folder))
                if not all(stamps.get(path) for path, _ in small):
                    return
                opened = [open_segment(disk, path, stamp) for path, _ in small if (stamp := stamps[path])]
                segments = [segment for segment in opened if len(segment)]
                disk.fetch([(segment.path, segment.stamp) for segment in segments], rows=True)
                if not any(segment.check(np.arange(len(segment))) for segment in segments):  # damage stays to be seen
                    _replace(segments)


def _superseded(segments: Sequence[Segment]) -> list[Segment]:
    """Those whose entries all stand in newer ones; damage is for repair, not silently deleted."""
    superseded = []
    newer = extended_index(None, ())
    for segment in reversed(segments):
        sound = not segment.damage and not segment.lost.any()
        if len(segment) and sound and (newer(segment.keys) >= 0).all():
            superseded.append(segment)
        else:
            newer = extended_index(newer, (segment, *newer.segments))
    return superseded


def _replace(segments: Sequence[Segment]) -> None:
    """One new segment with the sound entries of these, which were checked; then no more these, nor memory for them."""
    heads = [segment.head for segment in segments if not segment.lost.all()]
    parts = [part for segment in segments if len((part := segment.sound())[0])]
    if parts:
        write_segment(segments[0].disk, segments[0].path.parent, heads[0], parts)
    segments[0].disk.delete([segment.path for segment in segments])
    forget(segments)


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
