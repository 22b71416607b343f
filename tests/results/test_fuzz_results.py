"""Damaged files of results: the scores as they were written, or none, and the file is named."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embark
from damage import damaged, within
from embark.results import Results, TaskResult
from embark.settings import load_settings
from embark.types import EmbarkError

DICE = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result."""
    folder = tmp_path_factory.mktemp("written")
    model = embark.encoder(
        text=lambda texts: np.array([[len(text), 1] for text in texts], np.float32), name="test/fuzz", revision="1"
    )
    here = load_settings(folder / "home", folder / "results")
    embark.evaluate(model, "PocketNameSTS", settings=here, show_progress=False)
    return folder / "results"


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else writes here, so nobody is waited for."""
    monkeypatch.setattr("embark.results.schema.LOOKS", 1)


def as_written_or_named(written: Path, folder: Path, dice: random.Random) -> None:
    """Damage a file of a copy, then read it in all ways."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(written, folder)
    path = dice.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    before = path.read_bytes()
    path.write_bytes(damaged(path.name, before, dice))
    [whole] = Results(written).all()
    with within(10):
        for results in (Results(folder), Results(folder)):
            loaded: list[TaskResult] = [
                result
                for result in (*results.all(), results.load(whole.model, whole.revision, whole.task))
                if result is not None
            ]
            for result in loaded:
                assert (result.records, result.score, result.interval) == (whole.records, whole.score, whole.interval)
                try:
                    assert result.outcomes() == whole.outcomes()
                except (EmbarkError, FileNotFoundError) as error:
                    assert path.name in str(error)  # noqa: PT017
            for note in results.notes:
                assert path.stem in note


@settings(max_examples=60, derandomize=True, database=None)
@given(DICE)
def test_a_damaged_result_is_as_it_was_or_none(written: Path, tmp_path: Path, dice: random.Random) -> None:
    as_written_or_named(written, tmp_path / "copy", dice)


@pytest.mark.slow
@settings(max_examples=800, derandomize=True, database=None)
@given(DICE)
def test_more_damaged_results_are_as_they_were_or_none(written: Path, tmp_path: Path, dice: random.Random) -> None:
    as_written_or_named(written, tmp_path / "copy", dice)
