"""The few array operations that scoring spends its time in, on numpy or torch (CPU or CUDA).

torch is used where it is installed and the work is worth its start-up, or where it has been imported already.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from embark.types import Array

TILE_ROWS, TILE_COLUMNS = 16, 64  # multiples of the tiles of every BLAS kernel we know
WORTH_TORCH = 2e11  # multiplications from which importing torch (seconds) pays off


class Backend(Protocol):
    """Score matrices are the backend's own arrays; counts, positions and values come back as numpy."""

    def load(self, rows: Any) -> Any:
        """Numbers on the device."""

    def product(self, a: Any, b: Any) -> Any:
        """a @ b.T"""

    def pick(self, scores: Any, row: Array, column: Array) -> Array:
        """The scores at some places."""

    def beside(self, parts: list[Any]) -> Any:
        """Score matrices of the same rows, joined."""

    def beaten_by(self, scores: Any, row: Array, score: Array, places: Array, place: Array, here: Array) -> Array:
        """For each (row, score, place): how many of the row's scores beat it; of equal ones, those of a lower place.

        `here` says whether the score itself is one of the row's, and so no tie.
        """

    def best(self, scores: Any, places: Array) -> tuple[Array, Array]:
        """Each row's largest score and the column that has it; of equal ones, that of the lowest place."""

    def kth_best(self, scores: Any, k: int) -> Array:
        """The k-th largest score of each row."""

    def at_least(self, scores: Any, threshold: Array) -> tuple[Array, Array, Array]:
        """(row, column, score) of every score that is not below its row's threshold."""

    def sorted_ranks(self, scores: Any, row: Array, column: Array, places: Array) -> Array:
        """Ranks (from 1) by sorting whole rows: cheaper than counting when a row has many wanted columns."""


class Numpy:
    """The backend that is always there."""

    def load(self, rows: Any) -> Array:
        """As it is."""
        return np.asarray(rows)

    def product(self, a: Array, b: Array) -> Array:
        """One GEMM of full tiles: at ragged edges BLAS adds in another order, and equal vectors would not tie."""
        rows, columns = len(a), len(b)
        return np.ascontiguousarray((_filled(a, TILE_ROWS) @ _filled(b, TILE_COLUMNS).T)[:rows, :columns])

    def pick(self, scores: Array, row: Array, column: Array) -> Array:
        """Fancy indexing."""
        return np.asarray(scores[row, column])

    def beside(self, parts: list[Array]) -> Array:
        """One copy."""
        return np.concatenate(parts, axis=1)

    def beaten_by(self, scores: Array, row: Array, score: Array, places: Array, place: Array, here: Array) -> Array:
        """Two passes over the rows, a third over those with ties."""
        mine = scores if len(row) == len(scores) and (row == np.arange(len(row))).all() else scores[row]
        count = np.count_nonzero(mine > score[:, None], axis=1)
        tied = np.flatnonzero(np.count_nonzero(mine >= score[:, None], axis=1) > count + here)
        count[tied] += np.count_nonzero((mine[tied] == score[tied, None]) & (places < place[tied, None]), axis=1)
        return np.asarray(count)

    def best(self, scores: Array, places: Array) -> tuple[Array, Array]:
        """Two passes, a third over rows with ties."""
        value, column = scores.max(axis=1), scores.argmax(axis=1)
        tied = np.flatnonzero(np.count_nonzero(scores == value[:, None], axis=1) > 1)
        column[tied] = np.where(scores[tied] == value[tied, None], places, 1 << 62).argmin(axis=1)
        return value, column

    def kth_best(self, scores: Array, k: int) -> Array:
        """By partition; a row of fewer scores has no threshold."""
        if scores.shape[1] < k:
            return np.full(len(scores), -np.inf, np.float32)
        return np.asarray(np.partition(scores, -k, axis=1)[:, -k])

    def at_least(self, scores: Array, threshold: Array) -> tuple[Array, Array, Array]:
        """One pass."""
        at = np.flatnonzero(scores >= threshold[:, None])
        row, column = np.divmod(at, scores.shape[1])
        return row, column, scores.ravel()[at]

    def sorted_ranks(self, scores: Array, row: Array, column: Array, places: Array) -> Array:
        """Columns in tie order and a stable sort."""
        tie_order = np.argsort(places)
        order = tie_order[np.argsort(-scores[:, tie_order], axis=1, kind="stable")]
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(1, scores.shape[1] + 1)[None], axis=1)
        return np.asarray(rank[row, column])


class Torch:
    """The same on torch tensors; on CUDA where there is a device."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def load(self, rows: Any) -> Any:
        """To the device; nothing is copied on a CPU."""
        return rows.to(self.device) if isinstance(rows, self.torch.Tensor) else self._tensor(rows)

    def product(self, a: Any, b: Any) -> Any:
        """One GEMM, in full float32: ranks hang on the last bits."""
        return a @ b.T

    def pick(self, scores: Any, row: Array, column: Array) -> Array:
        """Fancy indexing."""
        return np.asarray(scores[self._tensor(row), self._tensor(column)].cpu())

    def beside(self, parts: list[Any]) -> Any:
        """One copy."""
        return self.torch.cat(parts, dim=1)

    def beaten_by(self, scores: Any, row: Array, score: Array, places: Array, place: Array, here: Array) -> Array:
        """Two passes over the rows, a third over those with ties."""
        mine = scores if len(row) == len(scores) and (row == np.arange(len(row))).all() else scores[self._tensor(row)]
        own = self._tensor(score)[:, None]
        count = (mine > own).sum(1)
        tied = ((mine >= own).sum(1) > count + self._tensor(here)).nonzero().ravel()
        before = self._tensor(places) < self._tensor(place)[tied][:, None]
        count[tied] += ((mine[tied] == own[tied]) & before).sum(1)
        return np.asarray(count.cpu())

    def best(self, scores: Any, places: Array) -> tuple[Array, Array]:
        """Two passes, a third over rows with ties."""
        value, column = scores.max(dim=1)
        tied = ((scores == value[:, None]).sum(1) > 1).nonzero().ravel()
        equal = scores[tied] == value[tied][:, None]
        column[tied] = self.torch.where(equal, self._tensor(places), 1 << 62).argmin(dim=1)
        return np.asarray(value.cpu()), np.asarray(column.cpu())

    def kth_best(self, scores: Any, k: int) -> Array:
        """By top-k; a row of fewer scores has no threshold."""
        if scores.shape[1] < k:
            return np.full(len(scores), -np.inf, np.float32)
        return np.asarray(scores.topk(k, dim=1).values[:, -1].cpu())

    def at_least(self, scores: Any, threshold: Array) -> tuple[Array, Array, Array]:
        """One pass."""
        row, column = (scores >= self._tensor(threshold)[:, None]).nonzero(as_tuple=True)
        return np.asarray(row.cpu()), np.asarray(column.cpu()), np.asarray(scores[row, column].cpu())

    def sorted_ranks(self, scores: Any, row: Array, column: Array, places: Array) -> Array:
        """Columns in tie order and a stable sort."""
        tie_order = self._tensor(np.argsort(places))
        order = tie_order[scores[:, tie_order].sort(dim=1, descending=True, stable=True).indices]
        rank = self.torch.empty_like(order)
        rank.scatter_(
            1, order, self.torch.arange(1, order.shape[1] + 1, device=self.device).expand_as(order).contiguous()
        )
        return np.asarray(rank[self._tensor(row), self._tensor(column)].cpu())

    def _tensor(self, values: Array) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def _filled(rows: Array, tile: int) -> Array:
    """Rows of zeros added up to a multiple of the tile."""
    short = -len(rows) % tile
    return np.concatenate([rows, np.zeros((short, rows.shape[1]), rows.dtype)]) if short else rows


def backend_for(multiplications: float) -> Backend:
    """The fastest backend for so much work."""
    if "torch" in sys.modules or (multiplications > WORTH_TORCH and find_spec("torch")):
        return Torch()
    return Numpy()
