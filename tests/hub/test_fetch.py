"""Files come whole or not at all: broken connections, busy hubs, wrong bytes, moved revisions, full disks."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download

from embark import http
from embark import hub as embark_hub
from embark.hub import Hub
from embark.settings import load_settings
from embark.types import EmbarkError
from hub import PAGE, FakeHub, client

ID = "org/data"
DATA = bytes(range(256)) * 40_000  # about 10 MB: several blocks
SMALL = b"one\ntwo\n"


@pytest.fixture
def sha(hub: FakeHub) -> str:
    """A dataset of a large file and a small one."""
    return hub.add(ID, {"data/test.parquet": DATA, "a b/notes#1.txt": SMALL})


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """huggingface_hub counts, resumes and can be stopped after each chunk; its own are of 10 MB."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)


def parts(root: Path) -> list[Path]:
    return [*root.rglob("*.part"), *root.rglob("*.incomplete")]


def downloads(hub: FakeHub) -> list[str | None]:
    """The Range of each request for the large file's content."""
    return [headers.get("Range") for path, headers in hub.requests if path.startswith("/lfs/")]


# ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_listing_has_every_page_and_is_asked_for_once(hub: FakeHub) -> None:
    names = [f"folder/{at:02d}.txt" for at in range(3 * PAGE)]
    sha = hub.add(ID, {name: name for name in names})
    assert sorted(file.path for file in client().files(ID, sha)) == names
    asked = len(hub.asked("/tree/"))
    assert asked == 4  # the folder is in the listing, too
    assert len(client().files(ID, sha)) == len(names)
    assert len(hub.asked("/tree/")) == asked


def test_a_listing_knows_sizes_and_checksums(hub: FakeHub, sha: str) -> None:
    large, small = client().files(ID, sha)
    assert (large.path, large.size, large.sha256) == ("data/test.parquet", len(DATA), hashlib.sha256(DATA).hexdigest())
    assert (small.size, small.sha256) == (len(SMALL), "")
    assert small.oid == "814f4a422927b82f5f8a43f8fab6d3839e3983f2"  # git hash-object


def test_a_branch_is_resolved_again_for_each_hub(hub: FakeHub) -> None:
    first = hub.add(ID, {"x.txt": "old"})
    running = client()
    assert running.get(ID, "main", "x.txt").read_text() == "old"
    second = hub.add(ID, {"x.txt": "new"})
    assert running.get(ID, "main", "x.txt").read_text() == "old"
    assert client().get(ID, "main", "x.txt").read_text() == "new"
    assert client().resolve(ID, "main") == second != first


def test_a_listing_never_leaves_the_hub(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    sha = hub.add(ID, {f"{at:02d}.txt": "x" for at in range(2 * PAGE)})
    elsewhere = FakeHub()
    try:
        hub.next_pages = elsewhere.endpoint
        assert len(client().files(ID, sha)) == 2 * PAGE
        assert elsewhere.requests == []
    finally:
        elsewhere.close()


def test_a_path_that_leads_out_of_the_folder_is_refused(hub: FakeHub) -> None:
    sha = hub.add(ID, {"../../evil.txt": "x"})
    with pytest.raises(EmbarkError, match="not a path inside a dataset"):
        client().files(ID, sha)


# ── download ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_downloaded_once(hub: FakeHub, sha: str, elsewhere: Path) -> None:
    path = client().get(ID, sha, "data/test.parquet")
    cache = elsewhere / "huggingface" / "hub" / "datasets--org--data"
    assert path == cache / "snapshots" / sha / "data" / "test.parquet"
    assert path.read_bytes() == DATA
    assert client().get(ID, sha, "a b/notes#1.txt").read_bytes() == SMALL
    asked = len(hub.requests)
    assert client().get_all(ID, sha, ["data/test.parquet", "a b/notes#1.txt"])[0] == path
    assert len(hub.requests) == asked
    assert not parts(elsewhere)


def test_what_huggingface_hub_downloaded_before_is_found(hub: FakeHub, sha: str) -> None:
    before = hf_hub_download(ID, "data/test.parquet", repo_type="dataset", revision=sha, endpoint=hub.endpoint)
    assert downloads(hub) == [None]
    assert client().get(ID, sha, "data/test.parquet") == Path(before)
    assert client().get(ID, "main", "data/test.parquet") == Path(before)
    assert downloads(hub) == [None]


def test_a_file_of_another_size_is_downloaded_again(hub: FakeHub, sha: str) -> None:
    path = client().get(ID, sha, "data/test.parquet")
    path.write_bytes(DATA[:9])
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


def test_an_empty_file_is_a_file(hub: FakeHub) -> None:
    sha = hub.add(ID, {"empty.txt": b"", "empty.bin": b""})
    assert [path.read_bytes() for path in client().get_all(ID, sha, ["empty.txt", "empty.bin"])] == [b"", b""]


def test_an_unknown_file_is_an_error_that_knows_its_namesake(hub: FakeHub, sha: str) -> None:
    with pytest.raises(EmbarkError, match=r"no file 'test\.parquet' at revision .* Did you mean data/test\.parquet\?"):
        client().get(ID, sha, "test.parquet")


@pytest.mark.usefixtures("small_chunks")
def test_a_truncated_download_goes_on_where_it_broke_off(hub: FakeHub, sha: str, elsewhere: Path) -> None:
    hub.truncate = [3_000_000, 10, 2_000_000]
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA
    assert downloads(hub) == [None, "bytes=3000000-", "bytes=3000000-", "bytes=5000000-"]
    assert not parts(elsewhere)


@pytest.mark.usefixtures("small_chunks")
def test_connections_without_a_byte_are_not_tried_for_ever(hub: FakeHub, sha: str) -> None:
    hub.truncate = [1000] + [0] * 50
    with pytest.raises(EmbarkError, match=r"Downloading 'data/test\.parquet' of dataset org/data failed 6 times"):
        client().get(ID, sha, "data/test.parquet")
    hub.truncate = []
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


def test_a_hub_that_ignores_ranges_sends_the_file_again(
    hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.ranges = False
    hub.truncate = [5000] * 50
    with pytest.raises(EmbarkError, match="failed 6 times: peer closed connection without sending complete message"):
        client().get(ID, sha, "data/test.parquet")
    hub.truncate = [5000]
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_hub_is_asked_again(hub: FakeHub, sha: str, status: int) -> None:
    hub.busy = [status, status]
    client().files(ID, sha)
    hub.busy = [status, status]
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA
    assert not hub.busy


def test_retry_after_is_respected_within_reason(hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(http, "PAUSE", 1.0)
    monkeypatch.setattr(time, "sleep", waited.append)
    monkeypatch.setattr(http.with_retries, "__defaults__", (waited.append,))
    hub.retry_after, hub.busy = "7", [429, 429]
    client().files(ID, sha)
    hub.retry_after, hub.busy = "Wed, 21 Oct 2015 07:28:00 GMT", [503]
    client().resolve(ID, "main")
    hub.retry_after, hub.busy = "100000", [503]
    client().resolve(ID, "main")
    hub.retry_after, hub.busy = "soon", [503, 503]
    client().resolve(ID, "main")
    assert waited == [7, 7, 0, http.LONGEST_PAUSE_SECONDS, 1, 2]


def test_a_hub_that_stays_busy_is_an_error(hub: FakeHub, sha: str) -> None:
    hub.busy = [503] * 20
    with pytest.raises(EmbarkError, match=r"Asking http.* about dataset org/data failed 6 times: HTTP 503"):
        client().files(ID, sha)


def test_no_connection_is_an_error_that_names_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    absent = client(endpoint=f"http://127.0.0.1:{port}/")
    for dataset in (ID, "org/other"):  # nobody waits: no hub that never answered is asked twice
        with pytest.raises(EmbarkError, match=rf"http://127.0.0.1:{port} cannot be reached: .*refused.*EMBARK_OFFLINE"):
            absent.files(dataset, "main")


@pytest.mark.parametrize(("name", "kind"), [("data/test.parquet", "sha256"), ("a b/notes#1.txt", "git object")])
def test_wrong_bytes_are_fetched_again_and_then_refused(
    hub: FakeHub, sha: str, name: str, kind: str, elsewhere: Path
) -> None:
    hub.corrupt = 2
    with pytest.raises(
        EmbarkError, match=rf"'{name}' of dataset org/data arrived damaged twice: expected {kind} \w+, found"
    ):
        client().get(ID, sha, name)
    assert not parts(elsewhere)
    hub.corrupt = 1
    assert client().get(ID, sha, name).read_bytes() in (DATA, SMALL)


def test_a_file_that_grew_is_refused(hub: FakeHub, sha: str) -> None:
    client().files(ID, sha)
    hub.data[ID, sha]["a b/notes#1.txt"] += b"three"
    with pytest.raises(EmbarkError, match="found 13 bytes instead of 8"):
        client().get(ID, sha, "a b/notes#1.txt")


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_revision_that_is_gone_is_an_error_that_names_the_new_one(hub: FakeHub, sha: str) -> None:
    new = hub.add(ID, {"x.txt": "x"})
    with pytest.raises(EmbarkError, match=rf"Revision {'0' * 40} of dataset org/data is gone \(the hub has {new}\)"):
        client().files(ID, "0" * 40)
    client().files(ID, sha)
    del hub.data[ID, sha]
    with pytest.raises(EmbarkError, match=rf"Revision {sha} of dataset org/data is gone \(the hub has {new}\)"):
        client().get(ID, sha, "data/test.parquet")


def test_a_file_that_is_gone_is_an_error_that_names_it(hub: FakeHub, sha: str) -> None:
    client().files(ID, sha)
    del hub.data[ID, sha]["a b/notes#1.txt"]
    with pytest.raises(EmbarkError, match=rf"File 'a b/notes#1.txt' of dataset org/data is gone from revision {sha}"):
        client().get(ID, sha, "a b/notes#1.txt")


def test_a_dataset_that_is_not_there_is_an_error(hub: FakeHub) -> None:
    with pytest.raises(EmbarkError, match="There is no dataset org/nothing at http"):
        client().files("org/nothing", "main")


def test_a_login_of_huggingface_hub_opens_a_gated_dataset(hub: FakeHub, sha: str) -> None:
    hub.gated.add(ID)
    Path(constants.HF_TOKEN_PATH).parent.mkdir(parents=True, exist_ok=True)
    Path(constants.HF_TOKEN_PATH).write_text(hub.token)
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


def test_a_gated_dataset_says_how_to_get_in(hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.gated.add(ID)
    with pytest.raises(EmbarkError, match=r"is gated.* accept its terms at http.*/datasets/org/data and set HF_TOKEN"):
        client().get(ID, sha, "data/test.parquet")
    monkeypatch.setenv("HF_TOKEN", "wrong")
    with pytest.raises(EmbarkError, match="is gated") as caught:
        client().get(ID, sha, "data/test.parquet")
    assert "wrong" not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


def test_the_token_stays_with_the_hub(hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    storage = FakeHub()
    try:
        storage.data = hub.data
        hub.storage = storage.endpoint
        assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA
        assert [path.split("/")[1] for path, _ in storage.requests] == ["lfs"]
        assert not any("Authorization" in headers for _, headers in storage.requests)
        assert all(headers["Authorization"] == f"Bearer {hub.token}" for _, headers in hub.requests)
    finally:
        storage.close()


def test_a_link_to_storage_that_ran_out_is_made_again(hub: FakeHub, sha: str) -> None:
    storage = FakeHub()
    try:
        storage.data, hub.storage = hub.data, storage.endpoint
        storage.busy = [403, 404]
        assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA
        assert len(hub.asked("/resolve/")) == 3
    finally:
        storage.close()


# ── offline ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_offline_uses_what_is_here_and_asks_nobody(hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for revision in (sha, "main"):
        client().get(ID, revision, "data/test.parquet")
    monkeypatch.setenv("EMBARK_OFFLINE", "1")
    asked = len(hub.requests)
    assert client().get(ID, "main", "data/test.parquet").read_bytes() == DATA
    with pytest.raises(EmbarkError, match=r"Offline, and file 'a b/notes#1.txt' of dataset org/data .*`embark fetch`"):
        client().get(ID, sha, "a b/notes#1.txt")
    with pytest.raises(EmbarkError, match="Offline, and revision v2 of dataset org/data is not on this machine"):
        client().get(ID, "v2", "data/test.parquet")
    with pytest.raises(EmbarkError, match="Offline, and the list of files of dataset org/other"):
        client().files("org/other", sha)
    assert len(hub.requests) == asked


def test_data_is_shared_whatever_the_home(hub: FakeHub, sha: str, tmp_path: Path) -> None:
    path = client().get(ID, sha, "data/test.parquet")
    assert client(home=tmp_path).get(ID, sha, "data/test.parquet") == path
    assert (tmp_path / "hub" / "org__data" / f"{sha}.json").is_file()
    assert downloads(hub) == [None]


def test_huggingface_hub_may_be_offline_although_the_settings_are_not(
    hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(EmbarkError, match="unset the `HF_HUB_OFFLINE` environment variable"):
        client().files(ID, sha)
    assert hub.requests == []


def test_large_downloads_show_their_progress(hub: FakeHub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []

    @contextmanager
    def progress(title: str, total: int) -> Iterator[Callable[[int], object]]:
        shown.extend([title, total])
        yield shown.append

    monkeypatch.setattr(embark_hub, "PROGRESS_BYTES", 9_000_000)
    showing = Hub(load_settings(), progress)
    showing.get(ID, sha, "a b/notes#1.txt")
    assert shown == []
    showing.get(ID, sha, "data/test.parquet")
    title, total, *counts = shown
    assert (title, total) == (f"Downloading {ID}", len(DATA))
    assert sum(counts) == len(DATA)  # type: ignore[call-overload]


# ── this machine ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("number", "said"), [(errno.ENOSPC, "The disk is full"), (errno.EACCES, "Cannot write")])
def test_a_disk_that_takes_no_more_is_an_error(
    hub: FakeHub, sha: str, number: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    client().files(ID, sha)
    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    with pytest.raises(EmbarkError, match=said):
        client().get(ID, sha, "data/test.parquet")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EmbarkError, match=said):
        client().files(ID, hub.add(ID, {"x.txt": "x"}))


def test_what_a_dead_process_left_is_no_harm(hub: FakeHub, sha: str, elsewhere: Path) -> None:
    blobs = elsewhere / "huggingface" / "hub" / "datasets--org--data" / "blobs"
    blobs.mkdir(parents=True)
    for ending in (".incomplete", ".0dead0ff.incomplete"):
        (blobs / f"{hashlib.sha256(DATA).hexdigest()}{ending}").write_bytes(b"not the data")
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA


def test_many_at_once_are_harmless(hub: FakeHub, sha: str, elsewhere: Path) -> None:
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(client().get(ID, sha, "data/test.parquet").read_bytes()))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [DATA] * 6
    assert not parts(elsewhere)


@pytest.mark.usefixtures("small_chunks")
def test_one_failure_stops_the_others(hub: FakeHub, sha: str) -> None:
    client().files(ID, sha)
    hub.pace = 0.05  # seconds a block: the large file would take a minute
    del hub.data[ID, sha]["a b/notes#1.txt"]
    with pytest.raises(EmbarkError, match=r"notes#1\.txt' of dataset org/data is gone"):
        client().get_all(ID, sha, ["a b/notes#1.txt", "data/test.parquet"])
    large = next(file for file in client().files(ID, sha) if file.path == "data/test.parquet")
    assert not client().has(ID, sha, large)


INTERRUPTED = f"""
from huggingface_hub import constants
from embark.hub import Hub
from embark.settings import load_settings

constants.DOWNLOAD_CHUNK_SIZE = 8192
Hub(load_settings()).get("{ID}", "main", "data/test.parquet")
"""


def test_an_interrupted_download_stops_at_once_and_comes_whole_later(hub: FakeHub, sha: str, elsewhere: Path) -> None:
    hub.pace = 0.05
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not downloads(hub):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=10) != 0
    hub.pace = 0.0
    assert client().get(ID, sha, "data/test.parquet").read_bytes() == DATA
    assert not parts(elsewhere)
