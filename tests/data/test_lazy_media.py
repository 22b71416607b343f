"""Media in larger files: what is read in order is what is read by position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.data import lazy_media
from embark.data.lazy_media import BLOCK, ParquetColumn, SampleColumn


def column(path: Path, cells: list[Any], kind: Any, group: int) -> ParquetColumn:
    pq.write_table(pa.table({"media": pa.array(cells, kind)}), path, row_group_size=group)
    return ParquetColumn(str(path), str(path.parent / "digests"), "media")


BYTES = pa.binary()
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


@settings(max_examples=25)
@given(group=st.integers(1, 60), begin=st.integers(0, 120), length=st.integers(0, 120), struct=st.booleans())
def test_bytes_in_order(
    tmp_path_factory: pytest.TempPathFactory, group: int, begin: int, length: int, struct: bool
) -> None:
    values = [None if row % 7 == 3 else b"%d" % row for row in range(120)]
    cells = [None if value is None else {"bytes": value, "path": "x"} for value in values] if struct else values
    media = column(tmp_path_factory.mktemp("t") / "t.parquet", cells, STRUCT if struct else BYTES, group)
    positions = range(begin, min(120, begin + length))
    assert list(media.read_in_order(positions)) == [values[position] for position in positions]


def test_sounds_in_order(tmp_path: Path) -> None:
    kind = pa.struct([("array", pa.list_(pa.float64())), ("sampling_rate", pa.int64())])
    sounds = [None if row == 2 else {"array": [0.1 * row, 0.5], "sampling_rate": 8000} for row in range(7)]
    bare = column(tmp_path / "t.parquet", sounds, kind, 3)
    media = SampleColumn(bare.path, bare.digests, bare.name)
    in_order = list(media.read_in_order(range(1, 6)))
    assert in_order == [media.read(position) for position in range(1, 6)]
    assert in_order[1] is None
    assert in_order[0] is not None
    assert in_order[0].startswith(b"RIFF")


@pytest.mark.parametrize(("group", "loads"), [(100, 0), (2500, 1)])
def test_short_row_groups_are_hashed_without_keeping_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, loads: int
) -> None:
    media = column(tmp_path / "t.parquet", [b"%d" % row for row in range(2500)], BYTES, group)
    groups = lazy_media._RowGroups()
    monkeypatch.setattr(lazy_media, "_ROW_GROUPS", groups)
    for scan in media.scans(np.arange(2500), False):
        scan()
    assert len(groups._columns) == loads
    assert 2 * BLOCK < 2500
    assert media.hashes(np.array([2499])).tobytes() == lazy_media._sha256(b"2499")
