"""The state of own data, by content: what is copied, moved or touched is the same data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from embark.file_hashes import file_hashes
from embark.hub.listing import files_below
from embark.settings import Settings
from embark.types import EmbarkError

CONTENT = "content-"  # begins a revision of the files that a task reads
FOLDER = "folder-"  # begins a revision of a whole folder
STATES = (CONTENT, FOLDER)


def revision_of_files(files: Iterable[tuple[str, Path]], home: Path, prefix: str = CONTENT, card: str = "") -> str:
    """A revision that changes with the name or content of any of these files, and with the head of a dataset's card."""
    hashes = file_hashes(home)
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
