"""The colors of `jpeg_colors` as one kernel for a whole batch of pictures of any sizes, in Triton."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from embark.models.jpeg_colors import BLUE, GREEN_BLUE, GREEN_RED, NARROW, RED
from embark.types import Encoded

FIELDS = 6  # of a picture's row in the table: see `rgb`
LINES, PLACES = 8, 128  # of the tile that a program computes


def rgb(planes: Sequence[Any], jpegs: Sequence[Encoded]) -> list[Any]:
    """As `jpeg_colors.rgb`."""
    colored = [(picture, jpeg) for picture, jpeg in zip(planes, jpegs, strict=True) if all(jpeg.sampling)]
    if not colored:
        return [picture[:1].expand(3, -1, -1) for picture in planes]
    device = planes[0].device
    sizes = np.array([jpeg.size for _, jpeg in colored])
    areas = sizes[:, 0] * sizes[:, 1]
    ends = np.cumsum(3 * areas)
    places = [picture.data_ptr() for picture, _ in colored]
    table = np.column_stack((places, sizes, [jpeg.sampling for _, jpeg in colored], ends - 3 * areas))
    host = torch.empty(table.shape, dtype=torch.int64, pin_memory=device.type == "cuda")
    host.numpy()[:] = table
    out = torch.empty(int(ends[-1]), dtype=torch.uint8, device=device)
    width, height = sizes.max(axis=0)
    with torch.cuda.device_of(out):
        _colors[triton.cdiv(int(height), LINES), triton.cdiv(int(width), PLACES), len(colored)](
            host.to(device, non_blocking=True), out, FIELDS, RED, GREEN_RED, GREEN_BLUE, BLUE, NARROW, LINES, PLACES
        )
    pictures = iter(out.split((3 * areas).tolist()))
    return [
        next(pictures).view(3, *jpeg.size[::-1]) if all(jpeg.sampling) else picture[:1].expand(3, -1, -1)
        for picture, jpeg in zip(planes, jpegs, strict=True)
    ]


# Triton reads the source of its kernels: no types, no names of this module.


@triton.jit  # type: ignore[untyped-decorator]
def _colors(  # type: ignore[no-untyped-def]
    table, out,
    fields: tl.constexpr, of_red: tl.constexpr, green_red: tl.constexpr, green_blue: tl.constexpr,
    of_blue: tl.constexpr, narrow: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """Planes Y, Cb and Cr of pictures → their red, green and blue in `out`."""
    facts = table + tl.program_id(2) * fields
    width = tl.load(facts + 1)
    height = tl.load(facts + 2)
    top = tl.program_id(0) * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < height) & (left < width):
        across = tl.load(facts + 3)
        down = tl.load(facts + 4)
        y = (top + tl.arange(0, tile_lines)).to(tl.int64)[:, None]
        x = (left + tl.arange(0, tile_places)).to(tl.int64)[None, :]
        inside = (y < height) & (x < width)
        samples = (width + across - 1) // across
        lines = (height + down - 1) // down
        filters = (samples > narrow).to(tl.int64)
        near_y = y // down
        near_x = x // across
        next_y = tl.minimum(tl.maximum(near_y + filters * (down - 1) * (2 * (y % 2) - 1), 0), lines - 1)
        next_x = tl.minimum(tl.maximum(near_x + filters * (across - 1) * (2 * (x % 2) - 1), 0), samples - 1)
        odd = (x % 2).to(tl.int32)
        rounding = tl.where(down == 2, 8 - odd, 4 + 4 * odd)
        picture = tl.load(facts).to(tl.pointer_type(tl.uint8))
        plane = picture + width * height
        blue = 9 * tl.load(plane + near_y * width + near_x, mask=inside, other=0).to(tl.int32)
        blue += 3 * tl.load(plane + near_y * width + next_x, mask=inside, other=0).to(tl.int32)
        blue += 3 * tl.load(plane + next_y * width + near_x, mask=inside, other=0).to(tl.int32)
        blue += tl.load(plane + next_y * width + next_x, mask=inside, other=0).to(tl.int32)
        plane += width * height
        red = 9 * tl.load(plane + near_y * width + near_x, mask=inside, other=0).to(tl.int32)
        red += 3 * tl.load(plane + near_y * width + next_x, mask=inside, other=0).to(tl.int32)
        red += 3 * tl.load(plane + next_y * width + near_x, mask=inside, other=0).to(tl.int32)
        red += tl.load(plane + next_y * width + next_x, mask=inside, other=0).to(tl.int32)
        blue = ((blue + rounding) >> 4) - 128
        red = ((red + rounding) >> 4) - 128
        light = tl.load(picture + y * width + x, mask=inside, other=0).to(tl.int32)
        goal = out + tl.load(facts + 5) + y * width + x
        byte = light + ((of_red * red + 32768) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)
        goal += width * height
        byte = light + ((32768 - green_red * red - green_blue * blue) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)
        goal += width * height
        byte = light + ((of_blue * blue + 32768) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)
