"""A stranger's results folder, and data of the hub that is not free: nothing private is opened, or gets onto a page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.data import readers
from embark.data.fetch import Hub
from embark.results import CHECKSUM, META, OURS, Results, _checksum
from embark.results.task_rows import from_json
from embark.run.score import fingerprint_of
from embark.settings import load_settings
from embark.types import EmbarkError, Task
from hub import FakeHub, parquet, png

CANARY = "CANARY7f3"
COLORS = ("red", "green", "blue")
TABLE = "file,caption,label\n" + "".join(f"{color}.png,a {color} page of {CANARY},{color}\n" for color in COLORS)
CREDENTIALS = json.dumps([{"caption": f"{CANARY} {color}", "label": color} for color in COLORS])

Change = Callable[[dict[str, Any], Path], None]


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A home with credentials, and pictures that have captions and classes."""
    folder = tmp_path / "alice"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "metadata.csv").write_text(TABLE)
    for color in COLORS:
        (folder / "photos" / f"{color}.png").write_bytes(png(color))
    (folder / "photos" / f"{CANARY}.txt").write_text(CANARY)
    (folder / "credentials.json").write_text(CREDENTIALS)
    (folder / "labels.csv").write_text(f"topic,query_id,{CANARY}\na,b,c\n")
    pq.write_table(
        pa.table({name: [CANARY] * 3 for name in ("split", "subset", "id", "label")}), folder / "private.parquet"
    )
    return folder


@pytest.fixture
def hostile(private: Path, tiny: embark.Encoder, tmp_path: Path) -> Path:
    """Results of a stranger whose rows name that folder: what an evaluation on a machine alike would have written."""
    settings = load_settings(tmp_path / "stranger", tmp_path / "hostile")
    embark.evaluate(tiny, embark.folder_task(private / "photos", kinds="retrieval"), settings=settings, show_progress=False)
    return settings.results


def rewrite(path: Path, change: Change, private: Path) -> None:
    """Change the row of a result as somebody would who knows how files are checked."""
    content = json.loads(path.read_bytes())
    change(content[OURS]["row"], private)
    with suppress(Exception):
        row = from_json(content[OURS]["row"])
        split, subset = row.parts[0]
        entries = next(iter(content["scores"].values()))
        entries[0][OURS]["protocol"] = fingerprint_of(row, split, subset)
        entries[0]["hf_subset"] = subset
        content["scores"] = {split: entries}
    content[OURS].pop(CHECKSUM, None)
    content[OURS].pop("outcomes", None)
    content[OURS][CHECKSUM] = _checksum(content)
    path.write_text(json.dumps(content))


def of_source(**facts: Any) -> Change:
    """A change of the source; {} in texts is the private folder."""

    def change(row: dict[str, Any], private: Path) -> None:
        row["source"] |= {
            name: value.replace("{}", str(private)) if isinstance(value, str) else value
            for name, value in facts.items()
        }

    return change


def credentials(row: dict[str, Any], private: Path) -> None:
    row["source"] |= {"id": str(private), "revision": "1", "files": {"test": ["credentials.json"]}}
    row |= {"columns": {"text": "caption", "label": "label"}, "reader": "labelled", "evaluator": "zeroshot"}
    row |= {"modalities": ["text"], "metric": "accuracy", "templates": ["{}"], "labels": list(COLORS)}


def labels_file(row: dict[str, Any], private: Path) -> None:
    row |= {"reader": "ark", "columns": {"topic": "topic", "query": "id", "document": "id"}}
    row["options"] = {"topic": "a", "labels": str(private / "labels.csv")}


def listing(row: dict[str, Any], private: Path) -> None:
    row["source"] |= {"id": str(private / "photos"), "revision": "1", "files": {}, "config": "nothing"}


def folder_reader(row: dict[str, Any], private: Path) -> None:
    row |= {"reader": "folder", "columns": {"file": "file", "caption": "caption"}, "options": {"allow_outside": True}}
    row["source"] |= {"revision": "1", "files": {}}


def conditions(row: dict[str, Any], private: Path) -> None:
    row["options"] = {"reader": row["reader"], "conditions": {"noise": {"image": "file"}}, **row["options"]}
    row |= {"reader": "conditions", "evaluator": "robustness", "params": {"base": "retrieval"}}


def hidden_variants(row: dict[str, Any], private: Path) -> None:
    row["variants"] = {"paper": {"source": dict(row["source"])}, "other": {"reader": "folder"}}


def unclaimed(row: dict[str, Any], private: Path) -> None:
    row["claimed"] = False
    row["source"]["claimed"] = False


CHANGES: dict[str, Change] = {
    "content": lambda row, private: None,
    "any revision": of_source(revision="1"),
    "no revision": of_source(revision=""),
    "a dotted path": of_source(id="{}/../alice/photos", revision="1"),
    "home": of_source(id="~/photos", revision="1"),
    "a file address": of_source(id="file://{}/photos", revision="1"),
    "a Windows share": of_source(id=r"\\evil.example\share", revision="1"),
    "a drive": of_source(id="C:\\Users\\alice", revision="1"),
    "files elsewhere": of_source(id="{}/photos", revision="1", files={"test": ["../credentials.json"]}),
    "a number": of_source(id=7),
    "nothing": of_source(id=None),
    "an empty path": of_source(id=""),
    "a long path": of_source(id="/" + "a/" * 3000),
    "a null": of_source(id="/\0"),
    "credentials": credentials,
    "labels": labels_file,
    "listing": listing,
    "folder": folder_reader,
    "conditions": conditions,
    "variants": hidden_variants,
    "unclaimed": unclaimed,
    "another name": lambda row, private: row.update(name="PocketFlagZeroShot"),
    "an unknown reader": lambda row, private: row.update(reader="nobody's"),
    "an unknown evaluator": lambda row, private: row.update(evaluator="nobody's"),
    "texts for tables": lambda row, private: row.update(columns="file", options="x", params=3, subsets=["a"]),
    "lists for texts": lambda row, private: row.update(family=["a"], category={"a": 1}, metric=None),
    "a deep value": lambda row, private: row.update(tags=json.loads("[" * 200 + "]" * 200)),
}  # fmt: skip

opened: list[str] | None = None


def note(event: str, arguments: tuple[Any, ...]) -> None:
    if opened is not None and event in ("open", "os.scandir", "os.listdir", "glob.glob", "pathlib.Path.glob"):
        opened.extend(os.fsdecode(name) for name in arguments[:1] if isinstance(name, (str, bytes)))


sys.addaudithook(note)


@contextmanager
def watched(private: Path) -> Iterator[None]:
    """A block in which nothing of the private folder is opened or listed."""
    global opened
    opened = []
    try:
        yield
        assert not [name for name in opened if str(private) in name or str(private) in os.path.realpath(name)]
    finally:
        opened = None


def said(*words: str | Path) -> str:
    """All that a command says, whether it works or not."""
    result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, (EmbarkError, SystemExit, type(None))), result.exc_info
    return f"{result.output} {result.exception}"


def written(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def has_nothing(private: Path, files: Mapping[str, bytes], words: str = "") -> None:
    """No canary, and no picture, of the private folder is in what was written or said."""
    pictures = [path.read_bytes() for path in (private / "photos").glob("*.png")]
    for name, content in files.items():
        assert CANARY.encode() not in content, name
        assert not any(picture in content for picture in pictures), name
        assert "/media/" not in name
    assert CANARY not in words


# ── a stranger's results ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_of_a_result_opens_nothing(
    name: str, private: Path, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where all media are wanted."""
    monkeypatch.setenv("HOME", str(private))
    for path in hostile.glob("*/*/photosRetrieval.json"):
        rewrite(path, CHANGES[name], private)
    with watched(private):
        words = said(
            "site", tmp_path / "page", "--own", "--with-media", "--results", hostile, "--home", tmp_path / "home"
        )
    has_nothing(private, written(tmp_path / "page"), words)

