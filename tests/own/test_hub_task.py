"""A data set of the hub by its id, with its columns named on the command line or in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.readers import remote
from embark.types import Source
from hub import FakeHub, client, parquet, png, wav

COLORS = ("red", "green", "blue")


@pytest.fixture
def pages(hub: FakeHub) -> str:
    """Pictures with captions and classes, in two splits; the commit of the branch main."""
    table = parquet(
        {
            "img": [png(color) for color in COLORS],
            "words": [f"a {color} page" for color in COLORS],
            "label": [0, 1, 2],
        },
        classes={"label": COLORS},
    )
    return hub.add("owner/pages", {f"data/{split}-00000-of-00001.parquet": table for split in ("train", "test")})


def test_a_data_set_of_the_hub_is_run_from_the_command_line(
    pages: str, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinned to its commit; the row that is printed makes the same task again."""
    words = ["run", "-m", "embark/handmade", "--dataset", "owner/pages", "--columns", "image=img,text=words"]
    ran = CliRunner().invoke(app, [*words, "--kind", "retrieval", "--split", "test"])
    assert ran.exit_code == 0, ran.output
    assert "pagesRetrieval" in ran.stdout
    toml = ran.stderr[ran.stderr.index("[[task]]") :]
    Path("tasks.toml").write_text(toml)
    [row] = embark.load_tasks("tasks.toml")
    assert row == embark.task("owner/pages", "retrieval", {"image": "img", "text": "words"})
    assert (row.source.revision, row.source.splits) == (pages, ("test",))
    again = embark.evaluate("embark/handmade", [row], show_progress=False)
    assert (again.embedded, again.computed) == (0, 0)


def test_columns_of_the_hub_are_told_without_a_download(pages: str, hub: FakeHub) -> None:
    """By usual names and the classes that the file declares; only the end of the file is read."""
    task = embark.task("owner/pages", revision=pages)
    assert (task.evaluator, dict(task.columns)) == ("zeroshot", {"image": "img", "label": "label"})
    assert task.modalities == ("text", "image")
    assert not [path for path, headers in hub.requests if "/lfs/" in path and "Range" not in headers]
    probe = embark.task("owner/pages", "probe")
    assert "divide" not in probe.options  # there is a split to learn from


def test_a_column_of_the_hub_that_takes_too_much_memory_is_not_read_whole(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = parquet({"text": ["a", "b"] * 500, "label": ["x" * 1000, "y"] * 500})
    commit = hub.add("owner/large", {"test.parquet": table})
    source = Source("owner/large", commit)
    [file] = [file for file in client().files(source.id, source.revision) if file.path.endswith(".parquet")]
    head = remote.table_head(client(), source, file)
    assert head is not None
    assert head.values("text") == ["a", "b"] * 500
    monkeypatch.setattr(remote, "LARGEST_DECODED", 100_000)
    assert head.values("text") == ["a", "b"] * 500
    assert head.values("label") is None


def test_a_data_set_with_one_split_is_divided(hub: FakeHub) -> None:
    table = parquet({"text": [f"{row}" for row in range(8)], "label": ["a", "b"] * 4})
    hub.add("owner/one", {"train.parquet": table})
    task = embark.task("owner/one", "probe", params={"shots": 1, "runs": 2})
    assert (task.source.splits, task.options["divide"]) == (("train",), {"train": 0.5, "seed": 42})
    run = embark.evaluate("embark/handmade", [task], show_progress=False)
    assert [result.task for result in run.results] == ["oneProbe"]


def test_sounds_of_the_hub_find_pictures(hub: FakeHub) -> None:
    table = parquet({"sound": [wav(200.0), wav(900.0)], "photo": [png("red"), png("blue")]})
    hub.add("owner/heard", {"test.parquet": table})
    task = embark.task("owner/heard", columns={"audio": "sound", "image": "photo"})
    assert (task.evaluator, task.options["query"], task.modalities) == ("retrieval", "audio", ("image", "audio"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "image=picture,text=words"], "no column of owner/pages named 'picture'. There are img, words"),
        (["--columns", "image=img", "--kind", "retrieval"], "It needs two of image, text, audio, video; name them"),
        (["--kind", "sts"], "It needs left and right and score; name them, as in columns={'left': '…', 'right'"),
        (["--split", "dev"], "Dataset owner/pages has no files for split 'dev'"),
        (["--columns", "picture=img", "--kind", "zeroshot"], "has no column for 'picture'; its roles are"),
    ],
)  # fmt: skip
def test_errors_about_columns_of_the_hub(pages: str, options: list[str], message: str) -> None:
    ran = CliRunner().invoke(app, ["run", "-m", "embark/handmade", "--dataset", "owner/pages", *options])
    assert message in str(ran.exception)


def test_options_of_a_data_set_need_one() -> None:
    ran = CliRunner().invoke(app, ["run", "--columns", "image=img"])
    assert ran.exit_code == 2
    assert "are about --dataset: name one" in ran.output
