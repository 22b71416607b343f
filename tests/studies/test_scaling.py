from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.studies.scaling import fit_scaling, scaling
from embark.types import EmbarkError
from field import card, field

SIZES = np.logspace(7, 10, 12)
CARDS = {f"m{number}": card(f"m{number}", parameters=int(size), data=size / 1e6) for number, size in enumerate(SIZES)}


@given(st.floats(-0.2, 0.2), st.floats(0.2, 0.6))
def test_a_line_in_the_logarithm_is_found_again(slope: float, level: float) -> None:
    scores = level + slope * np.log10(SIZES / 1e6)
    [trend] = fit_scaling(field(scores[:, None]), CARDS).trends
    assert (trend.slope, trend.level) == pytest.approx((100 * slope, level), abs=1e-5)
    assert trend.low <= trend.slope + 1e-9 <= trend.high + 2e-9
    assert trend.r.n == 12


def test_groups_are_ordered_by_what_size_buys_and_gaps_are_counted() -> None:
    x = np.log10(SIZES)
    values = np.column_stack([0.1 * x, 0.02 * x, np.where(np.arange(12) < 2, 0.5, np.nan)])
    known = {name: card for name, card in CARDS.items() if name != "m3"}
    study = fit_scaling(field(values, ["steep", "flat", "rare"]), known)
    assert [(trend.group, trend.r.n) for trend in study.trends] == [("steep", 11), ("flat", 11)]
    assert (study.left_out, study.unknown) == (("rare",), ("m3",))


def test_intervals_of_slopes_cover() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(200):
        values = 0.05 * np.log10(SIZES) + 0.05 * rng.normal(size=12)
        [trend] = fit_scaling(field(values[:, None]), CARDS).trends
        hits += trend.low <= 5 <= trend.high
    assert hits > 180


def test_the_published_scores_of_mieb_and_unibench() -> None:
    trends = scaling("MIEB(Multilingual)", by="type").trends
    assert len(trends) == 10
    assert min(trend.r.n for trend in trends) >= 30
    [counting] = scaling("UniBench", by="task").trends
    assert counting.group == "UniBench/countbench"
    assert counting.r.n >= 8
    with pytest.raises(EmbarkError, match="Group by task"):
        scaling("UniBench")


@pytest.mark.slow
def test_it_is_drawn_with_units(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=(12, 5))
    fit_scaling(field(values, list("abcde")), CARDS, "data").plot(tmp_path / "size.svg")
    assert "training examples (millions" in (tmp_path / "size.svg").read_text()
