"""docs/proof.md is a page of the suite of real weights, which names every number that differs from it."""

from __future__ import annotations

from real import proof

COMMITTED = proof.PAGE.read_text(encoding="utf-8")


def changed(row: proof.Row, old: str, new: str) -> proof.Row:
    return row._replace(cells=tuple(new if cell == old else cell for cell in row.cells))


def test_the_committed_page_is_what_the_suite_writes_of_its_rows() -> None:
    rows = proof.rows(COMMITTED)
    assert {row.table for row in rows} == set(proof.TABLES)
    assert proof.page(rows) == COMMITTED
    assert proof.differences(rows, COMMITTED) == ([], [])


def test_one_unit_of_the_last_digit_is_no_difference_and_two_are() -> None:
    row = next(row for row in proof.rows(COMMITTED) if row.cells[1:3] == ("`text`", "STSB"))
    cells = list(row.cells)
    for score, count in (("82.02", 0), ("82.04", 0), ("82.05", 1), ("81.03", 1)):
        assert len(proof.differences([row._replace(cells=(*cells[:4], score, *cells[5:]))], COMMITTED)[0]) == count
    assert "no such row" in proof.differences([changed(row, "STSB", "STSC")], COMMITTED)[0][0]


def test_rows_that_were_not_measured_are_listed() -> None:
    first, *others = proof.rows(COMMITTED)
    assert proof.differences(others, COMMITTED) == ([], [first.line])
