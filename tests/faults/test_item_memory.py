"""One budget of memory for all parts of an item: what is beyond it is unreadable, before memory is full."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import wave
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from cases import slow
from embark import folder_task, items
from embark.items import decoding, limits
from embark.models.encoder import Capabilities
from embark.run import evaluate
from embark.settings import item_limits
from embark.store import Store
from embark.types import Content, Media, Part, Text
from lengths import Lengths, needs, run
from peak_memory import PEAK, linux

Pictures = Callable[..., Path]
MEGABYTE = 1 << 20

DECODE = f"""{PEAK}
import sys
from pathlib import Path
import av, soundfile, soxr
from embark.items import decoding
from embark.types import Media

before = peak()
chunks = tuple(Path(path).read_bytes() for path in sys.argv[3:])
try:
    decoding.decode([Media(sys.argv[1], chunks)], int(sys.argv[2]), 16_000)
    print("decoded:", end=" ")
except decoding.UnreadableMedia as error:
    print("refused:", error, end=" ")
print(peak() - before)
"""


def decoded(kind: str, frames: int, *paths: Path, **variables: str) -> tuple[str, int]:
    """What a process says that decodes an item, and by how many megabytes its memory grew."""
    line = [sys.executable, "-c", DECODE, kind, str(frames), *map(str, paths)]
    environment = {**os.environ, **variables}
    child = subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)
    assert not child.returncode, child.stderr
    words, _, peak = child.stdout.strip().rpartition(" ")
    return words, int(peak)


def film(path: Path, size: tuple[int, int], frames: int) -> Path:
    """A film of black frames: some kilobytes, whatever their size."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        frame = av.VideoFrame(*size, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        for time in range(frames):
            frame.pts = time
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def sound(path: Path, samples: int, rate: int) -> Path:
    """A sound of silence."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(rate)
        file.writeframes(bytes(samples))
    return path


def png(size: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size).save(out, "PNG")
    return out.getvalue()


# ── small files, measured ────────────────────────────────────────────────────────────────────────────────────────────


@linux
@pytest.mark.parametrize(("size", "frames"), [((6000, 4000), 12), *slow(((10_000, 8800), 8))])
def test_a_small_film_of_huge_frames_is_refused_before_they_are_decoded(
    tmp_path: Path, size: tuple[int, int], frames: int
) -> None:
    path = film(tmp_path / "x.mp4", size, frames)
    assert path.stat().st_size < MEGABYTE
    words, peak = decoded("video", frames, path)
    assert f"a film of {frames} frames of {size[0]} x {size[1]} pixels brings it to" in words
    assert "EMBARK_ITEM_MEMORY" in words
    assert peak < 400


@linux
@pytest.mark.parametrize(("ending", "bytes_of_pixel"), [("jp2", 20), ("webp", 16), ("avif", 12)])
def test_a_small_picture_whose_decoder_takes_much_is_refused(tmp_path: Path, ending: str, bytes_of_pixel: int) -> None:
    path = tmp_path / f"x.{ending}"
    Image.new("RGB", (3000, 2500)).save(path)
    words, peak = decoded("image", 8, path, EMBARK_ITEM_MEMORY="300")  # a quarter of it is allowed
    assert f"an image of 3000 x 2500 pixels brings it to {bytes_of_pixel * 7_500_000:,} bytes" in words
    assert peak < 30
    words, peak = decoded("image", 8, path)
    assert words == "decoded:"
    assert peak < bytes_of_pixel * 7.5 * 1.1


@linux
def test_a_film_within_the_budget_keeps_the_frames_that_are_wanted_alone(tmp_path: Path) -> None:
    path = film(tmp_path / "x.mp4", (1920, 1080), 120)
    words, peak = decoded("video", 4, path)
    assert words == "decoded:"
    assert peak < 250  # all frames would be 1000


@linux
def test_a_slow_sound_that_becomes_long_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    words, peak = decoded("audio", 8, sound(tmp_path / "x.wav", 1_000_000, 1))
    assert "a sound of 1,000,000 samples in 1 channels at 1 Hz brings it to 64,004,000,000 bytes" in words
    assert peak < 100


@linux
def test_of_a_sound_of_many_channels_some_samples_are_in_memory_at_a_time(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    with soundfile.SoundFile(tmp_path / "x.wav", "w", 16_000, 64, "PCM_U8") as file:
        for _ in range(15):
            file.write(np.zeros((100_000, 64), np.int16))
    words, peak = decoded("audio", 8, tmp_path / "x.wav")
    assert words == "decoded:"
    assert peak < 250  # a file of 96 MB; all samples would be 384, and their finiteness 96 more


@linux
def test_frames_as_pictures_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "400")
    path = tmp_path / "x.png"
    path.write_bytes(png((2000, 1500)))
    words, peak = decoded("video", 40, *[path] * 40)  # 480 MB
    assert "an image of 2000 x 1500 pixels brings it to 108,000,000 bytes" in words
    assert peak < 200
    words, _ = decoded("video", 8, *[path] * 40)
    assert words == "decoded:"


# ── the budget ───────────────────────────────────────────────────────────────────────────────────────────────────────


def allowed(*parts: Part) -> bool:
    try:
        decoding.decode(parts, 8, 16_000)
    except decoding.UnreadableMedia as error:
        return "EMBARK_ITEM_MEMORY" not in str(error)
    return True


def test_all_parts_of_an_item_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "4")
    picture = Media("image", (png((400, 400)),))  # 640,000 bytes of 1 MB
    assert allowed(picture)
    assert not allowed(picture, picture)
    assert allowed(Text("x" * 30_000))
    assert not allowed(picture, Text("x" * 30_000))
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "6")
    assert allowed(picture, picture)


def test_an_item_of_large_files_may_take_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "100")
    assert limits.item_bytes(1) == 25 * MEGABYTE
    assert limits.item_bytes(MEGABYTE // 4) == 50 * MEGABYTE
    assert limits.item_bytes(MEGABYTE) == limits.item_bytes(MEGABYTE << 10) == 100 * MEGABYTE


@pytest.mark.parametrize(
    ("kind", "encoded", "size"),
    [
        ("a picture of Pillow's limit", 1, 4 * 178_000_000),
        ("a WebP of 67 million pixels", 1, (4 + 12) * 67_000_000),
        ("64 frames of a short film in full HD", 1, (4 * 64 + 12) * 1920 * 1080),
        ("64 frames of a film in 4K", 12 * MEGABYTE, (4 * 64 + 12) * 4096 * 2160),
        ("43 minutes of stereo", 1, 4 * 250_000_000),
        ("16 million characters", 16_000_000, 128 * 16_000_000),
    ],
)
def test_what_datasets_hold_is_within_the_default(kind: str, encoded: int, size: int) -> None:
    assert item_limits() == {"item_memory": 4096, "item_seconds": 120}
    assert size <= limits.item_bytes(encoded), kind


class Tokens(Lengths):
    """Prepares no long texts; perhaps many together."""

    def __init__(self, together: bool) -> None:
        super().__init__()
        if together:
            self.capabilities = Capabilities(prepare_many=self._prepare_many)

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[Any]:
        return [self.prepare(contents, "") for contents in batch]

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        assert len(contents[0].value) < 100_000
        return contents[0].value


@pytest.mark.parametrize("together", [False, True])
def test_a_text_beyond_the_budget_is_unreadable(store: Store, monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "4")
    encoder = Tokens(together)
    wanted = needs(encoder, [items.text("1 x"), items.text("2 " + "x" * 200_000), items.text("3 y")])
    report, _ = run(store, encoder, wanted, workers=2)
    assert report.embedded == 2
    [(key, reason)] = report.unreadable.items()
    assert key == wanted[1].key
    assert reason.startswith("a text of 200,002 characters brings it to 25,600,256 bytes")


def test_the_policy_of_the_row_decides_and_the_error_names_the_setting(
    pictures: Pictures, tiny: embark.Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pictures()
    (folder / "red.png").write_bytes(png((1000, 1000)))
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "8")
    tasks = folder_task(folder)
    with pytest.raises(embark.EmbarkError, match=r"'red\.png': an image of 1000 x 1000 pixels .*\(EMBARK_ITEM_MEMORY"):
        evaluate(tiny, tasks, show_progress=False)
    left = evaluate(tiny, [replace(task, unreadable="skip") for task in tasks], show_progress=False)
    warnings = [warning for result in left.results for warning in result.warnings]
    assert any("1 unreadable items" in warning and "'red.png'" in warning for warning in warnings)
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "80")
    assert not evaluate(tiny, tasks, show_progress=False).skipped
