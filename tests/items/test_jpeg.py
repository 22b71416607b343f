"""Which JPEGs stay encoded for a model that decodes them itself."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.items.decoding import UnreadableMedia, decode
from embark.items.jpeg import HEAD_BYTES, TAIL, plain_jpeg
from embark.items.upright import UprightMedia
from embark.types import Encoded, Media

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (23, 41, 3), dtype=np.uint8))
IMAGES: Any = frozenset({"image"})


def encoded(image: Image.Image, form: str = "JPEG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize(("subsampling", "sampling"), [(0, (1, 1)), (1, (2, 1)), (2, (2, 2))])
def test_plain_jpegs_by_sampling(subsampling: int, sampling: tuple[int, int]) -> None:
    data = encoded(NOISE, subsampling=subsampling)
    assert plain_jpeg(data, 6) == Encoded(data, (41, 23), sampling, 6)


def test_grey_jpegs_have_no_samples_of_color() -> None:
    data = encoded(NOISE.convert("L"))
    assert plain_jpeg(data) == Encoded(data, (41, 23), (0, 0), 1)


def test_headers_with_much_else_are_passed_over() -> None:
    exif = Image.Exif()
    exif[0x9286] = "x" * 60_000
    data = encoded(NOISE, exif=exif, comment=b"\xff\xd9 no end", icc_profile=b"\xff\xc2" * 50)
    assert plain_jpeg(data) is not None
    assert plain_jpeg(data + bytes(1000)) is not None
    fill = data[:2] + b"\xff\xff" + data[2:]
    assert plain_jpeg(fill) is not None


NOT_PLAIN = {
    "progressive": encoded(NOISE, progressive=True),
    "cmyk": encoded(NOISE.convert("CMYK")),
    "rgb": encoded(NOISE, keep_rgb=True),
    "png": encoded(NOISE, "PNG"),
    "webp": encoded(NOISE, "WEBP"),
    "nothing": b"",
    "no end": encoded(NOISE)[:-2],
    "half": encoded(NOISE)[:500],
    "header": encoded(NOISE)[:150],
    "no header": b"\xff\xd8\xff" + bytes(100),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_all_others_are_left_to_pillow(name: str) -> None:
    assert plain_jpeg(NOT_PLAIN[name]) is None


@pytest.mark.parametrize("cut", range(2, 400, 7))
def test_no_beginning_of_a_file_is_plain(cut: int) -> None:
    assert plain_jpeg(encoded(NOISE)[:cut]) is None


def test_pictures_above_pillows_limit_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(NOISE)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 41 * 23 // 2)
    assert plain_jpeg(data) is None
    with pytest.raises(UnreadableMedia, match="too large"):
        decode([Media("image", (data,))], 8, 16_000, IMAGES)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert plain_jpeg(data) is not None


def test_decode_hands_plain_jpegs_on_and_decodes_the_others() -> None:
    plain = encoded(NOISE)
    turned = Image.Exif()
    turned[0x0112] = 8
    stored = Media("image", (encoded(NOISE, exif=turned),))
    upright = UprightMedia("image", stored.chunks, stored)
    parts = [Media("image", (plain,)), upright, Media("image", (NOT_PLAIN["png"],))]
    first, second, third = (content.value for content in decode(parts, 8, 16_000, IMAGES))
    assert first == Encoded(plain, (41, 23), (2, 2), 1)
    assert (second.size, second.orientation) == ((41, 23), 8)
    assert third.size == (41, 23)
    assert all(isinstance(content.value, Image.Image) for content in decode(parts, 8, 16_000))


def test_a_cut_off_jpeg_is_unreadable_either_way() -> None:
    kinds: tuple[frozenset[Any], ...] = (frozenset(), IMAGES)
    for encoded_kinds in kinds:
        with pytest.raises(UnreadableMedia, match=r"(?i)truncated"):
            decode([Media("image", (NOT_PLAIN["half"],))], 8, 16_000, encoded_kinds)


def test_views_are_told_apart_as_bytes_are() -> None:
    data = encoded(NOISE, subsampling=2)
    picture = plain_jpeg(memoryview(data))
    assert picture == plain_jpeg(data)
    assert picture is not None
    again = pickle.loads(pickle.dumps(picture))  # a view itself cannot travel
    assert (type(again.data), again) == (bytes, picture)
    assert plain_jpeg(memoryview(data)[:-2]) is None


def test_a_long_header_is_read_to_its_end() -> None:
    data = encoded(NOISE, subsampling=2)
    comment = b"\xff\xfe" + (2 + 2 * HEAD_BYTES).to_bytes(2, "big") + bytes(2 * HEAD_BYTES)
    longer = data[:2] + comment + data[2:]
    picture = plain_jpeg(longer)
    usual = plain_jpeg(data)
    assert picture is not None
    assert usual is not None
    assert (picture.size, picture.sampling) == (usual.size, usual.sampling)
    assert plain_jpeg(longer + bytes(TAIL)) is not None  # what follows the end does no harm
