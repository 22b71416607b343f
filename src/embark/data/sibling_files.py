"""Media that a table names and does not hold: files of the same dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embark.data.fetch import Hub
from embark.types import Source


@dataclass(frozen=True)
class Beside:
    """Finds the files that one table names: beside the table, or else from the dataset's root."""

    hub: Hub
    source: Source
    table: str  # its path in the dataset

    def files(self, names: Sequence[str | None]) -> list[Path | None]:
        """The files on this machine; None where there is no name."""
        known = {file.path for file in self.hub.files(self.source.id, self.source.revision)}
        near = [name and posixpath.normpath(posixpath.join(posixpath.dirname(self.table), name)) for name in names]
        paths = [path if path in known else name for path, name in zip(near, names, strict=True)]
        wanted = [path for path in paths if path]
        local = iter(self.hub.get_all(self.source.id, self.source.revision, wanted))
        return [next(local) if path else None for path in paths]
