"""Segments of format 1, which are folders: they are read, and no longer written."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embark.data.items import KEY
from embark.store.disk import FOLDER, Stamp
from embark.store.segments import ENTRY, NO_HEAD, Segment, checksums, key_words, read_head, split_rows
from embark.types import Array

_ENTRY = np.dtype([("key", KEY), ("rows", "<u4")])
_COMMIT = struct.Struct("<QQII")  # followed by its crc32


class OldSegment(Segment):
    """A segment of format 1: the folder of one writer, checked commit by commit.

    head.json      format, space, dim, dtype, ragged
    vectors.bin    the rows
    keys.bin       for each entry its 32-byte key and its number of rows (uint32)
    commits.bin    for each commit: entries and rows so far, crc32 of the keys and of the vectors that it added, crc32
                   of the record itself, carried on from the record before (first: the head)
    """

    commits: tuple[Commit, ...] = ()

    def _file(self) -> Path:
        return self.path / "vectors.bin"

    def _check(self, local: Array, rows: Any) -> Array:
        damaged = [local[:0]]
        ends = [commit.entries for commit in self.commits]
        for position in np.unique(np.searchsorted(ends, local, side="right")).tolist():
            before = self.commits[position - 1] if position else Commit()
            commit = self.commits[position]
            entries = slice(before.entries, commit.entries)
            if zlib.crc32(self.matrix[before.rows : commit.rows].data) != commit.vectors:
                damaged.append(np.arange(before.entries, commit.entries))
            self.checked[entries] = True
        return np.concatenate(damaged)

    def sound(self) -> tuple[Array, Array]:
        """The entries that are not damaged, with checksums of their own, and their rows."""
        entries, rows = super().sound()
        entries = entries.copy()
        entries["sum"] = checksums(key_words(entries["key"]), split_rows(rows, entries["rows"]))
        return entries, rows


class Commit(NamedTuple):
    """What a segment holds after a commit, and the checksums of what the commit added."""

    entries: int = 0
    rows: int = 0
    keys: int = 0  # crc32 of the bytes added since the commit before
    vectors: int = 0


def read_old_segment(path: Path, stamp: Stamp) -> Segment:
    """A segment's commits, as far as records and keys are sound and all vectors are there."""
    empty = np.empty(0, ENTRY)
    try:
        raw = (path / "head.json").read_bytes()
        records = (path / "commits.bin").read_bytes()
    except FileNotFoundError:  # a writer was just creating it, or died while doing so
        return OldSegment(FOLDER, path, stamp, NO_HEAD, empty, 0, 0)
    try:
        fields = json.loads(raw)
        if fields.pop("format") != 1:
            raise ValueError
        head = read_head(fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return OldSegment(FOLDER, path, stamp, NO_HEAD, empty, 0, 0, "head.json cannot be read" if records else "")
    keys = (path / "keys.bin").read_bytes() if (path / "keys.bin").exists() else b""
    rows_there = stamp[1][0] // head.width if head.width else 1 << 60
    chain = zlib.crc32(raw)
    commits: list[Commit] = []
    damage = ""
    for end in range(_COMMIT.size, len(records) - 3, _COMMIT.size + 4):
        chain = zlib.crc32(records[end - _COMMIT.size : end], chain)
        if records[end : end + 4] != chain.to_bytes(4, "little"):
            damage = f"head.json or commit record {len(commits) + 1} is damaged"
            break
        commit = Commit(*_COMMIT.unpack_from(records, end - _COMMIT.size))
        before = commits[-1] if commits else Commit()
        added = keys[before.entries * _ENTRY.itemsize : commit.entries * _ENTRY.itemsize]
        if len(keys) < commit.entries * _ENTRY.itemsize or commit.rows > rows_there:
            damage = f"its files are shorter than commit {len(commits) + 1} says"
            break
        if zlib.crc32(added) != commit.keys:
            damage = f"the keys of commit {len(commits) + 1} are damaged"
            break
        commits.append(commit)
    last = commits[-1] if commits else Commit()
    plain = np.frombuffer(keys, _ENTRY, last.entries)
    entries = np.zeros(last.entries, ENTRY)
    entries["key"], entries["rows"] = plain["key"], plain["rows"]
    segment = OldSegment(FOLDER, path, stamp, head, entries, last.rows, 0, damage)
    segment.commits = tuple(commits)
    return segment
