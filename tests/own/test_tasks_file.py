"""Users' own tasks from a TOML file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.own.tasks_file import local_source
from embark.run import NothingScored
from embark.types import EmbarkError, Pool
from hub import FakeHub, parquet, png

Pictures = Callable[..., Path]

FULL = """
[[task]]
name = "Pages"
evaluator = "zeroshot"
reader = "labelled"
modalities = ["text", "image"]
columns = { image = "file", label = "label" }
labels = ["red", "green", "blue"]
templates = ["a {} page", "{}"]
chance = 0.33
tags = { capability = "colours" }
rows = { test = 3 }
subsets = { default = ["eng-Latn"] }
pools = [{ side = "item", items = 3, id = "pages/item" }]

[task.source]
id = "Pages"
files = { test = ["metadata.csv"] }
license = "CC0-1.0"

[task.variants.bare]
templates = ["{}"]
"""


@pytest.fixture
def file(tmp_path: Path, pictures: Pictures) -> Path:
    """A tasks file beside the folder that it names."""
    pictures()
    path = tmp_path / "tasks.toml"
    path.write_text(FULL)
    return path


def test_a_table_becomes_a_row(file: Path) -> None:
    [task] = embark.load_tasks(file)
    assert (task.name, task.family, task.category, task.metric) == ("Pages", "Own", "Zero-shot", "accuracy")
    assert task.templates == ("a {} page", "{}")
    assert task.source.id == str(file.parent / "Pages")
    assert task.source.files == {"test": ("metadata.csv",)}
    assert (task.subsets, task.pools) == ({"default": ("eng-Latn",)}, (Pool("item", 3, "pages/item"),))
    assert task.under("bare").templates == ("{}",)


def test_it_is_read_from_the_folder_and_scored(file: Path, tiny: embark.Encoder) -> None:
    run = embark.evaluate(tiny, embark.load_tasks(file), show_progress=False)
    assert run.skipped == []
    assert run.results[0].score == 1.0


def test_a_folder_that_changes_has_another_revision(file: Path) -> None:
    before = embark.load_tasks(file)[0].source.revision
    assert embark.load_tasks(file)[0].source.revision == before
    (file.parent / "Pages" / "red.png").write_bytes(png("black"))
    assert embark.load_tasks(file)[0].source.revision != before
    stated = FULL.replace('id = "Pages"', 'id = "Pages"\nrevision = "2"')
    file.write_text(stated)
    assert embark.load_tasks(file)[0].source.revision == "2"


def test_what_embark_writes_into_the_folder_is_not_its_state(
    file: Path, tiny: embark.Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = file.parent / "Pages"
    file.rename(folder / "tasks.toml").write_text(FULL.replace('id = "Pages"', 'id = "."'))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("EMBARK_RESULTS", "results")
    monkeypatch.setenv("EMBARK_HOME", str(folder / "kept" / "here"))
    runs = [embark.evaluate(tiny, embark.load_tasks("tasks.toml"), show_progress=False) for _ in range(3)]
    assert [(run.computed, run.results[0].score) for run in runs] == [(1, 1.0), (0, 1.0), (0, 1.0)]
    before = local_source(folder).revision
    (folder / "kept" / "here" / "more.csv").write_text("n\n1\n")
    assert local_source(folder).revision == before
    (folder / "kept" / "more.csv").write_text("n\n1\n")
    assert local_source(folder).revision != before


def test_items_are_of_the_modalities_that_the_row_states(file: Path, reader_of_colours: embark.Encoder) -> None:
    file.write_text(FULL.replace('["text", "image"]', '["text"]'))
    with pytest.raises(NothingScored) as failure:
        embark.evaluate(reader_of_colours, embark.load_tasks(file), show_progress=False)
    assert [skip.why for skip in failure.value.run.skipped] == [
        "Task Pages has items of image, but its `modalities` are text. Correct its `modalities` or its `columns`."
    ]


def test_data_may_be_on_the_hub(hub: FakeHub, tmp_path: Path, tiny: embark.Encoder) -> None:
    table = parquet({"image": [png("red"), png("blue")], "label": ["red", "blue"]})
    sha = hub.add("me/pages", {"data/test-00000-of-00001.parquet": table})
    text = FULL.replace('image = "file"', 'image = "image"').replace(
        'id = "Pages"', f'id = "me/pages"\nrevision = "{sha}"'
    )
    text = text.replace('files = { test = ["metadata.csv"] }', "").replace("test = 3", "test = 2")
    (tmp_path / "hub.toml").write_text(text)
    assert embark.evaluate(tiny, embark.load_tasks(tmp_path / "hub.toml"), show_progress=False).results[0].score == 1.0


def test_the_command_line_takes_the_file(file: Path) -> None:
    ran = CliRunner().invoke(
        app, ["run", "-m", "embark/random", "--tasks-file", str(file), "--protocol", "bare", "--format", "json"]
    )
    assert [row["task"] for row in json.loads(ran.stdout)["results"]] == ["Pages"]
    planned = CliRunner().invoke(app, ["plan", "-m", "embark/random", "--tasks-file", str(file), "--format", "json"])
    assert json.loads(planned.stdout)["models"][0]["tasks"][0]["items"] == 3 + 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("templates =", "template =", r"tasks\.toml, task Pages: field 'template': .*Did you mean templates"),
        ('"zeroshot"', '"zero-shot"', "field 'evaluator': .*Did you mean zeroshot"),
        ('"labelled"', '"labeled"', "field 'reader': .*Did you mean labelled"),
        ('"image"]', '"images"]', "field 'modalities': .*Did you mean image"),
        ('name = "Pages"', "", "task number 1: field 'name': is missing"),
        ('reader = "labelled"', "", "field 'reader': is missing"),
        ("chance = 0.33", 'chance = "low"', "field 'chance': must be a number from 0 to 1, not 'low'"),
        ("test = 3 }", "test = true }", "field 'rows.test': must be a whole number, not True"),
        ('templates = ["a {} page", "{}"]', 'templates = "{}"', "field 'templates': must be a list of texts"),
        ("columns = {", "mixed = 1\ncolumns = {", "field 'mixed': must be true or false"),
        (
            "columns = {",
            'options = { lables = "x" }\ncolumns = {',
            "field 'options': .*'labelled' named 'lables'.*labels",
        ),
        (
            "columns = {",
            'instructions = { "query:defalt" = "Find it." }\ncolumns = {',
            "field 'instructions.query:defalt': .*Did you mean default",
        ),
        ('id = "Pages"', 'id = "./Sheets"', "field 'source.id': there is no folder .*Sheets"),
        ('id = "Pages"', 'id = "me/pages"', "field 'source.revision': is missing; data of the hub is pinned"),
        ('license = "CC0-1.0"', 'licens = "CC0-1.0"', "field 'source.licens': .*Did you mean license"),
        ('["metadata.csv"]', '"metadata.csv"', "field 'source.files.test': must be a list of texts"),
        ("[task.variants.bare]\ntemplates", "[task.variants.bare]\ntemplate", "field 'variants.bare.template'"),
        ('id = "pages/item" }', 'name = "pages/item" }', "field 'pools.name'"),
        (', id = "pages/item" }', " }", "field 'pools.id': is missing"),
        ("[[task]]", "[[tasks]]", r"must hold \[\[task\]\] tables and nothing else; it has tasks beside them"),
        ("[[task]]", "[[task]", "is not valid TOML"),
        ('{ default = ["eng-Latn"] }', "{}", "field 'subsets': must not be empty"),
        ('id = "Pages"', 'id = "Pages"\nsplits = []', "field 'source.splits': must not be empty"),
        ('["text", "image"]', "[]", "field 'modalities': must not be empty"),
        (FULL, FULL + FULL, "more than one task named Pages"),
        (FULL, "task = [1]", "task number 1: must be a table"),
    ],
)
def test_mistakes_are_named(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(FULL.replace(old, new))
    with pytest.raises(EmbarkError, match=message):
        embark.load_tasks(file)


def test_a_file_or_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match="cannot be read: No such file"):
        embark.load_tasks(tmp_path / "no.toml")
    with pytest.raises(EmbarkError, match="There is no folder"):
        local_source(tmp_path / "no")
