"""The store when objects are torn or altered, or merged meanwhile: sound vectors, or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.store import DamagedVectors, Space, Store
from embark.store.disk import Disk, Stamp
from segments import (
    alter,
    damage_at_random,
    files,
    flip,
    holds,
    keys,
    on_every_store,
    place,
    reopened,
    sound_or_missing,
    vectors,
    write,
)

pytestmark = on_every_store

# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_any_flipped_byte_gives_a_sound_vector_a_missing_one_or_an_error(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    assert len(whole) == 4096 + 9 * 12
    described = 48 + int.from_bytes(whole[12:16], "little") + 9 * 44
    for position in [*range(0, 600, 7), *range(4096, len(whole))]:
        alter(path, whole)
        flip(path, position)
        damaged = reopened(space)
        sound_or_missing(damaged, 9)
        assert bool(damaged.verify()) == (position < described or position >= 4096)


def test_a_damaged_entry_is_named_and_only_that(space: Space) -> None:
    path = write(space, range(9))
    flip(path, 4096 + 4 * 12)
    damaged = reopened(space)
    assert damaged.has(keys(range(9))).all()  # nobody has looked
    with pytest.raises(
        DamagedVectors, match=rf"1 stored vectors in {space.place} are damaged.*{path.name}.*run"
    ) as info:
        damaged.read(keys(range(9)))[:]
    assert (info.value.keys == keys([4])).all()
    others = [0, 1, 2, 3, 5, 6, 7, 8]
    for opened in (damaged, reopened(space)):
        assert holds(opened, others)
        assert not opened.has(keys([4])).any()
    assert damaged.verify() == [f"{path}: 1 of 9 vectors are damaged; embark store repair leaves out what is damaged"]
    write(space, [4])
    assert holds(reopened(space), range(9))


def test_discard_finds_all_damage_among_keys(space: Space) -> None:
    path = write(space, range(9))
    for number in (2, 7, 8):
        flip(path, 4096 + number * 12)
    damaged = reopened(space)
    assert damaged.discard(keys(range(8))) == 2
    assert damaged.has(keys(range(9))).tolist() == [number not in (2, 7) for number in range(9)]
    assert damaged.discard(keys(range(9))) == 1


def test_below_a_damaged_entry_the_older_one_is_read(space: Space) -> None:
    write(space, range(9))
    flip(write(space, [3, 4]), 4096)
    damaged = reopened(space)
    with pytest.raises(DamagedVectors):
        damaged.read(keys([3, 4]))[:]
    assert holds(damaged, range(9))


def test_an_object_cut_short_keeps_what_is_left(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    for length in (0, 10, 48, 300, 4096, 4096 + 13, 4096 + 5 * 12, len(whole) - 1):
        alter(path, whole[:length])
        cut = reopened(space)
        assert holds(cut, range(max(0, length - 4096) // 12)), length
        assert cut.verify()


def test_vectors_of_another_entry_never_pass(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    alter(path, whole[:4096] + whole[4096 + 12 : 4096 + 24] + whole[4096 : 4096 + 12] + whole[4096 + 24 :])
    assert reopened(space).discard(keys(range(9))) == 2


def test_a_ragged_entry_is_checked_too(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys(range(3)), [vectors([1, 2]), vectors([]), vectors([3])])
    (path,) = files(space)
    flip(path, 4096 + 24)
    damaged = reopened(space)
    np.testing.assert_array_equal(damaged.read(keys([0]))[0], vectors([1, 2]))
    with pytest.raises(DamagedVectors):
        damaged.read(keys(range(3)))[:]
    assert damaged.has(keys(range(3))).tolist() == [True, True, False]


def test_parts_and_strays_are_ignored(space: Space) -> None:
    path = write(space, range(3))
    (place(space) / "1.vectors.part").write_bytes(path.read_bytes()[:50])
    (place(space) / "stray").touch()
    (place(space) / "0-empty").mkdir()
    assert holds(reopened(space), range(3))
    assert reopened(space).verify() == []


def test_repair_keeps_every_sound_entry(space: Space) -> None:
    hurt, lost = write(space, range(9)), write(space, range(9, 12))
    flip(hurt, 4096)
    flip(lost, 20)
    assert len(space.verify()) == 2
    assert space.repair() == 2
    assert space.verify() == []
    assert holds(space, range(1, 9))
    assert holds(reopened(space), range(1, 9))


def test_collecting_deletes_what_newer_objects_hold(space: Space) -> None:
    write(space, [2, 3])
    write(space, [6])
    write(space, range(6))
    before = space.size
    freed = space.collect()
    assert freed == before - space.size > 0
    assert len(files(space)) == 2
    assert holds(reopened(space), range(7))


def test_collecting_keeps_what_only_a_damaged_object_supersedes(space: Space) -> None:
    write(space, range(4))
    flip(write(space, range(4)), 4096)
    space.collect()
    assert holds(reopened(space), range(4))


@settings(max_examples=40, derandomize=True, database=None)
@given(data=st.data())
def test_random_damage_never_gives_a_wrong_vector(data: st.DataObject, store: Store) -> None:
    damage_at_random(data, store)


# ── others at work ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_merged_while_a_space_is_listed_is_not_missed(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(space, [number]) for number in range(3)]
    whole = write(space, range(3))
    content = whole.read_bytes()
    whole.unlink()
    merged = place(space) / "2099-merged.vectors"
    listing = type(space.disk).segments

    def listed(disk: Disk, folder: Path) -> list[tuple[Path, Stamp | None]]:
        entries = listing(disk, folder)
        if not merged.exists():  # a writer merges its objects just after they were listed
            merged.write_bytes(content)
            for path in paths:
                path.unlink()
        return entries

    monkeypatch.setattr(type(space.disk), "segments", listed)
    assert holds(reopened(space), range(3))


def test_a_writer_ends_well_though_its_objects_are_collected(space: Space) -> None:
    with space.writer() as writer:
        for number in range(20):
            writer.add(keys([number]), vectors([number]))
            writer.commit()
        write(reopened(space), range(20))
        assert reopened(space).collect() > 0
    assert holds(reopened(space), range(20))
