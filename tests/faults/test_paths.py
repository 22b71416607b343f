"""Whatever comes from outside and becomes a path stays where it belongs."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import embark
from embark import readers
from embark.hub import Hub
from embark.models.checkpoints import fetch_checkpoint
from embark.paths import Outside, inside
from embark.readers._mmeb import ArchiveFolder
from embark.readers.rows import Archive
from embark.settings import load_settings
from embark.types import EmbarkError, ModelCard
from folders import two_tasks
from hub import FakeHub, client
from local_server import LocalServer, QuietHandler

Pictures = Callable[..., Path]
TASKS = """
[[task]]
name = "Own"
evaluator = "retrieval"
reader = "folder"
modalities = ["text", "image"]
columns = { file = "file", caption = "caption" }
source = { id = "%s", config = "metadata.csv" }
"""


def everything_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("commit", ["../../../x", "x", "A" * 40, "a" * 39, 7])
def test_a_commit_that_is_none_is_refused(hub: FakeHub, elsewhere: Path, commit: object) -> None:
    hub.add("me/data", {"test.csv": "a,b\n1,2\n"}, revision=commit)  # type: ignore[arg-type]
    before = everything_in(elsewhere)
    with pytest.raises(EmbarkError, match=r"its commit at revision main is .*, not a hash"):
        client().files("me/data", "main")
    assert not {path for path in everything_in(elsewhere) - before if path.is_file()}


class Models(QuietHandler):
    """A hub that names a path as a model's commit."""

    def do_GET(self) -> None:
        body = json.dumps({"id": "me/model", "sha": "../../../x", "siblings": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_the_commit_of_a_model_must_be_one(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    server = LocalServer(Models)
    try:
        settings = load_settings(endpoint=server.endpoint)
        card = ModelCard("me/model", "main", "text", ("text",), source="me/model")
        with pytest.raises(EmbarkError, match=r"its commit at revision main is '../../../x', not a hash"):
            fetch_checkpoint(card, embark.Loading(settings=settings))
    finally:
        server.close()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\0b", "..\\x", ""])
def test_a_path_of_a_listing_stays_inside(hub: FakeHub, path: str) -> None:
    sha = hub.add("me/data", {path: b"x"})
    with pytest.raises(EmbarkError, match=r"not a path inside a dataset|describes dataset me/data wrongly"):
        client().files("me/data", sha)


def test_a_member_of_an_archive_stays_inside(tmp_path: Path) -> None:
    archive = tmp_path / "media.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("data/a.jsonl", "data/../../../../b.jsonl"):
            member = tarfile.TarInfo(name)
            member.size = len(b'{"a": 1}\n')
            tar.addfile(member, io.BytesIO(b'{"a": 1}\n'))
    folder = ArchiveFolder(Archive(archive, tmp_path / "home" / "digests"), "data")
    assert len(folder.table("a.jsonl")) == 1
    with pytest.raises(Outside, match="not a path inside"):
        folder.table("*b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_meta_data_of_an_import_names_no_folder(elsewhere: Path, tmp_path: Path) -> None:
    """mteb's model_meta.json names a model that would lie above the results."""
    source = tmp_path / "mteb" / "m" / "r"
    source.mkdir(parents=True)
    (source / "model_meta.json").write_text(json.dumps({"name": "..", "revision": "../.."}))
    entry = {"main_score": 0.5, "hf_subset": "default", "languages": ["eng-Latn"], "accuracy": 0.5}
    facts = {"task_name": "CIFAR10ZeroShot", "mteb_version": "1.38.0", "dataset_revision": "x"}
    content = {**facts, "scores": {"test": [entry]}}
    (source / "CIFAR10ZeroShot.json").write_text(json.dumps(content))
    imported = embark.import_results(tmp_path / "mteb")
    assert imported.results, imported
    files = {path.relative_to(elsewhere).parts[0] for path in everything_in(elsewhere) if path.suffix == ".json"}
    assert files == {"results"}
    assert (elsewhere / "results" / ".%2E" / "..__.%2E").is_dir()


@pytest.mark.parametrize("kind", ["absolute", "parent", "link", "linked folder"])
def test_a_csv_names_nothing_outside_its_folder(pictures: Pictures, tmp_path: Path, kind: str) -> None:
    folder = pictures()
    private = tmp_path / "private"
    private.mkdir()
    Image.new("RGB", (4, 4)).save(private / "diary.png")
    (folder / "link.png").symlink_to(private / "diary.png")
    (folder / "linked").symlink_to(private)
    cell = {
        "absolute": str(private / "diary.png"), "parent": "../private/diary.png", "link": "link.png",
        "linked folder": "linked/diary.png",
    }[kind]  # fmt: skip
    (folder / "metadata.csv").write_text(f"file,caption\nred.png,red\n{cell},a diary\n")
    with pytest.raises(EmbarkError, match=r"Row 2 of .*metadata\.csv.*--allow-outside"):
        two_tasks(folder)
    [task] = two_tasks(folder, allow_outside=True)
    assert task.options["allow_outside"] is True
    hub = Hub(load_settings())
    assert len(readers.read(task, "test", "default", hub).sides["document"].items) == 2
    with pytest.raises(EmbarkError, match="Row 2 of"):  # the reader looks for itself
        readers.read(replace(task, options={}), "test", "default", hub)


def test_the_csv_itself_is_no_link_out(pictures: Pictures, tmp_path: Path) -> None:
    folder = pictures()
    (folder / "metadata.csv").rename(tmp_path / "private.csv")
    (folder / "metadata.csv").symlink_to(tmp_path / "private.csv")
    with pytest.raises(EmbarkError, match=r"is a link that leads out .*--allow-outside"):
        two_tasks(folder)


@pytest.mark.parametrize("kind", ["absolute", "parent", "home", "linked folder", "link inside", "variant"])
def test_a_tasks_file_names_nothing_outside_its_folder(
    pictures: Pictures, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = pictures("private")
    project = tmp_path / "project"
    (project / "own").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    (project / "linked").symlink_to(outside)
    if kind == "link inside":
        (project / "own" / "diary.png").symlink_to(outside / "red.png")
    ids = {"absolute": str(outside), "parent": "../private", "home": "~/private", "linked folder": "linked"}
    text = TASKS % ids.get(kind, "own")
    if kind == "variant":
        text += '[task.variants.other.source]\nid = "../private"\n'
    (project / "tasks.toml").write_text(text)
    with pytest.raises(EmbarkError, match=r"source.*--allow-outside"):
        embark.load_tasks(project / "tasks.toml")
    [task] = embark.load_tasks(project / "tasks.toml", allow_outside=True)
    assert task.options == {"allow_outside": True}


@pytest.mark.parametrize("cell", [str, lambda name: {"bytes": None, "path": name}], ids=["text", "struct"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_table_in_python_names_nothing_outside_its_folder(
    pictures: Pictures, tmp_path: Path, cell: Callable[[str], object], absolute: bool
) -> None:
    """A frame may be a stranger's table; a `Path` is the program's own word."""
    folder = pictures("photos")
    secret = folder.parent / "secret.png"
    secret.write_bytes((folder / "red.png").read_bytes())
    rows = [{"file": cell(str(secret) if absolute else "../secret.png"), "label": label} for label in ("a", "b")]
    columns = {"image": "file", "label": "label"}
    with pytest.raises(EmbarkError, match=r"Row 0: .* allow it with allow_outside=True"):
        embark.task(rows, "zeroshot", columns, folder=folder)
    for allowed in (rows, [{"file": secret, "label": "a"}]):
        outside = allowed is rows
        assert embark.task(allowed, "zeroshot", columns, folder=folder, allow_outside=outside).modalities
    assert embark.task([{"file": cell("red.png"), "label": "a"}], "zeroshot", columns, folder=folder).modalities


def test_a_tasks_file_does_not_allow_itself_anything(pictures: Pictures, tmp_path: Path) -> None:
    pictures()
    text = TASKS % "Pages" + "options = { allow_outside = true }\n"
    (tmp_path / "tasks.toml").write_text(text)
    with pytest.raises(EmbarkError, match=r"options\.allow_outside.*can only be allowed by the user"):
        embark.load_tasks(tmp_path / "tasks.toml")


def test_an_option_that_is_a_path_stays_in_the_folder(pictures: Pictures, tmp_path: Path) -> None:
    pictures()
    text = (TASKS % "Pages").replace('"folder"', '"ark"') + 'options = { labels = "/etc/passwd" }\n'
    (tmp_path / "tasks.toml").write_text(text)
    with pytest.raises(EmbarkError, match=r"options\.labels.*--allow-outside"):
        embark.load_tasks(tmp_path / "tasks.toml")


def test_inside_refuses_what_leads_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "out").symlink_to(tmp_path)
    assert inside(tmp_path / "in", "a/b.png") == tmp_path / "in" / "a" / "b.png"
    for path in ("/etc/passwd", "..", "a/../../b", "x\0y", "out", "out/b.png"):
        with pytest.raises(Outside):
            inside(tmp_path / "in", path)
