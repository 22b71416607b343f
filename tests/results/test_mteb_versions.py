"""Scores of mteb's releases that kept the first result are marked, and stay off boards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark import published
from embark.boards.comparable_results import load_results
from embark.boards.exchange import import_results
from embark.boards.leaderboards import leaderboard
from embark.boards.references import folder_references
from embark.cli import app
from embark.results import Results
from embark.results.exchange import read_mteb
from embark.results.mteb_versions import agrees, fault
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError, Task

KEPT = ("2.10.2", "2.10.13", "2.10.14", "2.11.5", "2.12.20", "2.12.21")
DROPPED = ("1.16.5", "1.39.7", "2.0.1", "2.10.0", "2.10.1", "2.12.22", "2.12.24", "2.26.24")
NAME = "RP2kI2IRetrieval"
SKIPPING = sorted(row.name for row in TASKS.values() if row.under("mteb2").params.get("skip_first"))
WHY = (
    "mteb since 2.10.2 before 2.12.22 keeps every query's first result, most often the query itself, where the task "
    "drops it (score it again with mteb 2.12.22 or newer, or with embark run)"
)


def write(folder: Path, version: str | None, score: float = 0.5, task: str = NAME, **changes: Any) -> Path:
    """A file as mteb writes it, of a model that is named after the version."""
    row = TASKS[task]
    [split], [subset] = row.source.splits, row.subsets
    entry = {
        "hit_rate_at_1": score, "hit_rate_at_5": 0.75, "ndcg_at_10": 0.625, "main_score": score, "hf_subset": subset,
        "languages": ["eng-Latn"],
    }  # fmt: skip
    content = {
        "dataset_revision": row.source.revision, "task_name": task, "mteb_version": version,
        "scores": {split: [entry]}, "evaluation_time": 1.0,
    } | changes  # fmt: skip
    path = folder / f"org__by-{version}" / "abc" / f"{task}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def own_models(protocol: str | None = "mteb2", task: str = NAME) -> tuple[set[str], tuple[str, ...]]:
    """The models that boards show on a task, and the notes on what was left out."""
    loaded = load_results(tasks=task, protocol=protocol, published=False)
    return {result.model for result in loaded.results}, loaded.notes


def test_rows_that_drop_the_first_result_are_known_by_their_parameters() -> None:
    assert len(SKIPPING) >= 5
    for name in SKIPPING:
        assert fault(TASKS[name].under("mteb2"), "2.11.0") == WHY
    assert not any(fault(row, "2.11.0") for row in TASKS.values() if row.name not in SKIPPING)


@pytest.mark.parametrize("version", [*KEPT, "2.10.2.dev0", "2.12.22.dev0", "2.12.22rc1", "2.10.1-2.12.22", "2.12.21+g1a2b3c", "unknown"])
def test_scores_of_releases_that_keep_the_first_result_are_not_the_rows(version: str) -> None:
    assert fault(TASKS[NAME].under("mteb2"), version) == WHY or version == "unknown"
    assert not agrees(TASKS[NAME].under("mteb2"), version, "hit_rate_at_1")


@pytest.mark.parametrize("version", [*DROPPED, "2.10.1.dev0", "2.12.24.dev0", "2.12.22.post1", "2.12.22-2.26.24"])
def test_scores_of_the_other_releases_are_the_rows(version: str) -> None:
    row = TASKS[NAME] if version.startswith("1.") else TASKS[NAME].under("mteb2")
    assert fault(row, version) == ""
    assert agrees(row, version, "hit_rate_at_1")


def test_marked_scores_stay_off_boards_with_the_reason(tmp_path: Path, elsewhere: Path) -> None:
    for version in (*KEPT, *DROPPED):
        write(tmp_path, version, 0.9998 if version in KEPT else 0.5)
    imported = import_results(tmp_path)
    names = [f"{NAME} of org/by-{version}" for version in sorted(KEPT)]
    assert imported.notes == (f"kept off boards: 6 results, because {WHY}: {', '.join(names)}",)
    models, notes = own_models()
    assert models == {f"org/by-{version}" for version in DROPPED if version.startswith("2.")}
    assert notes == (f"left out, because {WHY}: {', '.join(names)}",)
    assert own_models("paper") == ({"org/by-1.16.5", "org/by-1.39.7"}, ())
    board = leaderboard(tasks=NAME, protocol="mteb2", published=False)
    assert {entry.model.model for entry in board.entries} == models
    assert board.notes == notes
