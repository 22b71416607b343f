"""The index of a space: where the newest sound entry of a key lies, and the gathering of many entries' rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from embark.store.errors import DamagedVectors
from embark.store.segments import BLOCK_ENTRIES, DTYPES, LARGE_BYTES, NO_HEAD, Segment, key_words
from embark.types import Array


class Entries:
    """The entries of several segments, numbered one segment after the other."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = segments
        self.head = segments[0].head if segments else NO_HEAD
        self.bases = np.cumsum([0] + [len(segment) for segment in segments])  # the number of each one's first entry

    def by_segment(self, entries: Array) -> Iterator[tuple[Segment, Array]]:
        """Sorted entries as numbers within their segments."""
        cuts = np.searchsorted(entries, self.bases)
        for segment, base, (start, stop) in zip(self.segments, self.bases, pairwise(cuts), strict=False):
            if start < stop:
                yield segment, entries[start:stop] - base

    def count(self, entries: Array) -> Array:
        """The number of rows of each entry."""
        count = np.ones(len(entries), np.int64)
        if self.head.ragged:
            order = np.argsort(entries)
            parts = [segment.count(local) for segment, local in self.by_segment(entries[order])]
            count[order] = _join(parts, count[:0])
        return count

    def fetch(self, entries: Array) -> None:
        """Have the rows of sorted entries at hand."""
        segments = [segment for segment, _ in self.by_segment(entries)]
        if segments:
            segments[0].disk.fetch([(segment.path, segment.stamp) for segment in segments], rows=True)

    def gather(self, place: str, entries: Array) -> Array:
        """The rows of these entries, all of them checked; copied in the order of the disk."""
        count = self.count(entries)
        out = np.empty((count.sum(), self.head.dim), DTYPES[self.head.dtype])
        order = np.argsort(entries, kind="stable")
        ordered = entries[order]
        places = (np.cumsum(count) - count)[order]
        self.fetch(ordered)
        blocks = []
        start = 0
        for segment, local in self.by_segment(ordered):
            for first in range(0, len(local), BLOCK_ENTRIES):
                part = local[first : first + BLOCK_ENTRIES]
                blocks.append((segment, part, places[start + first : start + first + len(part)]))
            start += len(local)

        def copy(block: tuple[Segment, Array, Array]) -> Array:
            segment, local, rows = block
            segment.copy(local, out, rows)
            return local[segment.lost[local]]

        if out.nbytes < LARGE_BYTES:
            lost = list(map(copy, blocks))
        else:
            with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
                lost = list(pool.map(copy, blocks))
        if any(map(len, lost)):
            damaged = [(segment, local) for (segment, _, _), local in zip(blocks, lost, strict=True) if len(local)]
            names = list(dict.fromkeys(segment.path.name for segment, _ in damaged))
            keys = np.concatenate([segment.keys[np.unique(local)] for segment, local in damaged])
            raise DamagedVectors(place, names, keys)
        return out


class IndexRun(NamedTuple):
    """The sound entries of some segments, sorted by the first 64 bits of their keys; a key may have several."""

    segments: tuple[Segment, ...]
    lost: int  # entries of the segments that are left out, because they are damaged
    prefix: Array  # the first 64 bits of each key, sorted
    rest: Array  # the other three times 64
    entry: Array  # the number of each entry, over the segments of the run


class Index:
    """Finds the newest sound entry of a key, in a few runs; the longest is mostly the longer part of all.

    A new segment is a run of its own, until the next longer run is less than twice as long: then they become one. So an
    entry is sorted once and copied a few times, however often a space grows. Entries are numbered over all runs.
    """

    def __init__(self, segments: tuple[Segment, ...], runs: Sequence[IndexRun]) -> None:
        position = {segment: number for number, segment in enumerate(segments)}
        self.segments = segments  # oldest first
        self.runs = runs
        self.entries = Entries([segment for run in runs for segment in run.segments])
        self.age = np.array([position[segment] for segment in self.entries.segments], np.int64)  # small is old

    def is_current(self, segments: tuple[Segment, ...]) -> bool:
        """Whether these are its segments, and nothing more of them is known to be damaged."""
        return self.segments == segments and all(run.lost == _count_lost(run.segments) for run in self.runs)

    def __call__(self, keys: Array) -> Array:
        """The entry of each key, -1 where there is none."""
        order = np.argsort(key_words(keys)[:, 0])  # a search in order keeps to the cache: twice as fast with its sort
        wanted = key_words(keys).take(order, axis=0)
        prefix = wanted[:, 0].copy()
        entries = np.full(len(wanted), -1)  # in that order
        base = 0
        for run in self.runs:
            place = np.searchsorted(run.prefix, prefix)
            rows = np.flatnonzero(place < len(run.prefix))
            while len(rows := rows[run.prefix[place[rows]] == prefix[rows]]):  # in practice once: few keys are alike
                near = place[rows]
                equal = run.rest.take(near, axis=0) == wanted.take(rows, axis=0)[:, 1:]
                same = np.flatnonzero(equal[:, 0] & equal[:, 1] & equal[:, 2])
                self._enter(entries, rows[same], base + run.entry[near[same]].astype(np.int64))
                place += 1
                rows = rows[near + 1 < len(run.prefix)]
            base += sum(map(len, run.segments))
        numbers = np.empty_like(entries)
        numbers[order] = entries
        return numbers

    def _enter(self, entries: Array, rows: Array, candidates: Array) -> None:
        """Enter candidates for keys, unless a newer entry is there: of a newer segment, or later in the same."""
        rivals = entries[rows]
        if (rivals >= 0).any():
            age, age_of_rivals = (
                self.age[np.searchsorted(self.entries.bases, numbers, side="right") - 1]
                for numbers in (candidates, np.maximum(rivals, 0))
            )
            newer = (age > age_of_rivals) | ((age == age_of_rivals) & (candidates > rivals)) | (rivals < 0)
            rows, candidates = rows[newer], candidates[newer]
        entries[rows] = candidates

    def distinct(self) -> int:
        """The number of distinct keys."""
        run = reduce(merge_runs, self.runs or [new_run(())])
        alike = np.flatnonzero(run.prefix[1:] == run.prefix[:-1])
        places = np.union1d(alike, alike + 1)
        words = np.column_stack([run.prefix[places], run.rest[places]])
        return len(run.prefix) - len(places) + len(np.unique(words, axis=0))


INDEXES: WeakValueDictionary[Path, Index] = WeakValueDictionary()  # the last one of each space: the next extends it
_INDEXING = threading.Lock()


def current_index(path: Path, last: Index | None, segments: tuple[Segment, ...]) -> Index:
    """The index of the segments of the space at `path`: the `last` one that was used there, where it still holds."""
    with _INDEXING:
        index = last or INDEXES.get(path)
        if index is None or not index.is_current(segments):
            index = extended_index(index, segments)
        INDEXES[path] = index
    return index


def extended_index(index: Index | None, segments: tuple[Segment, ...]) -> Index:
    """The index of segments; what another one has sorted is not sorted again."""
    current = set(segments)
    runs = [_sound_part(run, current) for run in index.runs] if index else []
    known = {segment for run in runs for segment in run.segments}
    runs = sorted([run for run in runs if run.segments], key=lambda run: -len(run.prefix))
    if fresh := tuple(segment for segment in segments if segment not in known):
        runs.append(new_run(fresh))
    while len(runs) > 1 and len(runs[-2].prefix) < 2 * len(runs[-1].prefix):
        runs.append(merge_runs(runs.pop(-2), runs.pop()))
    return Index(segments, runs)


def new_run(segments: tuple[Segment, ...]) -> IndexRun:
    """The run of segments."""
    words = _join([key_words(segment.keys) for segment in segments], np.empty((0, 4), np.uint64))
    order = np.argsort(words[:, 0])
    lost = _join([segment.lost for segment in segments], np.empty(0, bool))
    count = int(np.count_nonzero(lost))
    if count:
        order = order[~lost[order]]
    return IndexRun(segments, count, words[order, 0], words[:, 1:].take(order, axis=0), order.astype(np.uint32))


def merge_runs(run: IndexRun, other: IndexRun) -> IndexRun:
    """Two runs as one."""
    places = np.searchsorted(run.prefix, other.prefix)
    numbers = other.entry + np.uint32(sum(map(len, run.segments)))
    return IndexRun(
        run.segments + other.segments,
        run.lost + other.lost,
        np.insert(run.prefix, places, other.prefix),
        np.insert(run.rest, places, other.rest, axis=0),
        np.insert(run.entry, places, numbers),
    )


def _sound_part(run: IndexRun, current: Collection[Segment]) -> IndexRun:
    """The run without segments that are no longer current, and without entries that are known to be damaged by now."""
    left = tuple(segment for segment in run.segments if segment in current)
    lost = _count_lost(left)
    if left == run.segments and lost == run.lost:
        return run
    sound = [~segment.lost if segment in current else np.zeros(len(segment), bool) for segment in run.segments]
    gone = np.array([0 if segment in current else len(segment) for segment in run.segments])
    before = np.repeat(np.cumsum(gone) - gone, [len(segment) for segment in run.segments])
    places = np.flatnonzero(np.concatenate(sound)[run.entry])
    entry = run.entry[places]
    entry -= before[entry].astype(np.uint32)
    return IndexRun(left, lost, run.prefix[places], run.rest[places], entry)


def _count_lost(segments: Iterable[Segment]) -> int:
    return sum(int(np.count_nonzero(segment.lost)) for segment in segments)


def _join(arrays: Sequence[Array], none: Array) -> Array:
    """The arrays as one, without a copy of a single one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([none, *arrays])
