"""What only a store in a folder has: parts, links and durable writes."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.store import Space, Store
from embark.types import EmbarkError
from segments import (
    damage_at_random,
    holds,
    keys,
    reopened,
    vectors,
    write,
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


# ── damage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(max_examples=250, derandomize=True, database=None)
@given(data=st.data())
def test_more_random_damage_never_gives_a_wrong_vector(data: st.DataObject, store: Store) -> None:
    damage_at_random(data, store)
