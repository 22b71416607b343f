"""The colors of JPEGs from their planes of brightness and color, as libjpeg makes them, and so Pillow: the same bytes.

Planes of color may have half the width, or half of both sides. They are enlarged by a triangle filter, then mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.types import Encoded

RED = 91881  # of Cr; as whole numbers of 16 bits after the point
GREEN_RED, GREEN_BLUE = 46802, 22554  # of Cr, of Cb
BLUE = 116130  # of Cb
NARROW = 2  # samples: libjpeg does not filter planes of color that are no wider


def rgb(planes: Sequence[Any], jpegs: Sequence[Encoded]) -> list[Any]:
    """Pictures of bytes, from as large planes Y, Cb and Cr of each; color fills `1 / sampling` of a plane, top left."""
    return [
        _mixed(picture, jpeg.sampling) if all(jpeg.sampling) else picture[:1].expand(3, -1, -1)
        for picture, jpeg in zip(planes, jpegs, strict=True)
    ]


def _mixed(planes: Any, sampling: tuple[int, int]) -> Any:
    import torch

    half = 1 << 15
    y = planes[0].int()
    cb, cr = (_enlarged(plane, sampling) - 128 for plane in planes[1:])
    channels = (
        y + ((RED * cr + half) >> 16),
        y + ((half - GREEN_RED * cr - GREEN_BLUE * cb) >> 16),
        y + ((BLUE * cb + half) >> 16),
    )
    return torch.stack(channels).clamp(0, 255).byte()


def _enlarged(plane: Any, sampling: tuple[int, int]) -> Any:
    """A plane whose color is `1 / sampling` of its size, filled: ¾ of the nearest sample, ¼ of the next one."""
    import torch

    across, down = sampling
    height, width = plane.shape
    y = torch.arange(height, device=plane.device)
    x = torch.arange(width, device=plane.device)
    samples = -(-width // across)
    filters = samples > NARROW
    small = plane.int()
    next_y = (y // down + filters * (down - 1) * (2 * (y % 2) - 1)).clamp(0, -(-height // down) - 1)
    next_x = (x // across + filters * (across - 1) * (2 * (x % 2) - 1)).clamp(0, samples - 1)
    lines = 3 * small[y // down] + small[next_y]
    odd = x % 2
    return (3 * lines[:, x // across] + lines[:, next_x] + (8 - odd if down == 2 else 4 + 4 * odd)) >> 4
