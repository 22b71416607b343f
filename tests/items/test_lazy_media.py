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

from embark.items import lazy_media
from embark.items.lazy_media import FILE_HASHES, ParquetColumn, SampleColumn
from embark.types import EmbarkError


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
    for scan in media.scans(np.arange(2500)):
        scan()
    assert len(groups._columns) == loads
    assert 2 * FILE_HASHES < 2500
    assert media.hashes(np.array([2499])).tobytes() == lazy_media._sha256(b"2499")


@pytest.mark.parametrize("struct", [False, True])
def test_views_are_parts_of_memory_where_many_cells_are_read(tmp_path: Path, struct: bool) -> None:
    values = [None if row == 50 else b"%d" % row for row in range(64)]
    cells = [None if value is None else {"bytes": value, "path": "x"} for value in values] if struct else values
    media = column(tmp_path / "t.parquet", cells, STRUCT if struct else BYTES, 64)
    views = [media.view(row) for row in range(64)]
    assert views == values
    assert {type(view) for view in views[:8]} == {bytes}
    assert {type(view) for view in views[9:50]} == {memoryview}
    assert hash(bytes(views[9] or b"")) == hash(values[9])


def test_views_of_few_cells_do_not_keep_their_row_group(tmp_path: Path) -> None:
    media = column(tmp_path / "t.parquet", [b"%d" % row for row in range(6400)], BYTES, 64)
    assert {type(media.view(row)) for row in range(0, 6400, 16)} == {bytes}


def test_views_of_large_binaries_and_of_slices() -> None:
    values = [b"a", None, b"", b"long" * 9]
    for kind in (pa.binary(), pa.large_binary(), pa.binary(3), pa.string()):
        cells = [None if value is None else value[:3].ljust(3) for value in values]
        array = pa.array(
            [None if cell is None else cell.decode() for cell in cells] if kind == pa.string() else cells, kind
        )
        expected = array.to_pylist()
        assert list(lazy_media.binary_views(array)) == expected
        assert list(lazy_media.binary_views(array[1:3])) == expected[1:3]
        assert list(lazy_media.binary_views(array[4:])) == []


def test_a_missing_picture_is_named(tmp_path: Path) -> None:
    media = column(tmp_path / "t.parquet", [b"a", None], BYTES, 2)
    assert media.chunk(0).view() == b"a"
    with pytest.raises(EmbarkError, match="no bytes in row 1"):
        media.chunk(1).view()
