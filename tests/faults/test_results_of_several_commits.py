"""The commit of the data is part of what makes a result current (fault 15 has the rest)."""

from __future__ import annotations

from pathlib import Path

from embark.results import Record, TaskResult, mark_commits


def result(model: str, commit: str, date: float) -> TaskResult:
    record = Record(model, "r1", "Words", "test", "en", (), "m", 0.5, (0, 1), {"m": 0.5}, "p", "e")
    return TaskResult(model, "r1", "Words", commit, (record,), 0.5, (0, 1), date, Path("Words.json"))


def test_the_results_of_another_commit_than_most_are_marked_once() -> None:
    results = [result("a", "1" * 40, 1.0), result("b", "2" * 40, 2.0), result("c", "1" * 40, 0.0)]
    marked = mark_commits(mark_commits(results))
    assert [bool(of_model.warnings) for of_model in marked] == [False, True, False]
    assert marked[1].records[0].warnings == ("scored on commit 222222222222 of the data, other models on another",)
    newest = mark_commits(results[:2])
    assert [bool(of_model.warnings) for of_model in newest] == [True, False]  # as many of each: the newest counts
