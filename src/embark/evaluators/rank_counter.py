"""Counts, tile by tile, how many documents rank before each relevant one.

Only scores that are near or above the relevant document's own score are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from embark.evaluators.backend import Cuda
from embark.types import Array

MANY = 24  # with more relevant documents a query, looking up sorted scores is faster than comparing
WAITING = 1 << 12  # undecided comparisons that are collected: exact scores are cheaper many at once
AT_ONCE = 1 << 17  # undecided comparisons decided at once; there are many where all documents score alike


class RankCounter:
    """The number of documents that rank before each pair of (row of a query, relevant document).

    Pairs are sorted by row, then by the pair's own score; every row has at least one pair. `exact` returns the exact
    scores of (row, document); documents with equal scores are ordered by their `place`. A pair is not counted further
    once `depth` documents rank before it. Several threads may count at once, in any order.
    """

    def __init__(
        self,
        row: Array,
        document: Array,
        own: Array,
        exact: Callable[[Array, Array], Array],
        place: Array,
        depth: int,
    ) -> None:
        self.row = row
        self.document = document
        self.own = own
        self.exact = exact
        self.place = place
        self.depth = depth
        pairs = np.bincount(row)
        self.first = np.cumsum(pairs) - pairs  # first pair of each row
        self.last = np.cumsum(pairs) - 1
        n = np.arange(min(pairs.max(), MANY + 1))[:, None]
        self.nth_pairs = np.where(n < pairs, self.first + n, len(row))  # n-th pair of a row
        self.beaten_by = np.zeros(len(row), np.int64)
        self.undecided: list[tuple[Array, Array]] = []  # (pair, document)
        self.best = document[self.last]  # best document of each row so far …
        self.best_score = np.full(len(pairs), -np.inf, np.float32)  # … and its score
        self.lock = Lock()

    @property
    def few(self) -> bool:
        """Whether rows have so few pairs that scores are compared with each of them."""
        return len(self.nth_pairs) <= MANY

    def threshold(self, low: Array) -> Array:
        """For each row, the lowest score that can change a count, else the row's best document."""
        lowest = np.minimum.reduceat(np.where(self.beaten_by < self.depth, low, np.float32(np.inf)), self.first)
        return np.where(lowest == np.inf, np.maximum(self.best_score, low[self.last]), lowest)

    def count(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        """Count the documents that score above a pair's `high`; those from `low` to `high` are undecided."""
        self._update_best(row, document, score, low)
        if self.few:
            self._compare(row, document, score, low, high)
        else:
            self._look_up(row, document, score, low, high)

    def count_all(self, backend: Cuda, scores: Any, start: int, low: Array, high: Array) -> None:
        """Count all scores of a tile, whose first document is `start`, on the backend's device.

        That takes a few passes over the scores for each pair of a row, and hands over the undecided ones alone.
        """
        document, row, score = backend.best(scores, np.maximum(self.best_score, low[self.last]))
        self._update_best(row, start + document, score, low)
        low, high = (np.append(bound, np.float32(np.inf)) for bound in (low, high))  # a missing pair is never outranked
        for pair in self.nth_pairs:
            above, document, row = backend.count(scores, low[pair], high[pair])
            exists = pair < len(self.beaten_by)
            self.beaten_by[pair[exists]] += above[exists]
            unsure = np.flatnonzero(np.append(self.beaten_by < self.depth, False)[pair[row]])
            self._postpone(pair[row[unsure]], start + document[unsure])

    def _update_best(self, row: Array, document: Array, score: Array, low: Array) -> None:
        """Update each row's best document, ties by place; documents below the row's best pair are ignored."""
        leading = np.flatnonzero(score >= np.maximum(self.best_score, low[self.last])[row])
        highest = np.full(len(self.best_score), -np.inf, np.float32)
        np.maximum.at(highest, row[leading], score[leading])
        leading = leading[score[leading] == highest[row[leading]]]  # before they are sorted: few of many
        row, document, score = row[leading], document[leading], score[leading]
        order = np.lexsort((-self.place[document], row))  # of equal rows, the last assignment below counts
        row, document, score = row[order], document[order], score[order]
        with self.lock:
            wins = _before(score, self.place[document], self.best_score[row], self.place[self.best[row]])
            self.best[row[wins]] = document[wins]
            self.best_score[row[wins]] = score[wins]

    def _compare(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        """Count by comparing with every row's first pair, then every row's second, and so on."""
        low, high = (np.append(bound, np.float32(np.inf)) for bound in (low, high))  # a missing pair is never outranked
        for n, pair in enumerate(self.nth_pairs):
            if n:  # scores below this pair cannot reach the row's later pairs either
                reach = np.flatnonzero(score >= low[pair][row])
                row, document, score = row[reach], document[reach], score[reach]
            unsure = np.flatnonzero(score <= high[pair][row])
            above = np.bincount(row, minlength=len(pair)) - np.bincount(row[unsure], minlength=len(pair))
            exists = pair < len(self.beaten_by)
            with self.lock:
                self.beaten_by[pair[exists]] += above[exists]
            counted = np.append(self.beaten_by < self.depth, False)[pair]
            unsure = unsure[counted[row[unsure]]]
            self._postpone(pair[row[unsure]], document[unsure])

    def _look_up(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        """Count by looking every pair up in the sorted scores of its row."""
        key = _key(row, score)
        order = np.argsort(key)
        key = key[order]
        pair = np.flatnonzero(self.beaten_by < self.depth)
        start = np.searchsorted(key, _key(self.row[pair], low[pair]))
        stop = np.searchsorted(key, _key(self.row[pair], high[pair]), side="right")
        end = np.searchsorted(key, _key(self.row[pair], np.full(len(pair), np.inf, np.float32)))
        with self.lock:
            self.beaten_by[pair] += end - stop
        size = stop - start
        for group in np.split(np.arange(len(pair)), np.flatnonzero(np.diff(np.cumsum(size) // AT_ONCE)) + 1):
            before = np.cumsum(size[group]) - size[group]
            positions = np.arange(size[group].sum()) + np.repeat(start[group] - before, size[group])
            self._postpone(np.repeat(pair[group], size[group]), document[order[positions]])

    def _postpone(self, pair: Array, document: Array) -> None:
        with self.lock:
            self.undecided.append((pair, document))
            waiting = sum(len(pairs) for pairs, _ in self.undecided)
        if waiting > WAITING:
            self.settle()

    def settle(self) -> None:
        """Decide the undecided comparisons by exact scores."""
        with self.lock:
            undecided, self.undecided = self.undecided, []
        if not undecided:
            return
        pair, document = (np.concatenate(column) for column in zip(*undecided, strict=True))
        rival = document != self.document[pair]
        pair, document = pair[rival], document[rival]
        for start in range(0, len(pair), AT_ONCE):
            self._decide(pair[start : start + AT_ONCE], document[start : start + AT_ONCE])

    def _decide(self, pair: Array, document: Array) -> None:
        cell, back = np.unique(self.row[pair] * len(self.place) + document, return_inverse=True)  # pairs may share it
        score = self.exact(*np.divmod(cell, len(self.place)))[back]
        wins = _before(score, self.place[document], self.own[pair], self.place[self.document[pair]])
        counts = np.bincount(pair[wins], minlength=len(self.beaten_by))
        with self.lock:
            self.beaten_by += counts


def _before(score: Array, place: Array, other_score: Array, other_place: Array) -> Array:
    """Whether a document ranks before the other: by score, then by place."""
    return np.asarray((score > other_score) | ((score == other_score) & (place < other_place)))


def _key(row: Array, score: Array) -> Array:
    """One number that rises with the row, and within a row with the score."""
    return np.asarray(row.astype(np.uint64) << np.uint64(32) | rising(score))


def rising(score: Array) -> Array:
    """Whole numbers of 32 bits that rise with the scores."""
    bits = (score + np.float32(0)).view(np.uint32)  # adding zero turns -0 into 0
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
