"""Tables in files: parquet, JSON, CSV, webdataset tars, and media files that are rows themselves.

Values are read by column, media one by one when needed.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from embark.hub.listing import is_local
from embark.items import ItemList, Items, lazy_media, limits
from embark.items.errors import errors_about
from embark.items.lazy_items import MediaItems, text_array
from embark.items.lazy_media import StoredMedia
from embark.readers.sibling_files import SiblingFiles
from embark.types import Array, Bytes, EmbarkError, Item, Modality

ROW = 72  # bytes of an empty row or list in memory, at least
CELL = 8  # bytes of a cell, at least

csv.field_size_limit(1 << 30)  # some cells hold whole documents


class TableFile(ABC):
    """The rows of one file."""

    path: str
    column_names: tuple[str, ...]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, column: str) -> list[Any]:
        """The values of a column."""

    @abstractmethod
    def chunks(self, column: str) -> Sequence[Bytes | None]:
        """The encoded media of a column, unread; None for an empty cell."""

    def texts(self, column: str) -> Any:
        """The values of a column as an Arrow array of texts."""
        return text_array(None if value is None else str(value) for value in self.values(column))

    def missing(self, column: str) -> Array:
        """Which rows have no value in a column."""
        return np.array([value is None for value in self.values(column)], bool)

    def media(self, kind: Modality, column: str) -> tuple[Items, Array]:
        """The media of a column as items, and which rows have one."""
        chunks = self.chunks(column)
        items = [Item(() if chunk is None else (StoredMedia(kind, (chunk,)),)) for chunk in chunks]
        return ItemList(items), np.array([chunk is not None for chunk in chunks], bool)

    def chunk_lists(self, column: str) -> Sequence[Sequence[Bytes]]:
        """The encoded media of a column of lists, unread."""
        raise EmbarkError(f"{self.path}: column '{column}' holds single files, not lists of media.")

    def file_names(self, column: str) -> list[str | None] | None:
        """The names of the files that a column names; None where it does not name files."""
        return None

    def class_names(self, column: str) -> tuple[str, ...] | None:
        """The names of a class column, where the file declares them."""
        return None


def open_table_file(path: Path, digests: Path, siblings: SiblingFiles | None = None) -> TableFile:
    """The table in a file, by the file's ending; its texts may name media among its `siblings`."""
    with errors_about(path):
        if path.name.endswith(".parquet"):
            return Parquet(path, digests, siblings)
        if path.name.endswith(".tar"):
            return Shard(path, digests)
        return RecordFile(path, siblings)


def _unpacked(path: Path) -> bytes:
    """The content of a file that may be packed, which may not become more than `limits` has it."""
    if path.suffix != ".gz":
        return path.read_bytes()
    out = io.BytesIO()
    with gzip.open(path) as file:
        limits.copy(file, out, limits.unpacked(path.stat().st_size))
    return out.getvalue()


def _check_values(text: str, limit: int) -> None:
    """An error where the rows and lists of an unpacked text take more than the limit: it may be short."""
    rows = text.count("\n") + text.count("{") + text.count("[")
    cells = text.count(",")
    if ROW * rows + CELL * cells > limit:
        raise ValueError(limits.explain(f"it has up to {rows:,} rows and lists, and", limit))


class Parquet(TableFile):
    """A parquet file."""

    def __init__(self, path: Path, digests: Path, siblings: SiblingFiles | None = None) -> None:
        self.path = str(path)
        self.digests = str(digests)
        self.siblings = siblings
        self.schema = lazy_media.parquet_metadata(self.path).schema.to_arrow_schema()
        self.column_names = tuple(self.schema.names)

    def __len__(self) -> int:
        return int(lazy_media.parquet_metadata(self.path).num_rows)

    def values(self, column: str) -> list[Any]:
        _, *fields = [column] if column in self.column_names else column.split(".")
        values = [value for array in self._arrays(column) for value in array.to_pylist()]
        for field in fields:
            values = [None if value is None else value.get(field) for value in values]
        return values

    def texts(self, column: str) -> Any:
        if not self._is_text(column) and not pa.types.is_integer(self._type(column)):
            return super().texts(column)
        array = pa.chunked_array(self._arrays(column), self._type(column)).cast(pa.large_string()).combine_chunks()
        array.validate(full=True)  # that it is UTF-8
        return array

    def missing(self, column: str) -> Array:
        if column not in self.column_names:
            return super().missing(column)
        return np.concatenate([np.zeros(0, bool), *(array.is_null().to_numpy(False) for array in self._arrays(column))])

    def _arrays(self, column: str) -> list[Any]:
        arrays = [batch.column(0) for batch in lazy_media.parquet_batches(self.path, [column])]
        if (rows := sum(map(len, arrays))) != len(self):
            raise ValueError(f"column '{column}' has {rows:,} of {len(self):,} rows")
        return arrays

    def chunks(self, column: str) -> Sequence[Bytes | None]:
        if self._names_files(column) and self.siblings:
            return self.siblings.chunks(self.values(column))
        media = self._media(column)
        return [media.chunk(row) if valid else None for row, valid in enumerate(media.valid())]

    def media(self, kind: Modality, column: str) -> tuple[Items, Array]:
        if self._names_files(column):
            return super().media(kind, column)
        media = self._media(column)
        return MediaItems(kind, media, np.arange(len(self))), media.valid()

    def _names_files(self, column: str) -> bool:
        """Whether the texts of a column name media of the table's folder."""
        return self.siblings is not None and is_local(self.siblings.source.id) and self._is_text(column)

    def _is_text(self, column: str) -> bool:
        kind = self._type(column)
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def _type(self, column: str) -> Any:
        return self.schema.field(column).type if column in self.column_names else pa.null()

    def _media(self, column: str) -> lazy_media.ParquetColumn:
        kind = self.schema.field(column).type
        if not _is_bytes(kind) and not _is_samples(kind):
            raise EmbarkError(f"{self.path}: column '{column}' holds {kind}, not media.")
        sequence = lazy_media.ParquetColumn if _is_bytes(kind) else lazy_media.SampleColumn
        return sequence(self.path, self.digests, column)

    def chunk_lists(self, column: str) -> Sequence[Sequence[Bytes]]:
        kind = self.schema.field(column).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not _is_bytes(kind.value_type):
            raise EmbarkError(f"{self.path}: column '{column}' holds {kind}, not lists of media.")
        media = lazy_media.ParquetColumn(self.path, self.digests, column)
        schema = lazy_media.parquet_metadata(self.path).schema
        leaves = [schema.column(number).path for number in range(len(schema))]
        paths = [leaf for leaf in leaves if leaf.startswith(f"{column}.") and leaf.endswith(".path")]  # cheap to read
        counts = [
            count
            for batch in lazy_media.parquet_batches(self.path, paths or [column])
            for count in batch.column(0).value_lengths().fill_null(0).to_pylist()
        ]
        return [[lazy_media.ListElement(media, row, position) for position in range(n)] for row, n in enumerate(counts)]

    def file_names(self, column: str) -> list[str | None] | None:
        return self.values(column) if self._is_text(column) else None

    def class_names(self, column: str) -> tuple[str, ...] | None:
        return declared_classes(self.schema, column)


def declared_classes(schema: Any, column: str) -> tuple[str, ...] | None:
    """The names of a class column, as `datasets` writes them into the file."""
    metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    feature = metadata.get("info", {}).get("features", {}).get(column)
    while isinstance(feature, (dict, list)):
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            return tuple(feature["names"])
        feature = feature.get("feature") if isinstance(feature, dict) else next(iter(feature), None)
    return None


def is_media(kind: Any) -> bool:
    """Whether a column of this type can hold images, films or sounds, or lists of them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_media(kind.value_type)
    return _is_bytes(kind) or _is_samples(kind)


def _is_bytes(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_bytes(kind.field("bytes").type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_samples(kind: Any) -> bool:
    return bool(pa.types.is_struct(kind)) and {"array", "sampling_rate"} <= {field.name for field in kind}


class RecordFile(TableFile):
    """A file of JSON lines, a JSON list, or separated values (whose cells stay text, or None if empty).

    Its media are files that cells name.
    """

    def __init__(self, path: Path, siblings: SiblingFiles | None = None) -> None:
        self.path = str(path)
        self.siblings = siblings
        try:
            text = _unpacked(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8") from None
        ending = path.name.removesuffix(".gz").rpartition(".")[2]
        if path.suffix == ".gz":
            _check_values(text, limits.unpacked(path.stat().st_size))
        self.rows = _separated(text, "\t" if ending == "tsv" else "") if ending in ("csv", "tsv") else _json(text)
        self.column_names = tuple(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, column: str) -> list[Any]:
        return [row.get(column) for row in self.rows]

    def chunks(self, column: str) -> Sequence[Bytes | None]:
        return self._files(column, [name or None for name in self.values(column)])

    def file_names(self, column: str) -> list[str | None] | None:
        names = self.values(column)
        return names if all(name is None or isinstance(name, str) for name in names) else None

    def chunk_lists(self, column: str) -> Sequence[Sequence[Bytes]]:
        lists = [cell if isinstance(cell, list) else [cell] if cell else [] for cell in self.values(column)]
        files = iter(self._files(column, [name for names in lists for name in names]))
        return [[next(files) for _ in names] for names in lists]

    def _files(self, column: str, names: list[str | None]) -> list[Any]:
        if self.siblings is None:
            raise EmbarkError(f"{self.path}: column '{column}' holds text, not media.")
        return self.siblings.chunks(names)


class MediaFiles(TableFile):
    """Media files as rows: `file` is the file itself, `label` the name of its folder."""

    column_names = ("file", "label")

    def __init__(self, names: Sequence[str], siblings: SiblingFiles) -> None:
        self.path = siblings.source.id
        self.names = list(names)
        self.siblings = siblings

    def __len__(self) -> int:
        return len(self.names)

    def values(self, column: str) -> list[Any]:
        return list(self.names) if column == "file" else [PurePosixPath(name).parent.name for name in self.names]

    def chunks(self, column: str) -> Sequence[Bytes | None]:
        return self.siblings.chunks(self.names)

    def file_names(self, column: str) -> list[str | None] | None:
        return list(self.names) if column == "file" else None


SEPARATORS = ",;\t|"  # of CSV files: the one that divides the header into the most cells, in this order


def _separated(text: str, separator: str) -> list[dict[str, Any]]:
    first = io.StringIO(text, newline="").readline()
    separator = separator or max(SEPARATORS, key=lambda sign: len(next(csv.reader([first], delimiter=sign), ())))
    header = next(csv.reader([first], delimiter=separator), [])
    if repeated := [name for name in header if name and header.count(name) > 1]:
        raise ValueError(f"several columns are named '{repeated[0]}'")
    spaced = len(header) > 1 and all(name.startswith(" ") for name in header[1:])  # "file, label"
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter=separator, restkey="", strict=True, skipinitialspace=spaced
    )
    rows: list[dict[str, Any]] = [{name: cell or None for name, cell in row.items()} for row in reader]
    if longer := [number for number, row in enumerate(rows, 1) if isinstance(row.get(""), list)]:
        raise ValueError(f"row {longer[0]} has more cells than the header: quote cells that hold {separator!r}")
    return rows


def _json_lines(text: str) -> list[Any]:
    """The values of the lines, or the one value that they are together."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            with suppress(ValueError):
                return [json.loads(text)]
            raise ValueError(f"line {number} is not JSON ({error})") from None
    return rows


def _json(text: str) -> list[dict[str, Any]]:
    """The rows of a list of objects, of an object of columns, or of one object per line."""
    if text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        rows = _json_lines(text)
        if len(rows) == 1 and rows[0] and all(isinstance(column, list) for column in rows[0].values()):
            columns = rows[0]
            if len({len(column) for column in columns.values()}) == 1:
                rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("its rows are not objects")
    return list(rows)


class Shard(TableFile):
    """A webdataset tar: files that share a name up to the first dot are a row, their endings are columns.

    A column may name several endings, as in "jpg;png": each row has the first of them that exists.
    """

    def __init__(self, path: Path, digests: Path) -> None:
        self.path = str(path)
        files = lazy_media.ArchiveFiles(self.path, str(digests))
        self.rows: dict[str, dict[str, lazy_media.ArchiveFile]] = {}
        for position, (name, location) in enumerate(lazy_media.archive_index(self.path).items()):
            folder, slash, base = name.rpartition("/")
            key, dot, ending = base.partition(".")
            if key and dot and not key.startswith("__"):
                row = self.rows.setdefault(folder + slash + key, {})
                row[ending.lower()] = lazy_media.ArchiveFile(files, position, *location)
        self.column_names = ("__key__", *dict.fromkeys(ending for row in self.rows.values() for ending in row))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: Sequence[int]) -> Shard:
        """The rows at these positions; the others are never read."""
        keys = list(self.rows)
        taken = copy(self)
        taken.rows = {keys[position]: self.rows[keys[position]] for position in positions}
        return taken

    def values(self, column: str) -> list[Any]:
        if column == "__key__":
            return list(self.rows)
        return [None if ending is None else self._value(key, ending) for key, ending in self._endings(column)]

    def chunks(self, column: str) -> Sequence[Bytes | None]:
        return [None if ending is None else self.rows[key][ending] for key, ending in self._endings(column)]

    def media(self, kind: Modality, column: str) -> tuple[Items, Array]:
        chunks = [None if ending is None else self.rows[key][ending] for key, ending in self._endings(column)]
        first = next((chunk for chunk in chunks if chunk is not None), None)
        if first is None:
            return super().media(kind, column)
        present = np.array([chunk is not None for chunk in chunks], bool)
        return MediaItems.of_chunks(kind, [chunk or first for chunk in chunks]), present

    def _endings(self, column: str) -> Iterator[tuple[str, str | None]]:
        for key, row in self.rows.items():
            yield key, next((ending for ending in column.split(";") if ending in row), None)

    def _value(self, key: str, ending: str) -> Any:
        parse = PARSE.get(ending.rpartition(".")[2])
        data = self.rows[key][ending]()
        with errors_about(f"{self.path}: '{key}.{ending}'"):
            return parse(data) if parse else data


def _array(data: bytes) -> Any:
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except MemoryError:
        raise ValueError("it states more values than memory holds") from None
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError("it is an array of pickled objects, and unpickling could run code") from None
        raise


PARSE: dict[str, Callable[[bytes], Any]] = {
    "cls": lambda data: int(data.decode().strip()),
    "txt": lambda data: data.decode("utf-8"),
    "json": json.loads,
    "npy": _array,
}
