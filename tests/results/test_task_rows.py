"""Rows beside results: written and read back, they are the same rows, and the newest of each own task is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import embark
from embark.protocol import fingerprint_of
from embark.results import Results, TaskResult
from embark.results.task_rows import from_json, known_tasks, to_json
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import Task
from folders import two_tasks


def text(task: Task) -> str:
    return json.dumps(to_json(task), default=dict)


def test_every_row_keeps_its_fingerprints_through_json() -> None:
    for task in TASKS.values():
        again = from_json(json.loads(text(task)))
        assert text(again) == text(task)
        part = task.parts[0]
        assert fingerprint_of(again, *part) == fingerprint_of(task, *part)


@pytest.fixture
def results(tiny: embark.Encoder, pictures: Callable[..., Path]) -> list[TaskResult]:
    """An own task under two protocols, and one of the catalogue."""
    retrieval, _ = two_tasks(pictures())
    row = replace(retrieval, variants={"other": {"metric": "ndcg_at_10"}})
    for protocol in (None, "other"):
        embark.evaluate(tiny, [row], protocol=protocol, show_progress=False)
    embark.evaluate(tiny, "PocketFlagZeroShot", show_progress=False)
    return list(Results(load_settings().results).all())


def test_own_rows_are_known_beside_the_catalogue(results: list[TaskResult]) -> None:
    known = known_tasks(results, load_settings().home)
    assert list(known) == [*TASKS, "PagesRetrieval"]
    row = known["PagesRetrieval"]
    assert (row.protocol, row.metric) == ("paper", "hit_rate_at_1")
    assert (row.under("other").protocol, row.under("other").metric) == ("other", "ndcg_at_10")


def test_the_newest_row_is_the_present_one(results: list[TaskResult], tmp_path: Path) -> None:
    [paper] = [result for result in results if result.row and result.protocol == "paper"]
    assert paper.row is not None
    newer = replace(paper, date=paper.date + 1, row=replace(paper.row, category="Pages"))
    for order in ([paper, newer], [newer, paper]):
        assert known_tasks(order, tmp_path)["PagesRetrieval"].category == "Pages"
    other = [result for result in results if result.protocol == "other"]
    assert known_tasks(other, tmp_path)["PagesRetrieval"].protocol == "other"  # all that is known of it
