"""Reports that are kept with the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import embark
from embark.results import Results
from embark.types import EmbarkError


@pytest.fixture
def settings(tmp_path: Path) -> embark.Settings:
    return embark.load_settings(tmp_path / "home", tmp_path / "results")


def test_an_examination_is_kept_with_its_model_and_revision(tiny: embark.Encoder, settings: embark.Settings) -> None:
    examination = embark.doctor(tiny, settings=settings)
    path = embark.save_report(examination, settings=settings)
    report = json.loads(path.read_text())
    assert (report["kind"], report["model"], report["revision"]) == ("doctor", "test/tiny", tiny.card.revision)
    assert report["verdict"] == ("faults" if examination.faults else "no faults")
    assert [row[2][1] for row in report["sections"][0]["rows"]] == [f.check for f in examination.findings]
    assert embark.save_report(examination, settings=settings) == path
    assert len(list(path.parent.iterdir())) == 1


def test_that_of_the_machine_has_no_model(settings: embark.Settings) -> None:
    report = json.loads(embark.save_report(embark.doctor(settings=settings), settings=settings).read_text())
    assert (report["kind"], report["model"]) == ("doctor", "")


def test_verifications_and_sweeps_are_kept_with_their_figures(
    tiny: embark.Encoder, pictures: Callable[..., Path], settings: embark.Settings
) -> None:
    [task] = embark.folder_task(pictures(), kinds="retrieval")[:1]
    embark.evaluate(tiny, [task], settings=settings, show_progress=False)
    verification = embark.verify(tiny, tasks=[task], against=settings.results, run=False, settings=settings)
    verdict = json.loads(embark.save_report(verification, settings=settings).read_text())
    assert (verdict["kind"], verdict["verdict"], verdict["model"]) == ("verify", "reproduced", "test/tiny")
    assert verdict["revision"] == tiny.card.revision
    assert "<svg" in verdict["sections"][0]["figure"]
    sweep = json.loads(
        embark.save_report(embark.analyze.truncate(tiny, [task], settings=settings), settings=settings).read_text()
    )
    assert (sweep["kind"], sweep["model"]) == ("sweep", "")
    assert sweep["sections"][0]["columns"][0] == "setting"
    stored = Results(settings.results)
    assert len(list(stored.all())) == 1  # a report is no result
    assert not stored.notes


def test_a_folder_that_cannot_be_written_is_named(tiny: embark.Encoder, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    with pytest.raises(EmbarkError, match=r"cannot be written.*--results"):
        embark.save_report(embark.doctor(settings=settings), settings=settings)
