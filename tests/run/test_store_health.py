"""The store's health: its size by model, its damage, and what mends and cleans it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import embark
from embark.cli import main
from embark.own import tables as own_tables
from embark.settings import Settings, load_settings
from embark.store import Store
from segments import flip, holds, write


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    write(Store(settings.store).space("ab"), range(3))
    write(Store(settings.store).space("cd"), range(50), range(50, 60))
    return settings


def test_size_by_space_the_largest_first(settings: Settings) -> None:
    health = embark.store.size(settings)
    assert [(space.space, space.vectors, space.segments) for space in health.spaces] == [("cd", 60, 2), ("ab", 3, 1)]
    assert sum(space.bytes for space in health.spaces) == sum(
        path.stat().st_size for path in settings.store.rglob("*") if path.is_file()
    )
    assert "vectors" in str(health)
    assert "63 vectors" in health.notes[0]


def test_size_tells_whose_vectors_they_are(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    embark.evaluate("embark/random", "PocketFlagZeroShot", settings=settings, show_progress=False)
    (space,) = embark.store.size(settings).spaces
    assert space.models == ("embark/random",)


def test_an_empty_store_has_a_size(tmp_path: Path) -> None:
    health = embark.store.size(load_settings(tmp_path / "none", tmp_path / "results"))
    assert (health.spaces, health.damage) == ((), ())


def test_damage_is_listed_mended_and_gone(settings: Settings) -> None:
    path = min(settings.store.glob("cd/*"))
    flip(path, path.stat().st_size - 12)
    health = embark.store.check(settings)
    assert health.damage == (f"{path}: 1 of 50 vectors are damaged; embark store repair leaves out what is damaged",)
    assert health.damage[0] in health.notes
    assert sum(space.mended for space in embark.store.repair(settings).spaces) == 1
    assert embark.store.check(settings).damage == ()
    assert holds(Store(settings.store).space("cd"), [*range(49), *range(50, 60)])


def test_a_folder_of_format_1_is_named_and_ignored(settings: Settings) -> None:
    folder = settings.store / "ab" / "20260101T000000-1-5c06fbcf"
    folder.mkdir()
    (folder / "head.json").write_text("{}")
    health = embark.store.check(settings)
    assert f"{folder} has vectors in a format that embark does not read: delete this folder." in health.notes
    assert (health.damage, sum(space.vectors for space in health.spaces)) == ((), 63)


def test_leftovers_are_deleted(settings: Settings) -> None:
    part = settings.store / "ab" / "1.vectors.part"
    part.write_bytes(b"x" * 1234)
    os.utime(part, (time.time() - 90_000,) * 2)
    assert sum(space.freed for space in embark.store.clean(settings).spaces) == 1234
    assert embark.store.check(settings).damage == ()


def test_data_given_in_python_is_deleted_once_it_has_no_result_and_no_use(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    tables = [[{"text": f"{word} {number}", "label": word} for number in range(4) for word in "xyz"[: 2 + more]]
              for more in (0, 1)]  # fmt: skip
    scored, unscored = (embark.task(table, "clustering", settings=settings) for table in tables)
    embark.evaluate("embark/random", scored, settings=settings, show_progress=False)
    for folder in (settings.home / "own").iterdir():
        os.utime(folder, (time.time() - own_tables.UNUSED - 60,) * 2)
    size = embark.store.size(settings)
    assert size.own_data > 0
    assert "Data given in Python takes another" in size.notes[1]
    embark.task(tables[1], "clustering", settings=settings)  # it is used again
    assert embark.store.clean(settings).own_freed == 0
    os.utime(unscored.source.id, (0, 0))
    cleaned = embark.store.clean(settings)
    assert cleaned.own_freed == size.own_data - cleaned.own_data > 0
    assert [str(folder) for folder in (settings.home / "own").iterdir()] == [scored.source.id]
    assert embark.task(tables[1], "clustering", settings=settings) == unscored


def test_commands(settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["embark", "store", *words, "--home", str(settings.home)])
        with pytest.raises(SystemExit) as left:
            main()
        return (int(left.value.code or 0), *capsys.readouterr())

    monkeypatch.setenv("EMBARK_RESULTS", str(settings.results))
    assert command("check")[0] == 0
    path = min(settings.store.glob("cd/*"))
    flip(path, 60)
    code, out, err = command("check", "--format", "json")
    assert (code, json.loads(out)["spaces"][0]["space"]) == (1, "cd")
    assert str(path) in err
    assert command("size")[0] == 0
    assert "1 damaged object" in command("repair")[2]
    assert "0 B freed" in command("gc")[2]
    assert command("check")[0] == 0
