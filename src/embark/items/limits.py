"""How much a small file or one item may become when it is decoded: what becomes more is refused before memory is full.

The limits are far above what datasets hold. For files that hold many items (tables, archives), the environment's
EMBARK_LIMITS multiplies them: EMBARK_LIMITS=10 for files that are meant to be so large. For one item, the setting
`item_memory` is the limit.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from embark.settings import item_limits

if TYPE_CHECKING:  # tables without pictures are read without Pillow
    from PIL import Image

BLOCK_BYTES = 1 << 20  # bytes read at a time
SCALE = 1.0
with suppress(ValueError):
    SCALE = max(1.0, float(os.environ.get("EMBARK_LIMITS") or 1))

RATIO = int(200 * SCALE)  # the bytes that each byte of a compressed file may become
UNPACKED = int((512 << 20) * SCALE)  # bytes that any file may become, however small it is
ALWAYS = 1 << 18  # bytes that an item may take whatever `item_memory` is
FRAME = int(180_000_000 * SCALE)  # pixels of a frame of a film; Pillow's limit for images is about the same

# Pillow's formats of pictures that are read, those first that it has loaded when it starts. It hands some others to
# other programs (EPS to Ghostscript), and does not know the size of some (ICNS) before they are decoded.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "PPM", "WEBP", "TIFF", "AVIF", "JPEG2000", "ICO", "QOI", "TGA")


def open_picture(data: bytes | memoryview) -> Image.Image:
    """The picture of these bytes, its pixels not decoded yet.

    Its format is one of `FORMATS`, or one that a plug-in has taught Pillow; others are an error.
    """
    from PIL import Image

    taught = [name for name, (factory, _) in Image.OPEN.items() if not factory.__module__.startswith("PIL.")]
    return Image.open(io.BytesIO(data), formats=(*FORMATS, *taught))


def unpacked(size: int) -> int:
    """The bytes that a compressed file of this size may become."""
    return max(UNPACKED, RATIO * size)


def copy(packed: Any, out: BinaryIO, limit: int) -> None:
    """Write all that a packed file becomes; an error once that is more than the limit."""
    size = 0
    while block := packed.read(BLOCK_BYTES):
        size += len(block)
        if size > limit:
            raise ValueError(explain("it", limit))
        out.write(block)


def item_bytes(encoded: int) -> int:
    """The bytes that an item of so many encoded bytes may take when it is decoded, all its parts together.

    They are `item_memory`; of an item whose files are small, a quarter of it, or `RATIO` times their size.
    """
    most = item_limits()["item_memory"] << 20
    return min(most, max(most // 4, RATIO * encoded))


def explain_item(what: str, size: int, limit: int) -> str:
    """What to say about an item that is refused: what it would take, and what it may."""
    return (
        f"{what} brings it to {size:,} bytes when it is decoded, and it may take {limit:,}; the setting item_memory "
        f"(EMBARK_ITEM_MEMORY, now {item_limits()['item_memory']:,} MB) raises the limit"
    )


def explain(what: str, limit: int, unit: str = "bytes") -> str:
    """What to say about a file that is refused."""
    return f"{what} becomes more than {limit:,} {unit} when it is decoded; EMBARK_LIMITS raises the limit"
