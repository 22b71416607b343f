"""Weights in the safetensors format: the length of a JSON header in 8 bytes, the header, the raw numbers."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np

from embark.types import Array, EmbarkError


def load_weights(path: Path | str) -> dict[str, Array]:
    """Every array of a file, as float32."""
    content = Path(path).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: _array(content, start, name, **facts) for name, facts in header.items()}


def _array(content: bytes, start: int, name: str, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    dtypes = {"F16": "<f2", "F32": "<f4", "BF16": "<u2"}
    if dtype not in dtypes:
        raise EmbarkError(f"Weights '{name}' are stored as {dtype}; convert them to one of {', '.join(dtypes)}.")
    numbers = np.frombuffer(content, dtypes[dtype], prod(shape), start + data_offsets[0]).reshape(shape)
    if dtype == "BF16":  # the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)
