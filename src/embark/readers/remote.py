"""What the files of a hub hold, without downloading them: the footers of Parquet files, the first rows of others."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from embark.hub import Hub
from embark.hub.listing import RemoteFile
from embark.readers.formats import declared_classes, is_media
from embark.types import EmbarkError, Source

FIRST = 1 << 18  # bytes at the beginning of a file without a footer
LARGEST_COLUMN = 1 << 25  # bytes of a column that is read whole
LARGEST_DECODED = 1 << 30  # bytes that its values take
BATCH_ROWS = 1 << 14  # that are decoded at a time
VALUE = 32  # bytes of a value as an object


@dataclass(frozen=True)
class TableHead:
    """The columns of one file with their types, and its number of rows where the file tells it."""

    path: str
    columns: dict[str, str]
    rows: int | None = None
    media: tuple[str, ...] = ()  # the columns that can hold images, films or sounds
    classes: dict[str, tuple[str, ...]] | None = None  # the names of class columns
    parquet: Any = None

    def values(self, column: str) -> list[Any] | None:
        """The values of a column, or None where there is none or that would take too long."""
        if self.parquet is None or column not in self.columns:
            return None
        metadata = self.parquet.metadata
        number = [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)].index(column)
        groups = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        largest = max((chunk.total_uncompressed_size for chunk in groups), default=0)
        if sum(chunk.total_compressed_size for chunk in groups) > LARGEST_COLUMN or largest > LARGEST_DECODED:
            return None
        values: list[Any] = []
        size = 0
        rows = max(
            1, min(BATCH_ROWS, LARGEST_DECODED // max(1, largest))
        )  # each may hold the largest value of a dictionary
        for batch in self.parquet.iter_batches(rows, columns=[column], use_threads=False):
            size += VALUE * len(batch) + batch.nbytes
            if size > LARGEST_DECODED:
                return None
            values += batch.column(0).to_pylist()
        return values


def table_head(hub: Hub, source: Source, file: RemoteFile) -> TableHead | None:
    """The head of a table; None for a file that tells nothing before it is read whole (archives of media, .json)."""
    try:
        if file.path.endswith(".parquet"):
            return _parquet(hub, source, file)
        start = hub.read_range(source.id, source.revision, file, 0, FIRST)
        if file.path.endswith(".tar"):
            return TableHead(file.path, *_samples(start))
        if file.path.endswith((".jsonl", ".csv", ".tsv")):
            return _lines(file, start)
    except (ValueError, OSError, csv.Error, tarfile.TarError, RecursionError) as error:
        raise EmbarkError(f"'{file.path}' of dataset {source.id} cannot be read: {error}.") from error
    return None


def _parquet(hub: Hub, source: Source, file: RemoteFile) -> TableHead:
    parquet = pq.ParquetFile(pa.PythonFile(_Remote(hub, source, file), mode="r"))
    schema = parquet.schema_arrow
    return TableHead(
        file.path,
        {field.name: str(field.type) for field in schema},
        parquet.metadata.num_rows,
        tuple(field.name for field in schema if is_media(field.type)),
        {name: classes for name in schema.names if (classes := declared_classes(schema, name))},
        parquet,
    )


def _lines(file: RemoteFile, start: bytes) -> TableHead:
    """The columns of the first lines; whether a text names media cannot be told."""
    whole = start if len(start) == file.size else start[: start.rfind(b"\n") + 1]
    text = whole.decode("utf-8-sig")
    if file.path.endswith(".jsonl"):
        rows: list[Any] = [json.loads(line) for line in text.splitlines() if line.strip()]
        columns = {name: type(value).__name__ for row in rows for name, value in row.items()}
    else:
        names = next(csv.reader(io.StringIO(text), delimiter="\t" if file.path.endswith(".tsv") else ","), [])
        columns = dict.fromkeys(names, "text")
    return TableHead(file.path, columns, media=tuple(columns))


def _samples(start: bytes) -> tuple[dict[str, str], None, tuple[str, ...]]:
    """The endings of a webdataset's files; the first bytes end in the middle of one."""
    names = []
    with suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(start)) as archive:
        names = [member.name for member in archive]
    endings = dict.fromkeys(name.rpartition("/")[2].partition(".")[2].lower() for name in names)
    return dict.fromkeys(endings, "file"), None, tuple(endings)


class _Remote(io.RawIOBase):
    """A file of a hub that is read where it is wanted."""

    def __init__(self, hub: Hub, source: Source, file: RemoteFile) -> None:
        self.hub = hub
        self.source = source
        self.file = file
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.file.size}[whence]
        self.position = start + offset
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self.file.size - self.position)
        size = left if size < 0 else min(size, left)
        if not size:
            return b""
        data = self.hub.read_range(self.source.id, self.source.revision, self.file, self.position, size)
        self.position += len(data)
        return data
