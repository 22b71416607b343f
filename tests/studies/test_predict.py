from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from embark.studies.predict import STRENGTHS, _left_out_errors, _predict_row, predict, predict_totals
from embark.types import EmbarkError
from field import field, two_stories

HALF = [f"t{number}" for number in range(8) if number % 4 < 2]


def test_a_total_that_follows_from_the_part_is_predicted_and_new_models_are_found() -> None:
    values = two_stories(noise=0.001)
    truth = values[4].mean()
    values[4, 7] = np.nan
    predictions = predict_totals(field(values), HALF)
    [new] = predictions.new
    assert new.model == "m4"
    assert new.value == pytest.approx(truth, abs=0.005)
    assert len(predictions.known) == 29
    assert np.abs(predictions.errors).max() < 0.5
    assert predictions.coverage > 0.85


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([0, 9, 14, 20]))
def test_errors_in_closed_form_are_those_of_fits_without_the_row(seed: int, strength: int) -> None:
    rng = np.random.default_rng(seed)
    z, y = rng.normal(size=(10, 4)), rng.normal(size=10)
    z, y = z - z.mean(axis=0), y - y.mean()
    left, values, _ = np.linalg.svd(z, full_matrices=False)
    predictions = _left_out_errors(left, values, y, STRENGTHS[strength])
    for row in range(10):
        others = np.arange(10) != row
        fit = Ridge(alpha=STRENGTHS[strength]).fit(z[others], y[others])
        assert predictions[row] == pytest.approx(y[row] - fit.predict(z[row : row + 1])[0], abs=1e-6)


@pytest.mark.parametrize("models", [12, 20, 38])
def test_the_bar_covers_as_promised(models: int) -> None:
    """Also with few models, whose errors seldom hold the worst one."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        scores = rng.normal(size=(models + 1, 3)) @ rng.normal(0.5, 1, (3, 40)) + rng.normal(size=(models + 1, 40))
        total, part = scores.mean(axis=1), scores[:, :5]
        value, half = _predict_row(part[:-1], total[:-1], part[-1])
        hits += abs(value - total[-1]) <= half
    assert 0.91 < hits / 300 <= 1


def test_on_the_published_scores_the_lite_set_predicts_mieb_within_two_points() -> None:
    predictions = predict("MIEB(Multilingual)", part="MIEB(lite)")
    assert (predictions.part, predictions.all, len(predictions.known)) == (51, 130, 38)
    assert np.abs(predictions.errors).mean() < 0.5
    assert np.abs(predictions.errors).max() < 2
    assert {prediction.model for prediction in predictions.new} == {
        f"Salesforce/blip-image-captioning-{s}" for s in ("base", "large")
    }
    assert predictions.coverage == pytest.approx(36 / 38)


def test_what_cannot_be_predicted_is_said() -> None:
    with pytest.raises(EmbarkError, match="must be some of the 8 with scores, not others"):
        predict_totals(field(two_stories()), ["elsewhere"])
    with pytest.raises(EmbarkError, match="at least 12 models"):
        predict_totals(field(two_stories(models=11)), HALF)


def test_the_study_says_error_and_coverage_and_is_drawn(tmp_path: Path) -> None:
    values = two_stories()
    values[0, 7] = np.nan
    study = predict_totals(field(values), HALF)
    assert study.table().rows[0].section == "not yet scored on all tasks"
    assert "of 29" in study.table().notes[1]
    study.plot(tmp_path / "guess.svg")
    assert "m0 (new)" in (tmp_path / "guess.svg").read_text()


def test_files_have_one_unit() -> None:
    values = two_stories()
    values[0, 7] = np.nan
    table = predict_totals(field(values), HALF).table()
    new, *known = csv.DictReader(io.StringIO(table.format("csv")))
    assert (new["true"], new["error"], new["section"]) == ("", "", "not yet scored on all tasks")
    for row in known:
        assert float(row["predicted"]) - float(row["true"]) == float(row["error"])
        assert row["section"] == "held out in turn"
    shown = str(table).splitlines()[4].split()
    assert shown[-2:] == [f"{100 * float(known[0]['true']):.1f}", f"{100 * float(known[0]['error']):+.2f}"]
