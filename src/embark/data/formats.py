"""Tables in files: parquet, JSON, CSV and webdataset tars. Small columns are read whole, media by cell when needed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from embark.data.lazy_media import Cell, Column, Element, Member, Members, Samples, batches, footer, members
from embark.data.sibling_files import Beside
from embark.types import EmbarkError

csv.field_size_limit(1 << 30)  # some cells hold whole documents


class TableFile(Protocol):
    """The rows of one file. `cells` gives what reads the media of each row: None for an empty cell."""

    names: tuple[str, ...]

    def __len__(self) -> int: ...
    def values(self, column: str) -> list[Any]: ...
    def cells(self, column: str) -> list[Any]: ...
    def cell_lists(self, column: str) -> list[list[Any]]: ...
    def class_names(self, column: str) -> tuple[str, ...] | None: ...


def open_table_file(path: Path, digests: Path, beside: Beside | None = None) -> TableFile:
    """The table in a file, by the file's name; a table of text names media that lie `beside` it."""
    try:
        if path.name.endswith(".parquet"):
            return Parquet(path, digests)
        if path.name.endswith(".tar"):
            return Shard(path, digests)
        return Records(path, beside)
    except (ValueError, OSError, EOFError, zlib.error, tarfile.TarError, csv.Error) as error:
        raise _broken(path, error) from error


def _broken(path: str | Path, error: Exception) -> EmbarkError:
    return EmbarkError(f"{path} cannot be read: {error}. Mend the file, or put a whole copy in its place.")


class Parquet:
    """A parquet file."""

    def __init__(self, path: Path, digests: Path) -> None:
        self.path, self.digests = str(path), str(digests)
        self.schema = footer(self.path).schema.to_arrow_schema()
        self.names = tuple(self.schema.names)

    def __len__(self) -> int:
        return int(footer(self.path).num_rows)

    def values(self, column: str) -> list[Any]:
        top, *inner = [column] if column in self.names else column.split(".")
        found = [value for batch in self._batches([column]) for value in batch.column(top).to_pylist()]
        for field in inner:
            found = [None if value is None else value.get(field) for value in found]
        return found

    def cells(self, column: str) -> list[Any]:
        kind = self.schema.field(column).type
        if not _is_bytes(kind) and not _is_samples(kind):
            raise EmbarkError(f"{self.path}: column '{column}' holds {kind}, not media.")
        shelf = (Column if _is_bytes(kind) else Samples)(self.path, self.digests, column)
        return [Cell(shelf, at) if full else None for at, full in enumerate(shelf.full())]

    def cell_lists(self, column: str) -> list[list[Any]]:
        kind = self.schema.field(column).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not _is_bytes(kind.value_type):
            raise EmbarkError(f"{self.path}: column '{column}' holds {kind}, not lists of media.")
        shelf = Column(self.path, self.digests, column)
        leaves = [footer(self.path).schema.column(at).path for at in range(len(footer(self.path).schema))]
        light = [leaf for leaf in leaves if leaf.startswith(f"{column}.") and leaf.endswith(".path")]  # cheap to read
        counts = [
            count
            for batch in self._batches(light or [column])
            for count in batch.column(0).value_lengths().fill_null(0).to_pylist()
        ]
        return [[Element(shelf, at, place) for place in range(count)] for at, count in enumerate(counts)]

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        try:
            yield from batches(self.path, columns)
        except (ValueError, OSError) as error:  # pages are read one by one, and any of them may be damaged
            raise _broken(self.path, error) from error

    def class_names(self, column: str) -> tuple[str, ...] | None:
        stored = json.loads((self.schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = stored.get("info", {}).get("features", {}).get(column)
        while isinstance(feature, (dict, list)):
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
                return tuple(feature["names"])
            feature = feature.get("feature") if isinstance(feature, dict) else next(iter(feature), None)
        return None


def _is_bytes(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_bytes(kind.field("bytes").type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_samples(kind: Any) -> bool:
    return bool(pa.types.is_struct(kind)) and {"array", "sampling_rate"} <= {field.name for field in kind}


class Records:
    """A file of JSON lines, a JSON list, or comma- or tab-separated values (whose cells stay text, or None if empty).

    Its media are files that cells name.
    """

    def __init__(self, path: Path, beside: Beside | None = None) -> None:
        self.path, self.beside = str(path), beside
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text, kind = raw.decode("utf-8-sig"), path.name.removesuffix(".gz").rpartition(".")[2]
        self.rows = _separated(text, "\t" if kind == "tsv" else ",") if kind in ("csv", "tsv") else _json(text)
        self.names = tuple(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, column: str) -> list[Any]:
        return [row.get(column) for row in self.rows]

    def cells(self, column: str) -> list[Any]:
        return self._files(column, [name or None for name in self.values(column)])

    def cell_lists(self, column: str) -> list[list[Any]]:
        lists = [cell if isinstance(cell, list) else [cell] if cell else [] for cell in self.values(column)]
        files = iter(self._files(column, [name for cell in lists for name in cell]))
        return [[next(files) for _ in cell] for cell in lists]

    def _files(self, column: str, names: list[str | None]) -> list[Any]:
        if self.beside is None:
            raise EmbarkError(f"{self.path}: column '{column}' holds text, not media.")
        return [file and partial(Path.read_bytes, file) for file in self.beside.files(names)]

    def class_names(self, column: str) -> tuple[str, ...] | None:
        return None


def _separated(text: str, separator: str) -> list[dict[str, Any]]:
    read = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey="", strict=True)
    rows: list[dict[str, Any]] = [{name: cell or None for name, cell in row.items()} for row in read]
    if any("" in row and isinstance(row[""], list) for row in rows):
        raise ValueError("a row has more cells than the header")
    return rows


def _json(text: str) -> list[dict[str, Any]]:
    """A list of objects, an object of columns, or an object a line."""
    if text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        try:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            rows = [json.loads(text)]  # one object over several lines
        if len(rows) == 1 and rows[0] and all(isinstance(column, list) for column in rows[0].values()):
            columns = rows[0]
            if len({len(column) for column in columns.values()}) == 1:
                rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("its rows are not objects")
    return list(rows)


class Shard:
    """A webdataset tar: files that share a name up to the first dot are a row, their endings are columns.

    A column may name several endings, as in "jpg;png": each row has the first of them that is there.
    """

    def __init__(self, path: Path, digests: Path) -> None:
        self.shelf = Members(str(path), str(digests))
        self.rows: dict[str, dict[str, Member]] = {}
        for at, (name, where) in enumerate(members(self.shelf.path).items()):
            folder, slash, base = name.rpartition("/")
            key, dot, ending = base.partition(".")
            if key and dot and not key.startswith("__"):
                self.rows.setdefault(folder + slash + key, {})[ending.lower()] = Member(self.shelf, at, *where)
        endings = dict.fromkeys(ending for row in self.rows.values() for ending in row)
        self.names = ("__key__", *endings)

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, column: str) -> list[Any]:
        if column == "__key__":
            return list(self.rows)
        return [None if ending is None else self._value(key, ending) for key, ending in self._endings(column)]

    def cells(self, column: str) -> list[Any]:
        return [None if ending is None else self.rows[key][ending] for key, ending in self._endings(column)]

    def cell_lists(self, column: str) -> list[list[Any]]:
        raise EmbarkError(f"{self.shelf.path}: column '{column}' holds single files, not lists of media.")

    def class_names(self, column: str) -> tuple[str, ...] | None:
        return None

    def _endings(self, column: str) -> Iterator[tuple[str, str | None]]:
        wanted = column.split(";")
        for key, row in self.rows.items():
            yield key, next((ending for ending in wanted if ending in row), None)

    def _value(self, key: str, ending: str) -> Any:
        parse = PARSE.get(ending.rpartition(".")[2])
        data = self.rows[key][ending]()
        try:
            return parse(data) if parse else data
        except ValueError as error:
            raise EmbarkError(f"{self.shelf.path}: '{key}.{ending}' cannot be read: {error}.") from error


def _array(data: bytes) -> Any:
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError("it is an array of pickled objects, and unpickling runs code that came with it") from None
        raise


PARSE: dict[str, Callable[[bytes], Any]] = {
    "cls": lambda data: int(data.decode().strip()),
    "txt": lambda data: data.decode("utf-8"),
    "json": json.loads,
    "npy": _array,
}
