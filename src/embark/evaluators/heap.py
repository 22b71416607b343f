"""Ranked lists of data in which several rows have one id, as mteb's search makes them.

mteb scores every row of the queries with a chunk of the corpus at a time. The best scores of each row, each with its
document's id, go to a heap of `TOP` entries that all rows of one query id share. A dictionary of the heap, made in the
heap's own order, then holds one score for each document id: the one that stands last. So which row of an id counts
depends on the order in which scores reach the heap. mteb 2 sorts them; mteb 1 takes them as torch.topk(sorted=False)
leaves them, on a CPU, because its models of images hand over vectors in main memory. (A GPU leaves them by position.)

Scores are computed in float64 and rounded to float32, so that they do not depend on the tiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any

import numpy as np

from embark.evaluators.backend import Numpy
from embark.evaluators.introselect import sorted_best, unsorted_best
from embark.evaluators.rank_counter import rising
from embark.evaluators.ranks import MEMORY, UNRANKED, take
from embark.evaluators.similarity import TokenVectors, block, check, product, rows_that_fit
from embark.evaluators.threads import CORES, on_all_cores
from embark.types import Array, EmbarkError, Qrels

HEAP_ENTRIES = 1000  # entries of a heap: the deepest cut-off of mteb's measures
ID_BITS = np.uint64(32)  # of an entry: its score is in the bits above, the place of its id below
ID_MASK = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class Search:
    """How a release of mteb searches: the documents of a chunk, how many of them go to a heap, and in which order."""

    chunk: int
    most: int
    best: Callable[[Array, int], Array]


SEARCHES = {
    "mteb1": Search(20_000, HEAP_ENTRIES, unsorted_best),
    "mteb2": Search(50_000, HEAP_ENTRIES + 1, sorted_best),
}


def search_of(params: Mapping[str, Any]) -> Search:
    """The search that an evaluator's parameters name."""
    return SEARCHES[params.get("heap", "mteb2")]


def ids_of_rows(truth: Qrels) -> tuple[Array, Array]:
    """The ids of the queries and of the documents, row by row."""
    if truth.query_ids is None or truth.document_ids is None:
        raise EmbarkError("Rows of which several have one id need the ids of queries and documents.")
    return truth.query_ids, truth.document_ids


def first_rows(ids: Array) -> tuple[Array, Array]:
    """For each row, the first row that has its id; and the place of its id among all ids, in their order."""
    _, first, places = np.unique(ids, return_index=True, return_inverse=True)
    return first[places], places


def heap_ranks(
    queries: Any,
    documents: Any,
    query: Array,
    document: Array,
    ids: tuple[Array, Array],
    similarity: str,
    search: Search,
    memory: int = MEMORY,
) -> tuple[Array, Array]:
    """Rank of `document[i]` for `query[i]`, and the best document of every query (-1 where it is not in `query`).

    Queries and documents stand for their ids: each is the first row of its id. `ids` are those of the queries and of
    the documents, row by row. A document that is not in a query's list is UNRANKED.
    """
    rank = np.full(len(query), UNRANKED)
    best = np.full(len(queries), -1, np.int64)
    order = np.argsort(query, kind="stable")
    of_pairs = query[order]

    def record(row: int, ranked: Array) -> None:
        pairs = order[slice(*np.searchsorted(of_pairs, [row, row + 1]))]
        place = {position: number for number, position in enumerate(ranked.tolist(), 1)}
        rank[pairs] = [place.get(position, UNRANKED) for position in document[pairs].tolist()]
        best[row] = ranked[0]

    _search(queries, documents, np.unique(query), ids, similarity, search, memory, record)
    return rank, best


def heap_lists(
    queries: Any,
    documents: Any,
    query: Array,
    depth: int,
    ids: tuple[Array, Array],
    similarity: str,
    search: Search,
    memory: int = MEMORY,
) -> list[Array]:
    """The best documents of each of these queries, best first: `depth`, or fewer where a list is shorter."""
    lists: dict[int, Array] = {}

    def record(row: int, ranked: Array) -> None:
        lists[row] = ranked[:depth]

    _search(queries, documents, query, ids, similarity, search, memory, record)
    return [lists[row] for row in query.tolist()]


def _search(
    queries: Any,
    documents: Any,
    wanted: Array,
    ids: tuple[Array, Array],
    similarity: str,
    search: Search,
    memory: int,
    record: Callable[[int, Array], None],
) -> None:
    """Call `record` with each wanted query and its ranked documents."""
    for vectors in (queries, documents):
        check(vectors, similarity)
    first_query, _ = first_rows(ids[0])
    first_document, place = first_rows(ids[1])
    position = np.empty(place.max() + 1, np.int64)  # of the document, by the place of its id
    position[place] = first_document
    rows = np.flatnonzero(np.isin(first_query, wanted))
    rows = rows[np.argsort(first_query[rows], kind="stable")]  # rows of one id stay in their order
    width = min(search.chunk, len(place))
    height = max(1, memory // (CORES * 8 * width))
    owners, starts = np.unique(first_query[rows], return_index=True)
    tiles = np.split(np.arange(len(owners)), np.flatnonzero(np.diff(starts // height)) + 1)

    def work(number: int) -> None:
        tile = tiles[number]
        stop = starts[tile[-1] + 1] if tile[-1] + 1 < len(starts) else len(rows)
        of_tile = rows[starts[tile[0]] : stop]
        heaps: dict[int, list[int]] = {row: [] for row in owners[tile].tolist()}
        for start in range(0, len(place), search.chunk):
            ranks_of_ids = place[start : start + search.chunk].astype(np.uint64)
            for few in (of_tile[first : first + height] for first in range(0, len(of_tile), height)):
                scores = _scores(queries, documents, few, start, start + len(ranks_of_ids), similarity)
                for row, of_row in zip(first_query[few].tolist(), scores, strict=True):
                    best = search.best(of_row, min(search.most, len(of_row)))
                    _push(heaps[row], rising(of_row[best]).astype(np.uint64) << ID_BITS | ranks_of_ids[best])
        for row, heap in heaps.items():
            record(row, position[_ranked(heap)])

    on_all_cores(work, range(len(tiles)))


def _scores(queries: Any, documents: Any, rows: Array, start: int, stop: int, similarity: str) -> Array:
    """Scores (rows, documents) in float32."""
    few = take(queries, rows)
    left = block(few, 0, len(rows), similarity)
    scores = np.empty((len(rows), stop - start), np.float32)
    step = max(1, rows_that_fit(documents) // 8)
    for first in range(start, stop, step):
        right = block(documents, first, min(first + step, stop), similarity)
        of_block = slice(first - start, first - start + len(right))
        if isinstance(left, TokenVectors) or isinstance(right, TokenVectors):
            scores[:, of_block] = product(Numpy(), right, left).T
        else:
            scores[:, of_block] = left.astype(np.float64) @ right.astype(np.float64).T
    return scores


def _push(heap: list[int], entries: Array) -> None:
    """Add entries to a heap of the `TOP` largest, in their order."""
    room = HEAP_ENTRIES - len(heap)
    for entry in entries[:room].tolist():
        heappush(heap, entry)
    rest = entries[room:]
    for entry in rest[rest > np.uint64(heap[0])].tolist():  # others leave a full heap as it is
        heappushpop(heap, entry)


def _ranked(heap: list[int]) -> Array:
    """The ids of a heap, by their places, best first: the entry that stands last counts; ties by falling id."""
    entries = np.array(heap, np.uint64)[::-1]
    _, last = np.unique(entries & ID_MASK, return_index=True)
    ranked: Array = (np.sort(entries[last])[::-1] & ID_MASK).astype(np.int64)
    return ranked
