"""What an encoder may do wrong: unsound vectors never reach the store, and the report or the error names them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark import items
from embark.engine.batching.batches import HOPELESS
from embark.engine.batching.check import SHARED, InvalidVectors, _cast, check_vectors
from embark.planning import Need
from embark.store import Store
from embark.types import Array, EmbarkError
from lengths import CARD, Change, Lengths, needs, number, picture, run, stored_numbers, text


def spoilt(value: Any, column: slice = slice(None)) -> Change:
    """Numbers from 13 on come out wrong."""

    def change(out: Array, texts: list[str]) -> Array:
        out[np.array([number(t) >= 13 for t in texts]), column] = value
        return out

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (spoilt(np.nan, slice(1)), "NaN or infinite vectors"),
        (spoilt(-np.inf, slice(1)), "NaN or infinite vectors"),
        (spoilt(0), "zero vectors"),
    ],
    ids=["nan", "inf", "zero"],
)
def test_unsound_vectors_are_reported(store: Store, change: Change, says: str) -> None:
    encoder = Lengths(change)
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 21)])
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert report.invalid == {need.key: f"test/engine returned {says}" for need in wanted[12:]}
    assert (report.embedded, stored_numbers(store, encoder, wanted)) == (12, list(range(12)))


def test_what_is_sound_of_a_batch_is_kept(store: Store) -> None:
    """Some of it may have been paid for; two kinds of fault in one batch are no worse."""

    def change(out: Array, texts: list[str]) -> Array:
        out[[number(t) == 13 for t in texts]] = np.nan
        out[[number(t) == 15 for t in texts]] = 0
        return out

    encoder = Lengths(change)
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 21)])
    report, _ = run(store, encoder, wanted, batch_size=20)
    assert report.invalid.keys() == {wanted[12].key, wanted[14].key}
    assert stored_numbers(store, encoder, wanted) == [row for row in range(20) if row not in (12, 14)]


@pytest.mark.parametrize("value", [1e6, 1e-9], ids=["overflow", "underflow"])
def test_vectors_beyond_half_precision_are_reported_with_what_to_do(store: Store, value: float) -> None:
    encoder = Lengths(spoilt(value), replace(CARD, stored="float16"))
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 21)])
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert {"(store them as float32)" in reason for reason in report.invalid.values()} == {True}
    assert report.invalid.keys() == {need.key for need in wanted[12:]}
    assert stored_numbers(store, encoder, wanted) == list(range(12))


def test_a_kind_of_item_without_one_valid_vector_is_given_up(store: Store) -> None:
    encoder = Lengths(lambda out, texts: out * (not texts))
    wanted = needs(encoder, [items.text(f"{n}") for n in range(3 * HOPELESS)] + [picture((1, 2, 3))])
    report, _ = run(store, encoder, wanted, batch_size=64)
    assert (report.embedded, len(report.invalid)) == (1, 3 * HOPELESS)
    assert sum(encoder.batches) < 2 * HOPELESS


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda out, texts: out[:-1], "returned 3 rows for a batch of 4 items"),
        (lambda out, texts: out[:, :2], r"dimension \[2\]; its card says 3"),
        (lambda out, texts: out[:, 0], r"shape \(4,\); expected \(items, dimension\)"),
        (
            lambda out, texts: [np.ones((2, 3 + (number(t) == 15))) for t in texts],
            r"dimension \[3, 4\]; its card says 3",
        ),
    ],
    ids=["rows", "dimension", "shape", "ragged"],
)
def test_a_wrong_shape_is_an_error_and_what_came_before_it_stays(store: Store, change: Change, says: str) -> None:
    def later(out: Array, texts: list[str]) -> Any:
        return change(out, texts) if max(map(number, texts)) > 12 else out

    encoder = Lengths(later)
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 21)])
    with pytest.raises(EmbarkError, match=says):
        run(store, encoder, wanted, batch_size=4)
    assert stored_numbers(store, encoder, wanted) == list(range(12))


def test_a_dimension_that_changes_between_batches_is_an_error(store: Store) -> None:
    encoder = Lengths(lambda out, texts: out[:, : 2 + (number(texts[0]) < 9)], replace(CARD, dim=None))
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 17)])
    with pytest.raises(EmbarkError, match=r"of 3 dimensions; .* of 2 dimensions cannot be added"):
        run(store, encoder, wanted, batch_size=4)
    assert stored_numbers(store, encoder, wanted) == list(range(8))


class Tensor:
    """What a deep-learning library returns: no array, but it can become one."""

    def __init__(self, values: Array, error: Exception | None = None) -> None:
        self.values, self.error = values, error

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.error:
            raise self.error
        return self.values.astype(dtype or self.values.dtype)


@pytest.mark.parametrize(
    "change",
    [lambda out, texts: out.tolist(), lambda out, texts: list(out), lambda out, texts: Tensor(out)],
    ids=["lists", "rows", "tensor"],
)
def test_whatever_becomes_an_array_will_do(store: Store, change: Change) -> None:
    encoder = Lengths(change)
    wanted = needs(encoder, [text(n) for n in range(7)])
    run(store, encoder, wanted)
    assert stored_numbers(store, encoder, wanted) == list(range(7))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda out, texts: None, "returned a NoneType from `embed`"),
        (lambda out, texts: Tensor(out, TypeError("it is on a device")), "Tensor that is no array: it is on a device"),
        (lambda out, texts: Tensor(out, RuntimeError("it has a gradient")), "no array: it has a gradient"),
        (lambda out, texts: out.astype(str), "expected numbers"),
    ],
)
def test_what_is_no_array_is_an_error_that_says_why(store: Store, change: Change, says: str) -> None:
    encoder = Lengths(change)
    with pytest.raises(EmbarkError, match=says):
        run(store, encoder, needs(encoder, [text(n) for n in range(3)]))


@pytest.mark.parametrize(("scale", "fine"), [(1e-4, True), (1e-6, False)])
def test_vectors_that_half_precision_would_coarsen_are_refused(store: Store, scale: float, fine: bool) -> None:
    """Below its normal range a half has fewer and fewer bits, down to none: scores would change without a word."""
    encoder = Lengths(lambda out, texts: out * 0 + scale, replace(CARD, stored="float16"))
    wanted = needs(encoder, [text(n) for n in range(3)])
    if fine:
        assert run(store, encoder, wanted)[0].embedded == 3
    else:
        reasons = run(store, encoder, wanted)[0].invalid.values()
        assert ["beyond the range of float16" in reason for reason in reasons] == [True] * 3


SMALL = [0.0, -0.0, 1e-4, 1.5e-5, -1e-6, 1e-9, 1e-43, 1e-46, 5e-324]
KINDS = [("embedder", "float16"), ("embedder", "float32"), ("reranker", "float32"), ("generator", "uint8")]
LARGE = [1.0, -3.5, 65504.0, -65519.9, 65520.0, 1e6, 1e39, np.nan, np.inf, -np.inf]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(SMALL + LARGE), min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from(["float16", "float32", "float64", ">f4", "int64", "uint8", "bool"]),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_what_is_checked_is_what_a_plain_loop_checks(
    rows: list[list[float]], dtype: str, kind: tuple[Any, Any], tokens: bool
) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.array(rows).astype(dtype)
        stored = matrix.astype(kind[1])
    card = replace(CARD, kind=kind[0], stored=kind[1], dim=2)
    as_read = matrix.astype(np.float64)
    problems = {"NaN or infinite": [not np.isfinite(row).all() for row in as_read]}
    if card.kind == "embedder":
        largest = abs(stored.astype(np.float64)).max(axis=1)
        least = 256 * float(np.finfo(card.stored).smallest_subnormal)
        problems["zero"] = [not row.any() for row in as_read]
        problems["beyond the range"] = [not least <= value < np.inf for value in largest]
    first = next(((name, np.flatnonzero(wrong).tolist()) for name, wrong in problems.items() if any(wrong)), None)
    vectors = [row[None] for row in matrix] if tokens else matrix
    items_of_rows = cast("list[Need]", list(range(len(rows))))
    if first is not None:
        with pytest.raises(InvalidVectors, match=first[0]) as error:
            check_vectors(vectors, card, items_of_rows, str)
        assert error.value.rows == first[1]
        return
    checked = check_vectors(vectors, card, items_of_rows, str)
    np.testing.assert_array_equal(np.concatenate(list(checked)) if tokens else checked, stored)
    assert not np.shares_memory(checked[0], matrix)  # an encoder may use its memory again


@pytest.mark.parametrize("with_torch", [True, False])
def test_half_precision_is_numpys(with_torch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if with_torch:
        import torch  # noqa: F401
    else:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    rows = np.random.default_rng(0).normal(0, 1, (64, 8)).astype(np.float32)
    rows[:, 0] = np.geomspace(1e-8, 65000, 64)  # with those that are no normal numbers in half precision
    read_only = rows.copy()
    read_only.flags.writeable = False
    large = np.tile(rows, (SHARED // rows.size + 1, 1))
    large[[1, -1], 1:4] = np.nan, np.inf, -1e9  # in both halves
    for matrix in (rows, rows[::-1], rows[:, ::2], read_only, np.asfortranarray(rows), large, large[::-1]):
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(_cast(matrix, "float16"), matrix.astype(np.float16))
