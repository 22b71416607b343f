"""The array operations that take most of the time of scoring, on numpy or torch.

torch is used on a CUDA device, if it has been imported already or if the work is worth its start-up time.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from embark.types import Array

_PRECISION = Lock()
SHORT = 1e-15  # the square of a shorter length is zero in float32
WORTH_TORCH = 2e12  # multiplications from which importing torch (seconds) pays off


class Numpy:
    """Numpy on the CPU; it is always available.

    A backend's score matrices are arrays of its own; everything else is returned as numpy arrays.
    """

    threads = True  # whether several threads may use it at once, each on its own queries
    height = 2048  # largest number of queries in a tile; they share one pass over the documents
    scores = 1 << 21  # largest number of scores in a tile: few enough for a CPU's cache, enough for a GPU

    def load(self, rows: Any) -> Array:
        """The rows on the backend's device; here as they are."""
        return np.asarray(rows)

    def columns(self, rows: Array) -> Array:
        """Query rows, loaded and transposed; here as a copy, so that no product has to transpose them again."""
        return np.ascontiguousarray(rows.T)

    def product(self, rows: Array, columns: Array) -> Array:
        """The score matrix: a row for each document, a column for each query; here one GEMM."""
        return np.asarray(rows @ columns)

    def kth_best(self, scores: Array, k: int) -> Array:
        """The k-th largest score of each query, which has at least k scores; here by np.partition."""
        return np.asarray(np.partition(np.ascontiguousarray(scores.T), -k, axis=1)[:, -k])

    def at_least(self, scores: Array, threshold: Array, limit: int | None = None) -> tuple[Array, Array, Array] | None:
        """(document, query, score) of every score that is at least its query's threshold, in order of documents.

        None if there are more than `limit` of them.
        """
        positions = _where((scores >= threshold).ravel(), limit)
        if positions is None:
            return None
        document = positions // scores.shape[1]
        return document, positions - document * scores.shape[1], scores.ravel()[positions]


def _where(flags: Array, limit: int | None) -> Array | None:
    """As np.flatnonzero, but for eight flags at a time, because few are set; None if more than `limit` are set."""
    end = len(flags) // 8 * 8
    words = flags[:end].view(np.uint64)
    nonzero = np.flatnonzero(words != 0)
    if limit is not None and 8 * len(nonzero) + 7 > limit and np.count_nonzero(flags) > limit:
        return None
    if 2 * len(nonzero) > len(words):
        return np.flatnonzero(flags)
    bits = np.flatnonzero(words[nonzero].view(bool))
    positions = 8 * nonzero[bits >> 3] + (bits & 7)
    return positions if end == len(flags) else np.append(positions, end + np.flatnonzero(flags[end:]))


class Torch:
    """Torch tensors, on CUDA where there is a device."""

    threads = False
    height = Numpy.height
    scores = Numpy.scores

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def load(self, rows: Any) -> Any:
        """The rows on the device; nothing is copied on a CPU."""
        return rows.to(self.device) if isinstance(rows, self.torch.Tensor) else self._tensor(rows)

    def columns(self, rows: Array) -> Any:
        """A transposed view: the GEMM needs no copy."""
        return self.load(rows).T

    def product(self, rows: Any, columns: Any) -> Any:
        """One GEMM in full float32, even if a model has allowed less precision for the whole process."""
        with _PRECISION:
            allowed = self.torch.get_float32_matmul_precision()
            self.torch.set_float32_matmul_precision("highest")
            try:
                return rows @ columns
            finally:
                self.torch.set_float32_matmul_precision(allowed)

    def kth_best(self, scores: Any, k: int) -> Array:
        """The k-th largest score of each query, by torch.topk."""
        return np.asarray(scores.topk(k, dim=0).values[-1].cpu())

    def at_least(self, scores: Any, threshold: Array, limit: int | None = None) -> tuple[Array, Array, Array] | None:
        """One pass over the scores."""
        reach = scores >= self._tensor(threshold)
        if limit is not None and int(reach.sum()) > limit:
            return None
        document, query = reach.nonzero(as_tuple=True)
        return np.asarray(document.cpu()), np.asarray(query.cpu()), np.asarray(scores[document, query].cpu())

    def _tensor(self, values: Array) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


class Cuda(Torch):
    """Torch on a GPU: it scales documents and counts scores where they are, instead of handing over those that count.

    Its products are larger, because a GPU is idle between them.
    """

    height = 32_768
    scores = 1 << 27

    def block(self, vectors: Any, start: int, stop: int, unit: bool) -> tuple[Any, float] | None:
        """Rows on the device in float32, of unit length where asked, and the length of the longest row.

        None where a row is not finite, or too short for float32.
        """
        rows = self.load(np.asarray(vectors[start:stop])).float()
        length = rows.square().sum(dim=1).sqrt()
        shortest, longest = (float(end) for end in length.aminmax())
        if not np.isfinite(longest) or (unit and shortest < SHORT):
            return None
        return (rows / length[:, None] if unit else rows), longest

    def count(self, scores: Any, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """How many scores of each query are above `high`, and (document, query) of those from `low` to `high`."""
        above = scores > self._tensor(high)
        document, query = ((scores >= self._tensor(low)) ^ above).nonzero(as_tuple=True)
        return np.asarray(above.sum(dim=0).cpu()), np.asarray(document.cpu()), np.asarray(query.cpu())

    def best(self, scores: Any, threshold: Array) -> tuple[Array, Array, Array]:
        """(document, query, score) of the largest score of each query, all that are equal, if it is at least the
        query's threshold.
        """
        largest = scores.amax(dim=0)
        queries = (largest >= self._tensor(threshold)).nonzero()[:, 0]
        document, place = (scores[:, queries] == largest[queries]).nonzero(as_tuple=True)
        query = queries[place]
        return np.asarray(document.cpu()), np.asarray(query.cpu()), np.asarray(largest[query].cpu())


Backend = Numpy | Torch


def backend_for(multiplications: float) -> Backend:
    """The fastest backend for this much work: torch on a CUDA device, else numpy, which is faster on a CPU."""
    if "torch" in sys.modules or (multiplications > WORTH_TORCH and find_spec("torch")):
        import torch

        if torch.cuda.is_available():
            return Cuda()
    return Numpy()
