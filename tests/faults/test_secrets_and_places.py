"""C: secrets in messages, a machine without a home folder, a pipe in the place of a table."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

import embark
from embark.models.checkpoints import fetch_checkpoint
from embark.models.providers import PROVIDERS
from embark.settings import cache_folder, load_settings
from embark.types import EmbarkError, ModelCard
from folders import two_tasks
from hub import FakeHub, client
from local_server import LocalServer, QuietHandler

KEY = "sk-live-9Zq7Lw2Xv8Rt4Bn6"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder, as in many containers."""

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)


@pytest.mark.usefixtures("homeless")
def test_embark_home_is_enough_without_a_home_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, pictures: Callable[..., Path], tiny: embark.Encoder
) -> None:
    assert load_settings().home == elsewhere / "home"
    assert cache_folder() == elsewhere / "home" / "cache"
    assert len(embark.evaluate(tiny, two_tasks(pictures()), show_progress=False).results) == 2
    assert not Path("~").exists()
    monkeypatch.delenv("EMBARK_HOME")
    with pytest.raises(EmbarkError, match=r"no home folder .* set HOME, or EMBARK_HOME"):
        load_settings()
    assert load_settings(home="/vectors").home == Path("/vectors")


def test_a_pipe_as_metadata_csv_is_not_waited_for(pictures: Callable[..., Path]) -> None:
    folder = pictures()
    (folder / "metadata.csv").unlink()
    os.mkfifo(folder / "metadata.csv")
    code = f"import embark; embark.folder_task({str(folder)!r})"
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=10)
    assert "has no table" in done.stderr


@pytest.mark.parametrize("token", ["hf_abc\vdef", "hf_abc\x00def", "hf_äbc", "hf_a\nb\x1bc"])
def test_a_token_that_no_header_holds_is_not_printed(hub: FakeHub, token: str, elsewhere: Path) -> None:
    sha = hub.add("me/data", {"test.csv": "a,b\n1,2\n"})
    card = ModelCard("me/model", "main", "text", ("text",), source="me/model")
    (elsewhere / "huggingface").mkdir()
    (elsewhere / "huggingface" / "token").write_text(token)  # a variable cannot hold all of these
    for attempt in (
        lambda: client().get("me/data", sha, "test.csv"),
        lambda: fetch_checkpoint(card, embark.Loading()),
        lambda: fetch_checkpoint(replace(card, revision="0" * 40), embark.Loading()),
    ):
        with pytest.raises(EmbarkError) as error:
            attempt()
        assert "HF_TOKEN" in str(error.value)
        for part in ("hf_", "bc", "def"):
            assert part not in str(error.value)
    assert not hub.requests


@pytest.mark.parametrize("key", ["sk-abc\ndef", "sk-abc\r\nX-Other: def"])
def test_a_key_with_a_line_feed_is_not_printed(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(f"{PROVIDERS['openai'].variable}_API_KEY", key)
    model = embark.get_model(ModelCard("me/remote", "1", "openai", ("text",), source="remote"))
    with pytest.raises(EmbarkError, match="does not hold a key") as error:
        model.embed([model.prepare([embark.types.Content("text", "hello")], "")])
    assert "abc" not in str(error.value)
    assert "def" not in str(error.value)


@pytest.mark.parametrize(
    "address", ["https://me:hunter2@mirror.example", "http://hunter2@m", "https://m/?token=hunter2"]
)
def test_an_endpoint_with_a_password_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name in ("EMBARK_ENDPOINT", "HF_ENDPOINT"):
        with monkeypatch.context() as variables:
            variables.setenv(name, address)
            with pytest.raises(EmbarkError, match="holds a password") as error:
                load_settings()
            assert "hunter2" not in str(error.value)


class Echo(QuietHandler):
    """A provider that repeats parts of the key in its answers."""

    statuses: list[int]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.statuses[0]
        page: object = {"error": {"message": f"Bad key: {KEY[:9]}*****{KEY[-5:]}, or {KEY}"}}
        if status == 200:
            page = {"data": [{"index": 0, "embedding": [f"{KEY[3:12]}"]}]}
        body = json.dumps(page).encode()
        self.send_response(status, f"No {KEY[5:15]}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize("status", [400, 404, 503, 200])
def test_no_part_of_a_key_that_a_server_repeats_is_shown(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setattr(embark.http, "PAUSE", 0.0)
    provider = PROVIDERS["openai"]
    server = LocalServer(Echo, statuses=[status])
    monkeypatch.setenv(f"{provider.variable}_API_KEY", KEY)
    monkeypatch.setenv(f"{provider.variable}_BASE_URL", server.endpoint)
    try:
        model = embark.get_model(ModelCard("me/remote", "1", "openai", ("text",), source="remote"))
        item = model.prepare([embark.types.Content("text", "hello")], "")
        with pytest.raises(EmbarkError) as error:
            model.embed([item])
    finally:
        server.close()
    parts = {KEY[start : start + 4] for start in range(len(KEY) - 3)}
    assert "…" in str(error.value)
    assert not [part for part in parts if part in str(error.value)]


class EchoingHub(QuietHandler):
    """A hub that refuses everything and repeats the token it was sent, in each place that reaches a message."""

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "")
        self.send_response(418, f"wrong {token}")
        self.send_header("X-Error-Message", f"no such {token[-9:]}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET


def test_no_part_of_a_token_that_a_hub_repeats_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "hf_QweRtyUiopAsdfGhjkl"
    server = LocalServer(EchoingHub)
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr(constants, "ENDPOINT", server.endpoint)
    monkeypatch.setenv("EMBARK_ENDPOINT", server.endpoint)
    card = ModelCard("me/model", "0" * 40, "text", ("text",), source="me/model")
    hub = client()
    try:
        for attempt in (
            lambda: hub.resolve("me/data", "main"),
            lambda: hub.files("me/data", "0" * 40),
            lambda: fetch_checkpoint(card, embark.Loading()),
        ):
            with pytest.raises(EmbarkError) as error:
                attempt()
            assert not [part for start in range(3, 18) if (part := token[start : start + 4]) in str(error.value)]
    finally:
        server.close()
