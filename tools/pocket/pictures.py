"""Pictures of emoji: the Noto art that is shipped, and other artists' drawings of the same emoji to train on."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import resvg_py
from PIL import Image
from rows import Row, plain, plain_code

SIDE = 64
NOTO = "emoji-datasource-google/img/google/64"
# Icon sets and their licenses. The Noto family (noto, noto-v1) is held out whole.
STYLES = {
    "twemoji": "CC-BY-4.0",
    "fluent-emoji-flat": "MIT",
    "fluent-emoji": "MIT",
    "emojione": "CC-BY-4.0",
    "fxemoji": "Apache-2.0",
    "circle-flags": "MIT",
    "flag": "MIT",
    "openmoji": "CC-BY-SA-4.0",
    "emojione-v1": "CC-BY-SA-4.0",
}
NAMED_ALIKE = ("fluent", "emojione")  # sets that name icons after the emoji's English name, as some others do
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="64" height="64" viewBox="{left} {top} {width} {height}">{body}</svg>'
)


def _square(image: Image.Image) -> Image.Image:
    image = image.convert("RGBA")
    return image if image.size == (SIDE, SIDE) else image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


# ── shipped pictures ─────────────────────────────────────────────────────────────────────────────────────────────────


def webp(path: Path) -> bytes:
    """Lossless WebP after rounding to 6 bits: channels move by at most 2/255 and the file shrinks by a fifth."""
    pixels = np.asarray(_square(Image.open(path)))
    rounded = np.minimum((pixels.astype(int) + 2) // 4 * 4, 255).astype(np.uint8)
    rounded[pixels[..., 3] == 0] = 0
    out = io.BytesIO()
    Image.fromarray(rounded).save(out, "WEBP", lossless=True, quality=80, method=4)
    return out.getvalue()


def noto_webp(npm: Path, rows: Sequence[Row]) -> list[bytes]:
    """The shipped picture of each row."""
    with Pool() as pool:
        return pool.map(webp, [npm / NOTO / row.picture for row in rows], chunksize=64)


# ── training pictures ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class IconSet:
    """One drawing style: its icons by name, and icon names by code point in this and kindred sets."""

    style: str
    icons: dict[str, dict[str, Any]]
    size: tuple[int, int]
    names_of: dict[str, list[str]]

    @classmethod
    def load(cls, npm: Path, style: str) -> IconSet:
        pack = json.loads((npm / f"iconify-{style}/icons.json").read_text(encoding="utf-8"))
        icons = dict(pack["icons"])
        for alias, target in pack.get("aliases", {}).items():
            if target.keys() == {"parent"} and target["parent"] in icons:  # others rotate or flip their parent
                icons.setdefault(alias, icons[target["parent"]])
        kindred = ("fluent-emoji-flat", "twemoji", "openmoji") if style.startswith(NAMED_ALIKE) else ()
        names_of: dict[str, list[str]] = {}
        for source in (style, *kindred):
            path = npm / f"iconify-{source}/chars.json"
            for code, name in json.loads(path.read_text(encoding="utf-8")).items() if path.exists() else ():
                names_of.setdefault(plain_code(code), []).append(name)
        return cls(style, icons, (pack.get("width", 16), pack.get("height", 16)), names_of)

    def candidates(self, row: Row) -> Iterator[str]:
        """Names under which this set may hold the row, surest first."""
        if self.style in ("flag", "circle-flags") and row.country:
            yield from (row.country.lower() + "-4x3", row.country.lower())
            return
        yield from self.names_of.get(plain_code(row.codepoints), ())
        english, bare = row.names["en"], plain(row.emoji)
        if self.style.startswith(NAMED_ALIKE):
            yield slug(english)
            if english.startswith("flag: "):
                yield "flag-for-" + slug(english.removeprefix("flag: ").replace("&", "and"))
        if self.style == "fxemoji" and len(bare) == 1:
            for name in (unicodedata.name(bare, ""), english):
                yield re.sub("[^a-z0-9]", "", name.lower())

    def svg(self, row: Row) -> str | None:
        """The row's drawing in this style, if it has one."""
        name = next((name for name in self.candidates(row) if name in self.icons), None)
        if name is None:
            return None
        icon = self.icons[name]
        width, height = icon.get("width", self.size[0]), icon.get("height", self.size[1])
        return SVG.format(
            left=icon.get("left", 0), top=icon.get("top", 0), width=width, height=height, body=icon["body"]
        )


def slug(text: str) -> str:
    """'Côte d'Ivoire' → 'cote-d-ivoire'."""
    ascii_text = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]+", "-", ascii_text).strip("-")


def palette(image: Image.Image, colours: int) -> tuple[np.ndarray, np.ndarray]:
    """(indices, RGBA palette): a quarter of the memory, and drawings hardly change."""
    quantised = image.quantize(colours, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    used = np.frombuffer(quantised.palette.tobytes(), np.uint8).reshape(-1, len(quantised.palette.mode))[:colours]
    table = np.zeros((colours, 4), np.uint8)
    table[: len(used), : used.shape[1]] = used
    return np.asarray(quantised, np.uint8), table


def raster(svg: str) -> tuple[np.ndarray, np.ndarray]:
    """A drawing in 64 colours on 64x64 pixels."""
    png = resvg_py.svg_to_bytes(svg_string=svg, width=SIDE, height=SIDE)
    return palette(_square(Image.open(io.BytesIO(bytes(png)))), 64)


def training_pictures(npm: Path, rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Every drawing in every training style, and Noto's own to evaluate on."""
    drawings, owners, styles = [], [], []
    for number, style in enumerate(STYLES):
        icons = IconSet.load(npm, style)
        found = [(index, svg) for index, row in enumerate(rows) if (svg := icons.svg(row))]
        with Pool() as pool:
            drawings += pool.map(raster, [svg for _, svg in found], chunksize=32)
        owners += [index for index, _ in found]
        styles += [number] * len(found)
        print(f"{style}: {len(found)} drawings", flush=True)
    noto = [palette(_square(Image.open(npm / NOTO / row.picture)), 256) for row in rows]
    return {
        "icon_index": np.stack([index for index, _ in drawings]),
        "icon_palette": np.stack([colours for _, colours in drawings]),
        "icon_row": np.array(owners, np.int16),
        "icon_style": np.array(styles, np.int8),
        "noto_index": np.stack([index for index, _ in noto]),
        "noto_palette": np.stack([colours for _, colours in noto]),
    }
