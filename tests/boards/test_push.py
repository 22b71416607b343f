"""Results to the hub: shown first, sent in one commit, with the user's own token and to nobody else."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.results import META, Results
from embark.results.schema import result_bytes
from embark.types import EmbarkError
from folders import two_tasks
from local_server import LocalServer, QuietHandler

TOKEN = "hf_" + "a1B2c3D4" * 4


class UploadHub(LocalServer):
    """The paths of a hub that uploads use; `repos` can be written to by whoever has the token."""

    def __init__(self) -> None:
        self.repos: set[str] = {"datasets/me/scores"}
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        super().__init__(Handler, hub=self)


class Handler(QuietHandler):
    hub: UploadHub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.hub.requests.append((self.path, self.headers.get("Authorization")))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": f"Invalid credentials {self.headers.get('Authorization')}"})
        if self.path == "/api/repos/create":
            wanted = json.loads(body)
            repo = f"{wanted.get('type', 'model')}s/{wanted.get('organization', 'me')}/{wanted['name']}"
            assert wanted.get("private") is True or wanted["visibility"] == "private"
            self.hub.repos.add(repo)
            return self.answer(200, {"url": f"{self.hub.endpoint}/{repo}"})
        if "/full/" in self.path:
            return self.answer(400, {"error": "The quota is used up"})
        _, _, kind, owner, name, action, *_ = self.path.split("?")[0].split("/")
        if f"{kind}/{owner}/{name}" not in self.hub.repos:
            return self.answer(404, {"error": "Repository not found"})
        if action == "preupload":
            paths = [file["path"] for file in json.loads(body)["files"]]
            files = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]
            return self.answer(200, {"files": files, "commitOid": "0" * 40})
        lines = [json.loads(line) for line in body.splitlines()]
        for line in lines:
            if line["key"] == "file":
                self.hub.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        page = f"{self.hub.endpoint}/{kind}/{owner}/{name}/commit/{'1' * 40}"
        return self.answer(200, {"success": True, "commitOid": "1" * 40, "commitUrl": page, "hookOutput": ""})

    def do_GET(self) -> None:
        self.hub.requests.append((self.path, self.headers.get("Authorization")))
        self.answer(404, {"error": "Repository not found"})

    def answer(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, pocket_home: Path) -> Iterator[UploadHub]:
    """The hub that HF_ENDPOINT names, and embark/random's results."""
    served = UploadHub()
    monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("EMBARK_RESULTS", str(pocket_home / "results"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield served
    served.close()


def test_without_a_yes_nothing_is_sent(hub: UploadHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    shown = embark.push("embark/random", "me/scores", ["PocketClockReading", "PocketFlagZeroShot"])
    names = [name.rsplit("/", 1)[1] for name in shown.files]
    assert sorted(names) == ["PocketClockReading.json", "PocketFlagZeroShot.json", "model_meta.json"]
    assert shown.commit == ""
    assert str(shown.table()).count(".json") == 3
    ran = CliRunner().invoke(app, ["push", "me/scores", "-m", "embark/random", "-t", "PocketClockReading"])
    assert ran.exit_code == 0
    assert "PocketClockReading.json" in ran.stdout
    assert ran.stderr.endswith("Nothing was uploaded: add --yes.\n")
    assert hub.requests == []


def test_results_go_up_in_one_commit(hub: UploadHub) -> None:
    words = ["push", "me/scores", "-m", "embark/random", "-t", "PocketClockReading", "--outcomes", "--yes"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert f"3 files uploaded to the dataset me/scores at {hub.endpoint}: {hub.endpoint}/datasets" in ran.stderr
    wanted = embark.push("embark/random", "me/scores", "PocketClockReading", outcomes=True)
    assert wanted.files == hub.files
    for name, content in wanted.files.items():
        assert Path(os.environ["EMBARK_RESULTS"], name.removeprefix("results/")).read_bytes() == content
    [place] = [name for name in hub.files if name.endswith("Reading.json")]
    assert place.startswith("results/embark__random/")
    assert [path.split("?")[0].split("/")[5] for path, _ in hub.requests] == ["preupload", "commit"]
    assert {token for _, token in hub.requests} == {f"Bearer {TOKEN}"}


def test_samples_stay_here(tmp_path: Path, pocket_vectors: Path) -> None:
    settings = embark.load_settings(shutil.copytree(pocket_vectors, tmp_path / "home"), tmp_path / "results")
    embark.evaluate("embark/random", "PocketClockReading", limit=5, settings=settings, show_progress=False)
    with pytest.raises(EmbarkError, match=r"no results to upload.*samples \(--limit\) are not"):
        embark.push("embark/random", "me/scores", settings=settings)
    embark.evaluate("embark/random", "PocketClockReading", settings=settings, show_progress=False)
    shown = embark.push("embark/random", "me/scores", "PocketClockReading", settings=settings)
    assert not [name for name in shown.files if "limit" in name]
    assert shown.notes == ("left out, because they are samples (--limit): PocketClockReading",)


def test_a_missing_repository_is_made_when_told_so(hub: UploadHub) -> None:
    with pytest.raises(
        EmbarkError, match=r"has no access to model me/new at .*check the name, or create it \(--create\)"
    ):
        embark.push("embark/random", "me/new", "PocketClockReading", repo_type="model", upload=True)
    pushed = embark.push("embark/random", "me/new", "PocketClockReading", repo_type="model", create=True, upload=True)
    assert pushed.commit.startswith(f"{hub.endpoint}/models/me/new/commit/")
    assert "models/me/new" in hub.repos


def test_refusals_tell_what_to_do_and_no_token(hub: UploadHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbarkError, match=r"Nothing was uploaded .*: The quota is used up"):
        embark.push("embark/random", "full/scores", "PocketClockReading", upload=True)
    monkeypatch.setenv("HF_TOKEN", "hf_" + "zY9xW8vU" * 4)
    with pytest.raises(EmbarkError, match=r"may not write to the dataset me/scores .*HTTP 401") as refused:
        embark.push("embark/random", "me/scores", "PocketClockReading", upload=True)
    assert "zY9xW8vU" not in str(refused.value)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(EmbarkError, match=r"There is no token: set HF_TOKEN"):
        embark.push("embark/random", "me/scores", "PocketClockReading", upload=True)
    monkeypatch.setenv("EMBARK_OFFLINE", "1")
    with pytest.raises(EmbarkError, match="Nothing can be uploaded offline"):
        embark.push("embark/random", "me/scores", "PocketClockReading", upload=True)
    assert hub.files == {}


def test_a_hub_that_is_not_there_is_told_of(hub: UploadHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.close()
    unhurried = SimpleNamespace(sleep=lambda seconds: None, time=time.time)
    monkeypatch.setattr("huggingface_hub.utils._http.time", unhurried)
    with pytest.raises(EmbarkError, match=r"Nothing was uploaded to the dataset me/scores at http://127"):
        embark.push("embark/random", "me/scores", "PocketClockReading", upload=True)


def test_own_data_goes_only_by_name(hub: UploadHub, pictures: Callable[..., Path], tiny: embark.Encoder) -> None:
    tasks = two_tasks(pictures("Private"))
    embark.evaluate(tiny, [*tasks, "PocketClockReading"], show_progress=False)
    shown = embark.push("test/tiny", "me/scores")
    assert [name for name in shown.files if "Private" in name] == []
    [note] = shown.notes
    assert note.startswith("left out, because they contain names of your own data: Private")
    folder = str(Path.cwd() / "checkpoints" / "tiny")
    tiny.card = embark.ModelCard(**{**vars(tiny.card), "name": "test/local", "source": folder})
    embark.evaluate(tiny, "PocketClockReading", show_progress=False)
    local = embark.push("test/local", "me/scores")
    assert not any(folder.encode() in content for content in local.files.values())
    named = embark.push("test/tiny", "me/scores", tasks[0].name)
    assert [name for name in named.files if tasks[0].name in name]
    with pytest.raises(EmbarkError, match=r"'me//scores' is no repository of the hub: write organization/name\."):
        embark.push("test/tiny", "me//scores")
    with pytest.raises(EmbarkError, match="no type of repository named 'space'"):
        embark.push("test/tiny", "me/scores", repo_type="space")  # type: ignore[arg-type]


TASK = "PocketClockReading"
LOGIN = '{"name": "embark/random", "revision": "1", "embark": {"aws_secret_access_key": "wJalrXUtnFEMI"}}'


def folder_of_results() -> Path:
    return next(Path(os.environ["EMBARK_RESULTS"]).glob(f"*/*/{TASK}.json")).parent


def refused(*more: str) -> str:
    """What the command says that must send nothing."""
    ran = CliRunner().invoke(app, ["push", "me/scores", "-m", "embark/random", "-t", TASK, "--yes", *more])
    assert isinstance(ran.exception, EmbarkError), ran.output
    return str(ran.exception)


@pytest.mark.parametrize("name", [META, f"{TASK}.json", f"{TASK}.parquet"])
@pytest.mark.parametrize("link", [os.symlink, os.link, "folder"])
def test_no_link_is_followed(hub: UploadHub, tmp_path: Path, name: str, link: Any) -> None:
    """A file of results that leads to a private one: by a symbolic link, a hard link, or a link to its folder."""
    path = folder_of_results() / name
    private = tmp_path / "credentials.json"
    private.write_bytes(LOGIN.encode() if name == META else path.read_bytes())
    if link == "folder":
        path.parent.rename(tmp_path / "elsewhere")
        path.parent.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
        link(private, path)
    said = refused("--outcomes")
    assert re.search("is a link|is a hard link|lies behind one", said)
    assert (path.parent.name if link == "folder" else name) in said
    assert hub.files == {}


@pytest.mark.parametrize("name", [META, f"{TASK}.parquet", "notes.txt"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/nowhere", path)])
def test_odd_files_are_refused_by_name(hub: UploadHub, name: str, make: Callable[[Path], None]) -> None:
    path = folder_of_results() / name
    path.unlink(missing_ok=True)
    make(path)
    assert name in refused("--outcomes")
    assert hub.files == {}


@pytest.mark.parametrize("name", [META, f"{TASK}.json", f"{TASK}.parquet"])
def test_a_giant_with_holes_is_not_read(hub: UploadHub, name: str) -> None:
    os.truncate(folder_of_results() / name, 1 << 40)
    assert refused("--outcomes")
    assert hub.files == {}


def test_a_card_is_made_of_the_fields_that_are_known(hub: UploadHub) -> None:
    path = folder_of_results() / META
    card = json.loads(path.read_text())
    card["aws_secret_access_key"] = card["embark"]["aws_secret_access_key"] = "wJalrXUtnFEMI"
    path.write_text(json.dumps(card))
    embark.push("embark/random", "me/scores", TASK, upload=True)
    assert not [name for name, content in hub.files.items() if b"wJalr" in content]
    [sent] = [json.loads(content) for name, content in hub.files.items() if name.endswith(META)]
    assert sent["embark"]["name"] == "embark/random"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    [sent] = [c for n, c in embark.push("embark/random", "me/scores", TASK).files.items() if n.endswith(META)]
    assert json.loads(sent) == {"name": "embark/random", "revision": card["revision"]}


def test_another_models_card_does_not_go_along(hub: UploadHub) -> None:
    path = folder_of_results() / META
    card = json.loads(path.read_text())
    card["embark"]["name"] = "me/unreleased"
    path.write_text(json.dumps(card))
    assert "is the card of me/unreleased, not of embark/random" in refused()


def test_a_result_under_another_name_is_refused(hub: UploadHub) -> None:
    path = folder_of_results() / f"{TASK}.json"
    path.rename(path.with_name("my secret plan.json"))
    assert "my secret plan.json holds the result of embark/random" in refused()


def test_outcomes_are_those_that_the_result_recorded(hub: UploadHub) -> None:
    path = folder_of_results() / f"{TASK}.parquet"
    other = next(file for file in path.parent.glob("*.parquet") if file != path)
    path.write_bytes(other.read_bytes())
    assert f"{TASK}.parquet is not what was written with the scores" in refused("--outcomes")
    assert embark.push("embark/random", "me/scores", TASK).files  # without outcomes, nothing is wrong


def test_outcomes_whose_hash_is_not_recorded_stay(hub: UploadHub) -> None:
    path = folder_of_results() / f"{TASK}.json"
    content = json.loads(path.read_text())
    del content["embark"]["outcomes"], content["embark"]["checksum"]
    path.write_bytes(result_bytes(content))
    shown = embark.push("embark/random", "me/scores", TASK, outcomes=True)
    assert not [name for name in shown.files if name.endswith(".parquet")]
    assert shown.notes == (f"outcomes without a recorded hash are left out: {TASK} (run the tasks again)",)


def test_what_was_shown_is_what_is_sent(hub: UploadHub) -> None:
    words = ["push", "me/scores", "-m", "embark/random", "-t", TASK, "--outcomes", "--format", "csv"]
    shown = list(csv.DictReader(CliRunner().invoke(app, words).stdout.splitlines()))
    embark.push("embark/random", "me/scores", TASK, outcomes=True, upload=True)
    sent = {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in hub.files.items()}
    assert sent == {row["file"]: (int(row["bytes"]), row["sha256"]) for row in shown}
    [scores] = [json.loads(content) for name, content in hub.files.items() if name.endswith(f"{TASK}.json")]
    [outcomes] = [digest for name, (_, digest) in sent.items() if name.endswith(".parquet")]
    assert scores["embark"]["outcomes"] == outcomes


def test_what_was_sent_is_a_results_folder(hub: UploadHub, tmp_path: Path) -> None:
    embark.push("embark/random", "me/scores", TASK, outcomes=True, upload=True)
    for name, content in hub.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    [result] = Results(tmp_path / "results").all()
    [own] = [result for result in Results(Path(os.environ["EMBARK_RESULTS"])).all() if result.task == TASK]
    assert result.records == own.records
    assert result.outcomes().equals(own.outcomes())
