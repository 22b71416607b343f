"""Media that a table names but does not contain: other files of the same dataset."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from embark.catalogue import listed
from embark.hub import Hub
from embark.hub.listing import is_local
from embark.paths import Outside, inside
from embark.types import Bytes, EmbarkError, Source

NAMED_FILES = 5  # missing files that a message names
ALLOW = "allow it with --allow-outside (allow_outside=True)"


@dataclass(frozen=True)
class SiblingFiles:
    """The files that one table names, relative to the table's folder or else to the dataset's root.

    Those of a folder lie in it, and no link leads out of it, unless the user said `allow_outside`.
    """

    hub: Hub
    source: Source
    table: str = ""  # its path in the dataset
    allow_outside: bool = False
    folders: set[str] = field(default_factory=set, compare=False, repr=False)  # seen to be inside

    def chunks(self, names: Sequence[str | None]) -> list[Bytes | None]:
        """The files' bytes, unread; None where there is no name."""
        return [None if file is None else partial(Path.read_bytes, file) for file in self.fetch(names)]

    def fetch(self, names: Sequence[str | None]) -> list[Path | None]:
        """The files on this machine; None where there is no name."""
        if is_local(self.source.id):
            return self._of_folder(names)
        known = {file.path for file in self.hub.files(self.source.id, self.source.revision)}
        relative = [name and posixpath.normpath(posixpath.join(posixpath.dirname(self.table), name)) for name in names]
        paths = [path if path in known else name for path, name in zip(relative, names, strict=True)]
        local = iter(self.hub.get_all(self.source.id, self.source.revision, [path for path in paths if path]))
        return [next(local) if path else None for path in paths]

    def find(self, name: str) -> Path | None:
        """The file of a folder that a name stands for; None where there is none. One that is outside is refused."""
        root = self.source.id
        if Path(name).is_relative_to(root):
            name = Path(name).relative_to(root).as_posix()
        for path in dict.fromkeys((posixpath.join(posixpath.dirname(self.table), name), name)):
            if os.path.isfile(place := os.path.join(root, path)):  # False for a name that no file can have, too
                return Path(place) if self.allow_outside else self._inside(posixpath.normpath(path))
        if not self.allow_outside:
            inside(Path(root), name)
        return None

    def _inside(self, path: str) -> Path:
        """A path in the folder; that a subfolder is in it is looked up once."""
        root = Path(self.source.id)
        parent = posixpath.dirname(path)
        if parent not in self.folders:
            inside(root, path)
            self.folders.add(parent)
        place = os.path.join(root, path)
        return inside(root, path) if os.path.islink(place) else Path(place)

    def _of_folder(self, names: Sequence[str | None]) -> list[Path | None]:
        files: dict[str, Path | None] = {}
        for row, name in enumerate(names, 1):
            if not isinstance(name, (str, type(None))):
                place = Path(self.source.id, self.table)
                raise EmbarkError(f"Row {row} of {place} holds {name!r:.80}, which is not the name of a file.")
            if name and name not in files:
                try:
                    files[name] = self.find(str(name))
                except Outside as error:
                    place = Path(self.source.id, self.table)
                    raise EmbarkError(f"Row {row} of {place}: {error} Put the file there, or {ALLOW}.") from None
        if missing := [name for name, file in files.items() if file is None]:
            several = f" ({len(missing)} of {len(files)} files are not there: {listed(missing, NAMED_FILES)})"
            raise EmbarkError(f"The folder {self.source.id} has no file '{missing[0]}'{several * (len(missing) > 1)}.")
        return [files[name] if name else None for name in names]
