"""The store on real files and with real processes: what was committed is there and equal, nothing else ever is."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xxhash

from cases import slow
from embark import store as store_module
from embark.items import as_keys
from embark.store import FEW, Space, Store
from embark.store.buckets import Bucket
from embark.store.segments import FORMAT
from embark.types import EmbarkError
from segments import alter, files, holds, keys, on_every_store, place, reopened, vectors, write

pytestmark = on_every_store

# ── reading and writing ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_vectors_come_back_as_they_were(space: Space, dtype: str) -> None:
    with space.writer() as writer:
        for part in range(0, 1000, 100):
            writer.add(keys(range(part, part + 100)), vectors(range(part, part + 100), 7, dtype))
    assert len(space) == 0  # until it looks again
    space.refresh()
    order = np.random.default_rng(0).permutation(1000)[:700]
    stored, expected = space.read(keys(order)), vectors(order, 7, dtype)
    assert (len(stored), stored.shape, stored.dtype, stored.ragged) == (700, (700, 7), np.dtype(dtype), False)
    for index in (slice(None), slice(3, 90, 2), np.array([5, 5, 1]), order % 2 == 0, 4, -1, slice(0, 0)):
        np.testing.assert_array_equal(stored[index], expected[index])
        assert stored[index].dtype == dtype
    np.testing.assert_array_equal(np.asarray(stored), expected)
    assert np.asarray(stored, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        stored.__array__(copy=False)
    assert space.verify() == []


def test_vectors_from_many_segments_keep_their_order(space: Space) -> None:
    for part in range(20):
        write(space, range(part, 600, 20))
    order = np.random.default_rng(1).permutation(600)
    np.testing.assert_array_equal(space.read(keys(order))[:], vectors(order))


def test_casts_to_the_dtype_that_is_asked_for(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys([1]), np.array([[0.1, 2.0]]), "float16")
    space.refresh()
    np.testing.assert_array_equal(space.read(keys([1]))[0], np.array([0.1, 2.0], np.float16))
    with space.writer() as writer, pytest.raises(EmbarkError, match="too large for float16"):
        writer.add(keys([1]), np.array([[1e6, 2.0]]), "float16")


def test_ragged_rows(space: Space) -> None:
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(rows, 4)).astype(np.float16) for rows in rng.integers(0, 6, 50)]
    for part in (slice(0, 20), slice(20, 50)):
        with space.writer() as writer:
            writer.add(keys(range(50)[part]), matrices[part])
    space.refresh()
    order = rng.permutation(50)
    stored = space.read(keys(order))
    assert (stored.ragged, len(stored), stored.shape[0]) == (True, 50, sum(map(len, matrices)))
    for found, i in zip(stored[:], order, strict=True):
        np.testing.assert_array_equal(found, matrices[i])
    flat = np.asarray(stored)
    for row, i in enumerate(order):
        np.testing.assert_array_equal(stored[row], matrices[i])
        np.testing.assert_array_equal(flat[stored.offsets[row] : stored.offsets[row + 1]], matrices[i])
    assert stored[0:0] == []


def test_texts_are_ragged_bytes(space: Space) -> None:
    texts = ["", "naïve", "二", "a\0b"]
    with space.writer() as writer:
        writer.add(keys(range(4)), [np.frombuffer(text.encode(), np.uint8)[:, None] for text in texts])
    space.refresh()
    assert [rows.tobytes().decode() for rows in space.read(keys(range(4)))[:]] == texts


def test_an_entry_without_rows_is_an_entry(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys([1]), [np.empty((0, 5), np.float32)])
    space.refresh()
    assert space.has(keys([1, 2])).tolist() == [True, False]
    assert space.read(keys([1]))[0].shape == (0, 5)


def test_equal_prefixes_are_told_apart(space: Space) -> None:
    alike = [b"prefix8!" + bytes([n]) * 24 for n in range(40)] + [b"prefix8!" + bytes(23) + b"x"]
    others = [b"prefix8\x20" + bytes(24), b"prefix8\x22" + bytes(24)]
    with space.writer() as writer:
        writer.add(as_keys(alike[:30:2] + others[:1]), vectors(range(16)))
        writer.add(as_keys(alike[:30:2] + others[:1]), vectors(range(100, 116)))  # duplicates: the newest wins
    space.refresh()
    assert len(space) == 16
    assert space.has(as_keys(alike + others)).tolist() == [n < 30 and n % 2 == 0 for n in range(41)] + [True, False]
    np.testing.assert_array_equal(space.read(as_keys(alike[:30:2]))[:], vectors(range(100, 115)))


def test_nothing_in_nothing_out(store: Store) -> None:
    space = store.space("ab")
    with space.writer() as writer:
        writer.add(keys([]), np.empty((0, 4), np.float32))
        writer.commit()
    assert (store.root.exists(), store.spaces(), len(space), space.head) == (False, [], 0, None)
    assert space.has(keys([1])).tolist() == [False]
    assert np.asarray(space.read(keys([]))).shape == (0, 0)
    write(space, range(3))
    assert store.spaces() == ["ab"]
    assert space.read(keys([])).shape == (0, 3)


def test_many_small_objects_become_few_and_readers_follow(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MANY", 32)
    writer = space.writer()
    writer.add(keys([0]), vectors([0]))
    writer.commit()
    space.refresh()
    before = space.read(keys([0]))  # not read yet
    for number in range(1, 100):
        writer.add(keys([number]), vectors([number]))
        writer.commit()
        assert len(files(space)) <= 32 + 4
    np.testing.assert_array_equal(before[:], vectors([0]))  # its object is gone, its vector is not
    writer.close()
    space.refresh()
    assert holds(space, range(100))
    assert space.segments <= 3 + FEW
    assert space.verify() == []


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_missing_keys_are_counted_and_named(space: Space) -> None:
    write(space, range(3))
    with pytest.raises(EmbarkError, match=f"2 of 4 vectors.*{keys([7])[0].tobytes().hex()[:16]}"):
        space.read(keys([1, 7, 2, 8]))


def test_a_space_holds_one_kind_of_vector(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys([1]), vectors([1], 3))
        with pytest.raises(EmbarkError, match=r"holds float32 vectors of 3 dim.*float32 vectors of 4 dim"):
            writer.add(keys([2]), vectors([2], 4))
        writer.add(keys([3]), vectors([3], 3))  # a refused batch leaves the writer as it was
    for wrong in (vectors([2], 4), vectors([2], 3, "float16"), [vectors([2], 3)]):
        with space.writer() as writer, pytest.raises(EmbarkError, match="cannot be added"):
            writer.add(keys([2]), wrong)
    assert holds(reopened(space), [1, 3])
    assert len(files(space)) == 1


def test_bad_arguments_are_refused(space: Space) -> None:
    with space.writer() as writer:
        for wrong, why in [
            (vectors([1, 2]), "1 keys came with 2"),
            (np.zeros(1, np.float32), "matrix"),
            ([np.zeros(3, np.float32)], "matrix"),
            (np.zeros((1, 3)), "float64 vectors cannot be stored"),
        ]:
            with pytest.raises(EmbarkError, match=why):
                writer.add(keys([1]), wrong)
        with pytest.raises(EmbarkError, match="one width"):
            writer.add(keys([1, 2]), [np.zeros((1, 3), np.float32), np.zeros((1, 2), np.float32)])
        with pytest.raises(EmbarkError, match="cannot be stored as uint8"):
            writer.add(keys([1]), vectors([1]), "uint8")
        with pytest.raises(EmbarkError, match="32-byte"):
            writer.add(np.zeros(1, "S32"), vectors([1]))
    with pytest.raises(EmbarkError, match="closed"):
        writer.add(keys([1]), vectors([1]))
    with pytest.raises(EmbarkError, match="cannot name a space"):
        Store(space.path).space("../up")


def test_a_newer_format_says_what_to_do(space: Space) -> None:
    path = write(space, range(3))
    content = path.read_bytes()
    header = content[:8] + (FORMAT + 1).to_bytes(4, "little") + content[12:40]
    alter(path, header + xxhash.xxh3_64_intdigest(header).to_bytes(8, "little") + content[48:])
    with pytest.raises(EmbarkError, match=rf"newer embark \(format {FORMAT + 1}\); upgrade, or set EMBARK_HOME"):
        reopened(space)


def test_segments_that_disagree_are_an_error(space: Space, tmp_path: Path) -> None:
    write(space, range(3))
    other = Store(tmp_path / "other").space("5face")
    with other.writer() as writer:
        writer.add(keys([9]), vectors([9], 8))
    (segment,) = other.path.iterdir()
    (place(space) / "zz.vectors").write_bytes(segment.read_bytes())
    with pytest.raises(EmbarkError, match=r"3 dimensions.*zz.vectors has float32 vectors of 8 dimensions"):
        space.refresh()


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────

CHILD = """
import hashlib, sys
import numpy as np
from embark.items import as_keys
from embark.store.buckets import open_store
from embark.settings import load_settings
start, stop = int(sys.argv[2]), int(sys.argv[3])
with open_store(load_settings(store=sys.argv[1])).space("5face").writer() as writer:
    for at in range(start, stop, 20):
        for n in range(at, at + 20):
            key = as_keys([hashlib.sha256(b"%d" % n).digest()])
            writer.add(key, np.array([[n % 240 + d for d in range(3)]], np.float32))
        writer.commit()
        print(at + 20, flush=True)
"""


def child(space: Space, start: int, stop: int) -> subprocess.Popen[str]:
    """A process that writes these numbers and says how far it has committed."""
    store = space.disk.url if isinstance(space.disk, Bucket) else str(space.path.parent)
    args = [sys.executable, "-c", CHILD, store, str(start), str(stop)]
    return subprocess.Popen(args, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_and_a_reader_follows(space: Space) -> None:
    one, two = child(space, 0, 400), child(space, 300, 700)
    assert one.stdout is not None
    line = one.stdout.readline()
    space.refresh()
    assert space.has(keys(range(int(line)))).all()
    seen = len(space)
    while one.poll() is None or two.poll() is None:
        space.refresh()
        there = np.flatnonzero(space.has(keys(range(700))))
        np.testing.assert_array_equal(space.read(keys(there))[:], vectors(there))
        assert len(there) >= seen
        seen = len(there)
    one.stdout.close()
    assert two.stdout is not None
    two.stdout.close()
    assert (one.returncode, two.returncode) == (0, 0)
    space.refresh()
    assert holds(space, range(700))
    assert space.verify() == []


@pytest.mark.parametrize("rounds", [1, *slow(4)])
def test_a_killed_writer_loses_nothing_that_it_committed(space: Space, rounds: int) -> None:
    """Five at a time, because Python takes its time to start; each is killed at a random moment of its own."""
    rng = random.Random(0)
    for _ in range(rounds):
        children = [(start, child(space, start, start + 50_000)) for start in range(0, 250_000, 50_000)]
        reached = {}
        for start, process in children:
            assert process.stdout is not None
            reached[start] = int(process.stdout.readline())
            time.sleep(rng.random() * 0.02)
            process.kill()
        for start, process in children:
            said, _ = process.communicate()
            reached[start] = max([reached[start], *(int(line) for line in said.split("\n")[:-1])])
        space.refresh()
        for start, stop in reached.items():
            assert space.has(keys(range(start, stop))).all()
            more = np.arange(start, stop + 200)  # what it committed but had no time to report is sound as well
            there = more[space.has(keys(more))]
            np.testing.assert_array_equal(space.read(keys(there))[:], vectors(there))
        assert space.verify() == []
