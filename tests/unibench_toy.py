"""A toy model of texts and pictures for both sides of the comparison with UniBench; it imports numpy alone.

A text's vector depends on each byte and its place, so on case and white space; a picture's vector on all its pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DIM = 16
SIDE = 224
CELL = 16  # pixels along a side of a cell, whose mean is one number of the picture
PLACES = 61

_rng = np.random.default_rng(29)
_BYTES = _rng.normal(size=(256, DIM))
_WEIGHTS = _rng.uniform(0.5, 1.5, size=(PLACES, 1))
_PIXELS = _rng.normal(size=(3 * (SIDE // CELL) ** 2, DIM))


def text_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """(texts, DIM); an empty text has a vector, too."""
    rows = []
    for text in texts:
        read = np.frombuffer(text.encode() + b"\n", np.uint8)
        rows.append((_BYTES[read] * _WEIGHTS[np.arange(len(read)) % PLACES]).sum(axis=0))
    return np.array(rows, np.float32)


def picture_vectors(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(pictures, DIM) of (pictures, 3, SIDE, SIDE) scaled pixels."""
    count = SIDE // CELL
    cells = np.asarray(pixels, np.float64).reshape(-1, 3, count, CELL, count, CELL).mean(axis=(3, 5))
    return np.asarray(cells.reshape(len(cells), -1) @ _PIXELS, np.float32)
