from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.analysis.facts import cards
from embark.analysis.outside import outside, read
from embark.analysis.scaling import scaling
from embark.cli.analyze import scores
from embark.types import EmbarkError
from field import card, field

SIZES = np.logspace(7, 10, 12)
CARDS = {f"m{at}": card(f"m{at}", parameters=int(size), data=size / 1e6) for at, size in enumerate(SIZES)}


@given(st.floats(-0.2, 0.2), st.floats(0.2, 0.6))
def test_a_line_in_the_logarithm_is_found_again(slope: float, level: float) -> None:
    scores = level + slope * np.log10(SIZES / 1e6)
    [found] = scaling(field(scores[:, None]), CARDS).trends
    assert (found.slope, found.level) == pytest.approx((100 * slope, level), abs=1e-5)
    assert found.low <= found.slope + 1e-9 <= found.high + 2e-9
    assert found.r.n == 12


def test_groups_are_ordered_by_what_size_buys_and_gaps_are_counted() -> None:
    x = np.log10(SIZES)
    values = np.column_stack([0.1 * x, 0.02 * x, np.where(np.arange(12) < 2, 0.5, np.nan)])
    known = {name: one for name, one in CARDS.items() if name != "m3"}
    found = scaling(field(values, ["steep", "flat", "rare"]), known)
    assert [(one.group, one.r.n) for one in found.trends] == [("steep", 11), ("flat", 11)]
    assert (found.left_out, found.unknown) == (("rare",), ("m3",))


def test_intervals_of_slopes_cover() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(200):
        values = 0.05 * np.log10(SIZES) + 0.05 * rng.normal(size=12)
        [one] = scaling(field(values[:, None]), CARDS).trends
        hits += one.low <= 5 <= one.high
    assert hits > 180


def test_the_published_scores_of_mieb_and_unibench() -> None:
    matrix = scores("MIEB(Multilingual)")
    found = scaling(matrix, cards(matrix.models, "MIEB"), "parameters", "type")
    assert len(found.trends) == 10
    assert min(one.r.n for one in found.trends) >= 30
    sparse = scores("UniBench")
    [counting] = scaling(sparse, cards(sparse.models, "UniBench"), "parameters", "task").trends
    assert counting.group == "UniBench/countbench"
    assert counting.r.n >= 8
    with pytest.raises(EmbarkError, match="--by task"):
        scaling(sparse, cards(sparse.models, "UniBench"))


def test_it_is_drawn_with_units(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=(12, 5))
    scaling(field(values, list("abcde")), CARDS, "data").study().save(tmp_path / "size.svg")
    assert "training examples (millions" in (tmp_path / "size.svg").read_text()


def test_an_outside_table_is_read_and_correlated(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=(12, 4))
    lines = ["model,MMMU,OCRBench", *(f"m{at},{values[at, :2].mean()},{'' if at < 2 else at}" for at in range(12))]
    (tmp_path / "mllm.csv").write_text("\n".join([*lines, "other/model,1,2", ""]))
    found = outside(field(values, ["a", "a", "b", "b"]), read(tmp_path / "mllm.csv"))
    assert found.found["a", "MMMU"].value == pytest.approx(1)
    assert (found.found["b", "OCRBench"].n, found.unmatched) == (10, ("other/model",))
    study = found.study()
    assert study.table.rows[0].cells[0] == "a"
    study.save(tmp_path / "mllm.svg")
    assert "OCRBench" in (tmp_path / "mllm.svg").read_text()


def test_faulty_tables_say_where(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,MMMU\nm0,high\n")
    with pytest.raises(EmbarkError, match="line 2: 'high' under 'MMMU'"):
        read(path)
    path.write_text("model\n")
    with pytest.raises(EmbarkError, match="header line"):
        read(path)
    with pytest.raises(EmbarkError, match="Fewer than 3 models"):
        outside(field(np.ones((4, 2))), {"MMMU": {"m0": 1.0, "nobody": 2.0}})
