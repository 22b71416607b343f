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
    """Score matrices are the backend's own arrays; counts, positions and values come back as numpy."""

    threads: bool  # several threads may each use it on their own rows
    height: int  # queries a tile: scores stay in cache while they are compared, or keep a device busy
    wide: int  # times as many documents a tile as on a CPU

    def load(self, rows: Any) -> Any:
        """Numbers on the device."""

    def product(self, a: Any, b: Any) -> Any:
        """a @ b.T"""

    def above(self, scores: Any, row: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """For each (row, low, high): how many scores of the row are above high; (which, column) of those between."""

    def largest(self, scores: Any) -> Array:
        """Each row's largest score."""

    def best(self, scores: Any, rows: Array) -> Array:
        """The first column that has the row's largest score, for some rows."""

    def kth_best(self, scores: Any, k: int) -> Array:
        """The k-th largest score of each row."""

    def reaching(self, scores: Any, threshold: Array, most: int | None = None) -> tuple[Array, Array] | None:
        """(flat position, score) of every score not below its row's threshold, rising; None if more than `most` are."""


class Numpy:
    """The backend that is always there."""

    threads, height, wide = True, 1024, 1

    def load(self, rows: Any) -> Array:
        """As it is."""
        return np.asarray(rows)

    def product(self, a: Array, b: Array) -> Array:
        """One GEMM."""
        return np.asarray(a @ b.T)

    def above(self, scores: Array, row: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Two comparisons; what lies between the bounds differs in them."""
        mine = scores if len(row) == len(scores) and (row == np.arange(len(row))).all() else scores[row]
        over = mine > high[:, None]
        between = np.flatnonzero(over != (mine >= low[:, None]))
        which, column = np.divmod(between, scores.shape[1])
        return np.count_nonzero(over, axis=1), which, column

    def largest(self, scores: Array) -> Array:
        """One pass."""
        return np.asarray(scores.max(axis=1))

    def best(self, scores: Array, rows: Array) -> Array:
        """One pass over those rows."""
        return np.asarray(scores[rows].argmax(axis=1))

    def kth_best(self, scores: Array, k: int) -> Array:
        """By partition; a row of fewer scores has no threshold."""
        if scores.shape[1] < k:
            return np.full(len(scores), -np.inf, np.float32)
        return np.asarray(np.partition(scores, -k, axis=1)[:, -k])

    def reaching(self, scores: Array, threshold: Array, most: int | None = None) -> tuple[Array, Array] | None:
        """One pass."""
        reach = scores >= threshold[:, None]
        if most is not None and np.count_nonzero(reach) > most:
            return None
        at = np.flatnonzero(reach)
        return at, scores.ravel()[at]


class Torch:
    """The same on torch tensors; on CUDA where there is a device."""

    threads = False

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.wide = 8 if self.device == "cuda" else 1
        self.height = 16_384 if self.device == "cuda" else Numpy.height  # documents are sent once for so many queries

    def load(self, rows: Any) -> Any:
        """To the device; nothing is copied on a CPU."""
        return rows.to(self.device) if isinstance(rows, self.torch.Tensor) else self._tensor(rows)

    def product(self, a: Any, b: Any) -> Any:
        """One GEMM, in full float32: models like to allow less, for the whole process."""
        with _PRECISION:
            allowed = self.torch.get_float32_matmul_precision()
            self.torch.set_float32_matmul_precision("highest")
            try:
                return a @ b.T
            finally:
                self.torch.set_float32_matmul_precision(allowed)

    def above(self, scores: Any, row: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Two comparisons; what lies between the bounds differs in them."""
        mine = scores if len(row) == len(scores) and (row == np.arange(len(row))).all() else scores[self._tensor(row)]
        over = mine > self._tensor(high)[:, None]
        which, column = (over != (mine >= self._tensor(low)[:, None])).nonzero(as_tuple=True)
        return np.asarray(over.sum(1).cpu()), np.asarray(which.cpu()), np.asarray(column.cpu())

    def largest(self, scores: Any) -> Array:
        """One pass."""
        return np.asarray(scores.amax(dim=1).cpu())

    def best(self, scores: Any, rows: Array) -> Array:
        """One pass over those rows."""
        return np.asarray(scores[self._tensor(rows)].argmax(dim=1).cpu())

    def kth_best(self, scores: Any, k: int) -> Array:
        """By top-k; a row of fewer scores has no threshold."""
        if scores.shape[1] < k:
            return np.full(len(scores), -np.inf, np.float32)
        return np.asarray(scores.topk(k, dim=1).values[:, -1].cpu())

    def reaching(self, scores: Any, threshold: Array, most: int | None = None) -> tuple[Array, Array] | None:
        """One pass."""
        reach = scores >= self._tensor(threshold)[:, None]
        if most is not None and int(reach.sum()) > most:
            return None
        at = reach.view(-1).nonzero().squeeze(1)
        return np.asarray(at.cpu()), np.asarray(scores.reshape(-1)[at].cpu())

    def _tensor(self, values: Array) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def backend_for(multiplications: float) -> Backend:
    """The fastest backend for so much work: a CUDA device where torch has one; on a CPU, numpy in threads is faster."""
    if "torch" in sys.modules or (multiplications > WORTH_TORCH and find_spec("torch")):
        import torch

        if torch.cuda.is_available():
            return Torch()
    return Numpy()
