"""Search indexes over documents in memory: exact, in integers, in bits, and graphs.

Exact search is embark's own, a matrix product. The others are usearch's: integers and bits compared one by one, and
graphs (HNSW), which look at a few documents only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators.backend import Numpy
from embark.evaluators.threads import CORES, blas_threads
from embark.evaluators.topk import topk
from embark.types import Array, EmbarkError

RESCORED = (4, 16)  # times as many documents are scored again by their full vectors, after bits chose them
EXPANSIONS = (16, 64, 256)  # candidates that a search through a graph keeps
CONNECTIVITY = 16  # neighbors of a document in a graph
BUILD_EXPANSION = 128  # candidates among which they are chosen

Search = Callable[[Array, int], Array]  # (queries, k) → positions of documents, best first; -1 for none


class IndexCorpus(NamedTuple):
    """Documents in memory: their vectors, and the ids that resolve ties."""

    vectors: Array
    ids: Array | None = None


class Built(NamedTuple):
    """An index: its bytes, and by setting the ways to search it."""

    bytes: float
    searches: Mapping[str, Search]


class Method(NamedTuple):
    """A kind of index, and the function that builds it with so many threads.

    `about` says what its settings are, and `unit` follows a setting in names.
    """

    name: str
    build: Callable[[IndexCorpus, int], Built]
    about: str = ""
    unit: str = ""


class _Serial(Numpy):
    """Numpy in this thread, with the threads of the matrix library alone."""

    threads = False


def _usearch() -> Any:
    try:
        from usearch import index
    except ImportError as error:
        raise EmbarkError("Search indexes need usearch: pip install 'embark-bench[index]'") from error
    return index


def _exact(corpus: IndexCorpus, threads: int) -> Built:
    """The matrix product with all documents."""

    def search(queries: Array, k: int) -> Array:
        if threads >= CORES:
            return topk(queries, corpus.vectors, k, "dot", ids=corpus.ids)[0]
        with blas_threads(threads):
            return topk(queries, corpus.vectors, k, "dot", ids=corpus.ids, backend=_Serial())[0]

    return Built(corpus.vectors.nbytes, {"": search})


def _int8(corpus: IndexCorpus, threads: int) -> Built:
    """Integers with a scale a dimension, compared one by one."""
    numbers, to_integers = _integers(corpus.vectors)
    return Built(numbers.nbytes, {"": lambda queries, k: _compared(numbers, to_integers(queries), k, "IP", threads)})


def _binary(corpus: IndexCorpus, threads: int) -> Built:
    """Signs, compared one by one; the best of them are scored again by their full vectors."""
    bits = np.packbits(corpus.vectors > 0, axis=1)

    def search(queries: Array, k: int, times: int) -> Array:
        chosen = _compared(bits, np.packbits(queries > 0, axis=1), times * k, "Hamming", threads)
        return _rescored(chosen, queries, corpus.vectors, k)

    ways: dict[str, Search] = {
        "": lambda queries, k: _compared(bits, np.packbits(queries > 0, axis=1), k, "Hamming", threads)
    }
    return Built(bits.nbytes, ways | {f"{times}×": partial(search, times=times) for times in RESCORED})


def _graph(corpus: IndexCorpus, threads: int) -> Built:
    """A graph over float32 vectors."""
    return _graph_of(corpus.vectors, lambda queries: queries, "f32", threads)


def _int8_graph(corpus: IndexCorpus, threads: int) -> Built:
    """A graph over integers with a scale a dimension."""
    numbers, to_integers = _integers(corpus.vectors)
    return _graph_of(numbers, to_integers, "i8", threads)


METHODS = (
    Method("exact", _exact),
    Method("int8", _int8),
    Method("binary", _binary, "times as many re-scored", " re-scored"),
    Method("graph", _graph, "candidates"),
    Method("int8 graph", _int8_graph, "candidates"),
)


def _integers(documents: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Documents as int8 with a scale a dimension, and what makes queries int8 that can be multiplied with them."""
    scale = np.abs(documents).max(axis=0) / 127
    scale[scale == 0] = 1

    def to_integers(queries: Array) -> Array:
        scaled = queries * scale
        return _rounded(scaled * (127 / np.maximum(np.abs(scaled).max(axis=1, keepdims=True), 1e-30)))

    return _rounded(documents / scale), to_integers


def _rounded(values: Array) -> Array:
    return np.asarray(np.clip(np.rint(values), -127, 127), np.int8)


def _compared(documents: Array, queries: Array, k: int, metric: str, threads: int) -> Array:
    """The k best documents of each query, by comparing them all."""
    library = _usearch()
    matches = library.search(
        documents, queries, min(k, len(documents)), getattr(library.MetricKind, metric), exact=True, threads=threads
    )
    return _positions(matches, len(queries))


def _graph_of(documents: Array, convert: Callable[[Array], Array], dtype: str, threads: int) -> Built:
    graph = _usearch().Index(
        ndim=documents.shape[1], metric="ip", dtype=dtype, connectivity=CONNECTIVITY, expansion_add=BUILD_EXPANSION
    )
    graph.add(np.arange(len(documents)), documents, threads=threads)

    def search(queries: Array, k: int, expansion: int) -> Array:
        graph.expansion_search = expansion
        return _positions(graph.search(convert(queries), k, threads=threads), len(queries))

    ways = {str(expansion): partial(search, expansion=expansion) for expansion in EXPANSIONS}
    return Built(graph.serialized_length, ways)


def _positions(matches: Any, queries: int) -> Array:
    """usearch's keys as positions; it fills up with zeros where it returned fewer."""
    keys = np.asarray(matches.keys).reshape(queries, -1).astype(np.int64)
    counts = np.asarray(matches.counts if hasattr(matches, "counts") else [keys.shape[1]]).reshape(-1, 1)
    return np.where(np.arange(keys.shape[1]) < counts, keys, -1)


def _rescored(chosen: Array, queries: Array, documents: Array, k: int) -> Array:
    """The k best of the chosen documents by their full vectors."""
    out = np.empty((len(queries), min(k, chosen.shape[1])), np.int64)
    for row, (query, candidates) in enumerate(zip(queries, chosen, strict=True)):
        order = np.argsort(-(documents[candidates] @ query), kind="stable")[: out.shape[1]]
        out[row] = candidates[order]
    return out
