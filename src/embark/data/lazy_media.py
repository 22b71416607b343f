"""Media inside larger files (parquet columns, tars, zips): read by position when needed, their hashes kept on disk.

A chunk of such media is a small value that can be pickled: it names the file and the place, and holds no bytes.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tarfile
import threading
import zipfile
import zlib
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embark.data import wav
from embark.data.atomic import atomically
from embark.types import Array, EmbarkError, Media, Modality

HELD = 1 << 30  # bytes of row groups in memory
BATCH = 256  # rows decoded at a time: nested binaries of more than 2 GB cannot be decoded at once
DIGESTS = 1000  # chunks whose hashes are kept in one file


@dataclass(frozen=True)
class Stored(Media):
    """Media whose chunks are cells: the digest is the one that any media of these bytes has, without reading them."""

    @cached_property
    def digest(self) -> bytes:
        outer = hashlib.sha256()
        for chunk in self.chunks:
            outer.update(chunk.sha256() if isinstance(chunk, Cell) else _sha256(chunk))
        return outer.digest()


def film(frames: Iterable[Media]) -> Media:
    """A film made of pictures, in their order."""
    return Stored("video", tuple(chunk for frame in frames for chunk in frame.chunks))


@dataclass(frozen=True)
class Shelf:
    """The media of one file, in order; `name` tells several shelves of a file apart."""

    path: str
    digests: str  # the folder of kept hashes
    name: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, at: int) -> bytes | None:
        """The bytes at a position."""

    def sha256(self, at: int) -> bytes:
        """The hash of the bytes at a position."""
        return bytes(_kept(self, at // DIGESTS)[at % DIGESTS])


@dataclass(frozen=True, slots=True)
class Cell:
    """The bytes at one position of a shelf."""

    shelf: Shelf
    at: int

    def __call__(self) -> bytes:
        return _there(self.shelf.read(self.at), self)

    def sha256(self) -> bytes:
        """The hash of the bytes."""
        return self.shelf.sha256(self.at)


def stored(kind: Modality, cell: Any) -> Media:
    """Media of one cell."""
    return Stored(kind, (cell,))


# ── kept hashes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def _kept(shelf: Shelf, block: int) -> Array:
    """The hashes of one block of a shelf, from disk or made in one pass; a file that changed has other hashes."""
    facts = os.stat(shelf.path)
    who = hashlib.sha256(f"{os.path.abspath(shelf.path)}\0{facts.st_size}\0{facts.st_mtime_ns}\0{shelf.name}".encode())
    path = Path(shelf.digests, f"{who.hexdigest()[:40]}-{block}.npy")
    places = range(block * DIGESTS, min(len(shelf), (block + 1) * DIGESTS))
    try:
        known: Array = np.load(path, allow_pickle=False)
        if known.shape == (len(places), 32) and known.dtype == np.uint8:
            return known
    except (OSError, ValueError, EOFError):
        pass
    made = b"".join(hashlib.sha256(shelf.read(at) or b"").digest() for at in places)
    found = np.frombuffer(made, np.uint8).reshape(-1, 32)
    with suppress(OSError), atomically(path) as out:  # they only save time
        np.save(out, found)
    return found


def _sha256(chunk: Any) -> bytes:
    return hashlib.sha256(chunk if isinstance(chunk, bytes) else chunk()).digest()


def _there(found: bytes | None, cell: Any) -> bytes:
    if found is None:
        raise EmbarkError(f"{cell.shelf.path}: column '{cell.shelf.name}' has no bytes in row {cell.at}.")
    return found


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Column(Shelf):
    """A media column of a parquet file: binary, a struct with `bytes`, or a list of either."""

    def __len__(self) -> int:
        return int(footer(self.path).num_rows)

    def read(self, at: int) -> bytes | None:
        found: bytes | None = self.scalar(at).as_py()
        return found

    def scalar(self, at: int) -> Any:
        """The cell as arrow has it: binary, or a list."""
        starts = _starts(self.path)
        group = int(np.searchsorted(starts, at, "right")) - 1
        return _GROUPS.get((self.path, self.name, group))[at - int(starts[group])]

    def full(self) -> Array:
        """Which cells hold something; told by the file's statistics, else by reading."""
        meta, leaf = footer(self.path), self._telling()
        found = np.ones(meta.num_rows, bool)
        for group, start in enumerate(_starts(self.path)):
            facts = meta.row_group(group)
            index = next(i for i in range(facts.num_columns) if facts.column(i).path_in_schema == leaf)
            told = facts.column(index).statistics
            if told is None or not told.has_null_count or told.null_count:
                valid = pc.is_valid(_GROUPS.get((self.path, self.name, group)))
                found[start : start + facts.num_rows] = valid.to_numpy()
        return found

    def _telling(self) -> str:
        """The stored column that is empty where a cell is."""
        return _bytes_leaf(self.path, self.name)


@dataclass(frozen=True)
class Samples(Column):
    """A column of sounds that were stored decoded: a wave file is made of their samples when it is needed."""

    def read(self, at: int) -> bytes | None:
        sound = self.scalar(at)
        if not sound.is_valid:
            return None
        samples = np.asarray(sound["array"].values, np.float64)
        return wav.from_samples(samples, int(sound["sampling_rate"].as_py()))

    def _telling(self) -> str:
        return f"{self.name}.sampling_rate"


@dataclass(frozen=True, slots=True)
class Element:
    """One of the media in a list cell."""

    shelf: Column
    at: int
    place: int

    def __call__(self) -> bytes:
        one = self.shelf.scalar(self.at).values[self.place]
        return _there(one.as_py() if not pa.types.is_struct(one.type) else one["bytes"].as_py(), self)


@lru_cache(maxsize=512)
def footer(path: str) -> Any:
    """The metadata of a parquet file."""
    return pq.read_metadata(path)


def batches(path: str, columns: list[str], groups: list[int] | None = None) -> Any:
    """The rows of some columns, in batches."""
    with pq.ParquetFile(path, metadata=footer(path)) as file:
        groups = list(range(file.num_row_groups)) if groups is None else groups
        yield from file.iter_batches(batch_size=BATCH, row_groups=groups, columns=columns)


@lru_cache(maxsize=512)
def _starts(path: str) -> Array:
    """The first row of each row group."""
    meta = footer(path)
    rows = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
    return np.cumsum([0, *rows[:-1]])


def _bytes_leaf(path: str, column: str) -> str:
    kind = footer(path).schema.to_arrow_schema().field(column).type
    return f"{column}.bytes" if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else column


class _Groups:
    """Columns of row groups that were read last: rows that are asked for in order are decoded once."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str, int], Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, int]) -> Any:
        with self._lock:
            future = self._held.get(key)
            mine = future is None
            if future is None:
                future = self._held[key] = Future()
            self._held.move_to_end(key)
        if mine:
            try:
                future.set_result(self._load(*key))
            except BaseException as error:
                with self._lock:
                    self._held.pop(key, None)
                future.set_exception(error)
                raise
            with self._lock:
                while len(self._held) > 1 and sum(f.result().nbytes for f in self._held.values() if f.done()) > HELD:
                    self._held.popitem(last=False)
        return future.result()

    def _load(self, path: str, column: str, group: int) -> Any:
        leaf = _bytes_leaf(path, column)
        parts = [batch.column(0) for batch in batches(path, [leaf], [group])]
        return pa.chunked_array([pc.struct_field(part, "bytes") for part in parts] if leaf != column else parts)


_GROUPS = _Groups()


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Members(Shelf):
    """The files in an uncompressed tar or a zip."""

    def __len__(self) -> int:
        return len(members(self.path))

    def read(self, at: int) -> bytes | None:
        return _extract(self.path, *_places(self.path)[at])


@dataclass(frozen=True, slots=True)
class Member(Cell):
    """A file in an archive, found again without its index."""

    offset: int
    size: int
    packing: int

    def __call__(self) -> bytes:
        return _extract(self.shelf.path, self.offset, self.size, self.packing)


TAR = -1  # a packing of our own: the offset is that of the bytes; else zip's, and it is that of a header
Where = tuple[int, int, int]  # offset, size, packing


@lru_cache(maxsize=64)
def members(path: str) -> dict[str, Where]:
    """Name → where, for each file in an archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            listed = [one for one in archive.infolist() if not one.is_dir()]
        bad = [one for one in listed if one.flag_bits & 1 or one.compress_type not in (0, 8)]
        if bad:
            raise EmbarkError(f"{path}: '{bad[0].filename}' is encrypted or packed in an uncommon way.")
        return {one.filename: (one.header_offset, one.compress_size, one.compress_type) for one in listed}
    with tarfile.open(path, "r:") as tar:
        return {one.name.removeprefix("./"): (one.offset_data, one.size, TAR) for one in tar if one.isfile()}


@lru_cache(maxsize=64)
def _places(path: str) -> list[Where]:
    """Where each file of an archive is, in order."""
    return list(members(path).values())


def _extract(path: str, offset: int, size: int, packing: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        if packing != TAR:
            head = file.read(30)
            file.seek(sum(struct.unpack("<HH", head[26:30])), os.SEEK_CUR)
        data = file.read(size)
    if len(data) != size:
        raise EmbarkError(f"{path} ends within a file that it holds: delete it and fetch it again.")
    return zlib.decompress(data, -zlib.MAX_WBITS) if packing == zipfile.ZIP_DEFLATED else data
