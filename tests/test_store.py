"""The store on real files and with real processes: what was committed is there and equal, nothing else ever is."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from embark.data.items import as_keys
from embark.store import FORMAT, Space, Store, Writer
from embark.types import Array, EmbarkError

RECORD = 28
ENTRY = 36


def keys(numbers: Iterable[int]) -> Array:
    """Keys that look random, one for each number."""
    return as_keys([hashlib.sha256(b"%d" % n).digest() for n in numbers])


def vectors(numbers: Iterable[int], dim: int = 3, dtype: str = "float32") -> Array:
    """The vector that belongs to each number's key."""
    return np.array([[n % 240 + d for d in range(dim)] for n in numbers], dtype).reshape(-1, dim)


def write(space: Space, *commits: Iterable[int], seal: bool = True) -> Path:
    """A segment of several commits; its folder."""
    before = set(space.path.iterdir()) if space.path.exists() else set()
    writer = space.writer()
    for numbers in commits:
        writer.add(keys(numbers), vectors(numbers))
        writer.commit()
    if seal:
        writer.close()
    else:
        abandon(writer)
    space.refresh()
    (path,) = set(space.path.iterdir()) - before
    return path


def abandon(writer: Writer) -> None:
    """What a crash does: nothing more is written."""
    for file in writer._files:
        file.close()


def holds(space: Space, numbers: Iterable[int]) -> bool:
    """Whether the space has exactly these numbers, each with its vector."""
    numbers = list(numbers)
    if len(space) != len(numbers):
        return False
    return not numbers or np.array_equal(np.asarray(space.read(keys(numbers))), vectors(numbers))


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Store(tmp_path / "store").space("5face")


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
    for place, i in enumerate(order):
        np.testing.assert_array_equal(stored[place], matrices[i])
        np.testing.assert_array_equal(flat[stored.offsets[place] : stored.offsets[place + 1]], matrices[i])
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
        writer.add(as_keys(alike[:30:2] + others[:1]), vectors(range(100, 116)))  # duplicates: the first wins
    space.refresh()
    assert len(space) == 16
    assert space.has(as_keys(alike + others)).tolist() == [n < 30 and n % 2 == 0 for n in range(41)] + [True, False]
    np.testing.assert_array_equal(space.read(as_keys(alike[:30:2]))[:], vectors(range(15)))


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    space = store.space("ab")
    with space.writer() as writer:
        writer.add(keys([]), np.empty((0, 4), np.float32))
        writer.commit()
    assert (list(tmp_path.iterdir()), store.spaces(), len(space), space.head) == ([], [], 0, None)
    assert space.has(keys([1])).tolist() == [False]
    assert np.asarray(space.read(keys([]))).shape == (0, 0)
    write(space, range(3))
    assert store.spaces() == ["ab"]
    assert space.read(keys([])).shape == (0, 3)


class Model(RuleBasedStateMachine):
    """Any interleaving of writers, commits, crashes and re-opens agrees with a dictionary."""

    writers: dict[int, tuple[Writer, list[int]]]

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.space = Store(self.root).space("ab")
        self.writers, self.committed = {}, set[int]()

    @rule(who=st.integers(0, 2), numbers=st.lists(st.integers(0, 30), max_size=6))
    def add(self, who: int, numbers: list[int]) -> None:
        writer, pending = self.writers.setdefault(who, (self.space.writer(), []))
        writer.add(keys(numbers), vectors(numbers))
        pending += numbers

    @rule(who=st.integers(0, 2), how=st.sampled_from(["commit", "close", "crash"]))
    def end(self, who: int, how: str) -> None:
        if who in self.writers:
            writer, pending = self.writers[who]
            if how == "crash":
                abandon(writer)
            else:
                writer.commit() if how == "commit" else writer.close()
                self.committed.update(pending)
                pending.clear()
            if how != "commit":
                del self.writers[who]

    @rule(again=st.booleans())
    def look(self, again: bool) -> None:
        if again:
            self.space = Store(self.root).space("ab")
        self.space.refresh()
        assert self.space.has(keys(range(31))).tolist() == [n in self.committed for n in range(31)]
        assert holds(self.space, self.committed)

    @invariant()
    def sound(self) -> None:
        assert self.space.verify() == []

    def teardown(self) -> None:
        for writer, _ in self.writers.values():
            abandon(writer)
        shutil.rmtree(self.root)


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
@pytest.mark.parametrize("seal", [True, False])
def test_a_torn_tail_is_cut_wherever_it_is_torn(space: Space, name: str, seal: bool) -> None:
    path = write(space, range(4), range(4, 6), range(6, 9), seal=seal)
    whole = (path / name).read_bytes()
    assert len(whole) == {"keys.bin": 9 * ENTRY, "vectors.bin": 9 * 12, "commits.bin": (3 + seal) * RECORD}[name]
    for length in range(len(whole) + 1):
        (path / name).write_bytes(whole[:length])
        if name == "commits.bin":
            commits = min(length // RECORD, 3)
        else:
            width = ENTRY if name == "keys.bin" else 12
            commits = sum(length >= entries * width for entries in (4, 6, 9))
        assert holds(Space(space.path), range((0, 4, 6, 9)[commits])), length
    for tail in (b"\0", bytes(200), b"garbage" * 9):  # a crash may also leave more than was committed
        (path / name).write_bytes(whole + tail)
        assert holds(Space(space.path), range(9))


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
def test_damage_in_the_last_commit_is_cut_and_reported(space: Space, name: str) -> None:
    path = write(space, range(4), range(4, 6), range(6, 9), seal=False)
    whole = (path / name).read_bytes()
    first = len(whole) - {"keys.bin": ENTRY * 3, "vectors.bin": 12 * 3, "commits.bin": RECORD}[name]
    for at in range(first, len(whole)):
        (path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        torn = Space(space.path)
        assert holds(torn, range(6))
        assert len(torn.verify()) == 1


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
def test_early_damage_is_reported(space: Space, name: str) -> None:
    path = write(space, range(4), range(4, 6), range(6, 9))
    whole = (path / name).read_bytes()
    for at in range(RECORD):  # all of them lie in the first commit
        (path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        (problem,) = Space(space.path).verify()
        assert "commit 1" in problem or "commit record 1" in problem
    (path / name).write_bytes(whole)
    assert Space(space.path).verify() == []


def test_a_lost_file_or_head_hides_a_segment_and_is_reported(space: Space) -> None:
    kept, lost = write(space, range(3)), write(space, range(3, 6))
    for name in ("keys.bin", "vectors.bin", "head.json"):
        whole = (lost / name).read_bytes()
        (lost / name).write_bytes(whole[:5])
        assert holds(Space(space.path), range(3))
        assert str(lost) in Space(space.path).verify()[0]
        (lost / name).unlink()
        assert holds(Space(space.path), range(3))
        (lost / name).write_bytes(whole)
    text = (lost / "head.json").read_text()
    (lost / "head.json").write_text(text.replace('"dim": 3', '"dim": 2'))
    assert holds(Space(space.path), range(3))
    assert "head.json" in Space(space.path).verify()[0]
    (kept / "head.json").write_text("[1]")
    assert len(Space(space.path)) == 0


def test_a_half_made_segment_is_ignored(space: Space) -> None:
    write(space, range(3))
    (space.path / "0-empty").mkdir()
    (space.path / "0-torn").mkdir()
    (space.path / "0-torn" / "head.json").write_text('{"format')
    (space.path / "0-torn" / "commits.bin").touch()
    (space.path / "stray").touch()
    assert holds(Space(space.path), range(3))
    assert Space(space.path).verify() == []


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
    assert holds(Space(space.path), [1, 3])
    assert len(list(space.path.iterdir())) == 1


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
    head = json.loads((path / "head.json").read_text())
    (path / "head.json").write_text(json.dumps(head | {"format": FORMAT + 1, "codec": "zstd"}))
    with pytest.raises(EmbarkError, match=rf"newer embark \(format {FORMAT + 1}\); upgrade, or set EMBARK_HOME"):
        Space(space.path)


def test_segments_that_disagree_are_an_error(space: Space, tmp_path: Path) -> None:
    write(space, range(3))
    other = Store(tmp_path / "other").space("5face")
    with other.writer() as writer:
        writer.add(keys([9]), vectors([9], 8))
    (segment,) = other.path.iterdir()
    segment.rename(space.path / "zz")
    with pytest.raises(EmbarkError, match=r"3 dimensions.*zz has float32 vectors of 8 dimensions"):
        space.refresh()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_full_disk_keeps_what_was_committed(space: Space, which: int) -> None:
    writer = space.writer()
    writer.add(keys(range(3)), vectors(range(3)))
    writer.commit()
    writer._files[which].close()
    writer._files[which] = Path("/dev/full").open("wb")  # noqa: SIM115
    writer.add(keys(range(3, 6)), vectors(range(3, 6)))
    with pytest.raises(EmbarkError, match=r"could not be written.*No space left.*committed is safe"), writer:
        writer.commit()
    with pytest.raises(EmbarkError, match="stopped at an earlier error"):
        writer.add(keys([7]), vectors([7]))
    writer.close()
    assert holds(Space(space.path), range(3))
    assert Space(space.path).verify() == []
    write(space, range(3, 6))
    assert holds(space, range(6))


@pytest.mark.parametrize("failing", [1, 2])
def test_no_record_goes_out_before_its_keys_and_vectors_are_durable(
    space: Space, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = iter(range(1, 99))

    def fsync(_: int) -> None:
        if next(calls) == failing:
            raise OSError("the disk is gone")

    writer = space.writer()
    writer.add(keys(range(3)), vectors(range(3)))
    writer.commit()
    writer.add(keys([4]), vectors([4]))
    monkeypatch.setattr("embark.store.os.fsync", fsync)
    with pytest.raises(EmbarkError, match="the disk is gone"), writer:
        writer.commit()
    (segment,) = space.path.iterdir()
    assert (segment / "commits.bin").stat().st_size == RECORD
    assert holds(Space(space.path), range(3))


def test_an_interrupt_in_a_write_does_not_commit_half_of_it(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    writer = space.writer()
    writer.add(keys(range(3)), vectors(range(3)))
    writer.commit()
    with monkeypatch.context() as patch:
        patch.setattr("embark.store.zlib.crc32", interrupt)  # comes after the bytes have been written
        with pytest.raises(KeyboardInterrupt):
            writer.add(keys([4]), vectors([4]))
    writer.close()
    assert holds(Space(space.path), range(3))
    assert Space(space.path).verify() == []


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────

CHILD = """
import hashlib, sys
from pathlib import Path
import numpy as np
from embark.data.items import as_keys
from embark.store import Store
start, stop = int(sys.argv[2]), int(sys.argv[3])
with Store(Path(sys.argv[1])).space("5face").writer() as writer:
    for at in range(start, stop, 20):
        for n in range(at, at + 20):
            key = as_keys([hashlib.sha256(b"%d" % n).digest()])
            writer.add(key, np.array([[n % 240 + d for d in range(3)]], np.float32))
        writer.commit()
        print(at + 20, flush=True)
"""


def child(space: Space, start: int, stop: int) -> subprocess.Popen[str]:
    """A process that writes these numbers and says how far it has committed."""
    args = [sys.executable, "-c", CHILD, str(space.path.parent), str(start), str(stop)]
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


def test_a_killed_writer_loses_nothing_that_it_committed(space: Space) -> None:
    """Five at a time, because Python takes its time to start; each is killed at a random moment of its own."""
    rng = random.Random(0)
    for _ in range(4):
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
