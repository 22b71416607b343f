"""The rows of a dataset's split, whatever their format: values, and media read when needed. And its archives."""

from __future__ import annotations

import bz2
import difflib
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import numpy as np

from embark.atomic import atomically
from embark.hub import Hub
from embark.hub.listing import RemoteFile
from embark.items import Items, limits
from embark.items.errors import errors_about
from embark.items.lazy_items import chain, concat_texts
from embark.items.lazy_media import TAR, ArchiveFile, ArchiveFiles, StoredMedia, archive_index
from embark.readers.formats import MediaFiles, TableFile, open_table_file
from embark.readers.layout import card_class_names, choose, media_kind
from embark.readers.sibling_files import SiblingFiles
from embark.types import Array, EmbarkError, Media, Modality, Source

FilesBySource = list[tuple[Source, list[RemoteFile]]]
T = TypeVar("T")


class Rows:
    """The rows of one or more table files, as one table; `name` is what messages call it.

    `card_class_names` returns the names of a class column by the dataset's card.
    """

    def __init__(
        self,
        name: str,
        tables: Sequence[TableFile],
        card_class_names: Callable[[str], tuple[str, ...] | None] = lambda column: None,
    ) -> None:
        self.name = name
        self.tables = tables
        self.card_class_names = card_class_names
        self.column_names = tuple(dict.fromkeys(column for table in tables for column in table.column_names))

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def values(self, column: str) -> list[Any]:
        """All values of a column; "column.field" is a field of a struct."""
        return [value for values in self._read(column, lambda table: table.values(column)) for value in values]

    def texts(self, column: str) -> Any:
        """All values of a column as an Arrow array of texts, see `lazy_items.text_array`; nulls where there is none."""
        return concat_texts(list(self._read(column, lambda table: table.texts(column))))

    def missing(self, column: str) -> Array:
        """Which rows have no value in a column."""
        return np.concatenate(list(self._read(column, lambda table: table.missing(column))))

    def media_items(self, kind: Modality, column: str) -> tuple[Items, Array]:
        """Encoded media as items, one for each row, and which rows really have one."""
        items, present = zip(*self._read(column, lambda table: table.media(kind, column)), strict=True)
        return chain(items), np.concatenate(present)

    def first_column(self, *names: str) -> str | None:
        """The first of these columns that the table has."""
        return next((name for name in names if name in self.column_names), None)

    def tuples(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """The values of several columns, row by row."""
        return zip(*map(self.values, columns), strict=True)

    def records(self) -> list[dict[str, Any]]:
        """All rows as dictionaries by column; None where a row has no value."""
        return [dict(zip(self.column_names, row, strict=True)) for row in self.tuples(*self.column_names)]

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """Encoded media, one per row; None where a cell is empty."""
        return [
            None if chunk is None else StoredMedia(kind, (chunk,))
            for chunks in self._read(column, lambda table: table.chunks(column))
            for chunk in chunks
        ]

    def file_names(self, column: str) -> list[str | None] | None:
        """The names of the files that a column names; None where it does not name files."""
        parts = list(self._read(column, lambda table: table.file_names(column)))
        return None if None in parts else [name for names in parts for name in names or ()]

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """Encoded media, a list per row."""
        lists = self._read(column, lambda table: table.chunk_lists(column))
        return [[StoredMedia(kind, (chunk,)) for chunk in chunks] for of_table in lists for chunks in of_table]

    def class_names(self, column: str) -> tuple[str, ...] | None:
        """The names of a class column, where the files declare them."""
        return next((names for names in self._read(column, lambda table: table.class_names(column)) if names), None)

    def _read(self, column: str, read: Callable[[TableFile], T]) -> Iterator[T]:
        """What `read` gets from each table, if any has the column (one of "a;b", or the struct of "struct.field")."""
        if not {column, *column.split(";"), column.split(".")[0]} & set(self.column_names):
            raise EmbarkError(f"{self.name} has no column '{column}'; its columns are {', '.join(self.column_names)}.")
        for table in self.tables:
            with errors_about(table.path):
                part = read(table)
            yield part


def open_rows(
    source: Source,
    split: str,
    hub: Hub,
    config: str | None = None,
    expected: int | None = None,
    allow_outside: bool = False,
) -> Rows:
    """The rows of a split of a config (default: the source's); a number of rows other than `expected` is an error.

    Where the split's files are no tables but media, each is a row. `allow_outside` is that of `SiblingFiles`.
    """
    config = config or source.config
    files = [file.path for file in split_files(source, split, hub, config)]
    tables = open_files(source, files, hub, allow_outside)

    def card_names(column: str) -> tuple[str, ...] | None:
        known = any(file.path == "README.md" for file in hub.files(source.id, source.revision))
        return card_class_names(_card(source, hub), config, column) if known else None

    rows = Rows(f"Dataset {source.id} ({f'{config}/' if config else ''}{split})", tables, card_names)
    if expected is not None and len(rows) != expected:
        raise EmbarkError(f"{rows.name} has {len(rows):,} rows at revision {source.revision}, expected {expected:,}.")
    return rows


def open_files(source: Source, files: Sequence[str], hub: Hub, allow_outside: bool = False) -> list[TableFile]:
    """These files of a dataset as tables; all media files among them are one."""
    media = [file for file in files if media_kind(file) and not any(map(_hidden, PurePosixPath(file).parts))]
    named = [file for file in files if not media_kind(file)]
    tables = [
        open_table_file(path, hub.home / "digests", SiblingFiles(hub, source, file, allow_outside))
        for path, file in zip(hub.get_all(source.id, source.revision, named), named, strict=True)
    ]
    return tables + [MediaFiles(media, SiblingFiles(hub, source, allow_outside=allow_outside))] * bool(media)


def _hidden(name: str) -> bool:
    return name.startswith(".")


def split_files(
    source: Source, split: str, hub: Hub, config: str | None = None, stated: bool = False
) -> list[RemoteFile]:
    """The files that hold a split of a config (default: the source's), whether they are on this machine or not.

    `stated`: only those that the row or the dataset's card names.
    """
    files = {file.path: file for file in hub.files(source.id, source.revision)}
    chosen = choose(source, split, config or source.config, list(files), lambda: _card(source, hub), stated)
    return [files[path] for path in chosen]


def _card(source: Source, hub: Hub) -> str:
    return hub.get(source.id, source.revision, "README.md").read_text(encoding="utf-8", errors="replace")


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """A zip or an uncompressed tar; its files are read by position. `made` is called with what is unpacked of it."""

    def __init__(self, path: Path, digests: Path, made: Callable[[Path], None] = lambda path: None) -> None:
        self.path = path
        self.digests = digests
        self.made = made
        self._files = ArchiveFiles(str(path), str(digests))

    def names(self) -> list[str]:
        """The names of its files, in order."""
        return list(self._positions)

    def media(self, kind: Modality, name: str) -> Media:
        """One of its files as media, read when needed."""
        return StoredMedia(kind, (self._file(name),))

    def read(self, name: str) -> bytes:
        """The bytes of one of its files."""
        return self._file(name)()

    def copy(self, name: str, out: BinaryIO) -> None:
        """Write one of its files elsewhere; a file of a tar may be larger than memory."""
        file = self._file(name)
        if file.packing != TAR:
            out.write(file())
            return
        with self.path.open("rb") as archive:
            archive.seek(file.offset)
            for start in range(0, file.size, limits.BLOCK_BYTES):
                out.write(archive.read(min(limits.BLOCK_BYTES, file.size - start)))

    def _file(self, name: str) -> ArchiveFile:
        if name not in self._positions:
            similar = difflib.get_close_matches(name, list(self._positions)[:10_000], n=2)
            advice = f" Did you mean {' or '.join(similar)}?" if similar else ""
            raise EmbarkError(f"{self.path} has no file '{name}'.{advice}")
        return ArchiveFile(self._files, self._positions[name], *archive_index(self._files.path)[name])

    @property
    def unpacked(self) -> Path:
        """The folder for its files that must be files of their own: in home, not in the cache where it may be."""
        name = hashlib.sha256(f"{self.path}\0{self.path.stat().st_size}".encode()).hexdigest()[:40]
        return self.digests.parent / "unpacked" / f"{name}.files"

    @cached_property
    def _positions(self) -> dict[str, int]:
        with errors_about(self.path, " as an archive"):
            return {name: position for position, name in enumerate(archive_index(self._files.path))}


def open_archive(source: Source, path: str, hub: Hub) -> Archive:
    """A zip or tar of the dataset; a pattern names the parts of a split one. A compressed tar is unpacked once."""
    files = [file.path for file in hub.files(source.id, source.revision)]
    parts = [path] if path in files else sorted(name for name in files if fnmatchcase(name, path))
    local = hub.get_all(source.id, source.revision, parts or [path])
    with local[0].open("rb") as first:
        head = first.read(6)
    opener = next((opener for magic, opener in COMPRESSED.items() if head.startswith(magic)), None)
    whole = local[0]
    if len(local) > 1 or opener:
        whole = _unpacked_file(local, hub.home / "unpacked")
        if not whole.exists():
            _unpack(local, opener, whole)
            hub.add_made(source.id, whole)
    return Archive(whole, hub.home / "digests", partial(hub.add_made, source.id))


COMPRESSED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


def _unpacked_file(parts: Sequence[Path], folder: Path) -> Path:
    """Where the parts lie as one uncompressed file."""
    state = "\0".join(f"{part}\0{part.stat().st_size}" for part in parts)
    return folder / hashlib.sha256(state.encode()).hexdigest()[:40]


def _unpack(parts: Sequence[Path], opener: Callable[[Any], Any] | None, target: Path) -> None:
    """Write the parts as one uncompressed file."""
    try:
        with atomically(target) as out, ExitStack() as stack:
            whole = _Concatenated([stack.enter_context(part.open("rb")) for part in parts])
            limit = limits.unpacked(sum(part.stat().st_size for part in parts))
            limits.copy(opener(whole) if opener else whole, out, limit)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise EmbarkError(f"Cannot unpack {parts[0]} to {target.parent}: {error}.") from error


@dataclass(frozen=True)
class _Concatenated:
    """Several open files, read as one."""

    parts: Sequence[BinaryIO]

    def read(self, size: int = -1) -> bytes:
        """The next bytes, of one of the files; none at the end."""
        return next((block for part in self.parts if (block := part.read(size))), b"")
