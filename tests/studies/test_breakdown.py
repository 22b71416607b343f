"""Scores within groups of items, and how sure they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embark.results import ABOUT, Record, Results, TaskResult, outcome_columns
from embark.run.score import fingerprint_of
from embark.settings import load_settings
from embark.studies.breakdown import breakdown
from embark.tasks import TASKS
from field import card

ROW = TASKS["PocketFlagZeroShot"]


@pytest.mark.parametrize("times", [1, 4])
def test_c3_an_item_that_occurs_four_times_counts_once(elsewhere: Path, times: int) -> None:
    """Interval of a group: as wide as that of its distinct items."""
    values = np.repeat(np.random.default_rng(0).integers(0, 2, 50), times).astype(float)
    ids = [str(number) for number in np.repeat(np.arange(50), times)]
    [(split, subset)] = ROW.parts
    protocol = fingerprint_of(ROW, split, subset)
    score = float(values.mean())
    record = Record("m", "1", ROW.name, split, subset, ("eng",), ROW.metric, score, (0, 1), {}, protocol, "e")
    result = TaskResult("m", "1", ROW.name, ROW.source.revision, (record,), score, (0, 1), 0.0)
    columns = {ROW.metric: values, f"{ABOUT}weather": np.full(len(values), "fog", object)}
    Results(load_settings().results).save(result, card("m"), [outcome_columns(split, subset, ids, columns)])
    [part] = breakdown(tasks=ROW).parts
    assert (part.fact, part.value, part.items) == ("weather", "fog", 50 * times)
    low, high = part.interval
    assert high - low == pytest.approx(0.27, abs=0.015)
