"""Files of a hub on this machine: where huggingface_hub's cache has them, and whether they are what the hub lists."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.atomic import NO_ROOM, atomically
from embark.hub.listing import RemoteFile, safe_path
from embark.paths import relative_path
from embark.types import EmbarkError

ROOM = (
    "Make room, or choose a larger disk (HF_HOME for data, --home or EMBARK_HOME for the rest), and run the same "
    "command: it goes on where it stopped."
)


@dataclass(frozen=True)
class RepositoryKind:
    """A kind of repositories: its noun, the words for it in a hub's addresses, and where embark keeps what hubs say."""

    noun: str
    plural: str  # in addresses of the API, and in names of the cache's folders
    page: str  # begins a page's address
    folder: str  # begins a folder's name in the home
    advice: str  # for who is offline
    shared: bool  # whether, offline, what other programs have downloaded is used as it is


DATASETS = RepositoryKind("dataset", "datasets", "datasets/", "", "get it beforehand with `embark fetch`", shared=False)
MODELS = RepositoryKind("model", "models", "", "models--", "load it once without --offline", shared=True)


def snapshot(kind: RepositoryKind, id: str, commit: str) -> Path:
    """The folder of a commit in huggingface_hub's cache."""
    return _folder(kind, id) / "snapshots" / commit


def content(kind: RepositoryKind, id: str, file: RemoteFile) -> Path:
    """Where the cache has the content of a file, whichever revisions have it."""
    return _folder(kind, id) / "blobs" / (file.sha256 or file.oid)


def cached_commit(kind: RepositoryKind, id: str, revision: str) -> str | None:
    """The commit that a revision had when its files came into the cache; None where nobody asked for it."""
    with suppress(OSError, UnicodeDecodeError):
        return (_folder(kind, id) / "refs" / relative_path(revision, "A revision")).read_text(encoding="ascii").strip()
    return None


def _folder(kind: RepositoryKind, id: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE, f"{kind.plural}--{safe_path(id).replace('/', '--')}")


def checksum_of(path: Path, file: RemoteFile) -> str:
    """What the content of a file hashes to, as `RemoteFile.checksum` says it; or that its size is another."""
    size = path.stat().st_size
    if size != file.size:
        return f"{size:,} bytes instead of {file.size:,}"
    with path.open("rb") as data:
        if file.sha256:
            return f"sha256 {hashlib.file_digest(data, 'sha256').hexdigest()}"
        header = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        return f"git object {hashlib.file_digest(data, lambda: header).hexdigest()}"


def set_aside(path: Path) -> None:
    """Rename a damaged file; in the cache, the path is a link to the content."""
    content = path.resolve()
    with suppress(FileNotFoundError):  # another process did it
        if content.parent.name == "blobs" or not path.is_symlink():
            content.replace(content.with_name(f"{content.name}.damaged"))
        path.unlink(missing_ok=True)


def save(path: Path, value: Any) -> None:
    """Write a value as JSON, all of it or nothing."""
    text = json.dumps(value).encode()
    try:
        with atomically(path) as out:
            out.write(text)
    except OSError as error:
        raise disk_error(error, path, len(text)) from error


def free_bytes(target: Path) -> int:
    """The bytes that are free on the disk of a place."""
    return shutil.disk_usage(next(path for path in (target, *target.parents) if path.exists())).free


def full_disk(target: Path, needed: int) -> EmbarkError:
    """The error where a download does not fit: it names how much is needed and free."""
    return EmbarkError(f"The disk is full: {target} needs {needed:,} bytes, {free_bytes(target):,} are free. {ROOM}")


def disk_error(error: OSError, target: Path, size: int) -> EmbarkError:
    """The error where a file of so many bytes could not be written."""
    if error.errno in NO_ROOM:
        return full_disk(target, size)
    return EmbarkError(f"Cannot write {target}: {error.strerror or error}.")
