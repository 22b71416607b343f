"""Pillow's resizing on any device of torch: the same whole numbers, and so the same bytes.

Pillow resizes in two passes, across and down. Each output is a weighted sum of bytes, with weights of 22 bits after
the point, rounded and cut to a byte. Whole numbers add up to the same whatever their order and the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from embark.catalogue import group_values
from embark.models.pixels import Fit
from embark.types import Array

BITS = 22  # of the weights, after the point
HALF = 1 << (BITS - 1)
NEAREST = 0


def _nearest(x: Array) -> Array:
    return np.ones(x.shape)


def _lanczos(x: Array) -> Array:
    return np.where((x >= -3) & (x < 3), np.sinc(x) * np.sinc(x / 3), 0)


def _bilinear(x: Array) -> Array:
    return np.asarray(np.maximum(1 - np.abs(x), 0))


def _bicubic(x: Array) -> Array:
    a = -0.5
    x = np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _box(x: Array) -> Array:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _hamming(x: Array) -> Array:
    return np.where(np.abs(x) < 1, np.sinc(x) * (0.54 + 0.46 * np.cos(np.pi * x)), 0)


FILTERS: dict[int, tuple[Callable[[Array], Array], float]] = {  # by Pillow's number: the function, its reach
    NEAREST: (_nearest, 0.0),
    1: (_lanczos, 3.0),
    2: (_bilinear, 1.0),
    3: (_bicubic, 2.0),
    4: (_box, 0.5),
    5: (_hamming, 1.0),
}


@dataclass(frozen=True, eq=False)
class ResizeAxis:
    """How one side is resized and cropped: output `i` is the sum of `weights[:, i]` × the bytes from `first[i]` on.

    Outputs outside the picture have no weights, and so become 0.
    """

    first: Array  # (outputs,)
    weights: Array  # (taps, outputs)

    @cached_property
    def start(self) -> int:
        """The first byte that any output reads."""
        return int(self.first.min())

    @cached_property
    def end(self) -> int:
        """One past the last byte that any output reads."""
        return int(self.first.max()) + len(self.weights)


class ResizePlan(NamedTuple):
    """How a picture is resized and cropped: its two axes, and which of them Pillow takes first."""

    across: ResizeAxis
    down: ResizeAxis
    down_first: bool


@lru_cache(maxsize=8192)
def axis(source: int, target: int, left: int, length: int, resample: int) -> ResizeAxis:
    """The axis that resizes `source` bytes to `target` and keeps `length` of them from `left` on."""
    outputs = np.arange(left, left + length)
    scale = source / target
    function, reach = FILTERS[resample]
    stretch = max(scale, 1.0)
    center = (outputs + 0.5) * scale
    if resample == NEAREST:
        # Pillow adds up the steps, and their rounding errors.
        centers = np.add.accumulate(np.concatenate(([scale * 0.5], np.full(target - 1, scale))))
        low = centers.astype(np.int64)[outputs.clip(0, target - 1)]
        high = low + 1
    else:
        low = np.maximum((center - reach * stretch + 0.5).astype(np.int64), 0)
        high = np.minimum((center + reach * stretch + 0.5).astype(np.int64), source)
    inside = (outputs >= 0) & (outputs < target)
    taps = max(1, min(source, int((high - low)[inside].max(initial=1))))
    first = low.clip(0, source - taps)
    position = first + np.arange(taps)[:, None]
    weights = function((position - center + 0.5) * (1.0 / stretch))
    weights = np.where((position >= low) & (position < high) & inside, weights, 0)
    total = np.add.accumulate(weights)[-1]  # one after the other, as Pillow adds them
    weights = np.divide(weights, total, out=weights, where=total != 0) * (1 << BITS)
    fixed = (weights + np.where(weights < 0, -0.5, 0.5)).astype(np.int32)
    return ResizeAxis(first.astype(np.int32), fixed)


@lru_cache(maxsize=8192)
def plan(size: tuple[int, int], fit: Fit) -> ResizePlan:
    """How a picture of (width, height) becomes what `fit` makes of it."""
    width, height = size
    if isinstance(fit.size, int):
        shorter = min(size)
        target = int(fit.size * width / shorter), int(fit.size * height / shorter)
    else:
        target = fit.size[::-1] if fit.size else size
    crop = fit.crop[::-1] if fit.crop else target
    across, down = (
        axis(source, length, (length - cropped) // 2, cropped, fit.resample)
        for source, length, cropped in zip(size, target, crop, strict=True)
    )
    # Pillow 13's rule. Earlier ones always begin across, which makes other bytes of pictures that shrink in height.
    shrinks = height - target[1]
    return ResizePlan(across, down, shrinks > 0 and shrinks > 2 * (width - target[0]))


def resize(pictures: Sequence[Any], fit: Fit, values: Any) -> Any:
    """(n, 3, height, width) of the numbers of bytes, from pictures (3, height, width) of bytes on one device.

    `values` (3, 256) are the numbers of each channel's bytes. `fit` makes pictures of one size.
    """
    import torch

    pixels = resized_bytes(pictures, fit).int()
    return torch.stack([values[channel][pixels[:, channel]] for channel in range(3)], dim=1)


def resized_bytes(pictures: Sequence[Any], fit: Fit) -> Any:
    """(n, 3, height, width) of bytes, as `resize` has them before they are numbers."""
    import torch

    out: Any = None
    for shape, rows in group_values((tuple(picture.shape), row) for row, picture in enumerate(pictures)).items():
        across, down, down_first = plan((shape[2], shape[1]), fit)
        resized = torch.stack([pictures[row][:, down.start : down.end, across.start : across.end] for row in rows])
        for axis, dimension in ((down, 2), (across, 3)) if down_first else ((across, 3), (down, 2)):
            resized = _pass(resized, axis, dimension)
        if out is None:
            out = resized.new_empty((len(pictures), *resized.shape[1:]))
        out[rows] = resized
    return out


def _pass(pixels: Any, axis: ResizeAxis, dimension: int) -> Any:
    """The bytes of one pass over a dimension, which begins where the axis does."""
    import torch

    first = torch.from_numpy(axis.first - axis.start).to(pixels.device)
    shape = [1] * pixels.ndim
    shape[dimension] = -1
    total: Any = HALF
    for tap, weights in enumerate(torch.from_numpy(axis.weights).to(pixels.device)):
        total = total + pixels.index_select(dimension, first + tap).int() * weights.view(shape)
    return (total >> BITS).clamp(0, 255).byte()
