"""Embark.toml of the working folder sends no token anywhere, and says what it sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embark.settings import allowed_plugins, load_settings
from embark.types import EmbarkError
from hub import FakeHub, client


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    words = (sys.executable, "-m", "embark", *words)
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=60)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ('endpoint = "http://attacker.example"', "EMBARK_ENDPOINT or HF_ENDPOINT"),
        ('home = "/elsewhere"', "EMBARK_HOME"),
        ('plugins = ["theirs"]', "EMBARK_PLUGINS"),
        ("item_memory = 1000000", "EMBARK_ITEM_MEMORY"),
        ("item_seconds = 1000000", "EMBARK_ITEM_SECONDS"),
        ("offline = false", "true only"),
        ('results = "/elsewhere"', "EMBARK_RESULTS"),
        ('results = "../elsewhere"', "EMBARK_RESULTS"),
        ('results = "~/elsewhere"', "EMBARK_RESULTS"),
    ],
)
def test_a_folder_sets_nothing_that_credentials_connections_or_code_depend_on(
    elsewhere: Path, text: str, instead: str
) -> None:
    Path("embark.toml").write_text(f"{text}\n")
    with pytest.raises(EmbarkError, match=rf"embark\.toml.*{instead}"):
        load_settings()
    assert not allowed_plugins()


def test_results_of_a_folder_are_no_link_out(elsewhere: Path) -> None:
    Path("scores").symlink_to(elsewhere)
    Path("embark.toml").write_text('results = "scores"\n')
    with pytest.raises(EmbarkError, match="leads out"):
        load_settings()


def test_a_folder_does_not_turn_off_the_users_own_settings(elsewhere: Path) -> None:
    own = elsewhere / "config" / "embark"
    own.mkdir(parents=True)
    (own / "settings.toml").write_text('endpoint = "https://mirror.example"\noffline = true\nplugins = ["mine"]\n')
    Path("embark.toml").write_text("workers = 2\n")
    settings = load_settings()
    assert (settings.endpoint, settings.offline, settings.workers) == ("https://mirror.example", True, 2)
    assert allowed_plugins() == {"mine"}


def test_a_token_reaches_no_endpoint_of_the_folder(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command with a folder's file (refused, nothing is sent), then with the user's own environment."""
    hub.add("me/data", {"test.csv": "a,b\n1,2\n"})
    monkeypatch.delenv("EMBARK_ENDPOINT")
    monkeypatch.setenv("HF_TOKEN", "secret")
    Path("embark.toml").write_text(f'endpoint = "{hub.endpoint}"\n')
    with pytest.raises(EmbarkError, match="must not set 'endpoint'"):
        client().files("me/data", "main")
    assert not hub.requests
    Path("embark.toml").unlink()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    client().files("me/data", "main")
    headers = [(name.lower(), value) for _, sent in hub.requests for name, value in sent.items()]
    assert ("authorization", "Bearer secret") in headers


def test_a_line_says_what_the_folder_sets(elsewhere: Path) -> None:
    Path("embark.toml").write_text("workers = 2\nmemory = 64\n")
    assert load_settings().notes == ("embark.toml of this folder sets workers, memory",)
    done = command("benchmarks", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("embark.toml of this folder sets workers, memory") == 1
    assert "embark.toml" not in done.stdout
    Path("embark.toml").unlink()
    assert "embark.toml" not in command("benchmarks").stderr
