"""Decoding: every model sees the same pixels, and bytes that do not decode say so."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageSequence

from embark.items import decoding, emoji, wav
from embark.types import Media, Text
from peak_memory import PEAK, linux


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def claiming(png: bytes, width: int, height: int) -> bytes:
    """The PNG with another size in its header, and a checksum that agrees."""
    header = png[12:16] + struct.pack(">II", width, height) + png[24:29]
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


def pictures(count: int, size: tuple[int, int] = (64, 48), mode: str = "RGB") -> list[Image.Image]:
    """Noise with a block that wanders through it."""
    noise = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 4), np.uint8)
    out = []
    for at in range(count):
        noise[at % size[1] :, : at % 9 + 3] = (at * 9 % 256, 255 - at * 5 % 256, 90, 255)
        out.append(Image.fromarray(noise).convert(mode))
    return out


def animation(shown: list[Image.Image], kind: str, **options: Any) -> bytes:
    return encoded(shown[0], kind, save_all=True, append_images=shown[1:], **options)


def film(shown: list[Image.Image], form: str, codec: str, **options: str) -> bytes:
    av = pytest.importorskip("av")
    out = io.BytesIO()
    with av.open(out, "w", format=form) as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height = shown[0].size
        stream.pix_fmt = "yuv420p"
        for image in shown:
            container.mux(stream.encode(av.VideoFrame.from_image(image)))
        container.mux(stream.encode())
    return out.getvalue()


def python(code: str, *arguments: str) -> str:
    """What another process says, in which warnings are errors."""
    line = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("mode", "becomes"),
    [("RGB", "RGB"), ("RGBA", "RGBA"), ("L", "RGB"), ("LA", "RGBA"), ("1", "RGB"), ("P", "RGB"), ("I;16", "RGB")],
)
def test_images_become_rgb_or_rgba(mode: str, becomes: str) -> None:
    image = decoding.open_image(encoded(Image.new(mode, (4, 3))))
    assert (image.mode, image.size) == (becomes, (4, 3))


def test_sixteen_bits_of_grey_become_eight() -> None:
    ramp = np.arange(0, 1 << 16, 256, dtype=np.uint16).reshape(16, 16)
    image = decoding.open_image(encoded(Image.fromarray(ramp)))
    assert np.array_equal(np.asarray(image)[..., 0], np.arange(256).reshape(16, 16))


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_without_a_known_range_are_unreadable(mode: str) -> None:
    with pytest.raises(decoding.UnreadableMedia, match=f"mode {mode}"):
        decoding.decode([Media("image", (encoded(Image.new(mode, (2, 2)), "TIFF"),))], 8, 16_000)


def test_a_sound_without_samples_is_unreadable() -> None:
    silence = wav.from_samples(np.zeros(0, np.float32), 16_000)
    with pytest.raises(decoding.UnreadableMedia, match="has no samples"):
        decoding.decode([Media("audio", (silence,))], 8, 16_000)


def test_palettes_with_transparency_keep_it() -> None:
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 255, 0, 0])
    image = decoding.open_image(encoded(palette, transparency=1))
    assert image.mode == "RGBA"
    assert decoding.on_white(image).getpixel((0, 0)) == (255, 255, 255)


def test_transparent_pixels_lie_on_white() -> None:
    half = Image.new("RGBA", (1, 1), (255, 0, 0, 128))
    assert decoding.on_white(half).getpixel((0, 0)) == (255, 127, 127)
    assert decoding.on_white(Image.new("L", (1, 1), 7)).getpixel((0, 0)) == (7, 7, 7)


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
@pytest.mark.parametrize("data", [b"", b"not a file of any kind"])
def test_bytes_that_do_not_decode_say_so(kind: Any, data: bytes) -> None:
    if kind == "video":
        pytest.importorskip("av")
    with pytest.raises(decoding.UnreadableMedia, match=f"{kind} of {len(data)} bytes does not decode"):
        decoding.decode([Media(kind, (data,))], 8, 16_000)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_truncated_images_are_unreadable(kind: str) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8))
    data = encoded(noise, kind)
    with pytest.raises(decoding.UnreadableMedia):
        decoding.decode([Media("image", (data[: len(data) // 2],))], 8, 16_000)


@given(st.integers(0, 50), st.integers(2, 12))
def test_evenly_spaced_positions_include_both_ends(count: int, wanted: int) -> None:
    found = decoding.evenly(count, wanted)
    assert len(found) == min(count, wanted)
    assert found == sorted(set(found))
    assert not found or (found[0], found[-1]) == (0, count - 1)


def test_positions_between_two_frames_are_cut_off() -> None:
    assert decoding.evenly(11, 4) == [0, 3, 6, 10]
    assert decoding.evenly(64, 8) == [0, 9, 18, 27, 36, 45, 54, 63]
    assert decoding.evenly(8, 8) == list(range(8))


def test_frames_and_animations_are_films() -> None:
    frames = [Image.new("RGB", (8, 8), (20 * at, 0, 0)) for at in range(10)]
    stored = decoding.open_video([encoded(frame) for frame in frames], 4)
    animated = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    for shown in (stored, decoding.open_video([animated], 4)):
        assert [frame.getpixel((0, 0)) for frame in shown] == [(20 * at, 0, 0) for at in (0, 3, 6, 9)]
        assert {frame.mode for frame in shown} == {"RGB"}


@pytest.mark.parametrize(("wanted", "positions"), [(1, [0]), (4, [0, 3, 6, 9]), (20, range(10))])
def test_of_stored_frames_only_the_wanted_ones_are_read(wanted: int, positions: Any) -> None:
    frames = [encoded(Image.new("RGBA", (8, 8), (20 * at, 0, 0, 9))) for at in range(10)]
    read: list[int] = []

    def chunk(at: int) -> Callable[[], bytes]:
        return lambda: (read.append(at), frames[at])[1]

    [content] = decoding.decode([Media("video", tuple(map(chunk, range(10))))], wanted, 16_000)
    assert read == list(positions)
    assert [frame.getpixel((0, 0)) for frame in content.value] == [(20 * at, 0, 0, 9) for at in positions]


def test_a_damaged_frame_makes_the_film_unreadable() -> None:
    good = encoded(Image.new("RGB", (8, 8)))
    with pytest.raises(decoding.UnreadableMedia, match="video"):
        decoding.decode([Media("video", (good, b"bad"))], 8, 16_000)


# ── nothing that a decoder raises stops a run ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["image", "video"])
def test_a_picture_that_is_too_large_tells_its_size_and_the_limit(kind: Any) -> None:
    huge = claiming(encoded(Image.new("1", (8, 8))), 20_000, 20_000)
    with pytest.raises(decoding.UnreadableMedia, match=r"too large.*400000000 pixels.*limit of 178956970 pixels"):
        decoding.decode([Media(kind, (huge,))], 8, 16_000)


def test_a_large_picture_is_read_where_warnings_are_errors() -> None:
    code = """
import io
from PIL import Image
from embark.items import decoding
out = io.BytesIO()
Image.new("RGB", (12, 12)).save(out, "PNG")
Image.MAX_IMAGE_PIXELS = 100
print(decoding.open_image(out.getvalue()).size)
"""
    assert python(code) == "(12, 12)\n"


@linux
def test_a_machine_without_memory_is_no_fault_of_the_picture(tmp_path: Path) -> None:
    large = claiming(encoded(Image.new("RGB", (8, 8))), 9_000, 9_000)
    (tmp_path / "large.png").write_bytes(large)
    code = """
import resource, sys
from embark.items import decoding
from embark.types import Media
part = Media("image", (open(sys.argv[1], "rb").read(),))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), resource.RLIM_INFINITY))
try:
    decoding.decode([part], 8, 16_000)
except MemoryError:
    print("no memory")
"""
    assert python(code, str(tmp_path / "large.png")) == "no memory\n"


def test_a_film_of_nothing_but_sound_has_no_frames() -> None:
    av, out = pytest.importorskip("av"), io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16_000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 16_000
        container.mux(stream.encode(sound))
        container.mux(stream.encode())
    with pytest.raises(decoding.UnreadableMedia, match="has no frames"):
        decoding.decode([Media("video", (out.getvalue(),))], 8, 16_000)


@pytest.mark.parametrize("kind", ["image", "video"])
@pytest.mark.parametrize("form", ["GIF", "TIFF", "DDS", "PNG"])
def test_whatever_damage_does_to_a_decoder_it_is_unreadable_or_read(form: str, kind: Any) -> None:
    pytest.importorskip("av")
    whole, chance, bad = encoded(pictures(1, (24, 24))[0], form), random.Random(0), 0
    for _ in range(150):
        data = bytearray(whole)
        for at in chance.choices(range(6, 60), k=3):
            data[at] = chance.randrange(256)
        try:
            decoding.decode([Media(kind, (bytes(data),))], 8, 16_000)
        except decoding.UnreadableMedia:
            bad += 1
    assert bad


# ── only the wanted frames are kept, and they are the same as if all were ────────────────────────────────────────────

FILMS: dict[str, Callable[[], bytes]] = {
    "mp4": lambda: film(pictures(61), "mp4", "mpeg4"),
    "bidirectional": lambda: film(pictures(61), "avi", "mpeg4", bf="2"),
    "matroska": lambda: film(pictures(40), "matroska", "mpeg4"),
    # begins in the middle: what comes before the first whole picture is not shown
    "broadcast": lambda: film(pictures(40), "mpegts", "mpeg2video")[188 * 10 :],
}
ANIMATIONS: dict[str, Callable[[], bytes]] = {
    "gif": lambda: animation(pictures(21), "GIF"),
    "gif that is wiped": lambda: animation(pictures(13, mode="RGBA"), "GIF", disposal=2),
    "webp": lambda: animation(pictures(17), "WEBP"),
    "png": lambda: animation(pictures(19, mode="RGBA"), "PNG", disposal=1, blend=1),
    "tiff": lambda: animation(pictures(10), "TIFF"),
    "one picture": lambda: encoded(pictures(1)[0]),
}


@pytest.mark.parametrize("name", [*FILMS, *ANIMATIONS])
def test_chosen_frames_are_those_of_a_plain_decode(name: str) -> None:
    if name in FILMS:
        av, data = pytest.importorskip("av"), FILMS[name]()
        with av.open(io.BytesIO(data)) as container:
            shown = [frame.to_image() for frame in container.decode(video=0)]
    else:
        data = ANIMATIONS[name]()
        shown = [frame.convert("RGB") for frame in ImageSequence.Iterator(Image.open(io.BytesIO(data)))]
    for wanted in (1, 2, 8, 200):
        found = decoding.open_video([data], wanted)
        expected = [shown[at].tobytes() for at in decoding.evenly(len(shown), wanted)]
        assert [frame.tobytes() for frame in found] == expected


@pytest.mark.parametrize("codec", ["libx264", "libx265", "libvpx-vp9", "mpeg4", "mpeg2video"])
def test_threads_of_a_decoder_change_no_pixel(codec: str) -> None:
    av = pytest.importorskip("av")
    forms = {"libvpx-vp9": "webm", "mpeg2video": "mpegts"}
    options = {"libx264": {"x264-params": "slices=4:keyint=12:open-gop=1:log-level=none"}}
    options["libx265"] = {"x265-params": "keyint=12:log-level=none"}
    try:
        data = film(pictures(40), forms.get(codec, "mp4"), codec, **options.get(codec, {}))
    except av.codec.codec.UnknownCodecError:
        pytest.skip(f"this PyAV cannot encode with {codec}")
    with av.open(io.BytesIO(data)) as container:
        container.streams.video[0].thread_type = "NONE"
        shown = [frame.to_image() for frame in container.decode(video=0)]
    assert len(shown) == 40
    chosen = [frame.tobytes() for frame in decoding.open_video([data], 9)]
    assert chosen == [shown[at].tobytes() for at in decoding.evenly(40, 9)]


@pytest.mark.slow
def test_a_damaged_film_looks_alike_on_machines_of_all_sizes() -> None:
    av, chance = pytest.importorskip("av"), random.Random(1)
    try:
        whole = film(pictures(40, (160, 96)), "mp4", "libx264", **{"x264-params": "slices=4:log-level=none"})
    except av.codec.codec.UnknownCodecError:
        pytest.skip("this PyAV cannot encode with libx264")

    def shown(data: bytes, threads: int) -> list[bytes]:
        with av.open(io.BytesIO(data)) as container:
            container.streams.video[0].thread_type = "SLICE"
            container.streams.video[0].thread_count = threads
            return [frame.to_image().tobytes() for frame in container.decode(video=0)]

    on_one_core = 0
    for _ in range(12):
        data = bytearray(whole)
        for at in chance.choices(range(len(data) // 5, len(data) - 200), k=3):
            data[at] ^= 1 << chance.randrange(8)
        try:
            frames = [frame().tobytes() for _, frame in decoding._video_frames(bytes(data), lambda size: None)]
        except av.FFmpegError:
            continue
        assert frames == shown(bytes(data), 6)
        on_one_core += frames != shown(bytes(data), 1)
    assert on_one_core, "or nothing here shows that the number of threads matters"


def test_a_film_that_begins_in_the_middle_has_fewer_frames_than_packets() -> None:
    """Or else nothing above shows that frames are counted."""
    pytest.importorskip("av")
    cut = FILMS["broadcast"]()
    assert decoding._packet_count(cut) > sum(1 for _ in decoding._video_frames(cut, lambda size: None)) > 8


@pytest.mark.slow
@linux
@pytest.mark.parametrize("kind", ["film", "animation"])
def test_a_long_film_takes_no_more_memory_than_its_wanted_frames(kind: str, tmp_path: Path) -> None:
    shown = [Image.new("L", (640, 480), at) for at in range(200)]  # 250 MB as colours
    data = film(shown, "mp4", "mpeg4") if kind == "film" else animation(shown, "GIF")
    (tmp_path / "film").write_bytes(data)
    code = f"""{PEAK}
import sys
from embark.items import decoding
data = open(sys.argv[1], "rb").read()
before = peak()
assert len(decoding.open_video([data], 8)) == 8
print(peak() - before)
"""
    assert int(python(code, str(tmp_path / "film"))) < 100


def test_speech_is_mono_at_the_wanted_rate() -> None:
    [clip] = emoji.views("audio")["1F3C2"].parts
    assert isinstance(clip, Media)
    [content] = decoding.decode([clip], 8, 16_000)
    samples = content.value.samples
    assert (samples.ndim, samples.dtype, content.value.rate) == (1, np.float32, 16_000)
    assert 0.2 < len(samples) / 16_000 < 5
    assert 0.01 < np.abs(samples).max() <= 1.5


@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 2**31))
def test_channels_are_mixed_to_the_last_bit_as_their_mean(channels: int, length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(length, channels)).astype(np.float32)
    samples[rng.random(samples.shape) < 0.3] = -0.0
    mixed = decoding.mix(samples)
    assert (mixed.dtype, mixed.shape) == (np.float32, (length,))
    assert mixed.tobytes() == samples.mean(axis=1).tobytes()


def test_parts_decode_in_their_order() -> None:
    [art] = emoji.table()["1F600"].image.parts
    image, text = decoding.decode([art, Text("grinning face")], 8, 16_000)
    assert (image.kind, image.value.mode, image.value.size) == ("image", "RGBA", (64, 64))
    assert (text.kind, text.value) == ("text", "grinning face")


@pytest.mark.parametrize("format", ["EPS", "ICNS", "PCX"])
def test_formats_that_pillow_hands_on_or_cannot_measure_are_unreadable(format: str) -> None:
    data = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(data, format)
    with pytest.raises(decoding.UnreadableMedia, match="cannot identify"):
        decoding.decode([Media("image", (data.getvalue(),))], 1, 16_000)
