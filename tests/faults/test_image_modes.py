"""Every kind of picture becomes RGB, or RGBA where it is transparent, by one conversion."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.items import decoding
from embark.types import Media


def stored(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def palette(transparent: bool) -> bytes:
    image = Image.new("P", (2, 2), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    return stored(image, "PNG", **({"transparency": 1} if transparent else {}))


def animation(kind: str) -> bytes:
    frames = [Image.new("RGB", (2, 2), color) for color in ((255, 0, 0), (0, 255, 0))]
    options = {"lossless": True} if kind == "WEBP" else {}
    return stored(frames[0], kind, save_all=True, append_images=frames[1:], **options)


GREY_16 = np.full((2, 2), 0x80FF, np.uint16)
MODES = {
    "rgb": (stored(Image.new("RGB", (2, 2), (200, 100, 50)), "PNG"), (200, 100, 50)),
    "alpha": (stored(Image.new("RGBA", (2, 2), (200, 100, 50, 7)), "PNG"), (200, 100, 50, 7)),
    "grey": (stored(Image.new("L", (2, 2), 9), "PNG"), (9, 9, 9)),
    "grey with alpha": (stored(Image.new("LA", (2, 2), (9, 7)), "PNG"), (9, 9, 9, 7)),
    "black and white": (stored(Image.new("1", (2, 2), 1), "PNG"), (255, 255, 255)),
    "palette": (palette(False), (200, 100, 50)),
    "transparent palette": (palette(True), (200, 100, 50, 0)),
    "transparent colour": (
        stored(Image.new("RGB", (2, 2), (1, 2, 3)), "PNG", transparency=(1, 2, 3)),
        (1, 2, 3),  # RGB as stored: its pixels stay what they were
    ),
    "16 bits": (stored(Image.fromarray(GREY_16), "PNG"), (0x80, 0x80, 0x80)),
    "16 bits, TIFF": (stored(Image.fromarray(GREY_16), "TIFF"), (0x80, 0x80, 0x80)),
    "CMYK": (stored(Image.new("CMYK", (2, 2), (0, 255, 255, 0)), "TIFF"), (255, 0, 0)),
    "CMYK, JPEG": (stored(Image.new("CMYK", (2, 2), (0, 255, 255, 0)), "JPEG", quality=100), (255, 0, 0)),
    "YCbCr": (stored(Image.new("YCbCr", (2, 2), (128, 128, 128)), "TIFF"), (128, 128, 128)),
    "LAB": (stored(Image.new("LAB", (2, 2), (255, 128, 128)), "TIFF"), (255, 255, 255)),
    "animated GIF": (animation("GIF"), (255, 0, 0)),
    "animated PNG": (animation("PNG"), (255, 0, 0)),
    "animated WebP": (animation("WEBP"), (255, 0, 0)),
}


@pytest.mark.parametrize("mode", MODES)
def test_pictures_of_every_mode_become_rgb(mode: str) -> None:
    data, color = MODES[mode]
    image = decoding.open_image(data)
    assert image.mode == ("RGBA" if len(color) == 4 else "RGB")
    pixel = image.getpixel((0, 0))
    assert isinstance(pixel, tuple)
    assert max(abs(a - b) for a, b in zip(pixel, color, strict=True)) <= (2 if mode in ("LAB", "CMYK, JPEG") else 0)
    assert decoding.on_white(image).mode == "RGB"


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pictures_without_a_fixed_range_are_unreadable(mode: str) -> None:
    with pytest.raises(decoding.UnreadableMedia):
        decoding.decode([Media("image", (stored(Image.new(mode, (2, 2)), "TIFF"),))], 8, 16_000)
