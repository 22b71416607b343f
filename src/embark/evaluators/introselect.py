"""The order in which GNU's C++ library leaves the largest values: std::nth_element, then std::sort or nothing.

torch.topk on a CPU calls these two. What they do with equal values, and nth_element with all values, depends on every
comparison before, so there is no shorter way to the order than to take the same steps.
"""

from __future__ import annotations

import numpy as np

from embark.types import Array

INSERTION = 3  # std::nth_element inserts so many values
SORTED_BY_INSERTION = 16  # and std::sort so many
PLAIN = 48  # a part of at most so many values is partitioned in plain Python, which is faster there


def unsorted_best(values: Array, k: int) -> Array:
    """Positions of the k largest values, as torch.topk(sorted=False) returns them."""
    values, positions = np.array(values), np.arange(len(values))
    _select(values, positions, k - 1)
    return positions[:k]


def sorted_best(values: Array, k: int) -> Array:
    """Positions of the k largest values, as torch.topk returns them: best first."""
    least = np.partition(values, -k)[-k]
    candidates = np.flatnonzero(values >= least)
    order: Array = candidates[np.argsort(-values[candidates], kind="stable")]
    if len(order) == k and (np.diff(values[order]) < 0).all():
        return order
    values, positions = np.array(values), np.arange(len(values))
    _select(values, positions, k - 1)
    _sort(values, positions, k - 1)
    return positions[:k]


def _select(values: Array, positions: Array, nth: int) -> None:
    """std::nth_element: no value before the n-th is smaller than it, and none behind is larger."""
    first, last = 0, len(values)
    depth = _depth(len(values))
    while last - first > INSERTION:
        if not depth:
            _select_by_heap(values, positions, first, nth, last)
            return
        depth -= 1
        cut = _partition(values, positions, first, last)
        first, last = (cut, last) if cut <= nth else (first, cut)
    _insert(values, positions, first, last)


def _sort(values: Array, positions: Array, count: int) -> None:
    """std::sort of the first values."""
    parts = [(0, count, _depth(count))]
    while parts:
        first, last, depth = parts.pop()
        while last - first > SORTED_BY_INSERTION:
            if not depth:
                _sort_by_heap(values, positions, first, last)
                break
            depth -= 1
            cut = _partition(values, positions, first, last)
            parts.append((cut, last, depth))
            last = cut
    _insert(values, positions, 0, count)


def _depth(count: int) -> int:
    """How many partitions may follow on one another before a heap takes over."""
    return 2 * (count.bit_length() - 1)


def _insert(values: Array, positions: Array, first: int, last: int) -> None:
    """Sorting by insertion, which leaves equal values in their order."""
    order = first + np.argsort(-values[first:last], kind="stable")
    values[first:last], positions[first:last] = values[order], positions[order]


# ── partitions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _partition(values: Array, positions: Array, first: int, last: int) -> int:
    """Partition around the median of the second, the middle and the last value; return where the second part begins."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    x, y, z = values[a], values[b], values[c]
    if x > y:  # noqa: SIM108  # four conditions in one line
        median = b if y > z else c if x > z else a
    else:
        median = a if x > z else c if y > z else b
    for array in (values, positions):
        array[first], array[median] = array[median], array[first]
    return (_cut_of_few if last - first <= PLAIN else _cut)(values, positions, first, last)


def _cut(values: Array, positions: Array, first: int, last: int) -> int:
    """Partition around the first value.

    Two pointers run towards each other and swap what they stop at: the n-th stop of one with the n-th of the other,
    until they meet.
    """
    part = values[first + 1 : last]
    left = np.flatnonzero(part <= values[first]) + (first + 1)
    right = np.flatnonzero(part >= values[first])[::-1] + (first + 1)
    most = min(len(left), len(right))
    swaps = int(np.count_nonzero(left[:most] < right[:most]))
    low, high = left[:swaps], right[:swaps]
    for array in (values, positions):
        array[low], array[high] = array[high], array[low]
    meet = int(left[swaps]) if swaps < len(left) else last
    return min(meet, int(right[swaps - 1])) if swaps else meet


def _cut_of_few(values: Array, positions: Array, first: int, last: int) -> int:
    """`_cut` on Python's own numbers."""
    part, order = values[first:last].tolist(), positions[first:last].tolist()
    pivot, low, high = part[0], 1, len(part)
    while True:
        while part[low] > pivot:
            low += 1
        high -= 1
        while pivot > part[high]:
            high -= 1
        if low >= high:
            break
        part[low], part[high] = part[high], part[low]
        order[low], order[high] = order[high], order[low]
        low += 1
    values[first:last], positions[first:last] = part, order
    return first + low


# ── heaps, after too many partitions; their top is the smallest value ────────────────────────────────────────────────

Entry = tuple[float, int]  # a value and its position


def _select_by_heap(values: Array, positions: Array, first: int, nth: int, last: int) -> None:
    """The values up to the n-th by a heap of the largest."""
    entries = list(zip(values[first:last].tolist(), positions[first:last].tolist(), strict=True))
    heap, rest = entries[: nth + 1 - first], entries[nth + 1 - first :]
    _make_heap(heap)
    for place, entry in enumerate(rest):
        if entry[0] > heap[0][0]:
            rest[place] = heap[0]
            _adjust(heap, 0, len(heap), entry)
    heap[0], heap[-1] = heap[-1], heap[0]
    values[first:last], positions[first:last] = zip(*heap, *rest, strict=True)


def _sort_by_heap(values: Array, positions: Array, first: int, last: int) -> None:
    """All these values by a heap."""
    heap = list(zip(values[first:last].tolist(), positions[first:last].tolist(), strict=True))
    _make_heap(heap)
    for size in range(len(heap) - 1, 0, -1):
        entry, heap[size] = heap[size], heap[0]
        _adjust(heap, 0, size, entry)
    values[first:last], positions[first:last] = zip(*heap, strict=True)


def _make_heap(heap: list[Entry]) -> None:
    for parent in range((len(heap) - 2) // 2, -1, -1):
        _adjust(heap, parent, len(heap), heap[parent])


def _adjust(heap: list[Entry], hole: int, size: int, entry: Entry) -> None:
    """Fill the hole with its smaller descendants down to a leaf, then let the entry rise from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * child + 2
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][0] > entry[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = entry
