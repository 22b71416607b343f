"""The store when files are torn or altered, disks full and writes interrupted: sound vectors, or none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark import store as store_module
from embark.store import DamagedVectors, Space, Store
from embark.types import EmbarkError
from segments import ENTRY, RECORD, alter, flip, holds, keys, vectors, write, write_segment

# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_any_flipped_byte_gives_a_sound_vector_a_missing_one_or_an_error(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    assert len(whole) == 4096 + 9 * 12
    described = 48 + int.from_bytes(whole[12:16], "little") + 9 * 44
    for position in [*range(0, 600, 7), *range(4096, len(whole))]:
        alter(path, whole)
        flip(path, position)
        damaged = Space(space.path)
        sound_or_missing(damaged, 9)
        assert bool(damaged.verify()) == (position < described or position >= 4096)


def test_a_damaged_entry_is_named_and_only_that(space: Space) -> None:
    path = write(space, range(9))
    flip(path, 4096 + 4 * 12)
    damaged = Space(space.path)
    assert damaged.has(keys(range(9))).all()  # nobody has looked
    with pytest.raises(
        DamagedVectors, match=rf"1 stored vectors in {space.path} are damaged.*{path.name}.*run"
    ) as info:
        damaged.read(keys(range(9)))[:]
    assert (info.value.keys == keys([4])).all()
    others = [0, 1, 2, 3, 5, 6, 7, 8]
    for opened in (damaged, Space(space.path)):
        assert holds(opened, others)
        assert not opened.has(keys([4])).any()
    assert damaged.verify() == [f"{path}: 1 of 9 vectors are damaged; embark store repair leaves out what is damaged"]
    write(space, [4])
    assert holds(Space(space.path), range(9))


def test_discard_finds_all_damage_among_keys(space: Space) -> None:
    path = write(space, range(9))
    for number in (2, 7, 8):
        flip(path, 4096 + number * 12)
    damaged = Space(space.path)
    assert damaged.discard(keys(range(8))) == 2
    assert damaged.has(keys(range(9))).tolist() == [number not in (2, 7) for number in range(9)]
    assert damaged.discard(keys(range(9))) == 1


def test_below_a_damaged_entry_the_older_one_is_read(space: Space) -> None:
    write(space, range(9))
    flip(write(space, [3, 4]), 4096)
    damaged = Space(space.path)
    with pytest.raises(DamagedVectors):
        damaged.read(keys([3, 4]))[:]
    assert holds(damaged, range(9))


def test_an_object_cut_short_keeps_what_is_left(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    for length in (0, 10, 48, 300, 4096, 4096 + 13, 4096 + 5 * 12, len(whole) - 1):
        alter(path, whole[:length])
        cut = Space(space.path)
        assert holds(cut, range(max(0, length - 4096) // 12)), length
        assert cut.verify()


def test_vectors_of_another_entry_never_pass(space: Space) -> None:
    path = write(space, range(9))
    whole = path.read_bytes()
    alter(path, whole[:4096] + whole[4096 + 12 : 4096 + 24] + whole[4096 : 4096 + 12] + whole[4096 + 24 :])
    assert Space(space.path).discard(keys(range(9))) == 2


def test_a_ragged_entry_is_checked_too(space: Space) -> None:
    with space.writer() as writer:
        writer.add(keys(range(3)), [vectors([1, 2]), vectors([]), vectors([3])])
    (path,) = space.path.iterdir()
    flip(path, 4096 + 24)
    damaged = Space(space.path)
    np.testing.assert_array_equal(damaged.read(keys([0]))[0], vectors([1, 2]))
    with pytest.raises(DamagedVectors):
        damaged.read(keys(range(3)))[:]
    assert damaged.has(keys(range(3))).tolist() == [True, True, False]


def test_parts_and_strays_are_ignored(space: Space) -> None:
    path = write(space, range(3))
    (space.path / "1.vectors.part").write_bytes(path.read_bytes()[:50])
    (space.path / "stray").touch()
    (space.path / "0-empty").mkdir()
    assert holds(Space(space.path), range(3))
    assert Space(space.path).verify() == []


def test_repair_keeps_every_sound_entry(space: Space) -> None:
    hurt, lost, old = write(space, range(9)), write(space, range(9, 12)), write_segment(space, range(12, 14), [14])
    flip(hurt, 4096)
    flip(lost, 20)
    flip(old / "vectors.bin", 0)
    assert len(space.verify()) == 3
    assert space.repair() == 3
    assert space.verify() == []
    assert holds(space, [*range(1, 9), 14])
    assert holds(Space(space.path), [*range(1, 9), 14])


def test_collecting_deletes_old_parts_and_what_newer_objects_hold(space: Space) -> None:
    write_segment(space, range(4))
    old, part, fresh = write(space, [2, 3]), space.path / "1.vectors.part", space.path / "2.vectors.part"
    write(space, range(6))
    for path in (part, fresh):
        path.write_bytes(b"x" * 100)
    os.utime(part, (time.time() - 90_000,) * 2)
    before = space.size
    freed = space.collect()
    assert freed == before - space.size > old.parent.stat().st_nlink
    assert sorted(path.suffix for path in space.path.iterdir()) == [".part", ".vectors"]
    assert holds(Space(space.path), range(6))


def test_collecting_keeps_what_only_a_damaged_object_supersedes(space: Space) -> None:
    write(space, range(4))
    flip(write(space, range(4)), 4096)
    space.collect()
    assert holds(Space(space.path), range(4))


@settings(max_examples=40, derandomize=True, database=None)
@given(data=st.data())
def test_random_damage_never_gives_a_wrong_vector(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damage_at_random(data, tmp_path_factory)


@pytest.mark.slow
@settings(max_examples=250, derandomize=True, database=None)
@given(data=st.data())
def test_more_random_damage_never_gives_a_wrong_vector(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damage_at_random(data, tmp_path_factory)


def damage_at_random(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Damage a space of objects and a segment; it gives sound vectors or none, before and after repair."""
    space = Store(tmp_path_factory.mktemp("fuzz")).space("5face")
    write_segment(space, range(4), range(4, 7))
    write(space, range(5, 12), range(10, 16))
    files = sorted(path for path in space.path.rglob("*") if path.is_file())
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(files))
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()) or not content:
            del content[data.draw(st.integers(0, len(content))) :]
        else:
            start = data.draw(st.integers(0, len(content) - 1))
            noise = data.draw(st.binary(min_size=1, max_size=40))
            content[start : start + len(noise)] = noise
        alter(path, bytes(content))
    sound_or_missing(Space(space.path), 16)
    Space(space.path).repair()
    assert Space(space.path).verify() == []
    sound_or_missing(Space(space.path), 16)


def sound_or_missing(space: Space, count: int) -> None:
    """Read all that is there, by ones and together; what is damaged must be gone after its error."""
    for number in range(count):
        try:
            if space.has(keys([number]))[0]:
                np.testing.assert_array_equal(space.read(keys([number]))[:], vectors([number]))
        except DamagedVectors as error:
            assert (error.keys == keys([number])).all()  # noqa: PT017
    there = np.flatnonzero(space.has(keys(range(count))))
    np.testing.assert_array_equal(np.asarray(space.read(keys(there))).reshape(-1, 3), vectors(there))


@pytest.mark.parametrize(
    "change", [(b"float32", b" loat32"), (b'"dim": 3', b'"dim":-3'), (b'"dim": 3', b'"dim":{}'), (b"false", b"3e999")]
)
def test_a_head_that_describes_no_vectors_is_damage(space: Space, change: tuple[bytes, bytes]) -> None:
    path = write_segment(space, range(4)) / "head.json"
    alter(path, path.read_bytes().replace(*change))
    assert not len(Space(space.path))
    (problem,) = Space(space.path).verify()
    assert "head.json cannot be read" in problem


# ── others at work ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_merged_while_a_space_is_listed_is_not_missed(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(space, [number]) for number in range(3)]
    whole = write(space, range(3)).rename(space.path.parent / "whole.vectors")
    listing = store_module._entries

    def listed(folder: Path) -> list[os.DirEntry[str]]:
        entries = listing(folder)
        if not whole.exists():
            return entries
        whole.rename(space.path / "2099-merged.vectors")  # a writer merges its objects just after they were listed
        for path in paths:
            path.unlink()
        return entries

    monkeypatch.setattr(store_module, "_entries", listed)
    assert holds(Space(space.path), range(3))


def test_a_writer_ends_well_though_its_objects_are_collected(space: Space) -> None:
    with space.writer() as writer:
        for number in range(20):
            writer.add(keys([number]), vectors([number]))
            writer.commit()
        write(Space(space.path), range(20))
        assert Space(space.path).collect() > 0
    assert holds(Space(space.path), range(20))


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
        assert holds(Space(space.path), range((0, 4, 6, 9)[commits])), length
    for tail in (b"\0", bytes(200), b"garbage" * 9):  # a crash may also leave more than was committed
        (path / name).write_bytes(whole + tail)
        assert holds(Space(space.path), range(9))


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "commits.bin"])
def test_any_damage_to_a_segment_is_found(space: Space, name: str) -> None:
    path = write_segment(space, range(4), range(4, 6), range(6, 9))
    whole = (path / name).read_bytes()
    for position in range(0, len(whole) - (RECORD if name == "commits.bin" else 0), 5):
        alter(path / name, whole)
        flip(path / name, position)
        damaged = Space(space.path)
        damaged.discard(keys(range(9)))
        assert len(damaged) in (0, 3, 4, 5, 6, 7)
        sound_or_missing(damaged, 9)
        assert len(damaged.verify()) == 1


def test_a_lost_file_or_head_hides_a_segment_and_is_reported(space: Space) -> None:
    kept, lost = write_segment(space, range(3)), write_segment(space, range(3, 6))
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
    write_segment(space, range(3))
    (space.path / "0-empty").mkdir()
    (space.path / "0-torn").mkdir()
    (space.path / "0-torn" / "head.json").write_text('{"format')
    (space.path / "0-torn" / "commits.bin").touch()
    (space.path / "stray").touch()
    assert holds(Space(space.path), range(3))
    assert Space(space.path).verify() == []


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
    monkeypatch.setattr("embark.store.os.fsync", fsync)
    with pytest.raises(EmbarkError, match=r"could not be written.*the disk is gone.*committed is safe"), writer:
        writer.commit()
    assert not list(space.path.glob("*.part"))
    assert holds(Space(space.path), range(2 + failing))  # the second fsync is the folder's: the object is there
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
        patch.setattr("embark.store.os.fsync", interrupt)  # comes after the bytes have been written
        with pytest.raises(KeyboardInterrupt):
            writer.commit()
    assert holds(Space(space.path), range(3))
    assert len(list(space.path.iterdir())) == 1
    assert Space(space.path).verify() == []
