"""Every row of MIEB, read from a small dataset of its shape, embedded and scored."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

import embark
from embark import readers
from embark.tasks.mieb import TASKS
from embark.types import Task
from hub import FakeHub, client
from samples_mieb import sample


@pytest.mark.slow
@pytest.mark.parametrize("row", TASKS, ids=lambda task: task.name)
def test_every_row_runs_on_data_of_its_shape(hub: FakeHub, row: Task) -> None:
    files, card = sample(row)
    hub.add(row.source.id, files, revision=row.source.revision, card=card)
    run = embark.evaluate("embark/random", replace(row, rows={}), show_progress=False)  # of other sizes, of course
    assert not run.skipped
    here = client()
    told = {file.path for _, files in readers.needed_files(row, here) for file in files}
    for split, subset in product(row.source.splits, row.subsets):
        readers.read(replace(row, rows={}), split, subset, here)
    assert set(here.opened[row.source.id, row.source.revision]) - {"README.md"} == told
    [result] = run.results
    parts = {(record.split, record.subset) for record in result.records}
    assert parts == {(split, subset) for split in row.source.splits for subset in row.subsets}
    assert all(record.metric == row.metric for record in result.records)
    assert -1 <= result.score <= 1
    for protocol in row.variants:
        again = embark.evaluate("embark/random", replace(row.under(protocol), rows={}), show_progress=False)
        assert not again.skipped
        assert not again.embedded
