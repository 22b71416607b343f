"""`jpeg_colors` and `resampling` as three kernels for a whole batch of pictures of any sizes, in Triton.

The kernels get the addresses, sizes and weights of all pictures in one table, which goes to the device in one copy. A
picture that is turned, or resized down first, is read with other strides. Nothing here is done picture by picture in
Python: threads that drive the device beside this one would wait for it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from embark.models.jpeg_colors import BLUE, GREEN_BLUE, GREEN_RED, NARROW, RED
from embark.models.pixels import Fit
from embark.models.resampling import BITS, HALF, ResizeAxis, plan
from embark.types import Array, Encoded

FIELDS = 22  # of a picture's row in the table: see `_kind`
PLANES, COLORS, FIRST, SECOND, MIDDLE = 0, 1, 8, 11, 16  # those that differ from picture to picture, or batch to batch
# Lines and places of the tile that a program computes, and its warps: the fastest of 24 on an H200, kernel by kernel.
COLOR_TILE = (4, 128), 4
FIRST_TILE = (2, 256), 2
SECOND_TILE = (2, 256), 4


def pixels(planes: Any, starts: Array, jpegs: Sequence[Encoded], fit: Fit, values: Any) -> Any:
    """(n, 3, height, width) of the numbers of bytes, from planes Y, Cb and Cr of JPEGs, which begin at `starts`.

    `values` (3, 256) are the numbers of each channel's bytes.
    """
    device = planes.device
    kinds: dict[tuple[tuple[int, int], tuple[int, int], int], int] = {}
    of_picture = [kinds.setdefault((jpeg.size, jpeg.sampling, jpeg.orientation), len(kinds)) for jpeg in jpegs]
    where: dict[ResizeAxis, int] = {}  # the weights begin there, behind the table
    words = 0
    rows = np.empty((len(kinds), FIELDS), np.int64)
    for number, kind in enumerate(kinds):
        rows[number], axes = _kind(*kind, fit)
        for axis, field in zip(axes, (FIRST, SECOND), strict=True):
            if axis not in where:
                where[axis] = words
                words += axis.first.size + axis.weights.size
            rows[number, field] = where[axis]
    table = rows[of_picture]
    colors = torch.empty_like(planes)
    table[:, PLANES] = starts + planes.data_ptr()
    table[:, COLORS] = starts + np.where(table[:, 4], colors.data_ptr(), planes.data_ptr())  # grey has one plane
    rooms = 3 * table[:, 14] * table[:, 10]
    table[:, MIDDLE] = np.cumsum(rooms) - rooms
    host = torch.empty(2 * table.size + words, dtype=torch.int32, pin_memory=device.type == "cuda")
    numbers = host.numpy()
    numbers[: 2 * table.size] = table.reshape(-1).view(np.int32)
    np.concatenate(
        [part for axis in where for part in (axis.first, axis.weights.reshape(-1))], out=numbers[2 * table.size :]
    )
    moved = host.to(device, non_blocking=True)
    facts = moved[: 2 * table.size].view(torch.int64)
    weights = moved[2 * table.size :]
    middle = torch.empty(int(rooms.sum()), dtype=torch.uint8, device=device)
    width, height = (int(side) for side in table[0, 17:19])
    out = torch.empty((len(jpegs), 3, height, width), dtype=values.dtype, device=device)
    most_wide, most_high, most_lines = (int(most) for most in table[:, [2, 3, 14]].max(axis=0))
    side = max(height, width)  # as pictures that are resized down first have their sides swapped
    with torch.cuda.device_of(planes):
        (lines, places), warps = COLOR_TILE
        _colors[triton.cdiv(most_high, lines), triton.cdiv(most_wide, places), len(jpegs)](
            facts, RED, GREEN_RED, GREEN_BLUE, BLUE, NARROW, FIELDS, lines, places, num_warps=warps
        )
        (lines, places), warps = FIRST_TILE
        _first[3 * triton.cdiv(most_lines, lines), triton.cdiv(side, places), len(jpegs)](
            facts, weights, middle, HALF, BITS, FIELDS, lines, places, num_warps=warps
        )
        (lines, places), warps = SECOND_TILE
        _second[3 * triton.cdiv(side, lines), triton.cdiv(side, places), len(jpegs)](
            facts, weights, middle, values, out, HALF, BITS, FIELDS, lines, places, num_warps=warps
        )
    return out


@lru_cache(maxsize=8192)
def _kind(
    size: tuple[int, int], sampling: tuple[int, int], orientation: int, fit: Fit
) -> tuple[tuple[int, ...], tuple[ResizeAxis, ResizeAxis]]:
    """The row of pictures of a kind, as far as it is the same for all, and the axes of the first and second pass."""
    width, height = size
    last_line = (height - 1) * width
    corner, line, place = {  # of the upright picture: its first byte, the steps to the next line and place
        2: (width - 1, width, -1),
        3: (last_line + width - 1, -width, -1),
        4: (last_line, -width, 1),
        5: (0, 1, width),
        6: (last_line, 1, -width),
        7: (last_line + width - 1, -1, -width),
        8: (width - 1, -1, width),
    }.get(orientation, (0, width, 1))
    across, down, down_first = plan((height, width) if orientation >= 5 else size, fit)
    first, second = (down, across) if down_first else (across, down)
    if down_first:
        line, place = place, line
    row = (
        0, 0, width, height, *sampling, line, place,
        0, len(first.weights), first.first.size, 0, len(second.weights), second.first.size,
        second.end - second.start, second.start, 0, across.first.size, down.first.size, down_first,
        corner, 0,
    )  # fmt: skip
    return row, (first, second)


# Triton reads the source of its kernels: no types, no names of this module.


@triton.jit  # type: ignore[untyped-decorator]
def _colors(  # type: ignore[no-untyped-def]
    table, of_red: tl.constexpr, green_red: tl.constexpr, green_blue: tl.constexpr, of_blue: tl.constexpr,
    narrow: tl.constexpr, fields: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """Planes Y, Cb and Cr of pictures → their red, green and blue."""
    facts = table + tl.program_id(2) * fields
    width = tl.load(facts + 2)
    height = tl.load(facts + 3)
    across = tl.load(facts + 4)
    down = tl.load(facts + 5)
    top = tl.program_id(0) * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < height) & (left < width) & (across > 0):
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
        goal = tl.load(facts + 1).to(tl.pointer_type(tl.uint8)) + y * width + x
        byte = light + ((of_red * red + 32768) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)
        goal += width * height
        byte = light + ((32768 - green_red * red - green_blue * blue) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)
        goal += width * height
        byte = light + ((of_blue * blue + 32768) >> 16)
        tl.store(goal, tl.minimum(tl.maximum(byte, 0), 255).to(tl.uint8), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _first(  # type: ignore[no-untyped-def]
    table, weights, middle, half: tl.constexpr, bits: tl.constexpr,
    fields: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """The first pass of resizing, along lines: bytes of pictures → bytes in `middle`."""
    facts = table + tl.program_id(2) * fields
    places = tl.load(facts + 10)
    lines = tl.load(facts + 14)
    channel = tl.program_id(0) % 3
    top = tl.program_id(0) // 3 * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < lines) & (left < places):
        y = top + tl.arange(0, tile_lines)
        x = left + tl.arange(0, tile_places)
        within = x < places
        inside = (y < lines)[:, None] & within[None, :]
        axis = weights + tl.load(facts + 8)
        begin = tl.load(axis + x, mask=within, other=0).to(tl.int64)
        plane = tl.where(tl.load(facts + 4) > 0, channel * tl.load(facts + 2) * tl.load(facts + 3), 0)
        picture = tl.load(facts + 1).to(tl.pointer_type(tl.uint8)) + tl.load(facts + 20) + plane
        line = picture + ((tl.load(facts + 15) + y) * tl.load(facts + 6))[:, None]
        stride = tl.load(facts + 7)
        total = tl.full((tile_lines, tile_places), half, tl.int32)
        for tap in range(tl.load(facts + 9).to(tl.int32)):
            weight = tl.load(axis + (tap + 1) * places + x, mask=within, other=0)
            byte = tl.load(line + ((begin + tap) * stride)[None, :], mask=inside, other=0)
            total += byte.to(tl.int32) * weight[None, :]
        total = tl.minimum(tl.maximum(total >> bits, 0), 255)
        goal = middle + tl.load(facts + 16) + ((channel * lines + y) * places)[:, None] + x[None, :]
        tl.store(goal, total.to(tl.uint8), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _second(  # type: ignore[no-untyped-def]
    table, weights, middle, values, out, half: tl.constexpr, bits: tl.constexpr,
    fields: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """The second pass, across lines: bytes in `middle` → numbers in `out`."""
    picture = tl.program_id(2).to(tl.int64)
    facts = table + picture * fields
    places = tl.load(facts + 10)
    lines = tl.load(facts + 13)
    channel = tl.program_id(0) % 3
    top = tl.program_id(0) // 3 * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < lines) & (left < places):
        y = top + tl.arange(0, tile_lines)
        x = left + tl.arange(0, tile_places)
        within = y < lines
        inside = within[:, None] & (x < places)[None, :]
        axis = weights + tl.load(facts + 11)
        begin = tl.load(axis + y, mask=within, other=0) - tl.load(facts + 15)
        plane = middle + tl.load(facts + 16) + channel * tl.load(facts + 14) * places
        total = tl.full((tile_lines, tile_places), half, tl.int32)
        for tap in range(tl.load(facts + 12).to(tl.int32)):
            weight = tl.load(axis + (tap + 1) * lines + y, mask=within, other=0)
            byte = tl.load(plane + ((begin + tap) * places)[:, None] + x[None, :], mask=inside, other=0)
            total += byte.to(tl.int32) * weight[:, None]
        total = tl.minimum(tl.maximum(total >> bits, 0), 255)
        number = tl.load(values + channel * 256 + total)
        width = tl.load(facts + 17)
        height = tl.load(facts + 18)
        swapped = tl.load(facts + 19)
        goal = out + (picture * 3 + channel) * height * width
        goal += (y * (width + swapped * (1 - width)))[:, None] + (x * (1 + swapped * (width - 1)))[None, :]
        tl.store(goal, number, mask=inside)
