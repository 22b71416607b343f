"""Blocks of vectors: float32, checked, and of unit length where cosines are wanted."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from embark.evaluators import similarity
from embark.evaluators.similarity import as_float32, block, blocks
from embark.types import Array, EmbarkError

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def plain_unit(rows: Array) -> Array:
    """What `block` must return, bit by bit: cosine's rows by the plain formula."""
    rows = np.asarray(rows, np.float32)
    length = np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
    if not np.isfinite(length).all() or length.min() < 1e-15:
        length = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


def same_bits(one: Array, other: Array) -> None:
    assert one.dtype == other.dtype == np.float32
    np.testing.assert_array_equal(one.view(np.int32), other.view(np.int32))


def test_every_float16_number_becomes_the_same_float32() -> None:
    finite = HALVES[np.isfinite(HALVES)]
    same_bits(as_float32(finite), finite.astype(np.float32))
    same_bits(as_float32(HALVES), HALVES.astype(np.float32))
    for number in HALVES[~np.isfinite(HALVES)][:: 1 << 6]:
        np.testing.assert_array_equal(as_float32(np.array([1, number, -2], np.float16)), [1, number, -2])


def test_any_shape_and_layout_of_float16_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "PIECE", 7)
    cube = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(np.float16)
    for rows in (cube, cube[:, ::2], cube.T, cube[0, 0], cube[:0], np.asfortranarray(cube[0])):
        same_bits(as_float32(rows), rows.astype(np.float32))
    single = np.ones((2, 2), np.float32)
    assert as_float32(single) is single
    same_bits(as_float32([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]], np.float32))


def test_small_numbers_are_kept_where_the_processor_drops_them() -> None:
    torch = pytest.importorskip("torch")
    tiny = HALVES[1:1024]
    converted: list[Array] = []

    def work() -> None:  # in a thread of its own, whose mode ends with it
        if torch.set_flush_denormal(True):
            converted.append(as_float32(tiny))
            torch.set_flush_denormal(False)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for numbers in converted:
        same_bits(numbers, tiny.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("piece", [1, 40, 1 << 16])
def test_rows_of_unit_length_do_not_depend_on_pieces(dtype: type, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "PIECE", piece)
    rng = np.random.default_rng(0)
    for dim in (1, 3, 17, 64):
        rows = rng.standard_normal((50, dim)).astype(dtype)
        before = rows.copy()
        with_zeros = rows.copy()
        with_zeros[[3, 40]] = 0
        for vectors in (rows, with_zeros):
            same_bits(np.asarray(block(vectors, 0, 50, "cosine")), plain_unit(vectors))
            same_bits(np.asarray(block(vectors, 7, 33, "cosine")), plain_unit(vectors[7:33]))
            out = np.empty((20, dim), np.float32)
            for start, unit in blocks(vectors, "cosine", 20, out):
                same_bits(np.asarray(unit), plain_unit(vectors[start : start + 20]))
        same_bits(np.asarray(block(rows, 0, 50, "dot")), rows.astype(np.float32))
        np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("kind", ["cosine", "dot"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_stored_number_that_is_not_finite_is_reported(kind: str, number: float) -> None:
    rows = np.ones((300, 512), np.float16)
    rows[260, 100] = number
    with pytest.raises(EmbarkError, match="1 vectors are not finite, the first at row 260"):
        block(rows, 0, 300, kind)
