"""This machine as a run meets it: versions, device, memory, room on the disk, the store, and what is installed."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from embark import __version__
from embark.catalogue import group_values
from embark.engine.doctor import Finding
from embark.models import LOADERS
from embark.settings import Settings, cores
from embark.store.buckets import open_store
from embark.types import EmbarkError

DISTRIBUTION = "embark-bench"  # what pip calls embark
LITTLE = 1 << 30  # bytes of a disk that will soon be full
USES = {"video": "films", "audio": "sounds of other rates", "plots": "figures", "maps": "maps of vectors",
        "object_store": "vectors on S3 or Google Cloud"}  # fmt: skip

REQUIREMENT = re.compile(r"""([\w.-]+)(\[[\w,-]+\])?[^;]*;.*extra\s*==\s*['"]([\w-]+)['"]""")  # library, …, extra


def environment(settings: Settings) -> tuple[Finding, ...]:
    """What there is, and what is missing for which models; nothing is written."""
    return (
        Finding("python", "note", f"{platform.python_version()} on {platform.platform()}"),
        Finding("embark", "note", __version__),
        _torch(),
        Finding("cores", "note", f"{cores()}, of which {settings.workers} prepare items"),
        Finding("memory", "note", f"{_memory()}; scoring may use {settings.memory} MB"),
        _room("home", settings.home),
        _room("results", settings.results),
        _store(settings),
        *_extras(),
    )


def _torch() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("device", "note", "the CPU: torch is not installed")
    except Exception as error:  # a library that does not load raises all kinds of errors
        return Finding("device", "wrong", f"torch does not load: {error}")
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    device = f"CUDA {torch.version.cuda}: {', '.join(names)}" if names else "no CUDA device"
    return Finding("device", "note", f"torch {torch.__version__}, {device}")


def _memory() -> str:
    try:
        return _gigabytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not on every system
        return "unknown"


def _room(what: str, folder: Path) -> Finding:
    """The free bytes of the disk where a folder is, or will be, and whether it can be written."""
    folder = folder.absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        free = shutil.disk_usage(existing).free
    except OSError as error:
        return Finding(what, "wrong", f"{folder}: {error.strerror}")
    if not os.access(existing, os.W_OK):
        return Finding(what, "wrong", f"{folder} cannot be written")
    return Finding(what, "ok" if free > LITTLE else "wrong", f"{folder}, {_gigabytes(free)} free")


def _store(settings: Settings) -> Finding:
    """The number of spaces, vectors and bytes; every byte is checked by another command."""
    store = open_store(settings)
    try:
        spaces = [store.space(name) for name in store.spaces()]
        vectors = sum(map(len, spaces))
        size = sum(space.size for space in spaces)
    except (EmbarkError, OSError) as error:
        return Finding("store", "wrong", f"{error}. Examine it: embark store check")
    return Finding("store", "ok", f"{vectors:,} vectors of {len(spaces):,} models, {_gigabytes(size)}")


def _extras() -> Iterator[Finding]:
    """For each extra of the package: its libraries that are here, or the command that installs them."""
    families = group_values((loader.extra, name) for name, loader in LOADERS.items())
    yield Finding("models", "ok", f"{', '.join(families.pop('', []))}: need nothing more")
    libraries = _libraries()
    for extra in [*families, *(extra for extra in USES if extra not in families)]:
        purpose = ", ".join(families.get(extra, ())) or USES[extra]
        versions = {name: _version(name) for name in libraries.get(extra, ())}
        if missing := [name for name, version in versions.items() if version is None]:
            advice = f"{', '.join(missing)} not installed: pip install 'embark-bench[{extra}]'"
            yield Finding(extra, "note", f"{purpose}: {advice}")
        else:
            present = ", ".join(f"{name} {version}" for name, version in versions.items())
            yield Finding(extra, "ok", f"{purpose}: {present}")


def _libraries() -> dict[str, list[str]]:
    """Extra → the libraries that it names, as the installed package says."""
    matches = filter(None, map(REQUIREMENT.match, metadata.requires(DISTRIBUTION) or ()))
    return group_values((match[3].replace("-", "_"), match[1]) for match in matches if match[1] != DISTRIBUTION)


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
