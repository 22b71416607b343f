"""Two processes that save the same task at once: the scores and outcomes that stay are of one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embark.results import Record, Results, TaskResult, outcome_columns
from embark.types import ModelCard

CARD = ModelCard("org/model", "r1", "none", ("text",))


def save(root: Path, score: float) -> TaskResult:
    record = Record("org/model", "r1", "Words", "test", "en", (), "m", score, (0, 1), {"m": score}, "p", "e")
    result = TaskResult("org/model", "r1", "Words", "abc", (record,), score, (0, 1), 0.0)
    return Results(root).save(result, CARD, [outcome_columns("test", "en", ["a", "b"], {"m": [score, score]})])


def test_scores_and_outcomes_that_stay_are_of_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second writer saves all between the first one's outcomes and its scores."""
    replace, others = os.replace, [0.75]

    def interleaved(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).suffix == ".parquet" and others:
            save(tmp_path, others.pop())

    monkeypatch.setattr("os.replace", interleaved)
    save(tmp_path, 0.25)
    [stored] = Results(tmp_path).all()
    assert stored.outcomes()["m"].to_pylist() == [stored.score, stored.score]
