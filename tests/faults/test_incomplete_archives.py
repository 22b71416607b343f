"""Archives and tables that are cut off are errors, also where the cut is between two of their files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import embark
from embark import evaluate
from embark.readers.formats import open_table_file
from embark.readers.rows import Archive
from embark.types import EmbarkError
from folders import two_tasks
from hub import parquet, tar, zipped
from tables import Make

FILES = {f"{number}.txt": b"x" * 600 for number in range(4)}
MEMBER = 512 + 1024  # the bytes of a header and a padded file


@pytest.mark.parametrize("size", [MEMBER, 2 * MEMBER, 4 * MEMBER, 2 * MEMBER + 512, 2 * MEMBER + 300, 3 * MEMBER - 500])
def test_a_tar_that_is_cut_off_is_an_error(tmp_path: Path, size: int) -> None:
    (tmp_path / "whole.tar").write_bytes(tar(FILES))
    assert len(open_table_file(tmp_path / "whole.tar", tmp_path)) == 4
    (tmp_path / "cut.tar").write_bytes(tar(FILES)[:size])
    with pytest.raises(EmbarkError, match=r"cut\.tar cannot be read"):
        open_table_file(tmp_path / "cut.tar", tmp_path)
    with pytest.raises(EmbarkError, match=r"cut\.tar cannot be read as an archive"):
        Archive(tmp_path / "cut.tar", tmp_path).names()


def test_a_tar_with_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    data = bytearray(tar(FILES))
    data[2 * MEMBER : 2 * MEMBER + 512] = b"?" * 512
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(EmbarkError, match="it is cut off after 2 files"):
        open_table_file(tmp_path / "x.tar", tmp_path)


@pytest.mark.parametrize("part", [0.3, 0.9, 0.99])
def test_a_zip_that_is_cut_off_is_an_error(tmp_path: Path, part: float) -> None:
    data = zipped(FILES)
    (tmp_path / "x.zip").write_bytes(data[: int(len(data) * part)])
    with pytest.raises(EmbarkError, match="cannot be read as an archive"):
        Archive(tmp_path / "x.zip", tmp_path).names()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.parquet", parquet({"text": ["a", "b"]})),
        ("x.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 1000, mtime=0)),
        ("x.csv.gz", gzip.compress(b"text\n" + b"a\n" * 1000, mtime=0)),
        ("x.json", b'[{"text": "a"}, {"text": "b"}]'),
        ("x.jsonl", b'{"text": "a"}\n{"text": "b"}'),
    ],
)
def test_a_table_that_is_cut_off_is_an_error(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data[:-3])
    with pytest.raises(EmbarkError, match="cannot be read"):
        open_table_file(tmp_path / name, tmp_path)


def test_rows_that_are_missing_are_counted(read: Make) -> None:
    def rows(table: str) -> int:
        data = read(
            "labelled", "clustering", {"data/test.csv": table}, modalities=("text",), columns={"text": "text"},
            rows={"test": 3},
        )  # fmt: skip
        return len(data.sides["item"])

    assert rows("text,label\na,x\nb,y\nc,x\n") == 3
    with pytest.raises(EmbarkError, match=r"has 2 rows at revision .* expected 3"):
        rows("text,label\na,x\nb,y\n")


def test_what_nothing_tells_is_counted_beside_the_score(tiny: embark.Encoder, pictures: Any) -> None:
    folder = pictures()
    for rows in (3, 2):
        table = (folder / "metadata.csv").read_text().splitlines(keepends=True)
        (folder / "metadata.csv").write_text("".join(table[: rows + 1]))
        run = evaluate(tiny, two_tasks(folder))
        assert [note for note in run.notes if f"Retrieval has {2 * rows} items" in note]
