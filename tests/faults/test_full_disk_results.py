"""A disk that is full when results are written: a message names how much is needed, and the next run goes on."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.results import Results
from embark.run import NothingScored
from embark.settings import load_settings
from folders import two_tasks


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file of this process may be longer: a write beyond that fails as on a disk without room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_names_what_results_need_and_the_run_resumes(
    tiny: embark.Encoder, pictures: Any, tmp_path: Path
) -> None:
    tasks = two_tasks(pictures())
    whole = embark.evaluate(tiny, tasks, show_progress=False)
    smallest = min(result.path.stat().st_size for result in whole.results if result.path)
    for size in (100, smallest - 100):  # nothing fits, or all but the scores
        folder = tmp_path / str(size)
        settings = load_settings(results=folder)
        with room(size), pytest.raises(NothingScored) as failure:
            embark.evaluate(tiny, tasks, settings=settings, show_progress=False)
        full = failure.value.run
        assert (full.results, {skip.kind for skip in full.skipped}) == ([], {"failed"})
        assert "There is no room for" in full.notes[0]
        assert " bytes (File too large). Make room, or choose another disk with --results" in full.notes[0]
        assert list(Results(folder).all()) == []
        assert not list(folder.rglob(".*.part"))
        again = embark.evaluate(tiny, tasks, settings=settings, show_progress=False)
        assert (again.computed, again.embedded, again.skipped) == (2, 0, [])
        assert [result.score for result in again.results] == [result.score for result in whole.results]
