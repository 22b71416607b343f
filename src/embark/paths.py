"""The gate for whatever comes from outside and becomes a path: names, commits, and paths inside a folder."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import unicodedata
from pathlib import Path, PurePosixPath
from urllib.parse import unquote_to_bytes

from embark.types import EmbarkError

LONGEST = 200  # bytes of a component; file systems take 255, and endings such as ".parquet" come on top
HASHED = "%~"  # between the beginning of a long name and its hash
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f%\\\ud800-\udfff" + (r':*?"<>|]' if os.name == "nt" else "]"))
AMBIGUOUS = re.compile(r"(?<=[_/])_|_(?=[_/])")  # "__" stands for "/"
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)", re.IGNORECASE)  # on Windows
CASELESS = re.compile(r"^.|[^a-z0-9-]", re.DOTALL)  # what is escaped where a name must differ in more than its case
COMMIT = re.compile("[0-9a-f]{40}")


LINKED = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)  # what systems answer where a name that must be none is a link


class Outside(EmbarkError):
    """A path that leads out of its folder."""


class UnsafePath(EmbarkError):
    """A file that is not read, because it is not what it must be; the message is its name with the reason."""


def component(name: str) -> str:
    """A name as one folder or file, on every system: "org/model" is "org__model".

    What no file may be called is escaped as %XX; the end of a name that is too long is its hash.
    """
    escaped = AMBIGUOUS.sub(_escape, FORBIDDEN.sub(_escape, name)).replace("/", "__")
    if DEVICE.match(escaped):
        escaped = re.sub("^.", _escape, escaped)
    return _shortened(re.sub(r"[. ]\Z", _escape, escaped), name)


def original(component: str) -> str | None:
    """The name that became this component; None for one that was too long."""
    if HASHED in component:
        return None
    return unquote_to_bytes(component.removesuffix("%").replace("__", "/")).decode("utf-8", "surrogatepass")


def place(folder: Path, name: str, ending: str = "") -> Path:
    """The place of a name in a folder: its component, or another one where a name that differs in case has that."""
    plain = f"{component(name)}{ending}"
    present = os.listdir(folder) if folder.is_dir() else []
    if plain in present or _folded(plain) not in map(_folded, present):
        return folder / plain
    return folder / f"{_shortened(CASELESS.sub(_escape, name), name)}{ending}"


def inside(folder: Path, relative: str) -> Path:
    """A path in a folder; one that leads out of it (absolute, "..", through a link) is refused."""
    path = Path(relative)
    if "\0" in relative or path.anchor or ".." in path.parts:
        raise Outside(f"'{relative}' is not a path inside {_spoken(folder)}.")
    if not Path(os.path.realpath(folder / path)).is_relative_to(os.path.realpath(folder)):
        raise Outside(f"'{relative}' is a link that leads out of {_spoken(folder)}.")
    return folder / path


def leads_out(path: Path, folder: Path) -> bool:
    """Whether what stands under a path of a folder is elsewhere, because it is a link or lies behind one."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def read_file(root: Path, relative: str, most: int) -> bytes:
    """The content of a file of a folder, read once: no link, neither the file nor a folder on the way, and a plain
    file of at most `most` bytes with one name. Whatever else is there is refused; `root` itself may be a link.
    """
    path = PurePosixPath(relative)
    if not path.parts or path.anchor or ".." in path.parts:
        raise Outside(f"'{relative}' is not a path inside {_spoken(root)}.")
    try:
        handle = _opened(root, path.parts)
    except OSError as error:
        if error.errno in LINKED:
            raise UnsafePath(f"{relative} is a link, or lies behind one") from None
        raise UnsafePath(f"{relative} cannot be read ({error.strerror})") from error
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise UnsafePath(f"{relative} is no plain file")
        if facts.st_nlink > 1:
            raise UnsafePath(f"{relative} is a hard link: the file has {facts.st_nlink} names")
        if facts.st_size > most:
            raise UnsafePath(f"{relative} has {facts.st_size:,} bytes, where {most:,} are the most")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(facts.st_size + 1)
    finally:
        os.close(handle)
    if len(data) != facts.st_size:
        raise UnsafePath(f"{relative} was written while it was read")
    return data


def _opened(root: Path, parts: tuple[str, ...]) -> int:
    """A handle of a file, reached from the folder by names that are no links; a pipe is not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if os.open not in os.supports_dir_fd:  # Windows: compared after it is open
        path = root.joinpath(*parts)
        handle = os.open(path, flags)
        linked = os.path.realpath(path) != os.path.join(os.path.realpath(root), *parts)
        if linked or not os.path.samestat(os.fstat(handle), os.lstat(path)):
            os.close(handle)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return handle
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in parts[:-1]:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def relative_path(path: str, owner: str) -> str:
    """A path that a hub or an archive (`owner`, for the message) names, if it stays inside whatever it is put into."""
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts or FORBIDDEN.search(path.replace("%", "")):
        raise Outside(f"{owner} names {path!r}, which is not a path inside a dataset.")
    return path


def _spoken(folder: Path) -> str:
    """What messages call a folder: a dot before the full stop reads as the folder above."""
    return "this folder" if folder == Path() else str(folder)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _shortened(escaped: str, name: str) -> str:
    data = escaped.encode()
    if len(data) <= LONGEST:
        return escaped or "%"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    beginning = re.sub("%.?$", "", data[: LONGEST - len(HASHED) - len(digest)].decode("utf-8", "ignore"))
    return f"{beginning}{HASHED}{digest}"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
