"""Fault 8: a home that cannot be written, with vectors missing, still gives results, with a warning."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import embark
from embark.engine.workers import sink
from embark.settings import load_settings

TASK = "PocketFlagZeroShot"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a folder read-only")
def test_a_read_only_home_computes_into_an_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "BYTES", 1)  # several segments
    home = tmp_path / "home"
    settings = load_settings(home, tmp_path / "results")
    first = embark.evaluate("embark/pocket", TASK, settings=settings, batch_size=64, show_progress=False)
    min(settings.store.glob("*/*.vectors")).unlink()
    before = sorted(home.rglob("*"))
    for words in ["mount", "--bind", home, home], ["mount", "-o", "remount,ro,bind", home]:
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no folder can be made read-only here: {done.stderr}")
    try:
        with pytest.warns(UserWarning, match=f"{home / 'store'} cannot be written .Read-only.*vectors are kept in /"):
            run = embark.evaluate("embark/pocket", TASK, settings=settings, rescore=True, show_progress=False)
        again = embark.evaluate("embark/pocket", TASK, settings=settings, rescore=True, show_progress=False)
    finally:
        subprocess.run(["umount", "--lazy", home], check=True)
    assert 0 < run.embedded < first.embedded
    assert again.embedded == 0
    assert run.results[0].score == again.results[0].score == first.results[0].score
    assert sorted(home.rglob("*")) == before
