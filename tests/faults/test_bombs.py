"""Small files that become huge are refused within a memory cap, whatever their kind."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embark.items import decoding, limits
from embark.types import EmbarkError, Media
from hub import zipped
from peak_memory import linux

GIGABYTE = 1 << 30

OPEN = """
import resource, sys
from pathlib import Path
from embark.items import decoding
from embark.readers.formats import open_table_file
from embark.readers.rows import Archive, _unpack, COMPRESSED
from embark.types import EmbarkError, Media

path = Path(sys.argv[1])
import pyarrow.parquet, soundfile
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    if path.suffix == ".flac":
        decoding.decode([Media("audio", (path.read_bytes(),))], 8, 16_000)
    elif path.suffix == ".zip":
        Archive(path, path.parent).read("x")
    elif path.suffix == ".tgz":
        _unpack([path], COMPRESSED[path.read_bytes()[:2]], path.parent / "unpacked")
    else:
        table = open_table_file(path, path.parent)
        column = table.column_names[0]
        try:
            table.chunks(column)[0]()
        except EmbarkError as error:
            if "not media" not in str(error):
                raise
            table.values(column)
except EmbarkError as error:
    print("refused:", error)
"""


def refused(path: Path) -> str:
    """What a process with 4 GB of memory says that reads the file."""
    assert path.stat().st_size < 20 << 20
    line = [sys.executable, "-c", OPEN, str(path)]
    child = subprocess.run(line, capture_output=True, text=True, timeout=100)
    assert child.stdout.startswith("refused:"), child.stdout + child.stderr[-500:]
    return child.stdout


def gzipped(path: Path, size: int, block: bytes) -> None:
    """Blocks that are packed once and repeated."""
    with path.open("wb") as out:
        out.write(gzip.compress(block) * (size // len(block)))


@linux
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["jsonl.gz", "csv.gz", "tgz"])
def test_packed_text_and_archives_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    gzipped(path, 9 * GIGABYTE, b'{"text": "' + b"a" * 4_000_000 + b'"}\n')
    assert "becomes more than" in refused(path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < GIGABYTE


@linux
@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_parquet_with_one_large_value_in_every_row(tmp_path: Path, kind: pa.DataType) -> None:
    value = pa.array(["a" * 9_000_000], pa.string()).cast(kind)
    array = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), value)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": array}), path, compression="zstd", store_schema=False)
    assert "becomes more than" in refused(path)


@linux
@pytest.mark.slow
def test_parquet_with_many_millions_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    block = pa.table({"number": pa.array(np.zeros(20_000_000, np.int64))})
    with pq.ParquetWriter(path, block.schema, compression="zstd") as out:
        for _ in range(4):
            out.write_table(block, row_group_size=20_000_000)
    assert "becomes more than" in refused(path)


@linux
@pytest.mark.slow
def test_a_sound_of_too_many_samples_is_refused(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "x.flac"
    block = np.zeros((5_000_000, 8), np.int16)
    with soundfile.SoundFile(path, "w", 48_000, 8, "PCM_16", format="FLAC") as out:
        for _ in range(30):
            out.write(block)
    assert "a sound of 150,000,000 samples in 8 channels at 48,000 Hz brings it to 5,000,000,000 bytes" in refused(path)


@linux
@pytest.mark.slow
def test_a_file_of_a_zip(tmp_path: Path) -> None:
    stream = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = b"".join([*(stream.compress(bytes(1 << 24)) for _ in range(70)), stream.flush()])
    whole = zipped({"x": b"?"})
    # The file of one byte is replaced by the packed one: header, content, directory.
    header, directory = whole[:30] + whole[30:31], whole[whole.index(b"PK\1\2") :]
    directory = directory[:20] + len(packed).to_bytes(4, "little") + directory[24:]
    end = directory.index(b"PK\5\6")
    offset = (len(header) + len(packed)).to_bytes(4, "little")
    path = tmp_path / "x.zip"
    path.write_bytes(header + packed + directory[: end + 16] + offset + directory[end + 20 :])
    assert "one of its files becomes more than" in refused(path)


# ── the same within small limits, quickly ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of a megabyte."""
    monkeypatch.setattr(limits, "UNPACKED", 1 << 20)
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "1")
    monkeypatch.setattr(limits, "FRAME", 1000)


@pytest.mark.usefixtures("small")
def test_limits_hold_for_every_kind(tmp_path: Path) -> None:
    from embark.readers.formats import open_table_file
    from embark.readers.rows import COMPRESSED, Archive, _unpack

    text = b'{"text": "a"}\n' * 1_000_000
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(text))
    with pytest.raises(EmbarkError, match=r"x\.jsonl\.gz cannot be read: it becomes more than .* EMBARK_LIMITS raises"):
        open_table_file(tmp_path / "x.jsonl.gz", tmp_path)
    rows = {"jsonl": b"{}\n" * 20_000, "json": b"[" + b"{}," * 20_000 + b"{}]", "csv": b"a\n" * 20_000}
    for ending, content in rows.items():
        path = tmp_path / f"rows.{ending}.gz"
        path.write_bytes(gzip.compress(content))
        with pytest.raises(EmbarkError, match=r"it has up to [24]0,\d+ rows and lists, and becomes more than"):
            open_table_file(path, tmp_path)
        path.with_suffix("").write_bytes(content)  # a file that is as large as it is
        assert len(open_table_file(path.with_suffix(""), tmp_path)) >= 19_999
    (tmp_path / "x.tgz").write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(EmbarkError, match="becomes more than"):
        _unpack([tmp_path / "x.tgz"], COMPRESSED[b"\x1f\x8b"], tmp_path / "unpacked" / "x")
    assert not list((tmp_path / "unpacked").iterdir())
    (tmp_path / "x.zip").write_bytes(zipped({"x": bytes(20_000_000)}))
    with pytest.raises(EmbarkError, match="becomes more than"):
        Archive(tmp_path / "x.zip", tmp_path).read("x")
    pq.write_table(pa.table({"text": ["a" * 100_000] * 1000}), tmp_path / "x.parquet", compression="zstd")
    with pytest.raises(EmbarkError, match="becomes more than"):
        open_table_file(tmp_path / "x.parquet", tmp_path).values("text")


@pytest.mark.usefixtures("small")
def test_sounds_and_films_beyond_the_limits_are_unreadable() -> None:
    soundfile = pytest.importorskip("soundfile")
    av = pytest.importorskip("av")
    sound = io.BytesIO()
    soundfile.write(sound, np.zeros((60_000, 2), np.int16), 16_000, format="FLAC")  # a quarter of a megabyte is allowed
    with pytest.raises(decoding.UnreadableMedia, match=r"a sound of 60,000 samples in 2 .*\(EMBARK_ITEM_MEMORY"):
        decoding.decode([Media("audio", (sound.getvalue(),))], 8, 16_000)
    film = io.BytesIO()
    with av.open(film, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8))
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(decoding.UnreadableMedia, match="a frame of 64 x 64"):
        decoding.decode([Media("video", (film.getvalue(),))], 8, 16_000)


def test_ordinary_files_are_far_below_the_limits() -> None:
    assert limits.unpacked(1) >= 512 << 20
    assert limits.unpacked(10 << 20) >= 2_000 << 20
