"""Which segments a space has, each opened once in a process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from embark.store.disk import Disk, Stamp
from embark.store.segments import Segment, read_segment, unmap

OPENED: dict[Path, dict[str, Segment]] = {}  # by folder and name: segments of this process, as they were opened


def open_all(disk: Disk, folders: Iterable[Path], again: bool = False) -> list[Segment]:
    """The segments of a space, oldest first; `again` forgets what is known about them."""
    segments = [segment for folder in folders for segment in _open_folder(disk, folder, again)]
    return sorted(segments, key=lambda segment: segment.path.name)


def open_segment(disk: Disk, path: Path, stamp: Stamp, again: bool = False) -> Segment:
    """The segment at a path, as this process opened it first; `again` reads it anew."""
    opened = OPENED.setdefault(path.parent, {})
    known = opened.get(path.name)
    if known is None or known.stamp != stamp or again:
        start = time.monotonic()
        known = read_segment(disk, path, stamp)
        if known.damage and disk.renew(path, stamp, start):
            known = read_segment(disk, path, stamp)
        opened[path.name] = known
    return known


def forget(segments: Iterable[Segment]) -> None:
    """Let go of segments that were deleted: their memory, and the room on the disk that mapped files keep."""
    for segment in segments:
        OPENED.get(segment.path.parent, {}).pop(segment.path.name, None)
    unmap()


def _open_folder(disk: Disk, folder: Path, again: bool, listings: int = 20) -> list[Segment]:
    entries = disk.segments(folder)
    opened = OPENED.get(folder, {})
    for name in set(opened).difference(path.name for path, _ in entries):
        opened.pop(name, None)
    listed = [(path, stamp) for path, stamp in entries if stamp is not None]
    disk.fetch([entry for entry in listed if again or not _is_open(*entry)], rows=again, again=again)
    segments = []
    for path, stamp in listed:
        with suppress(FileNotFoundError):
            segments.append(open_segment(disk, path, stamp, again))
    if len(segments) < len(entries) and listings:  # what was deleted is in a segment that may be newer than the list
        return _open_folder(disk, folder, again, listings - 1)
    return segments


def _is_open(path: Path, stamp: Stamp) -> bool:
    segment = OPENED.get(path.parent, {}).get(path.name)
    return segment is not None and segment.stamp == stamp
