"""What a store costs as it grows: bytes written, segments, work of the index and memory are linear in its entries."""

from __future__ import annotations

import gc
import math
import random
import time
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import slow
from embark import store as store_module
from embark.items import KEY
from embark.store import FEW, MANY, Space, Store
from embark.store import index as index_module
from embark.store import opening as opening_module
from embark.store.buckets import Bucket
from embark.store.disk import Disk
from embark.types import Array
from segments import files, flip, keys, on_every_store, reopened

pytestmark = on_every_store


@pytest.fixture
def written(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every segment that is written."""
    sizes: list[int] = []
    put = type(store.disk).put

    def measured(disk: Disk, path: Path, chunks: Sequence[Any]) -> None:
        sizes.append(sum(memoryview(chunk).nbytes for chunk in chunks))
        put(disk, path, chunks)

    monkeypatch.setattr(type(store.disk), "put", measured)
    return sizes


@pytest.fixture
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of commits, none of which need outlive a power cut."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


def random_keys(count: int, seed: int = 0) -> Array:
    return np.frombuffer(np.random.default_rng(seed).bytes(32 * count), KEY)


def commit_sizes(space: Space, sizes: Sequence[int], waves: int = 1) -> None:
    """Commit so many vectors of 1 KB at a time, shared out over several writers; then check that all is there."""
    rows = np.zeros((max(sizes), 512), np.float16)
    all_keys = random_keys(sum(sizes))
    first = 0
    for numbers in np.array_split(np.arange(len(sizes)), waves):
        with space.writer() as writer:
            for number in numbers:
                size = sizes[number]
                writer.add(all_keys[first : first + size], rows[:size], copy=False)
                writer.commit()
                first += size
        space.refresh()
    assert space.has(all_keys).all()
    assert len(space) == sum(sizes)


@pytest.fixture
def share(store: Store) -> int:
    """How many times fewer commits a test makes: a server of buckets takes a hundred times as long for each."""
    return 3 if isinstance(store.disk, Bucket) else 1


def growth(kind: str, share: int) -> tuple[list[int], int, int]:
    """The sizes of commits, in how many waves they come, and the most segments that may be left of them."""
    count = {"tiny": 900, "waves": 300, "small": 60, "large": 9, "mixed": 100}[kind] // share
    if kind == "tiny":  # paid for, one by one
        return [1] * count, 1, count // MANY + FEW
    if kind == "waves":  # small tasks, a wave each
        return [4] * count, count, count // FEW + FEW
    if kind == "small":  # 2 MB each
        return [2000] * count, count // 6, count * 2 // 64 + FEW + 1
    if kind == "large":  # larger than what is merged
        return [9_000] * count, count, count
    return random.Random(0).choices([1, 10, 300, 5000, 20_000], [8, 8, 4, 2, 1], k=count), count // 4, count // 5 + FEW


@pytest.mark.usefixtures("fast_disk")
@pytest.mark.parametrize("kind", ["small", "mixed", *slow("tiny", "waves", "large")])
def test_nothing_is_written_more_often_than_twice_and_segments_are_few(
    space: Space, written: list[int], kind: str, share: int
) -> None:
    sizes, waves, most = growth(kind, share)
    commit_sizes(space, sizes, waves)
    first_time = sum(4096 * math.ceil((200 + 44 * size) / 4096) + 1024 * size for size in sizes)
    assert sum(written) <= 2.01 * first_time
    assert space.segments <= most
    assert space.size < 1.1 * first_time


@pytest.mark.usefixtures("fast_disk")
def test_an_entry_is_sorted_once_and_moved_a_few_times(
    space: Space, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    sorted_entries = []
    moved_entries = []
    new_run, merge_runs = index_module.new_run, index_module.merge_runs

    def counted_run(segments: Any) -> Any:
        sorted_entries.append(sum(map(len, segments)))
        return new_run(segments)

    def counted_merge(run: Any, other: Any) -> Any:
        moved_entries.append(len(run.prefix) + len(other.prefix))
        return merge_runs(run, other)

    monkeypatch.setattr(index_module, "new_run", counted_run)
    monkeypatch.setattr(index_module, "merge_runs", counted_merge)
    monkeypatch.setattr(store_module, "FEW", 10_000)  # segments that were merged are sorted once more
    waves, size = 128 // share, 50
    all_keys = random_keys(waves * size)
    for wave in range(waves):
        with space.writer() as writer:
            writer.add(all_keys[wave * size : (wave + 1) * size], np.zeros((size, 2), np.float32))
        space.refresh()
        assert space.has(all_keys).sum() == (wave + 1) * size
        assert len(space._index.runs) <= 1 + math.log2(wave + 1)
    assert sum(sorted_entries) == waves * size
    assert sum(moved_entries) <= waves * size * math.log2(waves)


@pytest.mark.parametrize("ragged", [False, True])
def test_an_entry_takes_at_most_ninety_bytes_of_memory(space: Space, ragged: bool) -> None:
    count = 40_000
    rows = [np.zeros((1, 1), np.uint8)] * count if ragged else np.zeros((count, 1), np.uint8)
    all_keys = random_keys(count)
    for start in range(0, count, 10_000):
        with space.writer() as writer:
            writer.add(all_keys[start : start + 10_000], rows[start : start + 10_000])
    opening_module.OPENED.clear()
    gc.collect()
    tracemalloc.start()
    try:
        opened = reopened(space)
        assert opened.has(all_keys[:10]).all()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / count <= 90.5


@pytest.mark.parametrize(("writers", "seed"), [(1, 0), (1, 1), (2, 2), (3, 3)])
def test_a_space_that_grows_finds_what_one_that_is_opened_anew_finds(
    store: Store, writers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that are written again, damage, and segments that are merged: the newest sound entry of each key."""
    dice = random.Random(seed)
    monkeypatch.setattr(store_module, "FEW", 4)
    grown = store.space("5face")
    open_writers = [reopened(grown).writer() for _ in range(writers)]
    versions: dict[int, list[int]] = {number: [] for number in range(40)}  # by key, those that are sound, oldest first
    for version in range(50):
        who = dice.randrange(writers)
        writer = open_writers[who]
        numbers = dice.sample(range(who, 40, writers), dice.randrange(1, 8))  # merging would mix up ages across writers
        before = set(files(grown))
        writer.add(keys(numbers), np.full((len(numbers), 3), version, np.float32))
        writer.commit()
        for number in numbers:
            versions[number].append(version)
        if dice.random() < 0.1:
            (path,) = set(files(grown)) - before
            lost = dice.randrange(len(numbers))
            flip(path, 4096 + 12 * lost)
            versions[numbers[lost]].remove(version)
        if dice.random() < 0.3:
            writer.close()
            open_writers[who] = writer._space.writer()
        if dice.random() < 0.5:
            grown.refresh()
            grown.discard(keys(range(40)))
            present = [number for number in range(40) if versions[number]]
            for space in (grown, fresh(grown)):
                assert np.flatnonzero(space.has(keys(range(40)))).tolist() == present
                np.testing.assert_array_equal(
                    np.asarray(space.read(keys(present)))[:, 0], [versions[number][-1] for number in present]
                )
                assert len(space) == len(present)
    grown.refresh()
    assert grown.segments < 50  # some were merged


def fresh(space: Space) -> Space:
    """The same space as another process sees it, after it has met all damage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening_module, "OPENED", {})
        patch.setattr(index_module, "INDEXES", {})
        opened = reopened(space)
        opened.discard(keys(range(40)))
    return opened


def test_vectors_that_were_found_are_read_after_their_segments_were_merged(space: Space) -> None:
    for number in range(FEW):
        with space.writer() as writer:
            writer.add(keys([number]), np.full((1, 3), number, np.float32))
    space.refresh()
    stored = space.read(keys(range(FEW)))
    with space.writer() as writer:
        writer.add(keys([FEW]), np.full((1, 3), FEW, np.float32))
    assert len(files(space)) == 1
    np.testing.assert_array_equal(stored[:][:, 0], range(FEW))
    assert space.discard(keys(range(FEW))) == 0


@pytest.mark.parametrize("ragged", [True, *slow(False)])
def test_a_writer_needs_no_memory_for_what_it_has_written(
    space: Space, ragged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for the entries nor for the rows of segments that it has merged."""
    commits, size, dim = 40, 500, 128
    monkeypatch.setattr(store_module, "MANY", 9)
    all_keys = random_keys(commits * size)
    writer = space.writer()
    for number in range(commits):
        matrix = np.full((size, dim), number, np.float32)
        writer.add(all_keys[number * size : (number + 1) * size], list(matrix[:, None]) if ragged else matrix)
        if number == commits // 4:
            gc.collect()
            tracemalloc.start()
        writer.commit()
    del matrix
    try:
        gc.collect()
        taken, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    writer.close()
    assert len(files(space)) < commits
    assert taken < commits * size * 12
    assert peak < 5 * size * dim * 4 or isinstance(space.disk, Bucket)  # ten are merged; what uploads takes as much
    maps = Path("/proc/self/maps")
    assert not maps.exists() or ".vectors (deleted)" not in maps.read_text()
    space.refresh()
    stored = np.concatenate(space.read(all_keys)[:]) if ragged else space.read(all_keys)[:]
    np.testing.assert_array_equal(stored[:, 0], np.repeat(np.arange(commits), size))


@pytest.mark.usefixtures("fast_disk")
def test_threads_read_a_space_while_it_grows(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run: wave after wave is written and looked up while earlier ones are scored."""
    monkeypatch.setattr(store_module, "FEW", 3)
    all_keys = keys(range(600))
    written = 0

    def score(seed: int) -> int:
        dice = random.Random(seed)
        read = 0
        limit = time.monotonic() + 30
        while written < 600 and time.monotonic() < limit:
            if not (count := written):
                continue
            numbers = dice.sample(range(count), min(count, 50))
            np.testing.assert_array_equal(space.read(all_keys[numbers])[:][:, 0], numbers)
            read += 1
        return read

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(score, seed) for seed in range(3)]
        for first in range(0, 600, 20):
            with space.writer() as writer:
                writer.add(all_keys[first : first + 20], np.arange(first, first + 20, dtype=np.float32)[:, None])
            space.refresh()
            assert space.has(all_keys).sum() == first + 20
            written = first + 20
        assert sum(reader.result(60) for reader in readers) > 0
