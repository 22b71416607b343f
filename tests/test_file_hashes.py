"""The hashes of files: kept over processes, never for another content, whatever happened to their file."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from embark.file_hashes import FileHashes

OLD = time.time_ns() - 10**11


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows with each file that is read."""
    files: list[Any] = []
    digest = hashlib.file_digest
    monkeypatch.setattr("hashlib.file_digest", lambda *given: files.append(given) or digest(*given))
    return files


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as written long ago."""
    monkeypatch.setattr("embark.file_hashes.SETTLED", 0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_read_once_and_again_in_another_process_not_at_all(
    tmp_path: Path, reads: list[Any], settled: None
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    for _ in range(2):
        hashes = FileHashes(tmp_path / "home")  # as another process has them
        assert [hashes.sha256(path), hashes.sha256(path)] == [sha256(b"1")] * 2
    assert len(reads) == 1


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path, reads: list[Any]) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    hashes = FileHashes(tmp_path / "home")
    assert (hashes.sha256(path), hashes.sha256(path), len(reads)) == (sha256(b"1"), sha256(b"1"), 2)


def test_another_content_of_the_same_size_and_time_is_read(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    os.utime(path, ns=(OLD, OLD))
    hashes = FileHashes(tmp_path / "home")
    assert hashes.sha256(path) == sha256(b"1")
    path.write_bytes(b"2")
    os.utime(path, ns=(OLD, OLD))
    assert hashes.sha256(path) == sha256(b"2")
    other = tmp_path / "b.png"
    other.write_bytes(b"3")
    os.utime(other, ns=(OLD, OLD))
    os.replace(other, path)
    assert hashes.sha256(path) == sha256(b"3")


def test_a_moved_file_is_read(tmp_path: Path, reads: list[Any], settled: None) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    hashes = FileHashes(tmp_path / "home")
    hashes.sha256(path)
    shutil.move(path, tmp_path / "b.png")
    assert (hashes.sha256(tmp_path / "b.png"), len(reads)) == (sha256(b"1"), 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data[:40],
        lambda data: bytes(len(data)),
        lambda data: data.replace(b" ", b"\xff"),
        lambda data: data[:50] + (b"0" if data[50:51] != b"0" else b"1") + data[51:],
        lambda data: data[:-1] + (b"0" if data[-1:] != b"0" else b"1"),
        lambda data: b"[" * 9000,
    ],
)
def test_a_damaged_line_counts_as_absent(tmp_path: Path, reads: list[Any], settled: None, damage: Any) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    FileHashes(tmp_path / "home").sha256(path)
    [lines] = (tmp_path / "home" / "digests" / "files").iterdir()
    lines.write_bytes(damage(lines.read_bytes()))
    for count in (2, 2):  # what is read is kept, behind whatever stands there
        assert FileHashes(tmp_path / "home").sha256(path) == sha256(b"1")
        assert len(reads) == count


def test_a_home_that_cannot_be_written_costs_time_only(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    (tmp_path / "home").write_text("a file")
    assert FileHashes(tmp_path / "home").sha256(path) == sha256(b"1")


def test_the_files_of_a_folder_are_in_one_file_of_lines(tmp_path: Path, settled: None) -> None:
    hashes = FileHashes(tmp_path / "home")
    for number in range(50):
        (tmp_path / f"{number}.png").write_bytes(bytes(number))
        hashes.sha256(tmp_path / f"{number}.png")
    [lines] = (tmp_path / "home" / "digests" / "files").iterdir()
    assert len(lines.read_bytes().split()) == 150
