"""The resizing of `resampling` as two kernels for a whole batch of pictures of any sizes, in Triton.

The pictures stay where the decoder put them: the kernels get their addresses, strides and weights in one table, which
goes to the device in one copy. A picture that is resized down first is read, and written, with its sides swapped.
"""

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from embark.models.pixels import Fit
from embark.models.resampling import BITS, HALF, Axis, plan

FIELDS = 14  # of a picture's row in the table: see `resize`
LINES, PLACES = 8, 64  # of the tile that a program computes


def resize(pictures: list[Any], fit: Fit, values: Any) -> Any:
    """(n, 3, height, width) of the numbers of bytes, from pictures (3, height, width) of bytes on one device.

    `values` (3, 256) are the numbers of each channel's bytes.
    """
    device = values.device
    table = np.empty((len(pictures), FIELDS), np.int64)
    where: dict[Axis, int] = {}  # the weights begin there, behind the table
    words = room = most_lines = 0
    for row, picture in enumerate(pictures):
        across, down, down_first = plan((picture.shape[2], picture.shape[1]), fit)
        for axis in (across, down):
            if axis not in where:
                where[axis] = words
                words += axis.first.size + axis.weights.size
        width = across.first.size
        first, second = (down, across) if down_first else (across, down)
        plane, line, place = picture.stride()
        lines = second.end - second.start
        table[row] = (
            picture.data_ptr(), plane, *((place, line) if down_first else (line, place)),
            where[first], len(first.weights), first.first.size,
            where[second], len(second.weights), second.first.size, second.start,
            lines, room, down_first,
        )  # fmt: skip
        room += 3 * lines * first.first.size
        most_lines = max(most_lines, lines)
    height = down.first.size
    longest = max(height, width)
    host = torch.empty(2 * table.size + words, dtype=torch.int32, pin_memory=device.type == "cuda")
    numbers = host.numpy()
    numbers[: 2 * table.size] = table.reshape(-1).view(np.int32)
    np.concatenate(
        [part for axis in where for part in (axis.first, axis.weights.reshape(-1))], out=numbers[2 * table.size :]
    )
    moved = host.to(device, non_blocking=True)
    facts = moved[: 2 * table.size].view(torch.int64)
    weights = moved[2 * table.size :]
    middle = torch.empty(room, dtype=torch.uint8, device=device)
    out = torch.empty((len(pictures), 3, height, width), dtype=values.dtype, device=device)
    constants = FIELDS, HALF, BITS, LINES, PLACES
    across_tiles = triton.cdiv(longest, PLACES)
    with torch.cuda.device_of(values):
        _first[3 * triton.cdiv(most_lines, LINES), across_tiles, len(pictures)](facts, weights, middle, *constants)
        _second[3 * triton.cdiv(longest, LINES), across_tiles, len(pictures)](
            facts, weights, middle, values, out, width, height, *constants
        )
    return out


# Triton reads the source of its kernels: no types, no names of this module.


@triton.jit  # type: ignore[untyped-decorator]
def _first(  # type: ignore[no-untyped-def]
    table, weights, middle,
    fields: tl.constexpr, half: tl.constexpr, bits: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """The first pass, along lines: bytes of pictures → bytes in `middle`."""
    facts = table + tl.program_id(2) * fields
    places = tl.load(facts + 6)
    lines = tl.load(facts + 11)
    channel = tl.program_id(0) % 3
    top = tl.program_id(0) // 3 * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < lines) & (left < places):
        y = top + tl.arange(0, tile_lines)
        x = left + tl.arange(0, tile_places)
        within = x < places
        inside = (y < lines)[:, None] & within[None, :]
        axis = weights + tl.load(facts + 4)
        begin = tl.load(axis + x, mask=within, other=0).to(tl.int64)
        picture = tl.load(facts).to(tl.pointer_type(tl.uint8)) + channel * tl.load(facts + 1)
        line = picture + ((tl.load(facts + 10) + y) * tl.load(facts + 2))[:, None]
        stride = tl.load(facts + 3)
        total = tl.full((tile_lines, tile_places), half, tl.int32)
        for tap in range(tl.load(facts + 5).to(tl.int32)):
            weight = tl.load(axis + (tap + 1) * places + x, mask=within, other=0)
            byte = tl.load(line + ((begin + tap) * stride)[None, :], mask=inside, other=0)
            total += byte.to(tl.int32) * weight[None, :]
        total = tl.minimum(tl.maximum(total >> bits, 0), 255)
        goal = middle + tl.load(facts + 12) + ((channel * lines + y) * places)[:, None] + x[None, :]
        tl.store(goal, total.to(tl.uint8), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _second(  # type: ignore[no-untyped-def]
    table, weights, middle, values, out, width, height,
    fields: tl.constexpr, half: tl.constexpr, bits: tl.constexpr, tile_lines: tl.constexpr, tile_places: tl.constexpr,
):  # fmt: skip
    """The second pass, across lines: bytes in `middle` → numbers in `out`."""
    number_of_picture = tl.program_id(2).to(tl.int64)
    facts = table + number_of_picture * fields
    places = tl.load(facts + 6)
    lines = tl.load(facts + 9)
    channel = tl.program_id(0) % 3
    top = tl.program_id(0) // 3 * tile_lines
    left = tl.program_id(1) * tile_places
    if (top < lines) & (left < places):
        y = top + tl.arange(0, tile_lines)
        x = left + tl.arange(0, tile_places)
        within = y < lines
        inside = within[:, None] & (x < places)[None, :]
        axis = weights + tl.load(facts + 7)
        begin = tl.load(axis + y, mask=within, other=0) - tl.load(facts + 10)
        plane = middle + tl.load(facts + 12) + channel * tl.load(facts + 11) * places
        total = tl.full((tile_lines, tile_places), half, tl.int32)
        for tap in range(tl.load(facts + 8).to(tl.int32)):
            weight = tl.load(axis + (tap + 1) * lines + y, mask=within, other=0)
            byte = tl.load(plane + ((begin + tap) * places)[:, None] + x[None, :], mask=inside, other=0)
            total += byte.to(tl.int32) * weight[:, None]
        total = tl.minimum(tl.maximum(total >> bits, 0), 255)
        number = tl.load(values + channel * 256 + total)
        swapped = tl.load(facts + 13)
        goal = out + (number_of_picture * 3 + channel) * height * width
        goal += (y * (width + swapped * (1 - width)))[:, None] + (x * (1 + swapped * (width - 1)))[None, :]
        tl.store(goal, number, mask=inside)
