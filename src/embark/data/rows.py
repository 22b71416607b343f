"""The rows of a hub dataset's split, whatever their format: columns of values, and media that are read when needed."""

from __future__ import annotations

import bz2
import difflib
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from embark.data.beside import Beside
from embark.data.cells import Member, Members, film, members, stored
from embark.data.fetch import Hub, RemoteFile, hub
from embark.data.formats import Records, Table, open_table
from embark.data.layout import NoFiles, choose
from embark.types import EmbarkError, Media, Modality, Source, Task

__all__ = ["Archive", "Rows", "files_of", "film", "needed", "needed_by", "open_archive", "open_file", "open_rows"]


class Rows:
    """The rows of a split; its files are on this machine and make one table."""

    def __init__(self, what: str, tables: Sequence[Table], beside: Sequence[Beside] = ()) -> None:
        self.what, self.tables, self.beside = what, tables, beside
        self.names: tuple[str, ...] = tuple(dict.fromkeys(name for table in tables for name in table.names))

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def values(self, column: str) -> list[Any]:
        """A small column, whole; "column.field" is a field of a struct."""
        return [value for table in self._having(column) for value in table.values(column)]

    def media(self, kind: Modality, column: str) -> list[Media | None]:
        """Encoded media, one a row; None where a cell is empty. A table of text names files of the dataset."""
        self._having(column)
        cells = [cell for at in range(len(self.tables)) for cell in self._cells(at, column)]
        return [None if cell is None else stored(kind, cell) for cell in cells]

    def list_media(self, kind: Modality, column: str) -> list[list[Media]]:
        """Encoded media, a list a row."""
        self._having(column)
        lists = [cells for at in range(len(self.tables)) for cells in self._cell_lists(at, column)]
        return [[stored(kind, cell) for cell in cells] for cells in lists]

    def _cells(self, at: int, column: str) -> Sequence[Any]:
        table = self.tables[at]
        if not isinstance(table, Records) or not self.beside:
            return table.cells(column)
        names = self.beside[at].files([name or None for name in table.values(column)])
        return [None if name is None else partial(Path.read_bytes, name) for name in names]

    def _cell_lists(self, at: int, column: str) -> Sequence[Sequence[Any]]:
        table = self.tables[at]
        if not isinstance(table, Records) or not self.beside:
            return table.cell_lists(column)
        lists = [cell if isinstance(cell, list) else [cell] if cell else [] for cell in table.values(column)]
        files = iter(self.beside[at].files([name for cell in lists for name in cell]))
        return [[partial(Path.read_bytes, next(files)) for _ in cell] for cell in lists]  # type: ignore[arg-type]

    def class_names(self, column: str) -> tuple[str, ...] | None:
        """The names of a class column, where the files tell them."""
        return next((names for table in self._having(column) if (names := table.class_names(column))), None)

    def _having(self, column: str) -> Sequence[Table]:
        named = (column, *column.split(";"), column.split(".")[0])
        if not set(named) & set(self.names):
            raise EmbarkError(f"{self.what} has no column '{column}'; its columns are {', '.join(self.names)}.")
        return self.tables


def open_rows(source: Source, split: str, config: str | None = None, expected: int | None = None) -> Rows:
    """The rows of a split (of a config, else the source's own); another number than expected is an error."""
    config = config or source.config
    there = hub()
    files = needed(source, split, config, there)
    paths = there.get_all(source.id, source.revision, [file.path for file in files])
    what = f"Dataset {source.id} ({f'{config}/' if config else ''}{split})"
    tables = [open_table(path, there.home / "digests") for path in paths]
    rows = Rows(what, tables, [Beside(there, source, file.path) for file in files])
    if expected is not None and len(rows) != expected:
        raise EmbarkError(f"{what} has {len(rows):,} rows at revision {source.revision}, expected {expected:,}.")
    return rows


def open_file(source: Source, path: str) -> Path:
    """One file of the dataset, on this machine."""
    return hub().get(source.id, source.revision, path)


def files_of(source: Source) -> list[str]:
    """The paths of all files of the dataset."""
    return [file.path for file in hub().files(source.id, source.revision)]


def needed(source: Source, split: str, config: str | None = None, where: Hub | None = None) -> list[RemoteFile]:
    """The files that hold a split, whether they are here or not."""
    there = where or hub()
    files = {file.path: file for file in there.files(source.id, source.revision)}

    def card() -> str:
        return there.get(source.id, source.revision, "README.md").read_text(encoding="utf-8", errors="replace")

    return [files[path] for path in choose(source, split, config or source.config, list(files), card)]


def needed_by(task: Task) -> list[RemoteFile]:
    """The files of its source that a row is known to need, without its reader.

    Tables: those that `rows` counts, and `options["configs"]` (a list, or a mapping to them; else the source's config,
    else each subset) in each of the source's splits and `options["train"]`, renamed by `options["splits"]`. Other
    files: by the patterns in `options["files"]`. A reader may open more; reading tells for sure.
    """
    source, options = task.source, task.options
    stated = options.get("configs", (source.config,))
    configs = list(stated.values() if isinstance(stated, Mapping) else stated)
    if configs == [None] and options.get("subset_is", "config") == "config":
        configs = [None if subset == "default" else subset for subset in task.subsets]
    renamed = options.get("splits", {})
    splits = [renamed.get(split, split) for split in (*source.splits, options.get("train")) if split]
    tables = [(config, renamed.get(config, split)) for config in configs for split in splits]
    tables = [(key.rpartition("/")[0] or source.config, key.rpartition("/")[2]) for key in task.rows] + tables
    found: dict[str, RemoteFile] = {}
    for config, split in dict.fromkeys(tables):
        with suppress(NoFiles):  # a guess may be wrong
            found.update((file.path, file) for file in needed(source, split, config))
    for file in hub().files(source.id, source.revision):
        if any(fnmatchcase(file.path, pattern) for pattern in options.get("files", ())):
            found[file.path] = file
    return list(found.values())


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """A zip or tar; its files are read where they are."""

    def __init__(self, path: Path, digests: Path) -> None:
        self.path = path
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

    def _member(self, name: str) -> Member:
        if name not in self._places:
            near = difflib.get_close_matches(name, list(self._places)[:10_000], n=2)
            advice = f" Did you mean {' or '.join(near)}?" if near else ""
            raise EmbarkError(f"{self.path} holds no file '{name}'.{advice}")
        return Member(self._shelf, self._places[name], *members(self._shelf.path)[name])

    @cached_property
    def _places(self) -> dict[str, int]:
        try:
            return {name: at for at, name in enumerate(members(self._shelf.path))}
        except (OSError, ValueError, tarfile.TarError) as error:
            raise EmbarkError(f"{self.path} cannot be read as an archive: {error}.") from error


def open_archive(source: Source, path: str) -> Archive:
    """A zip or tar of the dataset; a pattern names the parts of one that was cut up. A packed tar is unpacked once."""
    there = hub()
    listed = [file.path for file in there.files(source.id, source.revision)]
    parts = [path] if path in listed else sorted(name for name in listed if fnmatchcase(name, path))
    local = there.get_all(source.id, source.revision, parts or [path])
    with local[0].open("rb") as first:
        head = first.read(6)
    opener = next((opener for magic, opener in PACKED.items() if head.startswith(magic)), None)
    if len(local) > 1 or opener:
        local = [_unpacked(local, opener, there.home / "unpacked")]
    return Archive(local[0], there.home / "digests")


PACKED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


def _unpacked(parts: Sequence[Path], opener: Callable[[Any], Any] | None, folder: Path) -> Path:
    """The parts as one file that can be read at any place."""
    who = hashlib.sha256("\0".join(f"{part}\0{part.stat().st_size}" for part in parts).encode()).hexdigest()[:40]
    target = folder / who
    if not target.exists():
        part = folder / f"{who}.{os.getpid()}-{threading.get_ident()}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out, _Joined(parts) as joined:
                shutil.copyfileobj(opener(joined) if opener else joined, out, 1 << 20)
            os.replace(part, target)
        except (OSError, EOFError, lzma.LZMAError) as error:
            part.unlink(missing_ok=True)
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
