"""The state of a run, written while it goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import embark
from embark.run import run_state
from embark.run.run_state import state_file


def test_a_run_that_stores_nothing_leaves_no_home_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "STATE_SECONDS", 0.01)
    settings = embark.load_settings(tmp_path / "home")
    with state_file(settings, "slow", dict):
        time.sleep(0.2)
    assert not settings.home.exists()
    with state_file(settings, "stored", dict):
        settings.home.mkdir()
        time.sleep(0.2)
        assert (settings.home / "runs" / "stored.json").exists()
