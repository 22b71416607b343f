"""`embark fetch` gets what the tasks need, and no more; then a run needs no network."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark import readers
from embark.cli import app
from embark.hub import Hub
from embark.readers import registry
from embark.readers.rows import open_rows
from embark.seams import Reader
from embark.tasks import TASKS
from embark.types import Classes, Dataset, EmbarkError, Item, Side, Source, Task, Text
from hub import FakeHub, client, parquet, png

ID = "org/pages"
FILES = {
    "data/test-00000-of-00001.parquet": parquet(
        {"image": [png("red"), png("blue"), png("red")], "label": [0, 1, 0]}, classes={"label": ["red", "blue"]}
    ),
    "data/train-00000-of-00001.parquet": parquet({"image": [png("green")] * 9, "label": [0] * 9}),
    "templates.txt": "a page of {}\n",
}


def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A reader of pictures with labels."""
    rows = open_rows(task.source, split, hub, expected=task.rows.get(split))
    pictures = [Item((one,)) for one in rows.media("image", "image") if one]
    names = rows.class_names("label") or ()
    prompts = [Item((Text(name),)) for name in names]
    sides = {"item": Side([str(at) for at in range(len(pictures))], pictures), "prompt": Side(names, prompts)}
    return Dataset(sides, Classes(np.array(rows.values("label")), np.arange(len(names)), names))


@pytest.fixture
def task(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task of the hub in the catalogue."""
    sha = hub.add(ID, FILES, card="# Pages\n")
    made = Task(
        "Pages", "Test", "zeroshot", "test-pages", Source(ID, sha), "accuracy", "Zero-shot", ("text", "image"),
        options={"files": ("templates.txt",)}, rows={"test": 3},
    )  # fmt: skip
    reader = Reader("test-pages", "Pictures with labels.", read, evaluators=("zeroshot",), files=readers.TABLES)
    monkeypatch.setitem(registry.OWN, "test-pages", reader)
    monkeypatch.setitem(TASKS._values, made.name, made)
    return made


def said(*words: str, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["fetch", *words, "--format", "json"])
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_fetch_downloads_the_files_of_the_split_and_no_others(hub: FakeHub, task: Task) -> None:
    needed = len(FILES["data/test-00000-of-00001.parquet"]) + len(FILES["templates.txt"]) + len("# Pages\n")
    before = said("-t", "Pages", "--dry-run")
    assert before["total"] == {"files": 3, "bytes": needed, "present": 8, "missing": needed - 8}  # the card is read
    assert not hub.asked("/lfs/")
    line = {"dataset": ID, "revision": task.source.revision, "files": 3, "bytes": needed}
    assert said("-t", "Pages")["datasets"] == [line | {"present": needed, "missing": 0}]
    assert len(hub.asked("/lfs/")) == 1
    asked = len(hub.requests)
    assert said("-t", "Pages")["total"]["missing"] == 0
    assert said("-t", "Pages", "--offline")["total"] == {"files": 3, "bytes": needed, "present": needed, "missing": 0}
    assert len(hub.requests) == asked


def test_after_fetch_a_run_needs_no_network(hub: FakeHub, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_OFFLINE", "yes")
    assert "Offline" in said("-t", "Pages", code=1)["problems"][0]["why"]
    monkeypatch.setenv("EMBARK_OFFLINE", "no")
    said("-t", "Pages")
    monkeypatch.setenv("EMBARK_OFFLINE", "yes")
    asked = len(hub.requests)
    run = embark.evaluate("embark/random", "Pages", show_progress=False)
    assert not run.skipped
    assert run.results[0].task == "Pages"
    assert len(hub.requests) == asked


def test_a_table_for_people(hub: FakeHub, task: Task, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["fetch", "-t", "Pages", "--home", str(tmp_path)])
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["dataset", "revision", "files", "bytes", "present", "missing"]
    assert lines[1][:3] == [ID, task.source.revision[:12], "3"]
    assert lines[2][:2] == ["all", "3"]
    assert lines[1][-1] == lines[2][-1] == "0"
    assert (tmp_path / "hub").is_dir()


def test_what_cannot_be_had_is_reported_and_the_rest_fetched(
    hub: FakeHub, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(task, name="Short", rows={"test": 4})
    gone = replace(task, name="Gone", source=Source("org/gone", "main"))
    for one in (short, gone):
        monkeypatch.setitem(TASKS._values, one.name, one)
    found = said("-t", "Gone", "-t", "Short", "-t", "Pages", code=1)
    assert [(one["tasks"], one["why"][:24]) for one in found["problems"]] == [
        (["Gone"], "There is no dataset org/"),
        (["Short"], "Dataset org/pages (test)"),
    ]
    assert found["total"]["missing"] == 0


def test_the_pocket_benchmark_needs_nothing() -> None:
    assert said("-b", "Pocket") == {
        "datasets": [],
        "total": {"files": 0, "bytes": 0, "present": 0, "missing": 0},
        "problems": [],
    }


def test_something_must_be_asked_for() -> None:
    assert CliRunner().invoke(app, ["fetch"]).exit_code == 2


def test_what_a_row_tells_about_its_files(hub: FakeHub) -> None:
    names = ("en/test-0", "en/train-0", "de/test-0", "corpus/corpus-0", "queries/test-0", "qrels/test-0", "data/test-0")
    sha = hub.add(ID, {f"{name}.parquet": b"" for name in names} | {"media.zip": b"", "other.zip": b""})

    def files(config: str | None = None, **fields: Any) -> list[str]:
        fields = {"evaluator": "retrieval", "reader": "paired", **fields}
        row = Task("X", "X", source=Source(ID, sha, config), metric="m", category="X", modalities=("text",), **fields)
        ((_, found),) = readers.needed_files(row, client())
        return [file.path.removesuffix(".parquet") for file in found]

    assert files() == ["data/test-0"]
    for learnt in {"options": {"train": "train"}}, {"evaluator": "probe"}:
        assert files("en", reader="labelled", **learnt) == ["en/test-0", "en/train-0"]
    assert files(subsets={"en": ("eng",), "de": ("deu",)}) == ["en/test-0", "de/test-0"]
    assert files("en", options={"corpus": ["test", "train"]}) == ["en/test-0", "en/train-0"]
    assert files("de", options={"configs": ["queries", "qrels"]}) == ["queries/test-0", "qrels/test-0"]
    assert files(options={"configs": (), "files": ["m*.zip"]}) == ["media.zip"]
    with pytest.raises(EmbarkError, match=r"could be data/test-0.parquet \(config default\), or qrels/test-0.parquet"):
        files(reader="beir")
    renamed = {"configs": {"corpus": "en", "qrels": "qrels"}, "splits": {"corpus": "train"}}
    assert files(reader="beir", options=renamed) == ["en/train-0", "queries/test-0", "qrels/test-0"]
    with pytest.raises(EmbarkError, match="no files for split 'test' of config 'fr'"):
        files("fr")
    none = Task("X", "X", "sts", "rendered-sts", Source("org/none", "main"), "accuracy", "X", ("text",))
    with pytest.raises(EmbarkError, match="There is no dataset"):
        readers.needed_files(none, client())
