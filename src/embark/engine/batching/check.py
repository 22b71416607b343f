"""Checks the vectors that an encoder returned: right number of rows, one dimension, finite, not zero."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from embark.catalogue import listed
from embark.planning import Need
from embark.types import Array, EmbarkError, ModelCard

NAMED_ITEMS = 5  # items that a message names
SHARED = 1 << 18  # numbers of a large matrix: half of them take longer than a thread to start
BITS = {np.dtype("float16"): "uint16", np.dtype("float32"): "uint32", np.dtype("float64"): "uint64"}


class InvalidVectors(EmbarkError):
    """Some vectors of a batch are invalid; `rows` are their positions, `problem` is what is wrong with them."""

    def __init__(self, problem: str, names: str, rows: Sequence[int]) -> None:
        super().__init__(f"{problem} for {names}.")
        self.problem = problem
        self.rows = rows


def check_vectors(
    vectors: Any, card: ModelCard, needs: Sequence[Need], name: Callable[[Need], str]
) -> Array | list[Array]:
    """The vectors in the card's stored precision; invalid ones raise an error that names the items.

    `name` returns the name of a needed item for messages.
    """
    if not hasattr(vectors, "__len__"):
        raise EmbarkError(f"{card.name} returned a {type(vectors).__name__} from `embed`; expected one row per item.")
    if len(vectors) != len(needs):
        raise EmbarkError(
            f"{card.name} returned {len(vectors)} rows for a batch of {len(needs)} items. "
            "`embed` must return one row per item, in their order."
        )
    try:
        matrices = [np.asarray(tokens) for tokens in vectors] if has_tokens(vectors) else [np.asarray(vectors)]
    except ValueError:
        raise EmbarkError(f"{card.name} returned rows of unequal length; a batch must have one dimension.") from None
    except (TypeError, RuntimeError) as error:  # a tensor on a device, with a gradient, or of a type of its own
        raise EmbarkError(f"{card.name} returned a {type(vectors).__name__} that is no array: {error}") from error
    if odd := [matrix.dtype for matrix in matrices if not np.can_cast(matrix.dtype, np.float64, "same_kind")]:
        raise EmbarkError(f"{card.name} returned {odd[0]} values; expected numbers.")
    if any(matrix.ndim != 2 for matrix in matrices):
        raise EmbarkError(f"{card.name} returned an array of shape {matrices[0].shape}; expected (items, dimension).")
    dims = {matrix.shape[1] for matrix in matrices}
    if len(dims) > 1 or (card.dim is not None and dims != {card.dim}):
        expected = f"its card says {card.dim}" if card.dim is not None else "one batch must have one dimension"
        raise EmbarkError(f"{card.name} returned vectors of dimension {sorted(dims)}; {expected}.")
    with np.errstate(over="ignore", invalid="ignore"):
        stored = [_cast(matrix, card.stored) for matrix in matrices]
    tokens = has_tokens(vectors)
    # Rounding keeps the order of magnitudes: what is right about the stored numbers was right about the others. Bytes
    # are never NaN, so the numbers that they were made of are looked at.
    rounded = _largest(matrices if card.stored == "uint8" else stored, tokens)
    in_range = np.isfinite(rounded)
    if card.kind == "embedder":  # a re-ranker's scores may be zero, and a generator's texts are bytes
        tiny = 256 * np.finfo(card.stored).smallest_subnormal  # smaller vectors keep fewer than eight bits
        in_range = np.isfinite(rounded) & (rounded >= tiny)
    if not in_range.all():
        largest = _largest(matrices, tokens)
        require = partial(_require, card, needs, name)
        require(np.isfinite(largest), "NaN or infinite vectors")
        if card.kind == "embedder":
            require(largest > 0, "zero vectors")
            advice = " (store them as float32)" if card.stored == "float16" else ""
            require(in_range, f"vectors beyond the range of {card.stored}{advice}")
    return stored if tokens else stored[0]


def _cast(matrix: Array, dtype: str) -> Array:
    """The matrix in another precision. torch rounds to half precision as numpy does, but several times as fast; where
    it is not loaded, two threads share a large matrix.
    """
    torch = sys.modules.get("torch")
    if torch is not None and matrix.dtype == np.float32 and dtype == "float16" and matrix.flags.carray:
        return np.asarray(torch.from_numpy(matrix).half().numpy())
    if dtype != "float16" or matrix.size < SHARED:
        return matrix.astype(dtype)
    stored = np.empty(matrix.shape, dtype)
    halves = list(zip(np.array_split(stored, 2), np.array_split(matrix, 2), strict=True))

    def cast(half: tuple[Array, Array]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # which a thread does not inherit
            half[0][...] = half[1]

    with ThreadPoolExecutor(1) as other:
        second = other.submit(cast, halves[1])
        cast(halves[0])
        second.result()
    return stored


def _require(card: ModelCard, needs: Sequence[Need], name: Callable[[Need], str], valid: Array, problem: str) -> None:
    """Raise an error about `problem` that names the items which are not valid."""
    if not valid.all():
        invalid = np.flatnonzero(~valid).tolist()
        names = listed([name(needs[row]) for row in invalid], NAMED_ITEMS)
        raise InvalidVectors(f"{card.name} returned {problem}", names, invalid)


def _largest(matrices: Sequence[Array], tokens: bool) -> Array:
    """The largest magnitude of each item, which has a row of one matrix, or a matrix; NaN where any value is."""
    return np.array([_peaks(matrix).max(initial=0) for matrix in matrices]) if tokens else _peaks(matrices[0])


def _peaks(matrix: Array) -> Array:
    """The largest magnitude in each row; NaN where any value is.

    Bits without the sign are ordered as magnitudes are, with NaN above all: one quick pass in any precision.
    """
    if matrix.dtype not in BITS:
        matrix = matrix.astype(np.float64)
    bits = np.dtype(BITS[matrix.dtype])
    unsigned = matrix.view(bits) & bits.type(np.iinfo(bits).max >> 1)
    return np.asarray(unsigned.max(axis=1, initial=0).view(matrix.dtype))


def has_tokens(vectors: Any) -> bool:
    """Whether each item has a matrix of several vectors (late interaction)."""
    return isinstance(vectors, (list, tuple)) and len(vectors) > 0 and np.ndim(vectors[0]) == 2
