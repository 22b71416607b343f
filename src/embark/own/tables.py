"""A user's rows as tables of embark's own: Parquet files in `home/own/<hash>`, named by the hash of their content.

Readers read them like every folder, in later processes, too. Equal content is one folder, whatever object it came in.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from embark.atomic import make_durable
from embark.items.encode import encode
from embark.own.records import Record, Records, plain
from embark.paths import component, inside
from embark.types import EmbarkError, Modality

GROUP_ROWS = 1000  # of a row group, at most
BYTES = 64 << 20  # of media in a row group, about
PART = ".part-"  # before the name of a folder that is being written
ABANDONED = 7 * 24 * 3600  # seconds after which nobody writes such a folder any more
UNUSED = 30 * 24 * 3600  # seconds after which tables without results are deleted
REVISION = "sha256-"  # before the hash of the content, which is the revision


@dataclass(frozen=True)
class TableShape:
    """What to keep of rows: `columns`, with the modality of those that hold media; None for texts, labels, numbers.

    Names of files (texts in a column of media) are those of `folder`, and may lead out of it only where
    `allow_outside` is true; `rate` is that of bare samples.
    """

    columns: Mapping[str, Modality | None]
    folder: Path = Path()
    allow_outside: bool = False
    rate: int | None = None


@dataclass(frozen=True)
class OwnTables:
    """The folder of the tables, the revision that names their content, and the number of rows by split."""

    folder: Path
    revision: str
    rows: Mapping[str, int]


def keep(splits: Mapping[str, Records], shape: TableShape, home: Path, split: str | None = None) -> OwnTables:
    """Write rows as tables, one a split: by name, where "" is "test", or by the values of the column `split`."""
    own = (home / "own").absolute()
    try:
        own.mkdir(parents=True, exist_ok=True)
        with _temporary(own) as folder:
            rows, digest = _write(folder, splits, shape, split)
            target = own / digest
            if target.is_dir():
                os.utime(target)  # it is in use
            else:
                make_durable(folder)
                try:
                    folder.rename(target)
                except OSError:  # another process was first
                    if not target.is_dir():
                        raise
    except OSError as error:
        raise EmbarkError(f"The data cannot be kept in {own}: {error.strerror or error}.") from error
    return OwnTables(target, REVISION + digest, rows)


def size(home: Path) -> int:
    """Bytes of all tables."""
    return sum(path.stat().st_size for path in (home / "own").glob("*/*") if path.is_file())


def collect(home: Path, in_use: Collection[str]) -> int:
    """Delete tables that none of these revisions names and that no task was made of for a month; the bytes freed.

    A task that is made of the same data writes them again.
    """
    before = size(home)
    old = time.time() - UNUSED
    for folder in (home / "own").glob("*"):
        if folder.is_dir() and REVISION + folder.name not in in_use and folder.stat().st_mtime < old:
            shutil.rmtree(folder, ignore_errors=True)
    return before - size(home)


@contextmanager
def _temporary(own: Path) -> Iterator[Path]:
    """A folder that is deleted, unless it was renamed; what a killed process left behind is deleted, too."""
    for abandoned in own.glob(f"{PART}*"):
        if time.time() - abandoned.stat().st_mtime > ABANDONED:
            shutil.rmtree(abandoned, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=PART, dir=own))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(
    folder: Path, splits: Mapping[str, Records], shape: TableShape, split: str | None
) -> tuple[dict[str, int], str]:
    """Write all tables; the rows by split, and the hash of everything."""
    tables: dict[str, _Table] = {}
    for name, rows in splits.items():
        for number, row in enumerate(rows):
            if split and plain(row.get(split)) in (None, ""):
                raise EmbarkError(f"Row {number} has no split: its column '{split}' is empty.")
            of_row = str(row[split]) if split else name or "test"
            if of_row not in tables:
                tables[of_row] = _Table(folder / f"{component(of_row)}.parquet", shape)
            try:
                tables[of_row].add(row)
            except EmbarkError as error:
                raise EmbarkError(f"Row {number}{f' of {name}' if name else ''}: {error}") from error.__cause__
    for table in tables.values():
        table.close()
    state = hashlib.sha256(json.dumps(dict(shape.columns)).encode())
    for name in sorted(tables):
        state.update(hashlib.sha256(name.encode()).digest() + tables[name].digest.digest())
    return {name: table.count for name, table in tables.items()}, state.hexdigest()[:40]


class _Table:
    """One table that is being written; what it holds is hashed row by row."""

    def __init__(self, path: Path, shape: TableShape) -> None:
        self.path = path
        self.shape = shape
        self.digest = hashlib.sha256()
        self.count = 0
        self._buffer: list[dict[str, Any]] = []
        self._size = 0
        self._writer: Any = None

    def add(self, row: Record) -> None:
        """Write a row, perhaps later."""
        cells: dict[str, Any] = {}
        for column, kind in self.shape.columns.items():
            cell = plain(row.get(column))
            cells[column] = _plain_value(cell, column) if kind is None else _media(cell, kind, self.shape)
            self.digest.update(_hash(cells[column]))
            self._size += _size(cells[column])
        self.count += 1
        self._buffer.append(cells)
        if len(self._buffer) >= GROUP_ROWS or self._size >= BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._writer is None:
            self.schema = pa.schema([self._field(column, kind) for column, kind in self.shape.columns.items()])
            self._writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")
        for name in (field.name for field in self.schema if pa.types.is_integer(field.type)):
            if any(isinstance(row[name], float) for row in self._buffer):  # Arrow would cut them
                before = f"Column '{name}' holds whole numbers first, and fractions up to row {self.count}"
                raise EmbarkError(f"{before}: make floats of all.")
        try:
            self._writer.write_table(pa.Table.from_pylist(self._buffer, self.schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise EmbarkError(f"A column holds values of several kinds up to row {self.count}: {error}.") from None
        self._buffer = []
        self._size = 0

    def _field(self, column: str, kind: Modality | None) -> Any:
        cells = [row[column] for row in self._buffer if row[column] is not None]
        if kind is not None:
            several = any(isinstance(cell, list) for cell in cells)
            return pa.field(column, pa.list_(pa.binary()) if several else pa.binary())
        try:
            stored = pa.array(cells).type
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise EmbarkError(f"Column '{column}' holds values of several kinds: {error}.") from None
        return pa.field(column, stored if cells else pa.string())


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _media(cell: Any, kind: Modality, shape: TableShape) -> bytes | list[bytes] | None:
    if cell is None or (isinstance(cell, list) and kind == "image"):
        return None if cell is None else [_bytes(part, kind, shape) for part in cell]
    return _bytes(cell, kind, shape)


def _bytes(cell: Any, kind: Modality, shape: TableShape) -> bytes:
    content = encode(cell, kind, shape.rate)
    if isinstance(content, bytes):
        return content
    named = not isinstance(cell, Path)  # a path is the program's own word; texts may be a stranger's
    path = _checked(content, shape) if named and not shape.allow_outside else shape.folder / content.expanduser()
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EmbarkError(f"There is no {kind} {path}: {reason}. Name its folder with folder=….") from None


def _checked(path: Path, shape: TableShape) -> Path:
    """A file of the folder; an absolute name is one, too, if it is in it."""
    folder = shape.folder.expanduser().absolute()
    relative = path.relative_to(folder) if path.is_relative_to(folder) else path
    try:
        return inside(folder, str(relative))
    except EmbarkError as error:
        raise EmbarkError(f"{error} Name its folder with folder=…, or allow it with allow_outside=True.") from None


def _plain_value(cell: Any, column: str) -> Any:
    """Texts, numbers, and lists of them."""
    if isinstance(cell, (list, tuple, set)) or hasattr(cell, "tolist"):
        cells = cell.tolist() if hasattr(cell, "tolist") else sorted(cell) if isinstance(cell, set) else cell
        return [_plain_value(part, column) for part in cells]
    if isinstance(cell, str) and not cell.isascii() and any("\ud800" <= letter <= "\udfff" for letter in cell):
        raise EmbarkError(f"Column '{column}' holds a text that is not valid Unicode: {cell[:60]!r}.")
    if cell is None or isinstance(cell, (str, bool, int, float)):
        return cell
    raise EmbarkError(f"Column '{column}' holds {type(cell).__name__}, not text, numbers or lists of them.")


def _hash(cell: Any) -> bytes:
    if isinstance(cell, bytes):
        return hashlib.sha256(b"\0" + cell).digest()
    if isinstance(cell, list) and cell and isinstance(cell[0], bytes):
        return hashlib.sha256(b"\1" + b"".join(map(_hash, cell))).digest()
    return hashlib.sha256(b"\2" + json.dumps(cell).encode()).digest()


def _size(cell: Any) -> int:
    parts: Iterable[Any] = cell if isinstance(cell, list) else (cell,)
    return sum(len(part) if isinstance(part, bytes) else 8 for part in parts)
