"""A branch that moved: its scores are computed again, and scores of different commits never stand together unmarked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import embark
from embark.run import Run
from embark.settings import load_settings
from embark.types import Array, EmbarkError, Source, Task
from hub import FakeHub, parquet, png

ID = "org/pages"
TASK = Task(
    "BranchPages", "Test", "zeroshot", "labelled", Source(ID, "main"), "accuracy", "Zero-shot", ("text", "image"),
    columns={"image": "image", "label": "label"}, labels=("red", "blue"), templates=("a page of {}",),
)  # fmt: skip


def publish(hub: FakeHub, *colors: str) -> str:
    """A commit of the branch: red pages, whatever their color."""
    table = parquet({"image": [png(color) for color in colors], "label": [0] * len(colors)})
    return hub.add(ID, {"data/test-00000-of-00001.parquet": table})


def run(model: embark.Encoder, **options: Any) -> Run:
    return embark.evaluate(model, TASK, settings=load_settings(**options), show_progress=False)


def alike(items: Any) -> Array:
    return np.ones((len(items), 3), np.float32)


@pytest.fixture
def other() -> embark.Encoder:
    return embark.encoder(text=alike, image=alike, name="test/other", revision="1")


def test_a_score_is_computed_again_when_its_branch_moved(hub: FakeHub, tiny: embark.Encoder) -> None:
    first = publish(hub, "red", "red")
    [before] = run(tiny).results
    assert (before.dataset_revision, before.score) == (first, 1.0)
    assert run(tiny).computed == 0
    second = publish(hub, "red", "blue")
    again = run(tiny)
    assert (again.computed, again.skipped) == (1, [])
    assert (again.results[0].dataset_revision, again.results[0].score) == (second, 0.5)
    assert run(tiny).computed == 0


def test_offline_the_commit_of_the_cache_counts(hub: FakeHub, tiny: embark.Encoder) -> None:
    publish(hub, "red", "red")
    run(tiny)
    publish(hub, "red", "blue")
    assert run(tiny, offline=True).computed == 0
    embark.fetch(TASK)
    assert run(tiny, offline=True).results[0].score == 0.5


def test_a_hub_that_is_down_costs_no_score_and_a_note_says_so(
    hub: FakeHub, tiny: embark.Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(hub, "red", "red")
    run(tiny)
    monkeypatch.setenv("EMBARK_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    again = run(tiny)
    assert (again.computed, len(again.results)) == (0, 1)
    assert again.notes[0].startswith(f"scores on disk stand, though main of {ID} could not be looked up")


def test_scores_of_two_commits_are_marked_and_not_compared(
    hub: FakeHub, tiny: embark.Encoder, other: embark.Encoder
) -> None:
    first = publish(hub, "red", "red")
    run(tiny)
    publish(hub, "red", "blue")
    run(other)
    mark = f"scored on commit {first[:12]} of the data, other models on another"
    board = embark.leaderboard(tasks=TASK, include="own")
    loaded = embark.load_results(tasks=TASK, include="own")
    for table in (board.table(), board.tasks_table(), loaded.table()):
        assert f"(a) {mark}" in table.note_lines()
        assert "(a)" in str(table)
    assert loaded.to_frame().set_index("model")["warnings"].to_dict() == {"test/tiny": mark, "test/other": ""}
    with pytest.raises(EmbarkError, match=f"of different commits of the data .{first[:12]} and"):
        embark.compare("test/tiny", "test/other")
    run(tiny)
    assert mark not in embark.leaderboard(tasks=TASK, include="own").table().note_lines()
    assert len(embark.compare("test/tiny", "test/other").pairs) == 1
