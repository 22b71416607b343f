"""How much a small file may become when it is decoded: files that become more are refused before memory is full.

The limits are far above what datasets hold. The environment's EMBARK_LIMITS multiplies them: EMBARK_LIMITS=10 for files
that are meant to be so large.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, BinaryIO

BLOCK = 1 << 20  # bytes read at a time
SCALE = 1.0
with suppress(ValueError):
    SCALE = max(1.0, float(os.environ.get("EMBARK_LIMITS") or 1))

RATIO = int(200 * SCALE)  # the bytes that each byte of a compressed file may become
UNPACKED = int((512 << 20) * SCALE)  # bytes that any file may become, however small it is
SAMPLES = int(250_000_000 * SCALE)  # of a sound, over all channels: 43 minutes of stereo at 48 kHz, 1 GB
FRAME = int(180_000_000 * SCALE)  # pixels of a frame of a film; Pillow's limit for images is about the same


def unpacked(size: int) -> int:
    """The bytes that a compressed file of this size may become."""
    return max(UNPACKED, RATIO * size)


def copy(packed: Any, out: BinaryIO, limit: int) -> None:
    """Write all that a packed file becomes; an error once that is more than the limit."""
    size = 0
    while block := packed.read(BLOCK):
        size += len(block)
        if size > limit:
            raise ValueError(explain("it", limit))
        out.write(block)


def explain(what: str, limit: int, unit: str = "bytes") -> str:
    """What to say about a file that is refused."""
    return f"{what} becomes more than {limit:,} {unit} when it is decoded; EMBARK_LIMITS raises the limit"
