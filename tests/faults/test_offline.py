"""Offline and data absent: fails before any model loads, listing what to fetch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import embark
from embark.run import evaluate
from embark.settings import load_settings
from embark.types import EmbarkError, Source, Task
from hub import FakeHub, parquet

FILES = {
    "corpus/test-0.parquet": parquet({"id": ["d1", "d2"], "text": ["a red page", "a blue page"]}),
    "queries/test-0.parquet": parquet({"id": ["q1", "q2"], "text": ["red", "blue"]}),
    "qrels/test-0.parquet": parquet({"query-id": ["q1", "q2"], "corpus-id": ["d1", "d2"], "score": [1, 1]}),
}


@pytest.fixture
def tasks(hub: FakeHub) -> list[Task]:
    """Three tasks of the hub; the data of the last is here."""
    rows = []
    for name in ("First", "Second", "Here"):
        source = Source(f"org/{name.lower()}", hub.add(f"org/{name.lower()}", FILES | {"name.txt": name}))
        rows.append(Task(name, "Test", "retrieval", "beir", source, "ndcg_at_10", "Retrieval", ("text",)))
    embark.fetch(rows[-1:], show_progress=False)
    return rows


def test_missing_data_is_listed_before_a_model_is_loaded(
    hub: FakeHub, tasks: list[Task], tiny: embark.Encoder, tmp_path: Path
) -> None:
    requests = len(hub.requests)
    offline = replace(load_settings(), offline=True)
    # The folder holds no checkpoint: loading it would be another error.
    with pytest.raises(EmbarkError, match=r"data of 2 tasks .*: First, Second\. .*embark fetch -t 'First' -t 'Second'"):
        evaluate(str(tmp_path), tasks, settings=offline)
    assert len(hub.requests) == requests
    assert [result.task for result in evaluate(tiny, tasks[-1:], settings=offline).results] == ["Here"]


def test_what_is_scored_already_needs_no_data(hub: FakeHub, tasks: list[Task], tiny: embark.Encoder) -> None:
    evaluate(tiny, tasks)
    elsewhere = replace(load_settings(), offline=True, home=load_settings().home / "other")
    assert len(evaluate(tiny, tasks, settings=elsewhere).results) == 3
