"""Confidence and calibration: of made-up predictions with known answers, and of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embark
from embark.evaluators.zeroshot import evaluate, sureness_of
from embark.studies.calibration import Calibration, Confidence, calibration, calibration_error
from embark.types import Classes


def predictions(shift: float = 0.0, items: int = 4_000) -> Confidence:
    """A model that is right as often as it says, or surer by `shift`."""
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.3, 0.9, items)
    right = (rng.uniform(size=items) < probability).astype(float)
    return Confidence("a/b", "Task", right, probability + shift, np.ones(items), np.ones(items))


def test_a_calibrated_model_has_next_to_no_error_and_a_shift_is_found_again() -> None:
    assert calibration_error(predictions().right, predictions().probability) < 0.03
    error = predictions(0.1).error
    assert error.value == pytest.approx(0.1, abs=0.015)
    assert error.low <= 0.1 <= error.high + 0.01
    assert calibration_error(np.ones(5), np.ones(5)) == 0


def test_separation_is_the_area_under_the_curve() -> None:
    part = Confidence("a", "t", np.array([1.0, 0, 1, 0]), np.array([0.9, 0.2, 0.6, 0.7]), np.ones(4), np.ones(4))
    assert part.separation == pytest.approx(3 / 4)
    assert Confidence("a", "t", np.ones(2), np.ones(2), np.ones(2), np.ones(2)).separation is None


def test_the_sureness_of_similarities() -> None:
    scores = np.array([[0.3, 0.1, 0.2], [0.5, 0.5, 0.5]])
    sure = sureness_of(scores.copy(), 10.0)
    exponentials = np.exp(10 * scores)
    share = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sure["probability"], share.max(axis=1))
    np.testing.assert_allclose(sure["entropy"], -(share * np.log(share)).sum(axis=1))
    np.testing.assert_allclose(sure["margin"], [0.1, 0], atol=1e-12)


def test_outcomes_follow_the_models_own_scale() -> None:
    truth = Classes(np.array([0, 1]), np.array([0, 1]), ("a", "b"))
    vectors = {"item": np.array([[1.0, 0.2], [0.1, 1]], np.float32), "prompt": np.eye(2, dtype=np.float32)}
    sharp = evaluate(truth, vectors, {"logit_scale": 50.0})
    flat = evaluate(truth, vectors, {"logit_scale": 1.0})
    assert (sharp.outcomes["probability"] > flat.outcomes["probability"]).all()
    assert (sharp.outcomes["entropy"] < flat.outcomes["entropy"]).all()
    np.testing.assert_array_equal(sharp.outcomes["margin"], flat.outcomes["margin"])
    assert sharp.metrics == flat.metrics


def test_a_run_keeps_it(tmp_path: Path) -> None:
    embark.evaluate(["embark/random", "embark/handmade"], "PocketFlagZeroShot", show_progress=False)
    study = calibration(tasks="PocketFlagZeroShot")
    assert len(study.parts) == 2
    for part in study.parts:
        assert ((part.probability > 0) & (part.probability <= 1)).all()
        assert (part.entropy >= -1e-6).all()
        assert (part.margin >= 0).all()
    study.plot(tmp_path / "calibration.svg")
    Calibration((predictions(),)).plot(tmp_path / "one.svg")
    assert "confidence" in (tmp_path / "one.svg").read_text()
    with pytest.raises(embark.EmbarkError, match="no results of these tasks on disk"):
        calibration(tasks="PocketNameSTS")
