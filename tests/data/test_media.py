"""Decoding: every model sees the same pixels, and bytes that do not decode say so."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from embark.data import emoji, media, wav
from embark.types import Media, Text


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("mode", "becomes"),
    [("RGB", "RGB"), ("RGBA", "RGBA"), ("L", "RGB"), ("LA", "RGBA"), ("1", "RGB"), ("P", "RGB"), ("I;16", "RGB")],
)
def test_images_become_rgb_or_rgba(mode: str, becomes: str) -> None:
    image = media.open_image(encoded(Image.new(mode, (4, 3))))
    assert (image.mode, image.size) == (becomes, (4, 3))


def test_sixteen_bits_of_grey_become_eight() -> None:
    ramp = np.arange(0, 1 << 16, 256, dtype=np.uint16).reshape(16, 16)
    image = media.open_image(encoded(Image.fromarray(ramp)))
    assert np.array_equal(np.asarray(image)[..., 0], np.arange(256).reshape(16, 16))


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_without_a_known_range_are_unreadable(mode: str) -> None:
    with pytest.raises(media.UnreadableMedia, match=f"mode {mode}"):
        media.decode([Media("image", (encoded(Image.new(mode, (2, 2)), "TIFF"),))], 8, 16_000)


def test_a_sound_without_samples_is_unreadable() -> None:
    pytest.importorskip("soundfile")
    silence = wav.from_samples(np.zeros(0, np.float32), 16_000)
    with pytest.raises(media.UnreadableMedia, match="has no samples"):
        media.decode([Media("audio", (silence,))], 8, 16_000)


def test_palettes_with_transparency_keep_it() -> None:
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 255, 0, 0])
    image = media.open_image(encoded(palette, transparency=1))
    assert image.mode == "RGBA"
    assert media.on_white(image).getpixel((0, 0)) == (255, 255, 255)


def test_transparent_pixels_lie_on_white() -> None:
    half = Image.new("RGBA", (1, 1), (255, 0, 0, 128))
    assert media.on_white(half).getpixel((0, 0)) == (255, 127, 127)
    assert media.on_white(Image.new("L", (1, 1), 7)).getpixel((0, 0)) == (7, 7, 7)


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
@pytest.mark.parametrize("data", [b"", b"not a file of any kind"])
def test_bytes_that_do_not_decode_say_so(kind: Any, data: bytes) -> None:
    if kind == "video":
        pytest.importorskip("av")
    with pytest.raises(media.UnreadableMedia, match=f"{kind} of {len(data)} bytes does not decode"):
        media.decode([Media(kind, (data,))], 8, 16_000)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_truncated_images_are_unreadable(kind: str) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8))
    data = encoded(noise, kind)
    with pytest.raises(media.UnreadableMedia):
        media.decode([Media("image", (data[: len(data) // 2],))], 8, 16_000)


@given(st.integers(0, 50), st.integers(2, 12))
def test_evenly_spaced_positions_include_both_ends(count: int, wanted: int) -> None:
    found = media.evenly(count, wanted)
    assert len(found) == min(count, wanted)
    assert found == sorted(set(found))
    assert not found or (found[0], found[-1]) == (0, count - 1)


def test_positions_between_two_frames_are_cut_off() -> None:
    assert media.evenly(11, 4) == [0, 3, 6, 10]
    assert media.evenly(64, 8) == [0, 9, 18, 27, 36, 45, 54, 63]
    assert media.evenly(8, 8) == list(range(8))


def test_frames_and_animations_are_films() -> None:
    frames = [Image.new("RGB", (8, 8), (20 * at, 0, 0)) for at in range(10)]
    stored = media.open_video([encoded(frame) for frame in frames], 4)
    animated = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    for shown in (stored, media.open_video([animated], 4)):
        assert [frame.getpixel((0, 0)) for frame in shown] == [(20 * at, 0, 0) for at in (0, 3, 6, 9)]
        assert {frame.mode for frame in shown} == {"RGB"}


def test_a_damaged_frame_makes_the_film_unreadable() -> None:
    good = encoded(Image.new("RGB", (8, 8)))
    with pytest.raises(media.UnreadableMedia, match="video"):
        media.decode([Media("video", (good, b"bad"))], 8, 16_000)


def test_speech_is_mono_at_the_wanted_rate() -> None:
    pytest.importorskip("soundfile")
    [clip] = emoji.views("audio")["1F3C2"].parts
    assert isinstance(clip, Media)
    [content] = media.decode([clip], 8, 16_000)
    samples = content.value.samples
    assert (samples.ndim, samples.dtype, content.value.rate) == (1, np.float32, 16_000)
    assert 0.2 < len(samples) / 16_000 < 5
    assert 0.01 < np.abs(samples).max() <= 1.5


def test_parts_decode_in_their_order() -> None:
    [art] = emoji.table()["1F600"].image.parts
    image, text = media.decode([art, Text("grinning face")], 8, 16_000)
    assert (image.kind, image.value.mode, image.value.size) == ("image", "RGBA", (64, 64))
    assert (text.kind, text.value) == ("text", "grinning face")
