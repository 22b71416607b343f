"""How many documents beat each relevant one, counted tile by tile from the few scores that reach any of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from embark.types import Array

MANY = 24  # relevant documents a query from which looking each up in sorted scores beats comparing one by one
WAITING = 1 << 12  # doubts that may wait: exact scores are cheaper many at once
AT_ONCE = 1 << 17  # doubts at a time: where a model gives all documents one score, each pair meets all of them


class Beaten:
    """Pairs of a query's row and a relevant document, by rising row and then by rising score of their own.

    Every row has a pair. `exact` scores (row, document) beyond doubt; equal scores are ordered by the documents' place.
    A pair that `depth` documents beat is left alone. Several threads may count their documents at once, in any order.
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
        self.row, self.document, self.own = row, document, own
        self.exact, self.place, self.depth = exact, place, depth
        each = np.bincount(row)
        self.first, self.last = np.cumsum(each) - each, np.cumsum(each) - 1  # of each row's pairs
        turn = np.arange(min(each.max(), MANY + 1))[:, None]
        self.turns = np.where(turn < each, self.first + turn, len(row))  # each row's first pair, second…; or none
        self.beaten, self.doubts, self.lock = np.zeros(len(row), np.int64), list[tuple[Array, Array]](), Lock()
        self.best, self.top = document[self.last], np.full(len(each), -np.inf, np.float32)

    def bar(self, low: Array) -> Array:
        """The score from which a document counts: it may beat a pair that is still counted, or else the row's best."""
        lowest = np.minimum.reduceat(np.where(self.beaten < self.depth, low, np.float32(np.inf)), self.first)
        return np.where(lowest == np.inf, np.maximum(self.top, low[self.last]), lowest)

    def count(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        """Count the documents that score above a pair's `high`; those from `low` to `high` are in doubt."""
        self._lead(row, document, score, low)
        if len(self.turns) > MANY:
            self._look_up(row, document, score, low, high)
        else:
            self._compare(row, document, score, low, high)

    def _lead(self, row: Array, document: Array, score: Array, low: Array) -> None:
        """Keep each row's best document, equals by place; one that misses all pairs need not be found."""
        lead = np.flatnonzero(score >= np.maximum(self.top, low[self.last])[row])
        row, document, score = row[lead], document[lead], score[lead]
        order = np.lexsort((-self.place[document], score, row))  # of a row, the last one stays
        row, document, score = row[order], document[order], score[order]
        with self.lock:
            wins = _before(score, self.place[document], self.top[row], self.place[self.best[row]])
            self.best[row[wins]], self.top[row[wins]] = document[wins], score[wins]

    def _compare(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        low, high = np.append(low, np.float32(np.inf)), np.append(high, np.float32(np.inf))  # nothing beats no pair
        for turn, pair in enumerate(self.turns):
            if turn:  # what misses a pair misses the row's next
                reach = np.flatnonzero(score >= low[pair][row])
                row, document, score = row[reach], document[reach], score[reach]
            doubt = np.flatnonzero(score <= high[pair][row])
            over = np.bincount(row, minlength=len(pair)) - np.bincount(row[doubt], minlength=len(pair))
            some = pair < len(self.beaten)
            with self.lock:
                self.beaten[pair[some]] += over[some]
            counted = np.append(self.beaten < self.depth, False)[pair]
            doubt = doubt[counted[row[doubt]]]
            self._doubt(pair[row[doubt]], document[doubt])

    def _look_up(self, row: Array, document: Array, score: Array, low: Array, high: Array) -> None:
        key = _key(row, score)
        order = np.argsort(key)
        key, pair = key[order], np.flatnonzero(self.beaten < self.depth)
        start = np.searchsorted(key, _key(self.row[pair], low[pair]))
        stop = np.searchsorted(key, _key(self.row[pair], high[pair]), side="right")
        end = np.searchsorted(key, _key(self.row[pair], np.full(len(pair), np.inf, np.float32)))
        with self.lock:
            self.beaten[pair] += end - stop
        size = stop - start
        for some in np.split(np.arange(len(pair)), np.flatnonzero(np.diff(np.cumsum(size) // AT_ONCE)) + 1):
            before = np.cumsum(size[some]) - size[some]
            at = np.arange(size[some].sum()) + np.repeat(start[some] - before, size[some])
            self._doubt(np.repeat(pair[some], size[some]), document[order[at]])

    def _doubt(self, pair: Array, document: Array) -> None:
        with self.lock:
            self.doubts.append((pair, document))
            waiting = sum(len(some) for some, _ in self.doubts)
        if waiting > WAITING:
            self.settle()

    def settle(self) -> None:
        """Decide what is in doubt."""
        with self.lock:
            doubts, self.doubts = self.doubts, []
        if not doubts:
            return
        pair, document = (np.concatenate(column) for column in zip(*doubts, strict=True))
        rival = document != self.document[pair]
        pair, document = pair[rival], document[rival]
        for at in range(0, len(pair), AT_ONCE):
            self._decide(pair[at : at + AT_ONCE], document[at : at + AT_ONCE])

    def _decide(self, pair: Array, document: Array) -> None:
        cell, back = np.unique(self.row[pair] * len(self.place) + document, return_inverse=True)  # pairs may share it
        score = self.exact(*np.divmod(cell, len(self.place)))[back]
        wins = _before(score, self.place[document], self.own[pair], self.place[self.document[pair]])
        counts = np.bincount(pair[wins], minlength=len(self.beaten))
        with self.lock:
            self.beaten += counts


def _before(score: Array, place: Array, other: Array, its_place: Array) -> Array:
    """Whether what has this score goes before the other: by score, then by place."""
    return np.asarray((score > other) | ((score == other) & (place < its_place)))


def _key(row: Array, score: Array) -> Array:
    """One number that rises with the row, and within a row with the score."""
    bits = (score + np.float32(0)).view(np.uint32)  # there is but one zero
    rising = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return np.asarray(row.astype(np.uint64) << np.uint64(32) | rising)
