"""Media inside larger files (parquet columns, tars, zips): read by position when needed, their hashes stored on disk.

A chunk of such media is a small value that can be pickled: it names the file and the position, and holds no bytes.
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
from embark.types import Array, Bytes, EmbarkError, Media, Modality

GROUP_BYTES = 1 << 30  # of row groups in memory
BATCH = 256  # rows decoded at a time: nested binaries of more than 2 GB cannot be decoded at once
BLOCK = 1000  # media whose hashes are stored in one file


@dataclass(frozen=True)
class LazyMedia(Media):
    """Media with lazy chunks: its digest is that of any media of these bytes, without reading them each time."""

    @cached_property
    def digest(self) -> bytes:
        outer = hashlib.sha256()
        for chunk in self.chunks:
            outer.update(chunk.sha256() if isinstance(chunk, LazyBytes) else _sha256(chunk))
        return outer.digest()


def lazy_media(kind: Modality, chunk: Bytes) -> Media:
    """Media of one chunk."""
    return LazyMedia(kind, (chunk,))


def film(frames: Iterable[Media]) -> Media:
    """A film made of pictures, in their order."""
    return LazyMedia("video", tuple(chunk for frame in frames for chunk in frame.chunks))


@dataclass(frozen=True)
class Container:
    """The media in one file, by position; `name` tells several containers of a file apart."""

    path: str
    digests: str  # the folder of stored hashes
    name: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, position: int) -> bytes | None:
        """The bytes at a position; None where there are none."""

    def sha256(self, position: int) -> bytes:
        """The hash of the bytes at a position."""
        return bytes(_hashes(self, position // BLOCK)[position % BLOCK])


@dataclass(frozen=True, slots=True)
class LazyBytes:
    """The bytes at one position of a container: calling it reads them."""

    container: Container
    position: int

    def __call__(self) -> bytes:
        return _not_empty(self.container.read(self.position), self.container, self.position)

    def sha256(self) -> bytes:
        """The hash of the bytes."""
        return self.container.sha256(self.position)


# ── stored hashes ────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def _hashes(container: Container, block: int) -> Array:
    """The hashes of one block of a container, from disk or computed in one pass; a changed file has other hashes."""
    facts = os.stat(container.path)
    identity = f"{os.path.abspath(container.path)}\0{facts.st_size}\0{facts.st_mtime_ns}\0{container.name}"
    path = Path(container.digests, f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}-{block}.npy")
    positions = range(block * BLOCK, min(len(container), (block + 1) * BLOCK))
    try:
        stored: Array = np.load(path, allow_pickle=False)
        if stored.shape == (len(positions), 32) and stored.dtype == np.uint8:
            return stored
    except (OSError, ValueError, EOFError):
        pass
    joined = b"".join(hashlib.sha256(container.read(position) or b"").digest() for position in positions)
    hashes = np.frombuffer(joined, np.uint8).reshape(-1, 32)
    with suppress(OSError), atomically(path) as out:  # they only save time
        np.save(out, hashes)
    return hashes


def _sha256(chunk: Bytes) -> bytes:
    return hashlib.sha256(chunk if isinstance(chunk, bytes) else chunk()).digest()


def _not_empty(data: bytes | None, container: Container, position: int) -> bytes:
    if data is None:
        raise EmbarkError(f"{container.path}: column '{container.name}' has no bytes in row {position}.")
    return data


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Column(Container):
    """A media column of a parquet file: binary, a struct with `bytes`, or a list of either. Positions are rows."""

    def __len__(self) -> int:
        return int(footer(self.path).num_rows)

    def read(self, position: int) -> bytes | None:
        data: bytes | None = self.scalar(position).as_py()
        return data

    def scalar(self, row: int) -> Any:
        """The value as arrow has it: binary, or a list."""
        starts = _starts(self.path)
        group = int(np.searchsorted(starts, row, "right")) - 1
        return _GROUPS.get((self.path, self.name, group))[row - int(starts[group])]

    def filled(self) -> Array:
        """Which rows hold something, by the file's statistics, else by reading."""
        meta, leaf = footer(self.path), self._null_leaf()
        filled = np.ones(meta.num_rows, bool)
        for group, start in enumerate(_starts(self.path)):
            facts = meta.row_group(group)
            index = next(i for i in range(facts.num_columns) if facts.column(i).path_in_schema == leaf)
            statistics = facts.column(index).statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                valid = pc.is_valid(_GROUPS.get((self.path, self.name, group)))
                filled[start : start + facts.num_rows] = valid.to_numpy()
        return filled

    def _null_leaf(self) -> str:
        """The stored column that is null where a row is empty."""
        return _bytes_leaf(self.path, self.name)


@dataclass(frozen=True)
class SampledColumn(Column):
    """A column of sounds that were stored decoded: a wave file is made of their samples when it is needed."""

    def read(self, position: int) -> bytes | None:
        sound = self.scalar(position)
        if not sound.is_valid:
            return None
        samples = np.asarray(sound["array"].values, np.float64)
        return wav.from_samples(samples, int(sound["sampling_rate"].as_py()))

    def _null_leaf(self) -> str:
        return f"{self.name}.sampling_rate"


@dataclass(frozen=True, slots=True)
class ListElement:
    """One of the media in a row of a list column: calling it reads its bytes."""

    column: Column
    row: int
    index: int

    def __call__(self) -> bytes:
        element = self.column.scalar(self.row).values[self.index]
        data = element["bytes"] if pa.types.is_struct(element.type) else element
        return _not_empty(data.as_py(), self.column, self.row)


@lru_cache(maxsize=512)
def footer(path: str) -> Any:
    """The metadata of a parquet file."""
    return pq.read_metadata(path)


def batches(path: str, columns: list[str], groups: list[int] | None = None) -> Any:
    """The rows of these columns, in batches; of all row groups unless some are named."""
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
    """The columns of row groups that were read last, in memory: rows read in order are decoded once."""

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[str, str, int], Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, int]) -> Any:
        with self._lock:
            future = self._columns.get(key)
            first = future is None
            if future is None:
                future = self._columns[key] = Future()
            self._columns.move_to_end(key)
        if first:
            try:
                future.set_result(self._load(*key))
            except BaseException as error:
                with self._lock:
                    self._columns.pop(key, None)
                future.set_exception(error)
                raise
            with self._lock:
                while len(self._columns) > 1 and self._bytes() > GROUP_BYTES:
                    self._columns.popitem(last=False)
        return future.result()

    def _bytes(self) -> int:
        return sum(future.result().nbytes for future in self._columns.values() if future.done())

    def _load(self, path: str, column: str, group: int) -> Any:
        leaf = _bytes_leaf(path, column)
        parts = [batch.column(0) for batch in batches(path, [leaf], [group])]
        return pa.chunked_array([pc.struct_field(part, "bytes") for part in parts] if leaf != column else parts)


_GROUPS = _Groups()


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Members(Container):
    """The files in an uncompressed tar or a zip."""

    def __len__(self) -> int:
        return len(members(self.path))

    def read(self, position: int) -> bytes | None:
        return _extract(self.path, *_locations(self.path)[position])


@dataclass(frozen=True, slots=True)
class Member(LazyBytes):
    """A file in an archive, which is read without the archive's index."""

    offset: int
    size: int
    packing: int

    def __call__(self) -> bytes:
        return _extract(self.container.path, self.offset, self.size, self.packing)


TAR = -1  # a packing of our own: the offset is that of the bytes; else zip's, and it is that of a header
Location = tuple[int, int, int]  # offset, size, packing


@lru_cache(maxsize=64)
def members(path: str) -> dict[str, Location]:
    """Name → location, for each file in an archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            files = [info for info in archive.infolist() if not info.is_dir()]
        unusual = [info for info in files if info.flag_bits & 1 or info.compress_type not in (0, 8)]
        if unusual:
            raise EmbarkError(f"{path}: '{unusual[0].filename}' is encrypted or packed in an uncommon way.")
        return {info.filename: (info.header_offset, info.compress_size, info.compress_type) for info in files}
    with tarfile.open(path, "r:") as tar:
        return {info.name.removeprefix("./"): (info.offset_data, info.size, TAR) for info in tar if info.isfile()}


@lru_cache(maxsize=64)
def _locations(path: str) -> list[Location]:
    """Where each file of an archive is, in order."""
    return list(members(path).values())


def _extract(path: str, offset: int, size: int, packing: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        if packing != TAR:
            header = file.read(30)
            file.seek(sum(struct.unpack("<HH", header[26:30])), os.SEEK_CUR)
        data = file.read(size)
    if len(data) != size:
        raise EmbarkError(f"{path} ends within a file that it holds: delete it and fetch it again.")
    return zlib.decompress(data, -zlib.MAX_WBITS) if packing == zipfile.ZIP_DEFLATED else data
