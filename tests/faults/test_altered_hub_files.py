"""Files of the hub's cache are what the hub lists, whoever wrote them and whatever happened to them since."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from embark import hub as embark_hub
from embark.file_hashes import file_hashes
from embark.hub.cache import DATASETS, snapshot
from embark.hub.listing import RemoteFile
from embark.types import EmbarkError
from hub import FakeHub, client

ID = "org/data"
DATA = b"query,score\na,1\n" * 1000
ALTERED = DATA.replace(b"a,1", b"a,0")


@pytest.fixture
def sha(hub: FakeHub) -> str:
    """A dataset of a table that is kept apart, as large files are, and one that is not."""
    return hub.add(ID, {"table.bin": DATA, "table.csv": DATA})


@pytest.mark.parametrize("name", ["table.bin", "table.csv"])
def test_an_altered_file_of_the_same_size_is_set_aside_and_downloaded_again(
    hub: FakeHub, sha: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = client().get(ID, sha, name)
    path.resolve().write_bytes(ALTERED)
    with pytest.raises(EmbarkError, match=rf"{name} is not file '{name}' of dataset org/data: expected .*, found .*"):
        client(offline=True).get(ID, sha, name)
    assert client().get(ID, sha, name).read_bytes() == DATA
    assert "set aside" in caplog.text
    damaged = next(path.parents[2].rglob("*.damaged"))
    assert damaged.read_bytes() == ALTERED
    assert client(offline=True).get(ID, sha, name).read_bytes() == DATA


def test_a_file_that_another_tool_put_there_is_verified(hub: FakeHub, sha: str) -> None:
    path = Path(hf_hub_download(ID, "table.bin", repo_type="dataset", revision=sha, endpoint=hub.endpoint))
    path.resolve().write_bytes(ALTERED)
    assert client().get(ID, sha, "table.bin").read_bytes() == DATA


def test_what_is_as_it_was_verified_is_not_read_again(
    hub: FakeHub, sha: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = client().get(ID, sha, "table.bin")
    [record] = (elsewhere / "home" / "digests" / "files").iterdir()
    with record.open("a") as out:
        out.write("\n0123 half a li")  # a process died
    file_hashes.cache_clear()
    checksums: list[Path] = []
    checksum = embark_hub.checksum_of

    def count(path: Path, file: RemoteFile) -> str:
        checksums.append(path)
        return checksum(path, file)

    monkeypatch.setattr(embark_hub, "checksum_of", count)
    assert client().get(ID, sha, "table.bin") == path
    assert checksums == []
    os.utime(path)
    assert client().get(ID, sha, "table.bin") == path
    assert checksums == [path]
    assert client().get(ID, sha, "table.bin") == path
    assert checksums == [path]
    record.unlink()
    file_hashes.cache_clear()
    assert client(offline=True).get(ID, sha, "table.bin") == path
    assert checksums == [path, path]


KILLED = f"""
import os, signal
from embark import hub as embark_hub
from embark.settings import load_settings

embark_hub.checksum_of = lambda path, file: os.kill(os.getpid(), signal.SIGKILL)
embark_hub.Hub(load_settings()).get("{ID}", "main", "table.bin")
"""


def test_a_kill_between_download_and_verification_leaves_nothing_unverified(hub: FakeHub, sha: str) -> None:
    hub.corrupt = 1
    environment = {**os.environ, "HF_HOME": str(snapshot(DATASETS, ID, sha).parents[3])}
    child = subprocess.run([sys.executable, "-c", KILLED], env=environment, timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert snapshot(DATASETS, ID, sha).joinpath("table.bin").read_bytes() != DATA
    assert client().get(ID, sha, "table.bin").read_bytes() == DATA
