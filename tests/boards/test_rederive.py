"""Published aggregates follow from their parts, but for the errata; the numbers are those of the papers."""

from __future__ import annotations

from collections import Counter

import pytest

from embark.boards import rederive
from embark.boards.rederive import Check, Derived, check, lite_agreement, recomputed


@pytest.fixture(scope="module")
def checks() -> dict[str, Check]:
    return {one.table: one for one in recomputed()}


def test_nothing_is_unexplained(checks: dict[str, Check]) -> None:
    assert [cell for one in checks.values() for cell in one.unexplained] == []
    for one in checks.values():
        assert one.cells == one.agreeing + sum(one.errata.values())


def test_mieb_table_22_follows_but_for_one_cell_and_its_two_means(checks: dict[str, Check]) -> None:
    one = checks["MIEB Table 22"]
    assert (one.cells, one.agreeing) == (38 * 14, 38 * 14 - 3)
    groups = [cell for cell in rederive._mieb_table_22() if not cell.name.startswith("Mean")]
    off = [(cell.model, cell.name) for cell in groups if abs(cell.published - cell.derived) > 1e-4 + 1e-9]
    assert len(groups) == 456
    assert off == [("voyageai/voyage-multimodal-3", "Document Understanding")]


@pytest.mark.parametrize("table", ["MIEB Table 2", "MIEB Table 2 (lite)"])
def test_mieb_table_2_and_its_mean_columns(checks: dict[str, Check], table: str) -> None:
    assert (checks[table].cells, checks[table].errata) == (240, {"mieb-voyage-rerun": 3})
    means = [cell for cell in rederive._mieb_table_2() if cell.table == table and cell.name.startswith("Mean")]
    assert len(means) == 40
    assert {cell.model for cell in means if not cell.agrees} == {"voyageai/voyage-multimodal-3"}


def test_lite_ranks_models_as_the_whole_does() -> None:
    found = lite_agreement()
    assert found.models == 38
    assert found.spearman == pytest.approx(0.992, abs=0.002)  # section 6.3
    assert found.pearson == pytest.approx(0.986, abs=0.002)


def test_mmebs_326_averages_and_37_disagreements(checks: dict[str, Check]) -> None:
    averages = [checks[f"MMEB-V3 Table {number}"] for number in (2, 3, 5, 6, 7, 8, 9, 10)]
    others = [one for name, one in checks.items() if name.startswith("MMEB-V3") and one not in averages]
    assert sum(one.cells for one in averages) == 326
    assert sum((Counter(one.errata) for one in averages), Counter()) == {
        "mmeb-video-header": 7,
        "mmeb-text-reranking": 10,
        "mmeb-image-retrieval": 3,
        "mmeb-wave-audio-retrieval": 2,
        "mmeb-wave-all": 4,
    }
    assert sum((Counter(one.errata) for one in others), Counter()) == {
        "mmeb-video-header": 7, "mmeb-repeated-cells": 3, "mmeb-vidore-v2-count": 1,
    }  # fmt: skip


def test_all_228_averages_of_ark_follow(checks: dict[str, Check]) -> None:
    averages = [cell for cell in rederive._ark() if cell.name.endswith("axis") and cell.table != "ARK Table 8"]
    both = [cell for cell in averages if cell.table != "ARK Table 9"]
    assert len(both) == 228
    assert max(abs(cell.published - cell.derived) for cell in averages) <= 0.00011 + 1e-9
    assert all(not one.errata for name, one in checks.items() if name.startswith("ARK"))


def test_unibenchs_overall_means() -> None:
    found = {cell.table: cell for cell in rederive._unibench() if cell.name == "Overall"}
    assert [(cell.published, cell.agrees) for cell in found.values()] == [(0.461, True), (0.442, True)]
    assert [round(100 * cell.derived, 2) for cell in found.values()] == [46.07, 44.23]


def test_an_erratum_explains_only_the_values_that_it_states() -> None:
    cell = Derived("MMEB-V3 Table 8", "tsinghua-ee/WAVE-7B", "A-RET", 0.129, 0.115, 0.001)
    assert not cell.agrees
    assert cell.erratum == "mmeb-wave-audio-retrieval"
    assert Derived(cell.table, cell.model, cell.name, 0.129, 0.117, 0.001).erratum is None
    assert Derived(cell.table, "other", cell.name, 0.129, 0.115, 0.001).erratum is None


def test_the_whole_check_is_a_value() -> None:
    checked = check()
    assert checked.notes == ()
    *tables, total = checked.table().rows
    assert [row.cells[0] for row in tables] == [one.table for one in checked.checks]
    assert total.cells[1] == sum(one.cells for one in checked.checks)
    assert checked.as_dict()["MIEB-lite"]["models"] == checked.lite.models
    assert "the paper says 0.992 and 0.986" in checked.sentence()
