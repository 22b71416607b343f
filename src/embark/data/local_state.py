"""The state of own data, by content: what is copied, moved or touched is the same data."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from embark.data.fetch import files_below
from embark.settings import Settings
from embark.types import EmbarkError

CONTENT = "content-"  # begins a revision of the files that a task reads
FOLDER = "folder-"  # begins a revision of a whole folder
STATES = (CONTENT, FOLDER)
SETTLED = 2_000_000_000  # nanoseconds after which a file that is written again has another time
FIELDS = 6  # of a line: path, size, times, inode, hash


class FileHashes:
    """Hashes of files, kept in `home` with the state that each file had: a file in the same state is not read again."""

    def __init__(self, home: Path) -> None:
        self.path = home / "digests" / "files.jsonl"
        self._known: dict[str, list[object]] | None = None

    def sha256(self, path: Path) -> str:
        """The hash of a file's content."""
        stat = path.stat()
        state = [str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        known = self._load().get(str(path))
        if known and known[:-1] == state:
            return str(known[-1])
        with path.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
        if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED:
            self._keep([*state, digest])
        return digest

    def _load(self) -> dict[str, list[object]]:
        if self._known is None:
            self._known = {}
            with suppress(OSError):
                for line in self.path.read_bytes().split(b"\n"):
                    with suppress(ValueError, RecursionError):  # half a line
                        row = json.loads(line)
                        if isinstance(row, list) and len(row) == FIELDS:
                            self._known[str(row[0])] = row
        return self._known

    def _keep(self, row: list[object]) -> None:
        self._load()[str(row[0])] = row
        with suppress(OSError, UnicodeEncodeError):  # it only saves time
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(f"\n{json.dumps(row)}")


@lru_cache(maxsize=8)
def _hashes(home: Path) -> FileHashes:
    return FileHashes(home)


def revision_of_files(files: Iterable[tuple[str, Path]], home: Path, prefix: str = CONTENT, card: str = "") -> str:
    """A revision that changes with the name or content of any of these files, and with the head of a dataset's card."""
    hashes = _hashes(home)
    state = hashlib.sha256(card.encode("utf-8", "surrogatepass"))
    for name, path in files:
        try:
            state.update(f"{name}\0{hashes.sha256(path)}\0".encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise EmbarkError(f"{path} cannot be read: {error.strerror or error}.") from error
    return f"{prefix}{state.hexdigest()[:16]}"


def revision_of_folder(folder: Path, settings: Settings) -> str:
    """A revision that changes with any file of a folder, but for hidden ones and those that embark writes there."""
    ours = [own for own in (settings.home.resolve(), settings.results.resolve()) if folder in own.parents]
    files = []
    for name, _ in files_below(folder):
        hidden = any(part.startswith(".") for part in name.split("/"))
        if not hidden and not any((folder / name).is_relative_to(own) for own in ours):
            files.append((name, folder / name))
    return revision_of_files(files, settings.home, FOLDER)
