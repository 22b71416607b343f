"""A hub that answers wrongly: nothing of it is kept, nothing is written elsewhere, and no token goes elsewhere."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, constants, hf_hub_download

from embark import http, readers
from embark import hub as embark_hub
from embark.file_hashes import file_hashes
from embark.hub.listing import load_listing
from embark.readers.layout import NoFiles
from embark.types import EmbarkError, Source, Task
from hub import FakeHub, Handler, client, parquet

ID = "org/data"
FILES: dict[str, bytes | str] = {"data/test.csv": "text\na\n", "x.txt": "x"}
SHA = "ab" * 20
OID = "0" * 40


class LyingHub(FakeHub):
    """Answers with `lies`, where there are any: headers and a body for each path with that part."""

    lies: dict[str, tuple[dict[str, str], bytes]]


@pytest.fixture
def lying(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> LyingHub:
    """The hub of the settings, with lies on demand."""
    answer = Handler.do_GET
    hub.lies = {}  # type: ignore[attr-defined]

    def do_GET(self: Any) -> None:
        for part, (headers, body) in getattr(self.hub, "lies", {}).items():
            if part in self.path:
                self.hub.requests.append((self.path, dict(self.headers.items())))
                self._answer(200, body, headers)
                return
        answer(self)

    monkeypatch.setattr(Handler, "do_GET", do_GET)
    return hub  # type: ignore[return-value]


def rows(*listed: dict[str, Any]) -> bytes:
    return json.dumps([{"type": "file", "path": "x.txt", "size": 1, "oid": OID, **row} for row in listed]).encode()


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b"{}",
        b"null",
        b"[1]",
        rows({"size": -1}),
        rows({"size": 1 << 60}),
        rows({"size": "1"}),
        rows({"path": "../x"}),
        rows({"path": "/x"}),
        rows({"path": "a\0b"}),
        rows({"path": 5}),
        rows({"path": "x" * 5000}),
        rows({"oid": "../../x"}),
        rows({"lfs": {"oid": "../../x", "size": 1}}),
        rows({"type": "tree"}),
        rows({}, {}),
        b'[{"type": "file"}]',
    ],
)
def test_a_wrong_list_is_refused_and_not_kept(lying: LyingHub, answer: bytes) -> None:
    sha = lying.add(ID, FILES)
    lying.lies = {"/tree/": ({}, answer)}
    with pytest.raises(EmbarkError):
        client().files(ID, sha)
    lying.lies = {}
    assert {file.path for file in client().files(ID, sha)} == set(FILES)


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"sha": 5}', b'{"sha": "../../../x"}', b'{"sha": "main"}'])
def test_a_commit_that_is_no_hash_is_refused_and_not_kept(lying: LyingHub, answer: bytes, elsewhere: Path) -> None:
    sha = lying.add(ID, FILES)
    before = set(elsewhere.rglob("*"))
    lying.lies = {"/revision/": ({}, answer)}
    with pytest.raises(EmbarkError, match="not a hash"):
        client().files(ID, "main")
    assert set(elsewhere.rglob("*")) == before
    lying.lies = {}
    assert client().resolve(ID, "main") == sha


@pytest.mark.parametrize("damage", ["", "[", "[]", '[{"path": "x.txt"', "[1]", "{}", "[" * 9000])
def test_a_kept_list_that_is_damaged_is_asked_for_again(hub: FakeHub, elsewhere: Path, damage: str) -> None:
    sha = hub.add(ID, FILES)
    client().files(ID, sha)
    load_listing.cache_clear()  # as in a new process
    (elsewhere / "home" / "hub" / "org__data" / f"{sha}.json").write_text(damage)
    with pytest.raises(EmbarkError, match="Offline, and the list of files of dataset org/data"):
        client(offline=True).files(ID, sha)
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"


def test_a_kept_list_that_can_be_read_and_is_damaged_is_asked_for_again(hub: FakeHub, elsewhere: Path) -> None:
    sha = hub.add(ID, FILES)
    client().files(ID, sha)
    load_listing.cache_clear()
    kept = elsewhere / "home" / "hub" / "org__data" / f"{sha}.json"
    kept.write_text(kept.read_text().replace("x.txt", "z.txt"))
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"


def test_a_record_of_verified_files_that_is_damaged_costs_nothing(hub: FakeHub, elsewhere: Path) -> None:
    sha = hub.add(ID, FILES)
    client().get(ID, sha, "x.txt")
    [record] = (elsewhere / "home" / "digests" / "files").iterdir()
    record.write_bytes(record.read_bytes()[:-3] + b"\xff\xff\xff\n" + b"[" * 9000)
    file_hashes.cache_clear()
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"


def test_after_a_list_that_lacks_a_file_an_honest_hub_works(lying: LyingHub) -> None:
    sha = lying.add(ID, FILES)
    lying.lies = {"/tree/": ({}, rows({"path": "other.txt"}))}
    with pytest.raises(EmbarkError, match=r"has no file 'x\.txt'"):
        client().get(ID, sha, "x.txt")
    lying.lies = {}
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"


def test_after_a_list_that_lacks_a_table_an_honest_hub_works(lying: LyingHub) -> None:
    held = {"data/test-0.parquet": parquet({"text": ["a", "b"], "label": ["x", "y"]})}
    sha = lying.add(ID, held)
    source = Source(ID, sha, None, splits=("test",))
    task = Task(
        "T", "MIEB", "clustering", "labelled", source, "m", category="", modalities=("text",),
        subsets={"default": ("eng-Latn",)}, columns={"text": "text"},
    )  # fmt: skip
    lying.lies = {"/tree/": ({}, rows({"path": "other.txt"}))}
    with pytest.raises(NoFiles):
        readers.read(task, "test", "default", client())
    lying.lies = {}
    assert len(readers.read(task, "test", "default", client()).sides["item"]) == 2


@pytest.mark.parametrize("wrong", [{"size": 2}, {"oid": OID}])
def test_after_a_list_with_another_checksum_an_honest_hub_works(lying: LyingHub, wrong: dict[str, Any]) -> None:
    sha = lying.add(ID, FILES)
    lying.lies = {"/tree/": ({}, rows(wrong))}
    with pytest.raises(EmbarkError, match="arrived damaged twice"):
        client().get(ID, sha, "x.txt")
    lying.lies = {}
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"


def test_an_endless_list_ends(lying: LyingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count()

    def endless(self: Any) -> None:
        number = next(count)
        link = f'<{self.hub.endpoint}/api/datasets/{ID}/tree/{SHA}?cursor={number}>; rel="next"'
        self._answer(
            200, rows(*({"path": f"{number}/{row}"} for row in range(100))), {"Link": link} if number < 200 else {}
        )

    monkeypatch.setattr(Handler, "do_GET", endless)
    monkeypatch.setattr(embark_hub, "LISTING_FILES", 1000)
    with pytest.raises(EmbarkError, match=r"does not end \(after 11 pages and 1,100 files\)"):
        client().files(ID, SHA)
    monkeypatch.setattr(embark_hub, "LISTING_FILES", 10**9)
    monkeypatch.setattr(embark_hub, "LISTING_PAGES", 5)
    with pytest.raises(EmbarkError, match=r"does not end \(after 5 pages"):
        client().files(ID, SHA)
    monkeypatch.setattr(embark_hub, "LISTING_PAGES", 10**9)
    monkeypatch.setattr(embark_hub, "LISTING_BYTES", 100_000)
    with pytest.raises(EmbarkError, match="does not end"):
        client().files(ID, SHA)
    assert next(count) < 100


def test_a_page_that_links_to_itself_ends(lying: LyingHub) -> None:
    link = f'<{lying.endpoint}/api/datasets/{ID}/tree/{SHA}?recursive=true>; rel="next"'
    lying.lies = {"/tree/": ({"Link": link}, rows({}))}
    with pytest.raises(EmbarkError, match="does not end"):
        client().files(ID, SHA)
    assert len(lying.requests) == 1


def test_an_answer_is_read_up_to_a_limit(lying: LyingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embark_hub, "ANSWER_BYTES", 100_000)
    lying.lies = {"/tree/": ({}, b"[" + b" " * 1_000_000 + b"]")}
    with pytest.raises(EmbarkError, match="answers with more than 100,000 bytes"):
        client().files(ID, SHA)


@pytest.mark.parametrize(
    "link", ["file:///etc/passwd", f"file:///api/datasets/{ID}/tree/{SHA}", "/etc/passwd", "http://other.host/x"]
)
def test_a_list_that_goes_on_elsewhere_is_refused(lying: LyingHub, link: str) -> None:
    lying.lies = {"/tree/": ({"Link": f'<{link}>; rel="next"'}, rows({}))}
    with pytest.raises(EmbarkError, match="it goes on at"):
        client().files(ID, SHA)
    assert len(lying.requests) == 1


def test_huggingface_hub_sends_no_token_to_another_host(lying: LyingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_ORIGINS", set())  # a hub of an earlier test may have had the same port
    other = FakeHub()
    try:
        lying.lies = {"/tree/": ({"Link": f'<{other.endpoint}/more>; rel="next"'}, rows({}))}
        http.guard_huggingface_hub(lying.endpoint)
        with pytest.raises(EmbarkError, match="a token is not sent there"):
            list(HfApi(endpoint=lying.endpoint, token="hf_secret").list_repo_tree(ID, repo_type="dataset"))
        assert other.requests == []
    finally:
        other.close()


@pytest.mark.parametrize(("commit", "tag"), [(SHA, "../../../evil"), ("../../../evil", OID), (SHA, "/tmp/evil")])
def test_names_that_are_no_hashes_become_no_paths(lying: LyingHub, commit: str, tag: str, elsewhere: Path) -> None:
    sha = lying.add(ID, FILES)
    client().files(ID, sha)
    lying.lies = {"/resolve/": ({"X-Repo-Commit": commit, "ETag": f'"{tag}"'}, b"x")}
    with pytest.raises(EmbarkError, match="is no hash: it is refused"):
        client().get(ID, sha, "x.txt")
    with pytest.raises(EmbarkError, match="is no hash: it is refused"):
        hf_hub_download(ID, "x.txt", repo_type="dataset", endpoint=lying.endpoint)
    assert not [path for path in elsewhere.rglob("*") if "evil" in path.name]
    assert Path(constants.HF_HUB_CACHE).is_relative_to(elsewhere)
    lying.lies = {}
    assert client().get(ID, sha, "x.txt").read_bytes() == b"x"
