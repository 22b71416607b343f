"""JPEG headers: which pictures any sound decoder reads exactly as Pillow does."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from PIL import Image

from embark.types import Encoded

Frame: TypeAlias = tuple[tuple[int, int], tuple[int, int]]  # size, sampling
BASELINE = (0xC0, 0xC1)  # sequential frames with Huffman codes; all others are Pillow's
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
SCAN = 0xDA
BEGIN = b"\xff\xd8\xff"
END = b"\xff\xd9"
HEAD_BYTES = 4096  # bytes, in which most files have all segments before their codes
TAIL = 64  # bytes, in which a file nearly always has its end marker
ADOBE = 0xEE
ALONE = frozenset(range(0xD0, 0xD8)) | {0x01}  # markers without a segment
GREY = [(1, 1)]
COLOR = [[sampling, (1, 1), (1, 1)] for sampling in ((1, 1), (2, 1), (2, 2))]  # 4:4:4, 4:2:2, 4:2:0
LETTERS = b"RGB"  # as numbers of the components: not YCbCr


def plain_jpeg(data: bytes | memoryview, orientation: int = 1) -> Encoded | None:
    """The picture, if it is a whole baseline JPEG of 8 bits, grey or YCbCr, and no larger than Pillow allows.

    None for all others: progressive and other codes, RGB and CMYK, unusual samplings, and files without an end.
    """
    head = bytes(data[:HEAD_BYTES])
    if not head.startswith(BEGIN):
        return None
    frame, scan = _header(head)
    if scan is None and len(data) > HEAD_BYTES:
        frame, scan = _header(bytes(data))
    if not frame or not scan:
        return None
    # Codes never hold an end marker, so this is the file's own: without one, Pillow decides how much is lost.
    whole = END in bytes(data[max(scan, len(data) - TAIL) :]) or END in bytes(data[scan:])
    return Encoded(data, *frame, orientation) if whole else None


def _header(data: bytes) -> tuple[Frame | None, int | None]:
    """(frame, scan) of the segments before the codes: size and sampling, None unless they are those of a plain JPEG,
    and where the codes begin, None if that is not in these bytes.
    """
    frame = None
    position = 2
    size = len(data)
    while position + 4 <= size:
        if data[position] != 0xFF:
            return None, 0
        marker = data[position + 1]
        if marker == 0xFF or marker in ALONE:  # a byte may fill the room before a marker
            position += 1 if marker == 0xFF else 2
            continue
        if marker == SCAN:
            return frame, position
        start = position + 4
        position += 2 + (data[position + 2] << 8 | data[position + 3])
        if position > size:
            return None, None
        if marker in FRAMES:
            plain = marker in BASELINE and frame is None
            frame = _frame(data[start:position], Image.MAX_IMAGE_PIXELS) if plain else None
            if frame is None:
                return None, 0
        elif marker == ADOBE and data[start : start + 5] == b"Adobe" and data[start + 11 : start + 12] != b"\x01":
            return None, 0
    return None, None


@lru_cache(maxsize=4096)  # pictures of a data set have few sizes
def _frame(segment: bytes, most_pixels: int | None) -> Frame | None:
    """(size, sampling) of a frame's header; None where it is none of a plain JPEG."""
    if len(segment) < 6 or segment[0] != 8 or len(segment) != 6 + 3 * segment[5]:
        return None
    height = int.from_bytes(segment[1:3], "big")
    width = int.from_bytes(segment[3:5], "big")
    samplings = [divmod(factors, 16) for factors in segment[7::3]]
    if segment[6::3] == LETTERS or (samplings != GREY and samplings not in COLOR):
        return None
    largest = 2 * most_pixels if most_pixels else width * height
    if not 0 < width * height <= largest:
        return None
    return (width, height), ((0, 0) if samplings == GREY else samplings[0])
