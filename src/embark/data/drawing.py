"""Pictures made of others: scenes, sheets, pages of text, frames of films, corruptions. Encoded bytes in, PNG out.

Every function is pure and can be pickled, so an item may hold `Drawn(sheet, arts)` and be drawn where it is needed.
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

from embark.data.media import on_white, open_image

CELL = 64  # side of one emoji, in pixels
STAGE = 96  # side of a film's frame
MOTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class Drawn:
    """A picture that is drawn at first need and then kept: it is hashed once and embedded by every model."""

    def __init__(self, function: Callable[..., bytes], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments
        self.picture: bytes | None = None

    def __call__(self) -> bytes:
        if self.picture is None:
            self.picture = self.function(*self.arguments)
        return self.picture


def cell(art: bytes) -> bytes:
    """One picture on white: what cutting it out of a sheet gives."""
    return _png(on_white(_open(art)))


def sheet(arts: Sequence[bytes]) -> bytes:
    """Up to nine pictures in reading order on a grid of three by three."""
    return _png(_grid(dict(enumerate(arts)), rows=3))


def scene(art: bytes, cells: Sequence[int]) -> bytes:
    """The same picture in some cells of a grid of two rows by three columns."""
    return _png(_grid(dict.fromkeys(cells, art), rows=2))


def page(lines: Sequence[str]) -> bytes:
    """Black text on white, up to nine lines."""
    paper = Image.new("RGB", (320, 200), "white")
    pen = ImageDraw.Draw(paper)
    for at, line in enumerate(lines):
        pen.text((8, 6 + 21 * at), _plain(line), fill="black", font=_font())
    return _png(paper)


def label(text: str) -> bytes:
    """A short text in the middle of a small square, wrapped."""
    paper = Image.new("RGB", (128, 128), "white")
    lines = "\n".join(textwrap.wrap(_plain(text), 16))
    ImageDraw.Draw(paper).multiline_text((64, 64), lines, "black", _font(), anchor="mm", align="center")
    return _png(paper)


def frame(art: bytes, motion: str, step: int, steps: int) -> bytes:
    """Frame `step` of a film in which the picture crosses the middle of the stage at constant speed."""
    at = 2 * step / (steps - 1) - 1
    middle, reach = (STAGE - CELL) / 2, 14
    across, down = MOTIONS[motion]
    stage = Image.new("RGB", (STAGE, STAGE), "white")
    stage.paste(on_white(_open(art)), (round(middle + reach * at * across), round(middle + reach * at * down)))
    return _png(stage)


def corrupt(art: bytes, kind: str, seed: int) -> bytes:
    """The picture after one of `CORRUPTIONS`; the seed makes noise reproducible."""
    return _png(CORRUPTIONS[kind](_open(art), seed))


def _noise(art: Image.Image, seed: int) -> Image.Image:
    pixels = np.asarray(on_white(art), dtype=np.float32)
    noisy = pixels + np.random.default_rng(seed).normal(0, 0.15 * 255, pixels.shape)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def _dark(art: Image.Image, seed: int) -> Image.Image:
    stage = Image.new("RGBA", art.size, (26, 26, 26))
    stage.alpha_composite(art)
    return stage.convert("RGB")


def _occlusion(art: Image.Image, seed: int) -> Image.Image:
    shown = on_white(art)
    shown.paste((128, 128, 128), (20, 20, 44, 44))
    return shown


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
    stage = Image.new("RGB", (3 * CELL, rows * CELL), "white")
    for at, art in arts.items():
        stage.paste(on_white(_open(art)), (CELL * (at % 3), CELL * (at // 3)))
    return stage


def _plain(text: str) -> str:
    """Without accents, which the built-in font lacks."""
    return "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))


@cache
def _font() -> Any:
    return ImageFont.load_default(14)


@lru_cache(maxsize=256)  # a film and a sheet ask for the same picture many times in a row
def _open(art: bytes) -> Image.Image:
    return open_image(art).convert("RGBA")


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()
