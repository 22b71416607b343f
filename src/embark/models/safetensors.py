"""Weights in the safetensors layout: the length of a JSON header in 8 bytes, the header, then the raw numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from embark.types import Array, EmbarkError


def save_weights(arrays: Mapping[str, Array], path: Path | str) -> None:
    """Write arrays in half precision, in their order."""
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + 2 * array.size
        header[name] = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [start, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)  # so that the numbers are aligned
    body = (np.ascontiguousarray(array, "<f2").tobytes() for array in arrays.values())
    Path(path).write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *body]))


def load_weights(path: Path | str) -> dict[str, Array]:
    """Every array of a file, as float32."""
    raw = Path(path).read_bytes()
    body = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:body])
    header.pop("__metadata__", None)
    return {name: _array(raw, body, name, **facts) for name, facts in header.items()}


def _array(raw: bytes, body: int, name: str, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    kinds = {"F16": "<f2", "F32": "<f4", "BF16": "<u2"}
    if dtype not in kinds:
        raise EmbarkError(f"Weights '{name}' are stored as {dtype}; convert them to one of {', '.join(kinds)}.")
    numbers = np.frombuffer(raw, kinds[dtype], prod(shape), body + data_offsets[0]).reshape(shape)
    if dtype == "BF16":  # the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)
