"""Media inside larger files (parquet columns, tars, zips): read by position when needed, their hashes kept on disk.

A chunk of such media is a small value that can be pickled: it names the file and the position, and holds no bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import tarfile
import threading
import zipfile
import zlib
from abc import abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Any, cast
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embark.atomic import atomically
from embark.file_hashes import state_key
from embark.items import limits, wav
from embark.items.errors import errors_about
from embark.items.upright import orientation
from embark.types import Array, EmbarkError, Media

ROW_GROUP_BYTES = 1 << 27  # of row groups in memory: rows are read in order, or nearly so
FEWEST_GROUPS = 2  # in memory, however large they are: where one ends, some threads read it and others the next
BATCH = 256  # rows decoded at a time: nested binaries of more than 2 GB cannot be decoded at once
MOST_ROWS = 1 << 14  # decoded at a time where values are small
BATCH_BYTES = 1 << 24  # of such rows
BATCHES = 4  # in which all that a small file may become is decoded, however often a value is repeated
DENSE = 8  # of so many cells of a row group, more than one is wanted where views may keep all of it in memory
HASH = 32  # bytes of a hash
FILE_HASHES = 1000  # hashes kept in one file
BLOCKS = 512  # hashes of so many blocks are remembered: 16 MB


@dataclass(frozen=True)
class StoredMedia(Media):
    """Media whose chunks are read from larger files; their digest is computed from the hashes kept on disk."""

    def compute_digest(self) -> bytes:
        hashes = (chunk.sha256() if isinstance(chunk, LazyBytes) else _sha256(chunk) for chunk in self.chunks)
        return hashlib.sha256(b"".join(hashes)).digest()


def video_from_frames(frames: Iterable[Media]) -> Media:
    """A video made of images, in their order."""
    return StoredMedia("video", tuple(chunk for frame in frames for chunk in frame.chunks))


@dataclass(frozen=True)
class MediaSequence:
    """The encoded media in one file (or in column `name` of it), read by position."""

    path: str
    digests: str  # the folder of kept hashes
    name: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, position: int) -> bytes | None:
        """The bytes at a position; None where there are none."""

    def view(self, position: int) -> bytes | memoryview | None:
        """As `read`, or a part of larger memory, which is kept as long as the view is."""
        return self.read(position)

    def read_in_order(self, positions: range) -> Iterator[bytes | memoryview | None]:
        """The bytes at positions that follow each other, or views of them."""
        return map(self.read, positions)

    def chunk(self, position: int, *location: int) -> LazyBytes:
        """The bytes at a position, unread; `location` is that of `LazyBytes`."""
        return LazyBytes(self, position)

    def hashes(self, positions: Array) -> Array:
        """(n, 32): the hashes of the bytes at these positions."""
        return self._facts(positions)[:, :HASH]

    def orientations(self, positions: Array) -> Array:
        """The EXIF orientations of the bytes at these positions, where they are pictures."""
        return self._facts(positions)[:, HASH]

    def scans(self, positions: Array) -> Iterator[Scan]:
        """What there is to do before these hashes and orientations are known, in parts for threads."""
        return (Scan(self, block) for block in np.unique(positions // FILE_HASHES).tolist())

    def _facts(self, positions: Array) -> Array:
        order = np.argsort(positions, kind="stable")
        blocks = positions[order] // FILE_HASHES
        begins = np.flatnonzero(np.diff(blocks, prepend=-1))
        out = np.empty((len(positions), HASH + 1), np.uint8)
        with errors_about(self.path):
            for block, rows in zip(blocks[begins].tolist(), np.split(order, begins[1:]), strict=True):
                out[rows] = _facts(self, block)[positions[rows] % FILE_HASHES]
        return out


@dataclass(frozen=True, slots=True)
class Scan:
    """The work that the hashes and orientations of one block of a sequence need."""

    sequence: MediaSequence
    block: int

    def __call__(self) -> None:
        with errors_about(self.sequence.path):
            _facts(self.sequence, self.block)

    def is_done(self) -> bool:
        """Whether they are on disk."""
        return _path(self.sequence, self.block).exists()


@dataclass(frozen=True, slots=True)
class LazyBytes:
    """The bytes at one position of a sequence, read when called."""

    sequence: MediaSequence
    position: int

    @property
    def location(self) -> tuple[int, ...]:
        """What else it knows about its place in the file."""
        return ()

    def __call__(self) -> bytes:
        with errors_about(self.sequence.path):
            return _checked(self.sequence.read(self.position), self.sequence, self.position)

    def view(self) -> bytes | memoryview:
        """The bytes, or a view of them, for whoever does not keep them."""
        with errors_about(self.sequence.path):
            data = self.sequence.view(self.position)
            return _checked(None, self.sequence, self.position) if data is None else data

    def sha256(self) -> bytes:
        """The hash of the bytes."""
        with errors_about(self.sequence.path):
            return bytes(_facts(self.sequence, self.position // FILE_HASHES)[self.position % FILE_HASHES, :HASH])

    def orientation(self) -> int:
        """The EXIF orientation of the bytes, where they are a picture."""
        with errors_about(self.sequence.path):
            return int(_facts(self.sequence, self.position // FILE_HASHES)[self.position % FILE_HASHES, HASH])


# ── kept hashes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=BLOCKS)
def _facts(sequence: MediaSequence, block: int) -> Array:
    """(n, 33): the hashes and EXIF orientations of one block of a sequence, from disk or computed in one pass."""
    positions = range(block * FILE_HASHES, min(len(sequence), (block + 1) * FILE_HASHES))
    path = _path(sequence, block)
    stored = _stored_block(path, len(positions))
    if stored is not None:
        return stored
    content = bytearray()
    for data in sequence.read_in_order(positions):
        content += _sha256(data or b"")
        content.append(orientation(data or b""))
    pa.default_memory_pool().release_unused()  # of this thread, which may have nothing to read for long
    with suppress(OSError), atomically(path, durable=False) as out:  # they only save time
        out.write(content + _sha256(content))
    return _rows(bytes(content))


def _path(sequence: MediaSequence, block: int) -> Path:
    """The file of a block: under the path and state of the media's file, so that a changed one gets new hashes."""
    key = state_key(sequence.path, f"column {sequence.name}", os.stat(sequence.path))
    return Path(sequence.digests, f"{key}-{block}.facts")


def _stored_block(path: Path, rows: int) -> Array | None:
    """The rows of a block in a file; None where the file is missing, or its hash is not that of its content."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content, own_hash = data[:-HASH], data[-HASH:]
    return _rows(content) if len(content) == rows * (HASH + 1) and _sha256(content) == own_hash else None


def _rows(content: bytes) -> Array:
    return np.frombuffer(content, np.uint8).reshape(-1, HASH + 1)


def _sha256(chunk: Any) -> bytes:
    return hashlib.sha256(chunk() if callable(chunk) else chunk).digest()


def _checked(data: bytes | None, sequence: MediaSequence, row: int) -> bytes:
    if data is None:
        raise EmbarkError(f"{sequence.path}: column '{sequence.name}' has no bytes in row {row}.")
    return data


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ParquetColumn(MediaSequence):
    """A media column of a parquet file: binary, a struct with `bytes`, or a list of either."""

    def __len__(self) -> int:
        return int(parquet_metadata(self.path).num_rows)

    def read(self, position: int) -> bytes | None:
        view = self._view(position)
        return None if view is None else bytes(view)

    def view(self, position: int) -> bytes | memoryview | None:
        group, row = self._group(position)
        group.asked += 1
        view = group.views[row]
        return bytes(view) if view is not None and DENSE * group.asked <= len(group.cells) else view

    def read_in_order(self, positions: range) -> Iterator[bytes | memoryview | None]:
        """The bytes at positions that follow each other: of a row group, a few rows at a time are in memory.

        Row groups that are longer than a block are kept, as they serve several blocks.
        """
        rows = parquet_metadata(self.path).num_rows
        for group, (start, end) in enumerate(pairwise([*_group_starts(self.path), rows])):
            wanted = range(max(start, positions.start), min(end, positions.stop))
            if wanted and end - start > FILE_HASHES:
                yield from map(self._view, wanted)
            elif wanted:
                values = chain.from_iterable(map(self._values, _cells(self.path, self.name, group)))
                yield from islice(values, wanted.start - start, wanted.stop - start)

    def _view(self, position: int) -> bytes | memoryview | None:
        group, row = self._group(position)
        return group.views[row]

    def _values(self, cells: Any) -> Iterable[bytes | memoryview | None]:
        """The bytes of cells."""
        return binary_views(cells)

    def _group(self, position: int) -> tuple[RowGroup, int]:
        """The row group of a position, and the row in it."""
        starts = _group_starts(self.path)
        group = bisect_right(starts, position) - 1
        return _ROW_GROUPS.get((self.path, self.name, group)), position - starts[group]

    def scalar(self, position: int) -> Any:
        """The cell at a position as an Arrow scalar: binary, or a list."""
        group, row = self._group(position)
        return group.cells[row]

    def valid(self) -> Array:
        """Which rows are not null, by the file's statistics where it has them, else by reading."""
        metadata = parquet_metadata(self.path)
        leaf = self._null_leaf()
        valid = np.ones(metadata.num_rows, bool)
        for group, start in enumerate(_group_starts(self.path)):
            row_group = metadata.row_group(group)
            columns = map(row_group.column, range(row_group.num_columns))
            statistics = next(column.statistics for column in columns if column.path_in_schema == leaf)
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                cells = _ROW_GROUPS.get((self.path, self.name, group)).cells
                valid[start : start + row_group.num_rows] = pc.is_valid(cells).to_numpy()
        return valid

    def _null_leaf(self) -> str:
        """The stored column that is null where a cell is."""
        return _bytes_leaf(self.path, self.name)


@dataclass(frozen=True)
class SampleColumn(ParquetColumn):
    """A column of decoded sounds; their samples are encoded as wave files when read."""

    def view(self, position: int) -> bytes | memoryview | None:
        return self._view(position)

    def _view(self, position: int) -> bytes | memoryview | None:
        return self._encoded(self.scalar(position))

    def _values(self, cells: Any) -> Iterable[bytes | memoryview | None]:
        return map(self._encoded, cells)

    def _encoded(self, cell: Any) -> bytes | None:
        if not cell.is_valid:
            return None
        return wav.from_samples(np.asarray(cell["array"].values, np.float64), int(cell["sampling_rate"].as_py()))

    def _null_leaf(self) -> str:
        return f"{self.name}.sampling_rate"


@dataclass(frozen=True, slots=True)
class ListElement:
    """One of the media in a list cell."""

    column: ParquetColumn
    row: int
    position: int

    def __call__(self) -> bytes:
        with errors_about(self.column.path):
            element = self.column.scalar(self.row).values[self.position]
            data = element["bytes"] if pa.types.is_struct(element.type) else element
            return _checked(data.as_py(), self.column, self.row)


@lru_cache(maxsize=512)
def parquet_metadata(path: str) -> Any:
    """The metadata of a parquet file."""
    return pq.read_metadata(path)


def parquet_batches(path: str, columns: list[str], groups: list[int] | None = None) -> Iterator[Any]:
    """The rows of these columns, in record batches; of all row groups unless some are named.

    A value of a dictionary may stand in every row, so small files can become large: batches are counted as they come.
    """
    limit = limits.unpacked(os.path.getsize(path))
    with pq.ParquetFile(path, metadata=parquet_metadata(path)) as file:
        yield from _counted_batches(file, path, columns, groups, _batch_rows(path, tuple(columns), limit), limit)


def changing_parquet_batches(path: str, columns: list[str]) -> Iterator[Any]:
    """As `parquet_batches`, of a file that may be another at the next call."""
    limit = limits.unpacked(os.path.getsize(path))
    with pq.ParquetFile(path) as file:
        yield from _counted_batches(
            file, path, columns, None, _rows_at_a_time(file.metadata, path, tuple(columns), limit), limit
        )


def _counted_batches(
    file: Any, path: str, columns: list[str], groups: list[int] | None, rows: int, limit: int
) -> Iterator[Any]:
    """So many rows at a time; an error once they are more bytes than the limit."""
    size = 0
    for batch in file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
        size += batch.nbytes
        if size > limit:
            raise EmbarkError(f"{path} cannot be read: {limits.explain('it', limit)}.")
        yield batch


@lru_cache(maxsize=512)
def _batch_rows(path: str, columns: tuple[str, ...], limit: int) -> int:
    """As `_rows_at_a_time`, of a file that stays as it is."""
    return _rows_at_a_time(parquet_metadata(path), path, columns, limit)


def _rows_at_a_time(metadata: Any, path: str, columns: tuple[str, ...], limit: int) -> int:
    """The rows to decode at a time: fewer where any of them may hold a large value, as of a dictionary."""
    rows = MOST_ROWS
    values = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number, leaf in enumerate(map(group.column, range(group.num_columns))):
            if any(leaf.path_in_schema == name or leaf.path_in_schema.startswith(f"{name}.") for name in columns):
                values += leaf.num_values
                size = leaf.total_uncompressed_size
                if size > limit or values * 8 > limit:
                    reason = limits.explain(f"column '{leaf.path_in_schema}'", limit)
                    raise EmbarkError(f"{path} cannot be read: {reason}.")
                lists = metadata.schema.column(number).max_repetition_level > 0
                if not lists and REPEATING.isdisjoint(leaf.encodings):
                    rows = min(rows, max(BATCH, BATCH_BYTES * leaf.num_values // max(1, size)))
                    size = _dictionary_bytes(path, leaf)
                else:
                    rows = min(rows, BATCH)
                if leaf.has_dictionary_page:
                    rows = min(rows, limits.UNPACKED // BATCHES // max(1, size))
    return max(1, rows)


REPEATING = {"DELTA_BYTE_ARRAY"}  # encodings whose values share bytes with others


def _dictionary_bytes(path: str, leaf: Any) -> int:
    """The size of the dictionary of a column; none of its values is larger.

    Its page begins with a header in Thrift's compact protocol: two numbers of 7 bits a byte, its kind and its size.
    """
    if not leaf.has_dictionary_page:
        return 0
    with open(path, "rb") as file:
        file.seek(leaf.dictionary_page_offset or 0)
        header = file.read(12)
    numbers = re.match(rb"\x15([\x80-\xff]*[\x00-\x7f])\x15([\x80-\xff]{0,4}[\x00-\x7f])", header, re.DOTALL)
    if numbers is None or numbers[1] != DICTIONARY_PAGE:
        return int(leaf.total_uncompressed_size)
    zigzag: int = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(numbers[2]))
    return zigzag // 2  # the last bit is the sign


DICTIONARY_PAGE = b"\x04"


@lru_cache(maxsize=512)
def _group_starts(path: str) -> list[int]:
    """The first row of each row group."""
    metadata = parquet_metadata(path)
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return [0, *accumulate(rows[:-1])]


def _bytes_leaf(path: str, column: str) -> str:
    kind = parquet_metadata(path).schema.to_arrow_schema().field(column).type
    return f"{column}.bytes" if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else column


class RowGroup:
    """The cells of a column in a row group."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells
        self.asked = 0  # cells that someone wanted views of

    @cached_property
    def views(self) -> list[bytes | memoryview | None]:
        """The bytes of binary cells, where they lie in memory."""
        return list(chain.from_iterable(map(binary_views, self.cells.chunks)))


def binary_views(cells: Any) -> Sequence[bytes | memoryview | None]:
    """The bytes of an Arrow array of binaries: views of its memory, as Arrow copies each of its scalars."""
    wide = pa.types.is_large_binary(cells.type)
    if not (wide or pa.types.is_binary(cells.type)) or not len(cells):
        return cast("list[bytes | None]", cells.to_pylist())
    _, ends, content = cells.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[cells.offset :][: len(cells) + 1].tolist()
    memory = memoryview(content or b"").cast("B")
    views = [memory[start:end] for start, end in pairwise(offsets)]
    if not cells.null_count:
        return views
    return [view if valid else None for view, valid in zip(views, pc.is_valid(cells).to_pylist(), strict=True)]


class _RowGroups:
    """The columns of row groups that were read last: rows that are read in order are decoded once."""

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[str, str, int], Future[RowGroup]] = OrderedDict()
        self._lock = threading.Lock()
        self._own = threading.local()  # the group that a thread read last: at a lock, threads that drive a device wait

    def get(self, key: tuple[str, str, int]) -> RowGroup:
        """The cells of (path, column, row group); threads that need the same ones wait for the first of them."""
        last, group_if_kept = getattr(self._own, "last", (None, lambda: None))
        if last == key and (group := group_if_kept()) is not None:
            return cast(RowGroup, group)
        group = self._shared(key)
        self._own.last = key, ref(group)
        return group

    def _shared(self, key: tuple[str, str, int]) -> RowGroup:
        with self._lock:
            future = self._columns.get(key)
            missing = future is None
            if future is None:
                future = self._columns[key] = Future()
            self._columns.move_to_end(key)
        if missing:
            try:
                future.set_result(self._load(*key))
            except BaseException as error:
                with self._lock:
                    self._columns.pop(key, None)
                future.set_exception(error)
                raise
            with self._lock:
                while len(self._columns) > FEWEST_GROUPS and self._bytes() > ROW_GROUP_BYTES:
                    self._columns.popitem(last=False)
        return future.result()

    def _bytes(self) -> int:
        return sum(future.result().cells.nbytes for future in self._columns.values() if future.done())

    def _load(self, path: str, column: str, group: int) -> RowGroup:
        return RowGroup(pa.chunked_array(_cells(path, column, group)))


def _cells(path: str, column: str, group: int) -> Iterator[Any]:
    """The cells of a column in a row group, in arrays of some rows."""
    leaf = _bytes_leaf(path, column)
    for batch in parquet_batches(path, [leaf], [group]):
        yield batch.column(0) if leaf == column else pc.struct_field(batch.column(0), "bytes")


_ROW_GROUPS = _RowGroups()


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ArchiveFiles(MediaSequence):
    """The files in an uncompressed tar or a zip."""

    def __len__(self) -> int:
        return len(archive_index(self.path))

    def read(self, position: int) -> bytes | None:
        return _extract(self.path, *_locations(self.path)[position])

    def chunk(self, position: int, *location: int) -> LazyBytes:
        return ArchiveFile(self, position, *location)


@dataclass(frozen=True, slots=True)
class ArchiveFile(LazyBytes):
    """A file in an archive, read without the archive's index."""

    offset: int
    size: int
    packing: int

    @property
    def location(self) -> tuple[int, ...]:
        return self.offset, self.size, self.packing

    def __call__(self) -> bytes:
        with errors_about(self.sequence.path):
            return _extract(self.sequence.path, self.offset, self.size, self.packing)


TAR = -1  # the packing of files in a tar, whose offset is that of the bytes; else zip's, with the offset of a header
Location = tuple[int, int, int]  # offset, size, packing


@lru_cache(maxsize=64)
def archive_index(path: str) -> dict[str, Location]:
    """The location of each file in an archive, by name."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            files = [file for file in archive.infolist() if not file.is_dir()]
        for file in files:
            if file.flag_bits & 1 or file.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise EmbarkError(
                    f"{path}: '{file.filename}' is encrypted or not compressed with deflate: unpack and zip it again."
                )
        return {file.filename: (file.header_offset, file.compress_size, file.compress_type) for file in files}
    with tarfile.open(path, "r:") as tar:
        index = {file.name.removeprefix("./"): (file.offset_data, file.size, TAR) for file in tar if file.isfile()}
        end = tar.offset
    with open(path, "rb") as data:
        data.seek(end)
        if data.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # a tar ends with blocks of zeros
            raise tarfile.ReadError(f"it is cut off after {len(index):,} files: it has no end marker")
    return index


@lru_cache(maxsize=64)
def _locations(path: str) -> list[Location]:
    """The location of each file in an archive, in order."""
    return list(archive_index(path).values())


def _extract(path: str, offset: int, size: int, packing: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        if packing != TAR:
            file.seek(sum(struct.unpack("<HH", file.read(30)[26:])), os.SEEK_CUR)  # the name and the extra field
        data = file.read(size)
    if len(data) != size:
        raise EmbarkError(f"{path} is cut off: it ends within one of its files. Delete it and fetch it again.")
    return _inflate(data, path) if packing == zipfile.ZIP_DEFLATED else data


def _inflate(data: bytes, path: str) -> bytes:
    limit = limits.unpacked(len(data))
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    unpacked = stream.decompress(data, limit)
    if not stream.eof:
        reason = limits.explain("one of its files", limit) if stream.unconsumed_tail else "one of its files is cut off"
        raise EmbarkError(f"{path} cannot be read: {reason}.")
    return unpacked
