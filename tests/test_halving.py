"""Work that fails because of some rows is tried again by halves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from embark.halving import by_halves


def test_all_rows_are_tried_at_once_and_refused_ones_by_halves_of_halves() -> None:
    tried: list[list[int]] = []

    def work(rows: Sequence[int]) -> Iterator[int]:
        tried.append(list(rows))
        if 5 in rows and len(rows) > 1:
            raise KeyError
        yield from rows

    assert list(by_halves(range(4), work, KeyError)) == [0, 1, 2, 3]
    assert tried == [[0, 1, 2, 3]]
    tried.clear()
    assert list(by_halves(range(8), work, KeyError)) == list(range(8))
    assert tried == [list(range(8)), [0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [4], [5], [6, 7]]


def test_a_row_that_is_refused_alone_and_other_errors_are_raised() -> None:
    def work(rows: Sequence[int]) -> list[int]:
        raise KeyError(*rows)

    with pytest.raises(KeyError, match="0"):
        list(by_halves(range(3), work, KeyError))
    with pytest.raises(KeyError) as error:
        list(by_halves(range(3), work, ValueError))
    assert error.value.args == (0, 1, 2)
