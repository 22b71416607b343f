"""JPEG headers: the size of a picture, if it is one that decoders other than Pillow's read in the same way."""

from __future__ import annotations

from PIL import Image

BASELINE = (0xC0, 0xC1)  # sequential frames with Huffman codes; all others are Pillow's
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
SCAN = 0xDA
ADOBE = 0xEE
ALONE = frozenset(range(0xD0, 0xD8)) | {0x01}  # markers without a segment
COLOR = [[(across, down), (1, 1), (1, 1)] for across in (1, 2) for down in (1, 2)]  # 4:4:4, 4:4:0, 4:2:2, 4:2:0
LETTERS = b"RGB"  # as numbers of the components: not YCbCr


def plain_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) of a whole baseline JPEG of 8 bits, grey or YCbCr, that is no larger than Pillow allows.

    None for all others: progressive and other codes, RGB and CMYK, unusual samplings, and files without an end.
    """
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    size = None
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF or marker in ALONE:  # a byte may fill the room before a marker
            position += 1 if marker == 0xFF else 2
            continue
        if marker == SCAN:
            # Codes never hold an end marker, so this is the file's own: without one, Pillow decides how much is lost.
            return size if data.rfind(b"\xff\xd9", position) >= 0 else None
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        start = position + 4
        position += 2 + length
        if marker in FRAMES:
            size = _frame_size(data[start:position]) if marker in BASELINE and size is None else None
            if size is None:
                return None
        elif marker == ADOBE and data[start : start + 5] == b"Adobe" and data[start + 11 : start + 12] != b"\x01":
            return None
    return None


def _frame_size(segment: bytes) -> tuple[int, int] | None:
    """(width, height) of a frame's header; None where it is none of a plain JPEG."""
    if len(segment) < 6 or segment[0] != 8 or len(segment) != 6 + 3 * segment[5]:
        return None
    height = int.from_bytes(segment[1:3], "big")
    width = int.from_bytes(segment[3:5], "big")
    samplings = [divmod(factors, 16) for factors in segment[7::3]]
    if segment[6::3] == LETTERS or (samplings != [(1, 1)] and samplings not in COLOR):
        return None
    largest = 2 * Image.MAX_IMAGE_PIXELS if Image.MAX_IMAGE_PIXELS else width * height
    return (width, height) if 0 < width * height <= largest else None
