"""Fault 4 and A3: flipped bits in any file of the store never reach a score; damaged vectors are embedded again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import embark
from cases import slow
from embark.settings import load_settings
from embark.store import Space
from folders import two_tasks
from segments import flip

TASK = "PocketFlagZeroShot"


def scores(run: embark.types.Run) -> list[float]:
    return [result.score for result in run.results]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[embark.types.Run, Path]:
    """A run, and the folder with its home and results. Copy it."""
    folder = tmp_path_factory.mktemp("sound")
    settings = load_settings(folder / "home", folder / "results")
    return embark.evaluate("embark/pocket", TASK, settings=settings, show_progress=False), folder


@pytest.fixture
def scored(sound: tuple[embark.types.Run, Path], tmp_path: Path) -> tuple[embark.types.Run, embark.Settings]:
    """A run, and settings with a copy of its home and results."""
    before, folder = sound
    copy = shutil.copytree(folder, tmp_path / "copy")
    return before, load_settings(copy / "home", copy / "results")


@pytest.mark.parametrize("place", ["index", *slow("vectors")])
def test_flipped_bits_are_found_and_embedded_again(
    scored: tuple[embark.types.Run, embark.Settings], place: str
) -> None:
    before, settings = scored
    paths = list(settings.store.glob("*/*.vectors"))
    for path in paths:
        content = bytearray(path.read_bytes())
        start = int.from_bytes(content[16:24], "little") * 44 // 4096 * 4096 + 4096  # of the rows
        damage = slice(start, None) if place == "vectors" else slice(60, 500)
        content[damage] = bytes(len(content[damage]))  # zeroes, as a broken disk gives
        path.write_bytes(content)
        os.utime(path, (0, 0))
    run = embark.evaluate("embark/pocket", TASK, settings=settings, rescore=True, show_progress=False)
    assert scores(run) == scores(before)
    assert run.embedded == before.embedded
    assert run.damaged == (run.embedded if place == "vectors" else 0)
    assert any("embedded again" in line for line in run.summary()) == (place == "vectors")
    again = embark.evaluate("embark/pocket", TASK, settings=settings, rescore=True, show_progress=False)
    assert (scores(again), again.embedded, again.damaged) == (scores(before), 0, 0)
    assert len(Space(paths[0].parent).verify()) == len(paths)


def test_one_flipped_bit_costs_one_vector(scored: tuple[embark.types.Run, embark.Settings]) -> None:
    before, settings = scored
    path = next(settings.store.glob("*/*.vectors"))
    content = bytearray(path.read_bytes())
    content[-1000] ^= 0x40
    path.write_bytes(content)
    os.utime(path, (0, 0))
    run = embark.evaluate("embark/pocket", TASK, settings=settings, rescore=True, show_progress=False)
    assert (scores(run), run.embedded, run.damaged) == (scores(before), 1, 1)


def test_ranked_lists_embed_damaged_vectors_again(tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    retrieval, _ = two_tasks(pictures())
    (whole,) = embark.exchange.rank(tiny, [retrieval], show_progress=False)
    paths = list(load_settings().store.rglob("*.vectors"))
    for path in paths:
        flip(path, path.stat().st_size - 1)
    (again,) = embark.exchange.rank(tiny, [retrieval], show_progress=False)
    assert (again.documents, again.scores.tolist()) == (whole.documents, whole.scores.tolist())
    assert len(list(load_settings().store.rglob("*.vectors"))) > len(paths)


def test_damage_that_another_task_has_found_is_mended_for_all(tiny: embark.Encoder, pictures: Any) -> None:
    """The first task finds the damage; for the others, which need the same vectors, they are then absent."""
    tasks = [*two_tasks(pictures("Pages")), *two_tasks(pictures("Copies"))]
    settings = replace(load_settings(), workers=1)  # one after the other
    before = embark.evaluate(tiny, tasks, settings=settings, show_progress=False)
    for path in settings.store.glob("*/*.vectors"):
        content = path.read_bytes()
        path.write_bytes(content[:4096] + bytes(len(content) - 4096))
        os.utime(path, (0, 0))
    run = embark.evaluate(tiny, tasks, settings=settings, rescore=True, show_progress=False)
    assert (scores(run), run.skipped) == (scores(before), [])
    assert run.damaged == before.embedded
