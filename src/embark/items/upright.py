"""Pictures turned as their EXIF orientation says: the `datasets` library does so when it decodes, Pillow does not.

Only a picture that really turns gets another digest, and so another key: vectors of all others stay valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from PIL import ExifTags, Image

from embark.items import as_items
from embark.items.limits import open_picture
from embark.types import Dataset, Item, Media, Part, Side

TURNS: Mapping[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
JPEG = b"\xff\xd8"
HEADS = (JPEG, b"\x89PNG", b"RIFF")  # JPEG, PNG, WebP; Pillow turns TIFF by itself, the others state nothing
MARKS = (b"Exif", b"EXIF", b"eXIf", b"exif", b"Orientation")  # one of them is in a file that states an orientation


@dataclass(frozen=True)
class UprightMedia(Media):
    """A picture that is seen upright; `stored` is the picture as it is in its file."""

    stored: Media = field(compare=False)

    @property
    def orientation(self) -> int:
        """The EXIF orientation: 1 is upright already. It is remembered, like the digest."""
        known: int | None = self.__dict__.get("orientation")
        return known or self.__dict__.setdefault("orientation", self._read_orientation())

    def _read_orientation(self) -> int:
        [chunk] = self.chunks
        stored = getattr(chunk, "orientation", None)  # of chunks of larger files, whose facts are on disk
        return int(stored()) if stored is not None else orientation(self.read()[0])

    def compute_digest(self) -> bytes:
        """That of the stored picture, unless turning changes its pixels."""
        plain = self.stored.digest
        return plain if self.orientation == 1 else hashlib.sha256(b"upright\0" + plain).digest()


def upright(data: Dataset) -> Dataset:
    """The dataset with all its pictures upright."""
    seen: dict[int, Part] = {}  # parts that several items share stay shared, as their digests are remembered

    def turned(part: Part) -> Part:
        if not isinstance(part, Media) or part.kind != "image" or isinstance(part, UprightMedia):
            return part
        return seen.setdefault(id(part), UprightMedia(part.kind, part.chunks, part))

    def item(old: Item) -> Item:
        return Item(tuple(map(turned, old.parts))) if any(part.kind == "image" for part in old.parts) else old

    sides = {name: Side(side.ids, as_items(side.items).upright(item)) for name, side in data.sides.items()}
    return replace(data, sides=sides)


def orientation(data: bytes | memoryview) -> int:
    """The EXIF orientation (2 to 8) of an encoded picture; 1 where it states none, or one that is not valid."""
    if not any(data[: len(head)] == head for head in HEADS):
        return 1
    beginning = bytes(_before_pixels(data) if data[: len(JPEG)] == JPEG else data)
    if not any(mark in beginning for mark in MARKS):
        return 1
    try:
        with open_picture(data) as image:
            value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damage makes parsers raise whatever they like; decoding will tell
        return 1
    return value if value in TURNS else 1


def _before_pixels(data: bytes | memoryview) -> bytes | memoryview:
    """The segments of a JPEG up to its pixels, where nobody looks for an orientation; all of it if they are unusual."""
    place = len(JPEG)
    while data[place : place + 1] == b"\xff" and data[place + 1 : place + 2] not in (b"", b"\xff", b"\x00", b"\x01"):
        if data[place + 1] == 0xDA:
            return data[:place]
        size = int.from_bytes(data[place + 2 : place + 4], "big")
        if size < 2 or 0xD0 <= data[place + 1] <= 0xD9:  # no segment that has a size
            break
        place += 2 + size
    return data
