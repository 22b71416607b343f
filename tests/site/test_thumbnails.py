"""Thumbnails hold pixels and nothing else of the file that they show."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import pytest
from PIL import Image

from embark.items import media
from embark.site.thumbnails import Thumbnails

CANARY = b"CANARY7f3"


def saved(format: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (8, 6), (200, 30, 30, 90)).save(out, format)
    return out.getvalue()


def png_chunk(name: bytes) -> bytes:
    """A PNG with another chunk after its header: XMP, the author (C2PA), a profile, a private one."""
    png = saved("PNG")
    chunk = name + CANARY
    return png[:33] + len(CANARY).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") + png[33:]


def webp_chunk(name: bytes) -> bytes:
    chunks = saved("WEBP")[8:] + name + len(CANARY).to_bytes(4, "little") + CANARY + b"\0"
    return b"RIFF" + len(chunks).to_bytes(4, "little") + chunks


CONTENTS = {
    **{f"PNG {name!r}": png_chunk(name) for name in (b"caBX", b"prVt", b"tEXt", b"eXIf", b"iTXt")},
    **{f"WebP {name!r}": webp_chunk(name) for name in (b"XMP ", b"JUNK", b"EXIF")},
    "behind a PNG": saved("PNG") + CANARY,
    "behind a WebP": saved("WEBP") + CANARY,
    "a second PNG": saved("PNG") + png_chunk(b"tEXt"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_small_picture_leaves_without_what_is_not_drawn(name: str, tmp_path: Path) -> None:
    content = CONTENTS[name]
    part = shown(content, tmp_path)
    assert CANARY in content
    assert CANARY not in (tmp_path / Path(part).name).read_bytes()


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_a_small_picture_of_pixels_alone_is_taken_as_it_is(format: str, tmp_path: Path) -> None:
    assert (tmp_path / Path(shown(saved(format), tmp_path)).name).read_bytes() == saved(format)


def shown(content: bytes, folder: Path) -> str:
    """The address of a picture's thumbnail in a folder."""
    [part] = media("image", content).parts
    return str(Thumbnails(folder).part(part)["src"])
