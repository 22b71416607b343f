"""The few array operations that scoring spends its time in, on numpy or torch.

torch is used where it has a CUDA device and the work is worth its start-up, or where it has been imported already.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol

import numpy as np

from embark.types import Array

_PRECISION = Lock()
WORTH_TORCH = 2e12  # multiplications from which importing torch (seconds) pays off


class Backend(Protocol):
    """What a backend offers. Score matrices are its own kind of array; all else comes back as numpy arrays."""

    threads: bool  # whether several threads may use it at once, each on its own queries
    height: int  # most queries of a tile: documents are read once for so many
    scores: int  # most scores of a tile: they stay in cache while they are compared, or keep a device busy

    def load(self, rows: Any) -> Any:
        """The rows on the backend's device."""

    def columns(self, rows: Array) -> Any:
        """Query rows, loaded and transposed."""

    def product(self, rows: Any, columns: Any) -> Any:
        """The score matrix: a row for each document, a column for each query."""

    def kth_best(self, scores: Any, k: int) -> Array:
        """The k-th largest score of each query, which has at least k."""

    def reaching(self, scores: Any, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """(document, query, score) of every score not below its query's bar, by rising document.

        None where they are more than `most`.
        """


class Numpy:
    """Numpy on the CPU; it is always available."""

    threads = True
    height = 2048
    scores = 1 << 21

    def load(self, rows: Any) -> Array:
        """The rows as they are."""
        return np.asarray(rows)

    def columns(self, rows: Array) -> Array:
        """A transposed copy, so that no product has to transpose them again."""
        return np.ascontiguousarray(rows.T)

    def product(self, rows: Array, columns: Array) -> Array:
        """One GEMM."""
        return np.asarray(rows @ columns)

    def kth_best(self, scores: Array, k: int) -> Array:
        """By partition."""
        return np.asarray(np.partition(np.ascontiguousarray(scores.T), -k, axis=1)[:, -k])

    def reaching(self, scores: Array, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """One pass over the scores."""
        positions = _where((scores >= bar).ravel(), most)
        if positions is None:
            return None
        document = positions // scores.shape[1]
        return document, positions - document * scores.shape[1], scores.ravel()[positions]


def _where(flags: Array, most: int | None) -> Array | None:
    """As flatnonzero, but eight flags at a time, because few are set; None if more than `most` are."""
    end = len(flags) // 8 * 8
    words = flags[:end].view(np.uint64)
    nonzero = np.flatnonzero(words != 0)
    if most is not None and 8 * len(nonzero) + 7 > most and np.count_nonzero(flags) > most:
        return None
    if 2 * len(nonzero) > len(words):
        return np.flatnonzero(flags)
    bits = np.flatnonzero(words[nonzero].view(bool))
    positions = 8 * nonzero[bits >> 3] + (bits & 7)
    return positions if end == len(flags) else np.append(positions, end + np.flatnonzero(flags[end:]))


class Torch:
    """Torch tensors, on CUDA where there is a device."""

    threads = False

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        cuda = self.device == "cuda"
        self.height = 16_384 if cuda else Numpy.height
        self.scores = 1 << 26 if cuda else Numpy.scores

    def load(self, rows: Any) -> Any:
        """The rows on the device; nothing is copied on a CPU."""
        return rows.to(self.device) if isinstance(rows, self.torch.Tensor) else self._tensor(rows)

    def columns(self, rows: Array) -> Any:
        """A transposed view: the GEMM needs no copy."""
        return self.load(rows).T

    def product(self, rows: Any, columns: Any) -> Any:
        """One GEMM, in full float32: models may have allowed less for the whole process."""
        with _PRECISION:
            allowed = self.torch.get_float32_matmul_precision()
            self.torch.set_float32_matmul_precision("highest")
            try:
                return rows @ columns
            finally:
                self.torch.set_float32_matmul_precision(allowed)

    def kth_best(self, scores: Any, k: int) -> Array:
        """By top-k."""
        return np.asarray(scores.topk(k, dim=0).values[-1].cpu())

    def reaching(self, scores: Any, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """One pass over the scores."""
        reach = scores >= self._tensor(bar)
        if most is not None and int(reach.sum()) > most:
            return None
        document, query = reach.nonzero(as_tuple=True)
        return np.asarray(document.cpu()), np.asarray(query.cpu()), np.asarray(scores[document, query].cpu())

    def _tensor(self, values: Array) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def backend_for(multiplications: float) -> Backend:
    """The fastest backend for this much work: torch on a CUDA device, else numpy, which is faster on a CPU."""
    if "torch" in sys.modules or (multiplications > WORTH_TORCH and find_spec("torch")):
        import torch

        if torch.cuda.is_available():
            return Torch()
    return Numpy()
