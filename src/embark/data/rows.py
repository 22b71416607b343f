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
from embark.data.fetch import Hub, RemoteFile
from embark.data.formats import TableFile, open_table_file
from embark.data.layout import choose
from embark.data.lazy_media import TAR, Member, Members, film, members, stored
from embark.data.sibling_files import Beside
from embark.types import EmbarkError, Media, Modality, Source

__all__ = ["Archive", "Needed", "Rows", "film", "needed", "open_archive", "open_file", "open_rows"]

Needed = list[tuple[Source, list[RemoteFile]]]  # files by dataset
BLOCK = 1 << 20


class Rows:
    """The rows of a split; its files are on this machine and make one table."""

    def __init__(self, what: str, tables: Sequence[TableFile]) -> None:
        self.what, self.tables = what, tables
        self.names: tuple[str, ...] = tuple(dict.fromkeys(name for table in tables for name in table.names))

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def values(self, column: str) -> list[Any]:
        """A small column, whole; "column.field" is a field of a struct."""
        return [value for table in self._having(column) for value in table.values(column)]

    def records(self) -> list[dict[str, Any]]:
        """All rows of a small table by column; None where a row has nothing."""
        columns = [self.values(name) for name in self.names]
        return [dict(zip(self.names, cells, strict=True)) for cells in zip(*columns, strict=True)]

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """Encoded media, one a row; None where a cell is empty."""
        cells = [cell for table in self._having(column) for cell in table.cells(column)]
        return [None if cell is None else stored(kind, cell) for cell in cells]

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """Encoded media, a list a row."""
        lists = [cells for table in self._having(column) for cells in table.cell_lists(column)]
        return [[stored(kind, cell) for cell in cells] for cells in lists]

    def class_names(self, column: str) -> tuple[str, ...] | None:
        """The names of a class column, where the files tell them."""
        return next((names for table in self._having(column) if (names := table.class_names(column))), None)

    def _having(self, column: str) -> Sequence[TableFile]:
        named = (column, *column.split(";"), column.split(".")[0])
        if not set(named) & set(self.names):
            raise EmbarkError(f"{self.what} has no column '{column}'; its columns are {', '.join(self.names)}.")
        return self.tables


def open_rows(source: Source, split: str, hub: Hub, config: str | None = None, expected: int | None = None) -> Rows:
    """The rows of a split (of a config, else the source's own); another number than expected is an error."""
    config = config or source.config
    files = needed(source, split, hub, config)
    paths = hub.get_all(source.id, source.revision, [file.path for file in files])
    what = f"Dataset {source.id} ({f'{config}/' if config else ''}{split})"
    beside = [Beside(hub, source, file.path) for file in files]
    digests = hub.home / "digests"
    rows = Rows(what, [open_table_file(path, digests, near) for path, near in zip(paths, beside, strict=True)])
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
    """A zip or tar; its files are read where they are."""

    def __init__(self, path: Path, digests: Path) -> None:
        self.path, self.digests = path, digests
        self._shelf = Members(str(path), str(digests))

    def names(self) -> list[str]:
        """The files in it, in order."""
        return list(self._places)

    def media(self, kind: Modality, name: str) -> Media:
        """A file in it, read when needed."""
        return stored(kind, self._member(name))

    def read(self, name: str) -> bytes:
        """The bytes of a file in it."""
        return self._member(name)()

    def copy(self, name: str, out: BinaryIO) -> None:
        """Write a file in it elsewhere; one of a tar may be larger than memory."""
        member = self._member(name)
        if member.packing != TAR:
            out.write(member())
            return
        with self.path.open("rb") as held:
            held.seek(member.offset)
            for start in range(0, member.size, BLOCK):
                out.write(held.read(min(BLOCK, member.size - start)))

    def _member(self, name: str) -> Member:
        if name not in self._places:
            near = difflib.get_close_matches(name, list(self._places)[:10_000], n=2)
            advice = f" Did you mean {' or '.join(near)}?" if near else ""
            raise EmbarkError(f"{self.path} holds no file '{name}'.{advice}")
        return Member(self._shelf, self._places[name], *members(self._shelf.path)[name])

    @property
    def unpacked(self) -> Path:
        """The folder for its files that must be files of their own: in home, not in the cache where it may be."""
        name = hashlib.sha256(f"{self.path}\0{self.path.stat().st_size}".encode()).hexdigest()[:40]
        return self.digests.parent / "unpacked" / f"{name}.files"

    @cached_property
    def _places(self) -> dict[str, int]:
        try:
            return {name: at for at, name in enumerate(members(self._shelf.path))}
        except (OSError, ValueError, tarfile.TarError) as error:
            raise EmbarkError(f"{self.path} cannot be read as an archive: {error}.") from error


def open_archive(source: Source, path: str, hub: Hub) -> Archive:
    """A zip or tar of the dataset; a pattern names the parts of one that was cut up. A packed tar is unpacked once."""
    listed = [file.path for file in hub.files(source.id, source.revision)]
    parts = [path] if path in listed else sorted(name for name in listed if fnmatchcase(name, path))
    local = hub.get_all(source.id, source.revision, parts or [path])
    with local[0].open("rb") as first:
        head = first.read(6)
    opener = next((opener for magic, opener in PACKED.items() if head.startswith(magic)), None)
    if len(local) > 1 or opener:
        local = [_unpacked(local, opener, hub.home / "unpacked")]
    return Archive(local[0], hub.home / "digests")


PACKED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


def _unpacked(parts: Sequence[Path], opener: Callable[[Any], Any] | None, folder: Path) -> Path:
    """The parts as one file that can be read at any place."""
    who = hashlib.sha256("\0".join(f"{part}\0{part.stat().st_size}" for part in parts).encode()).hexdigest()[:40]
    target = folder / who
    if not target.exists():
        try:
            with atomically(target) as out, _Joined(parts) as joined:
                shutil.copyfileobj(opener(joined) if opener else joined, out, BLOCK)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise EmbarkError(f"Cannot unpack {parts[0]} to {folder}: {error}.") from error
    return target


class _Joined:
    """Files read one after another as one."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._rest = list(parts)
        self._now: Any = None

    def __enter__(self) -> _Joined:
        return self

    def __exit__(self, *_: object) -> None:
        if self._now:
            self._now.close()

    def read(self, size: int = -1) -> bytes:
        while self._now or self._rest:
            self._now = self._now or self._rest.pop(0).open("rb")
            if block := self._now.read(size):
                return bytes(block)
            self._now.close()
            self._now = None
        return b""
