"""Galleries by several processes are those by one, and a gallery that kills its process costs itself alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.results import Results
from embark.results.task_rows import known_tasks
from embark.site import gallery_files
from embark.site.gallery_files import GalleryFiles


class Deadly:
    """A result that kills the process it is handed to."""

    def __reduce__(self) -> Any:
        return os._exit, (3,)


def allow_two_processes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gallery_files, "cores", lambda: 2)
    patch.setattr(gallery_files, "ENOUGH_GALLERIES", 1)


def written(folder: Path) -> dict[str, bytes]:
    """The galleries of a page and their media."""
    paths = [path for part in ("data/items", "media") for path in (folder / part).iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_two_processes_write_what_one_does(
    scored: embark.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = embark.site.export(tmp_path / "one", include="own", settings=scored)
    allow_two_processes(monkeypatch)
    two = embark.site.export(tmp_path / "two", include="own", settings=scored)
    assert written(one.folder) == written(two.folder)
    assert len(written(two.folder)) > 2
    assert two.notes == ()


@pytest.mark.slow
def test_a_gallery_that_kills_its_process_costs_itself_alone(
    scored: embark.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_two_processes(monkeypatch)
    results = list(Results(scored.results).all())
    first, second = (known_tasks(results, scored.home)[name] for name in sorted({result.task for result in results}))
    with GalleryFiles(tmp_path / "page", False, scored, 2) as galleries:
        galleries.add(first, [Deadly()])  # type: ignore[list-item]
        galleries.add(second, [result for result in results if result.task == second.name])
        assert list(galleries.files()) == [second.name]
    assert galleries.notes == [
        f"The items of {first.name} are not shown: reading them killed its worker twice (exit status 3)."
    ]


def test_where_no_process_can_be_started_this_one_does_the_work(
    scored: embark.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_two_processes(monkeypatch)
    monkeypatch.setattr("sys.executable", str(tmp_path / "missing"))
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    assert len(written(site.folder)) > 2
