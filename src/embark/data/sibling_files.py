"""Media that a table names but does not contain: other files of the same dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embark.data.fetch import Hub
from embark.types import Source


@dataclass(frozen=True)
class SiblingFiles:
    """The files that one table names, relative to the table's folder or else to the dataset's root."""

    hub: Hub
    source: Source
    table: str  # its path in the dataset

    def fetch(self, names: Sequence[str | None]) -> list[Path | None]:
        """The files on this machine; None where there is no name."""
        known = {file.path for file in self.hub.files(self.source.id, self.source.revision)}
        folder = posixpath.dirname(self.table)
        relative = [name and posixpath.normpath(posixpath.join(folder, name)) for name in names]
        paths = [path if path in known else name for path, name in zip(relative, names, strict=True)]
        local = iter(self.hub.get_all(self.source.id, self.source.revision, [path for path in paths if path]))
        return [next(local) if path else None for path in paths]
