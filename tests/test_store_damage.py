"""The store when files are torn, disks full and writes interrupted: what was committed is there, nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from embark.store import Space
from embark.types import EmbarkError
from segments import ENTRY, RECORD, holds, keys, vectors, write

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
