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

    threads: bool  # several threads may each use it on their own queries
    height: int  # queries a tile, at most: documents are read once for so many
    scores: int  # of a tile: they stay in cache while they are compared, or keep a device busy

    def load(self, rows: Any) -> Any:
        """Numbers on the device."""

    def columns(self, rows: Array) -> Any:
        """Queries, loaded and turned to stand beside one another."""

    def product(self, rows: Any, columns: Any) -> Any:
        """Scores: a row a document, a column a query."""

    def kth_best(self, scores: Any, k: int) -> Array:
        """The k-th largest score of each query."""

    def reaching(self, scores: Any, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """(document, query, score) of every score not below its query's bar, by rising document; None if too many."""


class Numpy:
    """The backend that is always there."""

    threads, height, scores = True, 2048, 1 << 21

    def load(self, rows: Any) -> Array:
        """As it is."""
        return np.asarray(rows)

    def columns(self, rows: Array) -> Array:
        """Copied: a product needs not turn them again for every tile."""
        return np.ascontiguousarray(rows.T)

    def product(self, rows: Array, columns: Array) -> Array:
        """One GEMM."""
        return np.asarray(rows @ columns)

    def kth_best(self, scores: Array, k: int) -> Array:
        """By partition; among fewer scores there is none."""
        if len(scores) < k:
            return np.full(scores.shape[1], -np.inf, np.float32)
        return np.asarray(np.partition(np.ascontiguousarray(scores.T), -k, axis=1)[:, -k])

    def reaching(self, scores: Array, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """One pass."""
        if (at := _where((scores >= bar).ravel(), most)) is None:
            return None
        document = at // scores.shape[1]
        return document, at - document * scores.shape[1], scores.ravel()[at]


def _where(flags: Array, most: int | None) -> Array | None:
    """As flatnonzero, but eight flags at a glance, because few are set; None if more than `most` are."""
    whole = len(flags) // 8 * 8
    eights = flags[:whole].view(np.uint64)
    some = np.flatnonzero(eights != 0)
    if most is not None and 8 * len(some) + 7 > most and np.count_nonzero(flags) > most:
        return None
    if 2 * len(some) > len(eights):
        return np.flatnonzero(flags)
    set_ = np.flatnonzero(eights[some].view(bool))
    at = 8 * some[set_ >> 3] + (set_ & 7)
    return at if whole == len(flags) else np.append(at, whole + np.flatnonzero(flags[whole:]))


class Torch:
    """The same on torch tensors; on CUDA where there is a device."""

    threads = False

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        cuda = self.device == "cuda"
        self.height, self.scores = (16_384, 1 << 26) if cuda else (Numpy.height, Numpy.scores)

    def load(self, rows: Any) -> Any:
        """To the device; nothing is copied on a CPU."""
        return rows.to(self.device) if isinstance(rows, self.torch.Tensor) else self._tensor(rows)

    def columns(self, rows: Array) -> Any:
        """A view: the GEMM turns them itself."""
        return self.load(rows).T

    def product(self, rows: Any, columns: Any) -> Any:
        """One GEMM, in full float32: models like to allow less, for the whole process."""
        with _PRECISION:
            allowed = self.torch.get_float32_matmul_precision()
            self.torch.set_float32_matmul_precision("highest")
            try:
                return rows @ columns
            finally:
                self.torch.set_float32_matmul_precision(allowed)

    def kth_best(self, scores: Any, k: int) -> Array:
        """By top-k; among fewer scores there is none."""
        if len(scores) < k:
            return np.full(scores.shape[1], -np.inf, np.float32)
        return np.asarray(scores.topk(k, dim=0).values[-1].cpu())

    def reaching(self, scores: Any, bar: Array, most: int | None = None) -> tuple[Array, Array, Array] | None:
        """One pass."""
        reach = scores >= self._tensor(bar)
        if most is not None and int(reach.sum()) > most:
            return None
        document, query = reach.nonzero(as_tuple=True)
        return np.asarray(document.cpu()), np.asarray(query.cpu()), np.asarray(scores[document, query].cpu())

    def _tensor(self, values: Array) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def backend_for(multiplications: float) -> Backend:
    """The fastest backend for so much work: a CUDA device where torch has one; on a CPU, numpy in threads is faster."""
    if "torch" in sys.modules or (multiplications > WORTH_TORCH and find_spec("torch")):
        import torch

        if torch.cuda.is_available():
            return Torch()
    return Numpy()
