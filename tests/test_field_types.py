"""Fields of dataclasses are held against their types, whose names in messages are words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from embark.field_types import defaults, fits, misfits, stated_fields, words
from embark.types import Gold, Qrels

if TYPE_CHECKING:
    from embark.hub import Hub

FITTING: list[tuple[Any, Any, list[Any], list[Any]]] = [
    (str, "a text", ["", "a"], [1, None, b"a"]),
    (int, "a whole number", [0, -7, np.int64(5)], [True, np.True_, 1.0, np.float64(1), "1"]),
    (float, "a number", [0, 0.5, math.nan, np.float32(0.5), np.int64(5)], [False, np.False_, "1", 1j]),
    (bool, "true or false", [True], [1, None]),
    (str | None, "a text", ["a", None], [1]),
    (str | Callable[..., Any], "a text or a function", ["a", print], [1]),
    (Literal["dot", "cosine", "maxsim"], "dot, cosine or maxsim", ["dot"], ["Dot", ["dot"], None]),
    (tuple[int, ...], "a tuple of whole numbers", [(), (1, 2)], [[1], (1, "2"), 1]),
    (Mapping[str, float], "a table of numbers", [{}, {"a": 1}], [{1: 1}, {"a": "1"}, [("a", 1)]]),
    (Mapping[str, Any], "a table", [{"a": print}], [{1: 1}, None]),
    (Mapping[str, tuple[str, ...]], "a table of tuples of texts", [{"a": ("b",)}], [{"a": "b"}, {"a": ["b"]}]),
    (tuple[type[Qrels | Gold], ...], "a tuple of types (Qrels, Gold)", [(Gold,)], [(str,), ("Gold",), Gold]),
    (Gold, "a Gold", [Gold(*[()] * 3)], [Gold, None]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("kind", "text", "valid", "wrong"), FITTING, ids=lambda kind: str(kind)[:30])
def test_a_value_fits_its_type(kind: Any, text: str, valid: list[Any], wrong: list[Any]) -> None:
    assert words(kind) == text
    assert [value for value in valid if not fits(value, kind)] == []
    assert [value for value in wrong if fits(value, kind)] == []


@dataclass
class Parcel:
    """Fields of several types, one of which has a name that only type checkers import."""

    weight: int
    opened: Callable[[Hub], bool] | None
    hub: Hub | None = None


def test_each_field_that_does_not_fit_is_named() -> None:
    assert [*misfits(Parcel(1, callable, None))] == []
    assert [*misfits(Parcel(1, None, 3))] == []  # type: ignore[arg-type]
    assert [*misfits(Parcel("1", 2))] == [  # type: ignore[arg-type]
        "its `weight` must be a whole number, not '1'",
        "its `opened` must be a function, not 2",
    ]


def test_only_fields_that_differ_from_what_is_usual_are_stated() -> None:
    assert defaults(Parcel) == {"weight": MISSING, "opened": MISSING, "hub": None}
    assert stated_fields(Parcel(1, None)) == {"weight": 1, "opened": None}
    assert stated_fields(Parcel(1, None), {"weight": 1, "opened": callable}) == {"opened": None}
