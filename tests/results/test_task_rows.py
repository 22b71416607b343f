"""Rows of tasks beside their results: what is written comes back, for every row of the catalogue and for own tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import embark
from embark.results import Results, _json
from embark.results.task_rows import from_json, known_tasks, to_json
from embark.run.score import fingerprint_of
from embark.settings import load_settings
from embark.tasks import TASKS


def test_every_row_comes_back() -> None:
    for task in TASKS.values():
        row = from_json(json.loads(_json(to_json(task))))
        assert row.parts == task.parts
        assert fingerprint_of(row, *row.parts[0]) == fingerprint_of(task, *task.parts[0]), task.name
        assert replace(row, params=task.params, options=task.options, variants=task.variants) == task


def test_a_result_carries_the_row_of_an_own_task_and_not_of_a_known_one(
    tiny: embark.Encoder, pictures: object, elsewhere: Path
) -> None:
    rows = embark.folder_task(pictures())  # type: ignore[operator]
    embark.evaluate(tiny, rows, show_progress=False)
    results = list(Results(load_settings().results).all())
    assert [result.row for result in sorted(results, key=lambda result: result.task)] == rows
    known = known_tasks(results)
    assert {row.name for row in rows} <= known.keys()
    assert len(known) == len(TASKS) + len(rows)
    embark.evaluate("embark/random", "PocketFlagZeroShot", show_progress=False)
    [flags] = [result for result in Results(load_settings().results).all() if result.task == "PocketFlagZeroShot"]
    assert flags.row is None


def test_the_row_of_the_newest_result_counts(tiny: embark.Encoder, pictures: object) -> None:
    rows = embark.folder_task(pictures())  # type: ignore[operator]
    embark.evaluate(tiny, rows, show_progress=False)
    [result, *_] = [result for result in Results(load_settings().results).all() if result.task == rows[0].name]
    newer = replace(result, date=result.date + 1, row=replace(rows[0], notes=("newer",)))
    assert known_tasks([newer, result])[rows[0].name].notes == ("newer",)
