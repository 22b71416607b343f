"""Protocols: one row scored in more than one way, and the scores kept apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.boards.comparable_results import load_results
from embark.catalogue import UnknownName
from embark.cli import app
from embark.protocol import fingerprint_of
from embark.results import Results, TaskResult
from embark.run.plans import plan
from embark.settings import load_settings
from embark.stats.compare import compare_results
from embark.tasks import under_protocol
from embark.types import Task
from folders import two_tasks

Pictures = Callable[..., Path]


@pytest.fixture
def rows(pictures: Pictures) -> list[Task]:
    """A task that another protocol scores by another metric, and one that it does not know."""
    retrieval, zeroshot = two_tasks(pictures())
    return [replace(retrieval, variants={"other": {"metric": "ndcg_at_10"}}), zeroshot]


def stored() -> dict[tuple[str, str], TaskResult]:
    return {(result.task, result.protocol): result for result in Results(load_settings().results).all()}


def evaluate(model: embark.Encoder, rows: list[Task], protocol: str | None = None) -> embark.types.Run:
    return embark.evaluate(model, rows, protocol=protocol, show_progress=False)


def test_results_of_another_protocol_lie_beside_the_papers(tiny: embark.Encoder, rows: list[Task]) -> None:
    paper = evaluate(tiny, rows)
    other = evaluate(tiny, rows, "other")
    assert [result.metric for result in paper.results] == ["hit_rate_at_1", "accuracy"]
    assert [result.metric for result in other.results] == ["ndcg_at_10", "accuracy"]
    assert other.computed == 1  # the task that it does not set apart is on disk already
    assert list(stored()) == [("PagesRetrieval", "paper"), ("PagesRetrieval", "other"), ("PagesZeroShot", "paper")]
    folder = load_settings().results / "test__tiny" / "1"
    assert (folder / "PagesRetrieval@other.json").is_file()
    assert (folder / "PagesRetrieval@other.parquet").is_file()
    assert evaluate(tiny, rows).computed == evaluate(tiny, rows, "other").computed == 0


def test_fingerprints_tell_them_apart(rows: list[Task]) -> None:
    [row, same] = under_protocol("other", rows)
    assert (row.name, row.protocol) == (rows[0].name, "other")
    assert same is rows[1]
    assert fingerprint_of(row, "test", "default") != fingerprint_of(rows[0], "test", "default")
    assert under_protocol("paper", rows) == under_protocol(None, rows) == rows
    assert under_protocol("other", [row]) == [row]


def test_an_unknown_protocol_lists_the_known_ones(tiny: embark.Encoder, rows: list[Task]) -> None:
    for attempt in (lambda: evaluate(tiny, rows, "othr"), lambda: plan(tiny, rows, protocol="othr")):
        with pytest.raises(UnknownName, match=r"'othr'. Did you mean other\? They know paper, other\."):
            attempt()
    ran = CliRunner().invoke(app, ["run", "-m", "embark/random", "-t", "PocketNameSTS", "--protocol", "mteb2"])
    assert "no protocol of the chosen tasks named 'mteb2'" in str(ran.exception)


def test_boards_and_comparisons_hold_one_protocol(tiny: embark.Encoder, rows: list[Task]) -> None:
    evaluate(tiny, rows)
    evaluate(tiny, rows, "other")
    found = list(stored().values())
    for chosen in (rows, "Pages*"):  # as given, and as the results tell
        assert [result.protocol for result in load_results(tasks=chosen).results] == ["paper", "paper"]
        other = load_results(tasks=chosen, protocol="other")
        assert [result.protocol for result in other.results] == ["other", "paper"]
    assert [pair.a for pair in compare_results(found[::-1], found, rows).pairs] == [1.0, 1.0]
    assert compare_results(found, found, rows).refused == {}


def test_two_rows_of_one_name_are_refused(tiny: embark.Encoder, rows: list[Task]) -> None:
    with pytest.raises(embark.EmbarkError, match="Two different tasks are named PagesRetrieval"):
        evaluate(tiny, [rows[0], replace(rows[0], metric="ndcg_at_10")])
