"""Films and sounds that are damaged, cut off or no numbers are unreadable; silence is a sound."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.items import decoding, wav
from embark.items.containers import SEGMENT, stated_end
from embark.types import Array, Content, Media

soundfile = pytest.importorskip("soundfile")
av = pytest.importorskip("av")


def sound(samples: Array, kind: str = "WAV", subtype: str | None = None) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, samples, 16_000, format=kind, subtype=subtype)
    return bytes(out.getvalue())


def heard(data: bytes) -> Content:
    return decoding.decode([Media("audio", (data,))], 8, 16_000)[0]


BOX = b"\0\0\0\x08ftyp"  # of an MP4, whole
KINDS = [b"RIFF1234WAVE", b"RIFF", b"OggS", b"\x1a\x45\xdf\xa3" + SEGMENT, b"1234ftyp", BOX, BOX + bytes(16), b""]
NOISE = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_unreadable(value: float) -> None:
    samples = NOISE.copy()
    samples[777] = value
    with pytest.raises(decoding.UnreadableMedia, match="samples that are not finite numbers"):
        heard(sound(samples, subtype="FLOAT"))


@pytest.mark.parametrize(
    ("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")]
)
@pytest.mark.parametrize("part", [0.2, 0.5, 0.95])
def test_a_sound_that_is_cut_off_is_unreadable(kind: str, subtype: str, part: float) -> None:
    data = sound(NOISE, kind, subtype)
    assert len(heard(data).value.samples) == len(NOISE)
    with pytest.raises(decoding.UnreadableMedia):
        heard(data[: int(len(data) * part)])


def test_a_sound_without_samples_is_unreadable_and_silence_is_not() -> None:
    with pytest.raises(decoding.UnreadableMedia, match="has no samples"):
        heard(sound(NOISE[:0]))
    assert not heard(sound(np.zeros(16_000, np.float32))).value.samples.any()


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFFFF])
def test_a_sound_that_was_written_as_a_stream_is_read(size: int) -> None:
    data = wav.from_samples(NOISE, 16_000)
    at = data.index(b"data")
    assert len(heard(data[: at + 4] + struct.pack("<I", size) + data[at + 8 :]).value.samples) == len(NOISE)


@pytest.fixture(scope="module", params=["mp4", "mkv", "webm", "avi"])
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A film; that of an MP4 has its index first, so that it plays although it is cut off."""
    path = tmp_path_factory.mktemp("film") / f"x.{request.param}"
    noise = np.random.default_rng(0)
    options = {"movflags": "faststart"} if request.param == "mp4" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream("libvpx" if request.param == "webm" else "mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(40):
            frame = av.VideoFrame.from_ndarray(noise.integers(0, 255, (48, 64, 3), np.uint8))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path.read_bytes()


@pytest.mark.parametrize("part", [0.2, 0.5, 0.95])
def test_a_film_that_is_cut_off_is_unreadable(film: bytes, part: float) -> None:
    assert len(decoding.decode([Media("video", (film,))], 8, 16_000)[0].value) == 8
    with pytest.raises(decoding.UnreadableMedia):
        decoding.decode([Media("video", (film[: int(len(film) * part)],))], 8, 16_000)


def test_a_film_that_was_written_as_a_stream_is_read(film: bytes) -> None:
    start = film.find(SEGMENT)
    if start >= 0:  # Matroska: the size is unknown where all its bits are set
        film = film[: start + 4] + b"\x01" + b"\xff" * 7 + film[start + 12 :]
    assert len(decoding.decode([Media("video", (film,))], 8, 16_000)[0].value) == 8


@pytest.mark.parametrize("film", ["mp4", "avi"], indirect=True)  # others have no index that lists the frames
def test_a_damaged_film_is_unreadable(film: bytes) -> None:
    start = len(film) // 10
    with pytest.raises(decoding.UnreadableMedia):
        decoding.decode([Media("video", (film[:start] + bytes(len(film) - start),))], 8, 16_000)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64), st.sampled_from(KINDS))
def test_whatever_follows_the_first_bytes_has_an_end(tail: bytes, kind: bytes) -> None:
    assert stated_end(kind + tail) >= 0
