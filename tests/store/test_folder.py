"""What only a store in a folder has: parts, links, durable writes, and segments of format 1."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.store import Space, Store
from embark.types import EmbarkError
from segments import (
    ENTRY,
    RECORD,
    alter,
    damage_at_random,
    flip,
    holds,
    keys,
    reopened,
    sound_or_missing,
    vectors,
    write,
    write_segment,
)

# ── writes that fail ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("failing", [1, 2])
def test_an_object_has_its_name_only_when_it_is_durable(
    space: Space, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = iter(range(1, 99))

    def fsync(_: int) -> None:
        if next(calls) == failing:
            raise OSError("the disk is gone")

    writer = space.writer()
    writer.add(keys(range(3)), vectors(range(3)))
    writer.commit()
    writer.add(keys([3]), vectors([3]))
    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(EmbarkError, match=r"could not be written.*the disk is gone.*committed is safe"), writer:
        writer.commit()
    assert not list(space.path.glob("*.part"))
    assert holds(reopened(space), range(2 + failing))  # the second fsync is the folder's: the object is there
    with pytest.raises(EmbarkError, match="stopped at an earlier error"):
        writer.add(keys([7]), vectors([7]))
    writer.close()
    write(space, range(3, 6))
    assert holds(space, range(6))


def test_an_interrupt_in_a_write_does_not_commit_half_of_it(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    writer = space.writer()
    writer.add(keys(range(3)), vectors(range(3)))
    writer.commit()
    writer.add(keys([4]), vectors([4]))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", interrupt)  # comes after the bytes have been written
        with pytest.raises(KeyboardInterrupt):
            writer.commit()
    assert holds(reopened(space), range(3))
    assert len(list(space.path.iterdir())) == 1
    assert reopened(space).verify() == []


def test_collecting_deletes_old_parts(space: Space) -> None:
    old, part, fresh = write(space, [2, 3]), space.path / "1.vectors.part", space.path / "2.vectors.part"
    write(space, range(6))
    for path in (part, fresh):
        path.write_bytes(b"x" * 100)
    os.utime(part, (time.time() - 90_000,) * 2)
    before = space.size
    freed = space.collect()
    assert freed == before - space.size > old.parent.stat().st_nlink
    assert sorted(path.suffix for path in space.path.iterdir()) == [".part", ".vectors"]
    assert holds(reopened(space), range(6))


def test_the_size_of_a_space_while_files_vanish(space: Space) -> None:
    path = write(space, range(3))
    (space.path / "1.vectors.part").symlink_to("gone")
    assert space.size == path.stat().st_size
    assert space.collect() == 0


# ── segments of format 1 ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
@pytest.mark.parametrize("seal", [True, False])
def test_a_torn_tail_is_cut_wherever_it_is_torn(space: Space, name: str, seal: bool) -> None:
    path = write_segment(space, range(4), range(4, 6), range(6, 9), seal=seal)
    whole = (path / name).read_bytes()
    assert len(whole) == {"keys.bin": 9 * ENTRY, "vectors.bin": 9 * 12, "commits.bin": (3 + seal) * RECORD}[name]
    for length in range(len(whole) + 1):
        (path / name).write_bytes(whole[:length])
        if name == "commits.bin":
            commits = min(length // RECORD, 3)
        else:
            width = ENTRY if name == "keys.bin" else 12
            commits = sum(length >= entries * width for entries in (4, 6, 9))
        assert holds(reopened(space), range((0, 4, 6, 9)[commits])), length
    for tail in (b"\0", bytes(200), b"garbage" * 9):  # a crash may also leave more than was committed
        (path / name).write_bytes(whole + tail)
        assert holds(reopened(space), range(9))


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
def test_any_damage_to_a_segment_is_found(space: Space, name: str) -> None:
    path = write_segment(space, range(4), range(4, 6), range(6, 9))
    whole = (path / name).read_bytes()
    for position in range(0, len(whole) - (RECORD if name == "commits.bin" else 0), 5):
        alter(path / name, whole)
        flip(path / name, position)
        damaged = reopened(space)
        damaged.discard(keys(range(9)))
        assert len(damaged) in (0, 3, 4, 5, 6, 7)
        sound_or_missing(damaged, 9)
        assert len(damaged.verify()) == 1


def test_a_lost_file_or_head_hides_a_segment_and_is_reported(space: Space) -> None:
    kept, lost = write_segment(space, range(3)), write_segment(space, range(3, 6))
    for name in ("keys.bin", "vectors.bin", "head.json"):
        whole = (lost / name).read_bytes()
        (lost / name).write_bytes(whole[:5])
        assert holds(reopened(space), range(3))
        assert str(lost) in reopened(space).verify()[0]
        (lost / name).unlink()
        assert holds(reopened(space), range(3))
        (lost / name).write_bytes(whole)
    text = (lost / "head.json").read_text()
    (lost / "head.json").write_text(text.replace('"dim": 3', '"dim": 2'))
    assert holds(reopened(space), range(3))
    assert "head.json" in reopened(space).verify()[0]
    (kept / "head.json").write_text("[1]")
    assert len(reopened(space)) == 0


def test_a_half_made_segment_is_ignored(space: Space) -> None:
    write_segment(space, range(3))
    (space.path / "0-empty").mkdir()
    (space.path / "0-torn").mkdir()
    (space.path / "0-torn" / "head.json").write_text('{"format')
    (space.path / "0-torn" / "commits.bin").touch()
    (space.path / "stray").touch()
    assert holds(reopened(space), range(3))
    assert reopened(space).verify() == []


@pytest.mark.parametrize(
    "change", [(b"float32", b" loat32"), (b'"dim": 3', b'"dim":-3'), (b'"dim": 3', b'"dim":{}'), (b"false", b"3e999")]
)
def test_a_head_that_describes_no_vectors_is_damage(space: Space, change: tuple[bytes, bytes]) -> None:
    path = write_segment(space, range(4)) / "head.json"
    alter(path, path.read_bytes().replace(*change))
    assert not len(reopened(space))
    (problem,) = reopened(space).verify()
    assert "head.json cannot be read" in problem


def test_a_segment_of_format_1_is_read_repaired_and_collected(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys([1, 3]), vectors([1, 3]))
    old = write_segment(space, range(12, 14), [14])
    assert holds(space, [1, 3, 12, 13, 14])
    flip(old / "vectors.bin", 0)
    assert len(space.verify()) == 1
    assert space.repair() == 1
    assert holds(reopened(space), [1, 3, 14])
    write_segment(space, [1])
    assert space.collect() > 0
    assert [path.suffix for path in space.path.iterdir()] == [".vectors"] * 2
    assert holds(reopened(space), [1, 3, 14])


@pytest.mark.slow
@settings(max_examples=250, derandomize=True, database=None)
@given(data=st.data())
def test_more_random_damage_never_gives_a_wrong_vector(data: st.DataObject, store: Store) -> None:
    damage_at_random(data, store)
