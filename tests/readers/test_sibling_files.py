"""Media that tables of text name: files of a folder or of the hub."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from embark import readers
from embark.own.tasks_file import local_source
from embark.readers.rows import open_rows
from embark.types import EmbarkError, Source, Task
from hub import FakeHub, client, png

FILES: dict[str, bytes | str] = {
    "tables/test.csv": "file,label\nred.png,red\nextra/blue.png,blue\n,none\n",
    "tables/lists.jsonl": json.dumps({"files": ["red.png", "extra/blue.png"]})
    + "\n"
    + json.dumps({"files": None})
    + "\n",
    "tables/red.png": png("red"),
    "extra/blue.png": png("blue"),
}
PATTERNS = {"test": ("tables/test.csv",), "lists": ("tables/lists.jsonl",)}


@pytest.fixture(params=["hub", "folder"])
def source(request: pytest.FixtureRequest, hub: FakeHub, tmp_path: Path) -> Source:
    """The same data in both places."""
    if request.param == "hub":
        return Source("me/pages", hub.add("me/pages", FILES), files=PATTERNS)
    for name, data in FILES.items():
        path = tmp_path / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return local_source(tmp_path / "pages", files=PATTERNS)


def test_names_lead_from_the_table_or_from_the_root(source: Source, hub: FakeHub) -> None:
    red, blue, none = open_rows(source, "test", client()).media("image", "file")
    assert red is not None
    assert blue is not None
    assert (red.read(), blue.read(), none) == ((png("red"),), (png("blue"),), None)
    [[one, other], empty] = open_rows(source, "lists", client()).list_media("image", "files")
    assert (one.read(), other.read(), empty) == ((png("red"),), (png("blue"),), [])
    if source.id != "me/pages":
        assert hub.requests == []


def test_a_file_that_is_not_there_is_named(source: Source, hub: FakeHub) -> None:
    with pytest.raises(EmbarkError, match="has no file 'red'"):
        open_rows(source, "test", client()).media("image", "label")


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match="There is no folder"):
        client().files(str(tmp_path / "gone"), "1")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Two pictures, clean and dark."""
    for name in ("red", "blue", "dark"):
        (tmp_path / f"{name}.png").write_bytes(png("black" if name == "dark" else name))
    (tmp_path / "test.csv").write_text("file,dark,some,label\nred.png,dark.png,,red\nblue.png,dark.png,blue.png,blue\n")
    return Task(
        "Dark", "Own", "robustness", "conditions", local_source(tmp_path), "mean_corrupted", "Own", ("text", "image"),
        columns={"image": "file", "label": "label"}, params={"base": "zeroshot", "base_metric": "accuracy"},
        options={"reader": "labelled", "side": "item", "conditions": {"dark": {"image": "dark"}}},
    )  # fmt: skip


def test_conditions_replace_one_side(task: Task) -> None:
    data = readers.read(task, "test", "default", client())
    assert list(data.sides) == ["item", "prompt", "item:dark"]
    assert data.sides["item:dark"].ids == data.sides["item"].ids


def test_conditions_need_the_same_items_and_their_options(task: Task) -> None:
    options = {**task.options, "missing": "skip", "conditions": {"some": {"image": "some"}}}
    with pytest.raises(EmbarkError, match="under 'some', side 'item' has other ids than in the clean task"):
        readers.read(replace(task, options=options), "test", "default", client())
    with pytest.raises(EmbarkError, match="needs the option side and conditions"):
        readers.read(replace(task, options={"reader": "labelled"}), "test", "default", client())
