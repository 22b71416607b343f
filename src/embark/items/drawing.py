"""Images drawn from others: scenes, sheets, pages of text, video frames, corruptions. Encoded bytes in, PNG out.

Every function is pure and can be pickled, so an item may hold `Drawing(sheet, arts)` and be drawn where it is needed.
"""

from __future__ import annotations

import io
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from embark.items.decoding import on_white, open_image

TILE = 64  # side of one emoji, in pixels
FRAME = 96  # side of a video's frame
MOTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class Drawing:
    """A PNG that is drawn at the first call and then kept: it is hashed once and embedded by every model."""

    def __init__(self, function: Callable[..., bytes], *arguments: Any) -> None:
        self.function = function
        self.arguments = arguments
        self.png = b""

    def __call__(self) -> bytes:
        if not self.png:  # no cached_property: in Python 3.11, threads that draw others would wait for this one
            self.png = self.function(*self.arguments)
        return self.png


def tile(art: bytes) -> bytes:
    """One image on white, as it looks when cut out of a sheet."""
    return _png(on_white(_rgba(art)))


def sheet(arts: Sequence[bytes]) -> bytes:
    """Up to nine images in reading order on a grid of three by three."""
    return _png(_grid(dict(enumerate(arts)), rows=3))


def scene(art: bytes, tiles: Sequence[int]) -> bytes:
    """The same image in several tiles of a grid of two rows by three columns."""
    return _png(_grid(dict.fromkeys(tiles, art), rows=2))


def arrangement(arts: Sequence[bytes], tiles: Sequence[int], rows: int = 3) -> bytes:
    """Images in these tiles of a grid of three columns, as BMP: the same bytes whichever library compresses PNG here,
    so that outputs which were recorded elsewhere are found by the hash of the picture.
    """
    out = io.BytesIO()
    _grid(dict(zip(tiles, arts, strict=True)), rows).save(out, "BMP")
    return out.getvalue()


def page(lines: Sequence[str]) -> bytes:
    """Black text on white, up to nine lines."""
    canvas = Image.new("RGB", (320, 200), "white")
    draw = ImageDraw.Draw(canvas)
    for number, line in enumerate(lines):
        draw.text((8, 6 + 21 * number), _without_accents(line), fill="black", font=_font())
    return _png(canvas)


def label(text: str) -> bytes:
    """A short text in the middle of a small square, wrapped."""
    canvas = Image.new("RGB", (128, 128), "white")
    lines = "\n".join(textwrap.wrap(_without_accents(text), 16))
    ImageDraw.Draw(canvas).multiline_text((64, 64), lines, "black", _font(), anchor="mm", align="center")
    return _png(canvas)


def frame(art: bytes, motion: str, step: int, steps: int) -> bytes:
    """Frame `step` of a video in which the image crosses the middle of the canvas at constant speed."""
    middle = (FRAME - TILE) / 2
    offset = 14 * (2 * step / (steps - 1) - 1)
    across, down = MOTIONS[motion]
    canvas = Image.new("RGB", (FRAME, FRAME), "white")
    canvas.paste(on_white(_rgba(art)), (round(middle + offset * across), round(middle + offset * down)))
    return _png(canvas)


def corrupt(art: bytes, kind: str, seed: int) -> bytes:
    """The image after one of `CORRUPTIONS`; the seed makes noise reproducible."""
    return _png(CORRUPTIONS[kind](_rgba(art), seed))


def _noise(art: Image.Image, seed: int) -> Image.Image:
    pixels = np.asarray(on_white(art), dtype=np.float32)
    noisy = pixels + np.random.default_rng(seed).normal(0, 0.15 * 255, pixels.shape)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def _dark(art: Image.Image, seed: int) -> Image.Image:
    canvas = Image.new("RGBA", art.size, (26, 26, 26))
    canvas.alpha_composite(art)
    return canvas.convert("RGB")


def _occlusion(art: Image.Image, seed: int) -> Image.Image:
    canvas = on_white(art)
    canvas.paste((128, 128, 128), (20, 20, 44, 44))
    return canvas


CORRUPTIONS: dict[str, Callable[[Image.Image, int], Image.Image]] = {
    "noise": _noise,
    "grey": lambda art, seed: on_white(art).convert("L"),
    "dark-background": _dark,
    "occlusion": _occlusion,
    "low-resolution": lambda art, seed: on_white(art).resize((20, 20)).resize(art.size),
    "rotation": lambda art, seed: on_white(art.rotate(15, Image.Resampling.BICUBIC)),
    "low-contrast": lambda art, seed: on_white(art).point(lambda level: round(128 + 0.3 * (level - 128))),
}


def _grid(arts: dict[int, bytes], rows: int) -> Image.Image:
    canvas = Image.new("RGB", (3 * TILE, rows * TILE), "white")
    for position, art in arts.items():
        canvas.paste(on_white(_rgba(art)), (TILE * (position % 3), TILE * (position // 3)))
    return canvas


def _without_accents(text: str) -> str:
    """The text without accents, which the built-in font lacks."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


@cache
def _font() -> Any:
    return ImageFont.load_default(14)


@lru_cache(maxsize=256)  # a video and a sheet use the same image many times in a row
def _rgba(art: bytes) -> Image.Image:
    return open_image(art).convert("RGBA")


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()
