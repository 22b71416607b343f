"""The rows of a hub dataset's split, whatever their format: columns of values, and media that are read when needed."""

from __future__ import annotations

import bz2
import difflib
import gzip
import hashlib
import lzma
import shutil
import tarfile
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from embark.data.atomic import atomically
from embark.data.fetch import Hub, RemoteFile, safe_path
from embark.data.formats import TableFile, open_table_file
from embark.data.layout import choose
from embark.data.lazy_media import TAR, Member, Members, film, lazy_media, members
from embark.data.sibling_files import SiblingFiles
from embark.types import EmbarkError, Media, Modality, Source

__all__ = ["Archive", "Needed", "Rows", "film", "needed", "open_archive", "open_file", "open_rows"]

Needed = list[tuple[Source, list[RemoteFile]]]  # files by dataset
BLOCK = 1 << 20


class Rows:
    """The rows of a split, whose files make one table; `what` names it in messages."""

    def __init__(self, what: str, tables: Sequence[TableFile]) -> None:
        self.what = what
        self.tables = tables
        self.names: tuple[str, ...] = tuple(dict.fromkeys(name for table in tables for name in table.names))

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def values(self, column: str) -> list[Any]:
        """A small column, whole; "column.field" is a field of a struct."""
        return [value for table in self._tables_of(column) for value in table.values(column)]

    def records(self) -> list[dict[str, Any]]:
        """All rows of a small table by column; None where a row has nothing."""
        columns = [self.values(name) for name in self.names]
        return [dict(zip(self.names, cells, strict=True)) for cells in zip(*columns, strict=True)]

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """Encoded media, one a row; None where a cell is empty."""
        chunks = [chunk for table in self._tables_of(column) for chunk in table.chunks(column)]
        return [None if chunk is None else lazy_media(kind, chunk) for chunk in chunks]

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """Encoded media, a list a row."""
        lists = [chunks for table in self._tables_of(column) for chunks in table.chunk_lists(column)]
        return [[lazy_media(kind, chunk) for chunk in chunks] for chunks in lists]

    def class_names(self, column: str) -> tuple[str, ...] | None:
        """The names of a class column, where the files tell them."""
        return next((names for table in self._tables_of(column) if (names := table.class_names(column))), None)

    def _tables_of(self, column: str) -> Sequence[TableFile]:
        """All tables, if there is such a column: "a;b" is either of two, "a.b" a field of one."""
        spellings = (column, *column.split(";"), column.split(".")[0])
        if not set(spellings) & set(self.names):
            raise EmbarkError(f"{self.what} has no column '{column}'; its columns are {', '.join(self.names)}.")
        return self.tables


def open_rows(source: Source, split: str, hub: Hub, config: str | None = None, expected: int | None = None) -> Rows:
    """The rows of a split (of a config, else the source's own); another number than expected is an error."""
    config = config or source.config
    files = needed(source, split, hub, config)
    paths = hub.get_all(source.id, source.revision, [file.path for file in files])
    what = f"Dataset {source.id} ({f'{config}/' if config else ''}{split})"
    digests = hub.home / "digests"
    tables = [
        open_table_file(path, digests, SiblingFiles(hub, source, file.path))
        for path, file in zip(paths, files, strict=True)
    ]
    rows = Rows(what, tables)
    if expected is not None and len(rows) != expected:
        raise EmbarkError(f"{what} has {len(rows):,} rows at revision {source.revision}, expected {expected:,}.")
    return rows


def open_file(source: Source, path: str, hub: Hub) -> Path:
    """One file of the dataset, on this machine."""
    return hub.get(source.id, source.revision, path)


def needed(source: Source, split: str, hub: Hub, config: str | None = None) -> list[RemoteFile]:
    """The files that hold a split, whether they are here or not."""
    files = {file.path: file for file in hub.files(source.id, source.revision)}

    def card() -> str:
        return hub.get(source.id, source.revision, "README.md").read_text(encoding="utf-8", errors="replace")

    return [files[path] for path in choose(source, split, config or source.config, list(files), card)]


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """A zip or tar; its files are read where they are. `home` keeps the hashes of its media and unpacked files."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path = path
        self.digests = home / "digests"
        self.unpacked = home / "unpacked" / f"{_name_of([path])}.files"
        self._members = Members(str(path), str(self.digests))

    def names(self) -> list[str]:
        """The files in it, in order."""
        return list(self._positions)

    def media(self, kind: Modality, name: str) -> Media:
        """A file in it, read when needed."""
        return lazy_media(kind, self._member(name))

    def read(self, name: str) -> bytes:
        """The bytes of a file in it."""
        return self._member(name)()

    def unpack(self, name: str) -> Path:
        """A file in it as a file of its own, written once; it may be larger than memory."""
        target = self.unpacked / safe_path(name)
        if not target.exists():
            try:
                with atomically(target) as out:
                    self._copy(self._member(name), out)
            except OSError as error:
                raise EmbarkError(f"Cannot unpack '{name}' of {self.path} to {target}: {error}.") from error
        return target

    def _copy(self, member: Member, out: BinaryIO) -> None:
        if member.packing != TAR:
            out.write(member())
            return
        with self.path.open("rb") as archive:
            archive.seek(member.offset)
            for start in range(0, member.size, BLOCK):
                out.write(archive.read(min(BLOCK, member.size - start)))

    def _member(self, name: str) -> Member:
        if name not in self._positions:
            similar = difflib.get_close_matches(name, list(self._positions)[:10_000], n=2)
            advice = f" Did you mean {' or '.join(similar)}?" if similar else ""
            raise EmbarkError(f"{self.path} holds no file '{name}'.{advice}")
        return Member(self._members, self._positions[name], *members(self._members.path)[name])

    @cached_property
    def _positions(self) -> dict[str, int]:
        try:
            return {name: position for position, name in enumerate(members(self._members.path))}
        except (OSError, ValueError, tarfile.TarError) as error:
            raise EmbarkError(f"{self.path} cannot be read as an archive: {error}.") from error


def open_archive(source: Source, path: str, hub: Hub) -> Archive:
    """A zip or tar of the dataset; a pattern names the parts of one that was cut up. A packed tar is unpacked once."""
    names = [file.path for file in hub.files(source.id, source.revision)]
    part_names = [path] if path in names else sorted(name for name in names if fnmatchcase(name, path))
    parts = hub.get_all(source.id, source.revision, part_names or [path])
    with parts[0].open("rb") as first:
        start = first.read(6)
    opener = next((opener for magic, opener in COMPRESSED.items() if start.startswith(magic)), None)
    whole = _joined(parts, opener, hub.home / "unpacked") if len(parts) > 1 or opener else parts[0]
    return Archive(whole, hub.home)


# How a compressed file begins → what opens it.
COMPRESSED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


def _joined(parts: Sequence[Path], opener: Callable[[Any], Any] | None, folder: Path) -> Path:
    """The parts, uncompressed, as one file that can be read at any position; it is written once."""
    target = folder / _name_of(parts)
    if not target.exists():
        try:
            with atomically(target) as out, _Chain(parts) as chain:
                shutil.copyfileobj(opener(chain) if opener else chain, out, BLOCK)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise EmbarkError(f"Cannot unpack {parts[0]} to {folder}: {error}.") from error
    return target


def _name_of(parts: Sequence[Path]) -> str:
    """The name under which `home` keeps what was unpacked from these files."""
    return hashlib.sha256("\0".join(f"{part}\0{part.stat().st_size}" for part in parts).encode()).hexdigest()[:40]


class _Chain:
    """Files read one after another as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._open: Any = None

    def __enter__(self) -> _Chain:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            self._open.close()

    def read(self, size: int = -1) -> bytes:
        while self._open or self._paths:
            self._open = self._open or self._paths.pop(0).open("rb")
            if block := self._open.read(size):
                return bytes(block)
            self._open.close()
            self._open = None
        return b""
