"""Hashes of media by processes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embark.items import digests, lazy_media
from embark.items.lazy_items import Chained, MediaItems, Numbered
from embark.items.lazy_media import FILE_HASHES, ParquetColumn
from embark.models.encoder import Capabilities
from embark.run import hashing
from embark.run.hashing import HashingProcesses
from embark.types import Dataset, Groups, Side


def items(folder: Path, blocks: int) -> MediaItems:
    """Items of a table that has so many blocks of hashes."""
    count = blocks * FILE_HASHES - 7
    path = folder / "pictures.parquet"
    pq.write_table(pa.table({"image": pa.array([b"%d" % row for row in range(count)], pa.binary())}), path)
    return MediaItems("image", ParquetColumn(str(path), str(folder / "digests"), "image"), np.arange(count))


def test_processes_leave_on_disk_what_keys_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = items(tmp_path, 3)
    monkeypatch.setattr(hashing, "ENOUGH_BLOCKS", 2)
    with HashingProcesses() as processes:
        processes.scan([rows])
        assert processes._workers is not None
        assert all(scan.is_done() for scan in rows.scans())
    monkeypatch.setattr(ParquetColumn, "read_in_order", None)  # nothing is read again
    lazy_media._facts.cache_clear()
    sequence = rows.sequence
    assert sequence.hashes(np.array([FILE_HASHES + 5])).tobytes() == hashlib.sha256(b"%d" % (FILE_HASHES + 5)).digest()
    assert len(digests(rows)) == len(rows)


def test_few_blocks_and_models_of_one_lane_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = items(tmp_path, 2)
    data = Dataset({"item": Side(Numbered(np.arange(len(rows))), rows)}, Groups(np.zeros(len(rows), np.int64), ("a",)))
    with HashingProcesses() as processes:
        processes.scan([rows])
        assert processes._workers is None
        monkeypatch.setattr(hashing, "ENOUGH_BLOCKS", 1)
        processes._possible = True
        processes.hash(data, SimpleNamespace(capabilities=Capabilities(lanes=1)))  # type: ignore[arg-type]
        assert processes._workers is None
        processes.hash(data, SimpleNamespace(capabilities=Capabilities(lanes=4)))  # type: ignore[arg-type]
        assert processes._workers is not None


@pytest.mark.slow
def test_processes_that_run_hash_few_blocks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    many, few = items(tmp_path, 3), items(tmp_path / "other", 1)
    monkeypatch.setattr(hashing, "ENOUGH_BLOCKS", 2)
    with HashingProcesses() as processes:
        processes.scan([few])
        assert not any(scan.is_done() for scan in few.scans())
        processes.scan([many])
        processes.scan([few])
        assert all(scan.is_done() for scan in few.scans())


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_the_error_of_who_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = items(tmp_path, 2)
    content = (tmp_path / "pictures.parquet").read_bytes()
    (tmp_path / "pictures.parquet").write_bytes(
        content[:40] + bytes(len(content) // 2) + content[40 + len(content) // 2 :]
    )
    monkeypatch.setattr(hashing, "ENOUGH_BLOCKS", 1)
    with HashingProcesses() as processes:
        processes.scan([Chained([rows])])
    with pytest.raises(Exception, match=r"pictures\.parquet"):
        digests(rows)
