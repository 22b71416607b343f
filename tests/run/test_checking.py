"""Rows of tasks against a hub: what agrees, what differs, and how little is read for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from embark.cli import app
from embark.run.checking import CHECKS, CheckReport, check
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError, Source, Task
from hub import FakeHub, parquet, png, tar
from samples_mieb import sample
from samples_mmeb_text import publish_v3
from samples_unibench import dataset

CARD = "---\nlicense: {license}\n---\n"
LARGE = [np.random.default_rng(0).bytes(50_000) for _ in range(40)]


def labelled(hub: FakeHub, **changes: Any) -> Task:
    """A task over a table of large pictures, and the differences that are planted on the hub's side."""
    planted = {"rows": 40, "column": "image", "classes": ("cat", "dog"), "license": "mit", "revision": ""} | changes
    pictures: list[Any] = LARGE[: planted["rows"]] if planted["column"] == "image" else ["text"] * planted["rows"]
    table = {planted["column"]: pictures, "label": [row % 2 for row in range(planted["rows"])]}
    files = {"data/test-0.parquet": parquet(table, classes={"label": planted["classes"]})}
    sha = hub.add("org/pictures", files, card=CARD.format(license=planted["license"]))
    return Task(
        "Pictures", "Own", "clustering", "labelled", Source("org/pictures", planted["revision"] or sha, license="MIT"),
        "v_measure", "Clustering", ("image",), {"image": "image", "label": "label"}, labels=("cat", "dog"),
        rows={"test": 40},
    )  # fmt: skip


def answers(report: CheckReport) -> dict[str, bool | None]:
    return {finding.check: finding.agrees for finding in report.findings}


def test_a_row_that_agrees_costs_little(hub: FakeHub) -> None:
    report = check([labelled(hub)], show_progress=False)
    assert answers(report) == dict.fromkeys(CHECKS, True) | {"ids": None}
    assert report.notes == ("1 of 1 tasks agree with the hub.",)
    assert hub.sent < sum(map(len, LARGE)) / 10


@pytest.mark.parametrize(
    ("planted", "differs", "text"),
    [
        ({"rows": 39}, "rows", "test has 39 rows, expected 40"),
        ({"column": "picture"}, "columns", "there is no column 'image' (image); the files have label, picture"),
        ({"classes": ("dog", "cat")}, "classes", "class 0 is 'dog' in the files, 'cat' here"),
        ({"classes": ("cat", "dog", "cow")}, "classes", "the files name 3 classes, the row 2"),
        ({"license": "cc-by-nc-4.0"}, "license", "the card says cc-by-nc-4.0, the row MIT"),
        ({"revision": "0" * 40}, "revision", "is gone"),
    ],
)
def test_what_differs_is_named(hub: FakeHub, planted: dict[str, Any], differs: str, text: str) -> None:
    report = check([labelled(hub, **planted)], show_progress=False)
    [difference] = report.differences
    assert difference.check == differs
    assert text in difference.text
    assert report.notes[0] == f"Pictures: {differs}: {difference.text}"
    assert report.notes[-1] == "0 of 1 tasks agree with the hub."


def test_a_column_that_holds_no_media_differs(hub: FakeHub) -> None:
    task = labelled(hub)
    hub.add("org/pictures", {"data/test-0.parquet": parquet({"image": ["a"] * 40, "label": [0, 1] * 20})})
    moved = replace(task, source=replace(task.source, revision=hub.branches["org/pictures", "main"]))
    [difference] = check([moved], show_progress=False).differences
    assert difference.text == "column 'image' holds string, not media; the files have image, label"


def test_files_that_are_missing_differ(hub: FakeHub) -> None:
    task = labelled(hub)
    other = replace(task, source=replace(task.source, splits=("validation",)))
    [difference] = check([other], show_progress=False).differences
    assert (difference.check, "no files for split 'validation'" in difference.text) == ("files", True)


def beir(hub: FakeHub, ids: list[str]) -> Task:
    files = {
        "corpus/test-0.parquet": parquet({"id": ids, "text": ids}),
        "query/test-0.parquet": parquet({"id": ["q"], "text": ["q"]}),
        "default/test-0.parquet": parquet({"query-id": ["q"], "corpus-id": ids[:1], "score": [1]}),
    }
    columns = {"query_id": "id", "corpus_id": "id", "query_text": "text", "corpus_text": "text"}
    source = Source("org/ranked", hub.add("org/ranked", files))
    return Task("Ranked", "Own", "retrieval", "beir", source, "ndcg_at_10", "Retrieval", ("text",), columns,
                rows={"corpus/test": 3})  # fmt: skip


def test_ids_that_occur_twice_differ_unless_the_row_says_so(hub: FakeHub) -> None:
    assert answers(check([beir(hub, ["a", "b", "c"])], show_progress=False))["ids"]
    task = beir(hub, ["a", "b", "a"])
    [difference] = check([task], show_progress=False).differences
    assert difference.text == "corpus/test has 3 rows and 2 ids"
    assert not check([replace(task, options={"repeated": "last"})], show_progress=False).differences


def test_text_tables_and_archives_are_read_at_their_beginning(hub: FakeHub) -> None:
    lines = "".join(f'{{"word": "w{row}", "label": {row % 2}}}\n' for row in range(100_000))
    pairs = {f"{row}.{ending}": data for row in range(400) for ending, data in (("png", png()), ("cls", b"1"))}
    for name, content, columns in (
        ("test.jsonl", lines, {"text": "word", "label": "label"}),
        ("test.csv", "word,label\n" + "a,b\n" * 100_000, {"text": "word", "label": "label"}),
        ("test-0.tar", tar(pairs), {"image": "png", "label": "cls"}),
    ):
        hub.sent = 0
        sha = hub.add("org/plain", {name: content})
        kinds: Any = ("image",) if "image" in columns else ("text",)
        task = Task(
            "Plain",
            "Own",
            "clustering",
            "labelled",
            Source("org/plain", sha),
            "v_measure",
            "Clustering",
            kinds,
            columns,
        )
        assert not check([task], show_progress=False).differences
        assert hub.sent < 400_000
        renamed = replace(task, columns={**columns, "label": "none"})
        [difference] = check([renamed], show_progress=False).differences
        assert "there is no column 'none' (label)" in difference.text


def test_a_damaged_footer_and_a_hub_without_ranges(hub: FakeHub) -> None:
    task = labelled(hub)
    hub.ranges = False
    assert not check([task], show_progress=False).differences
    sha = hub.add("org/pictures", {"data/test-0.parquet": b"PAR1" + bytes(500)})
    damaged = replace(task, source=replace(task.source, revision=sha))
    [difference] = check([damaged], show_progress=False).differences
    assert "'data/test-0.parquet' of dataset org/pictures cannot be read" in difference.text


def test_the_command_prints_a_table_and_its_status_tells(hub: FakeHub) -> None:
    task = TASKS["CIFAR10ZeroShot"]
    files, card = sample(task)
    hub.add(task.source.id, files, revision=task.source.revision, card=card)
    done = CliRunner().invoke(app, ["check", "-t", "CIFAR10ZeroShot"])
    assert done.exit_code == 1
    assert "DIFFERS" in done.stdout
    assert "rows: test has 6 rows, expected 10,000" in " ".join(done.output.split())


def test_a_column_is_looked_for_in_every_file_of_its_own_table(hub: FakeHub) -> None:
    """Queries have a column of that name, too, and so has another shard; ids in a missing column are not looked at."""
    task = beir(hub, ["a", "b"])
    files = hub.data[task.source.id, task.source.revision]
    files["corpus/test-1.parquet"] = parquet({"number": ["c"], "words": ["c"]})
    [difference] = check([task], show_progress=False).differences
    assert difference.check == "columns"
    for name in ("id", "text"):
        assert f"there is no column '{name}' (corpus_{name})" in difference.text


def test_several_columns_of_one_role_are_looked_for_one_by_one(hub: FakeHub) -> None:
    task = replace(TASKS["Winoground"], rows={})
    hub.add(task.source.id, sample(task)[0], task.source.revision)
    assert answers(check([task], show_progress=False))["columns"]
    renamed = replace(task, columns={**task.columns, "texts": "caption_0,caption_2"})
    [difference] = check([renamed], show_progress=False).differences
    assert "there is no column 'caption_2' (texts)" in difference.text


@pytest.mark.parametrize("key", ["cifar10", "imagenet9", "winoground"])
def test_shards_go_by_endings_and_class_names_are_beside_them(hub: FakeHub, key: str) -> None:
    task = TASKS[f"UniBench/{key}"]
    files = dataset(task)
    hub.add(task.source.id, files)
    assert not check([task], show_progress=False).differences
    missing = replace(task, columns={**task.columns, "image": "jpg"})
    assert "there is no column 'jpg' (image)" in check([missing], show_progress=False).differences[0].text
    if task.labels:
        first, second, *others = files["classnames.txt"].decode().splitlines()
        hub.add(task.source.id, {**files, "classnames.txt": "\n".join([second, first, *others])})
        [difference] = check([task], show_progress=False).differences
        assert (difference.check, "class 0 is" in difference.text) == ("classes", True)


def test_paths_of_screenshots_are_no_media(hub: FakeHub) -> None:
    publish_v3(hub)
    assert not check(["MMEB/GAE-guiact-q2t"], show_progress=False).differences


def test_a_hub_that_cannot_be_asked_says_nothing_about_rows() -> None:
    """An error, and no table in which all rows differ."""
    with pytest.raises(EmbarkError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        check("CIFAR10", settings=load_settings(endpoint="http://127.0.0.1:9"), show_progress=False)
    with pytest.raises(EmbarkError, match="A check needs the hub, but embark is offline"):
        check("CIFAR10", settings=load_settings(offline=True), show_progress=False)


def test_what_is_not_on_the_hub_is_not_checked() -> None:
    report = check("Pocket*", show_progress=False)
    assert (report.findings, report.differences) == ((), ())
    assert report.notes == ("None of these tasks has its data on the hub: there is nothing to check.",)
