"""A disk without room for a download is a clean stop before it begins."""

from __future__ import annotations

import json

import pytest

from embark.data import fetch
from embark.types import EmbarkError
from hub import FakeHub, client

ID = "org/data"


def test_fault_07_a_download_that_does_not_fit_names_what_it_needs(
    hub: FakeHub,
) -> None:
    sha = hub.add(ID, {"a.bin": b"a" * 1000, "b.bin": b"b"})
    listing = client()._folder(ID) / f"{sha}.json"
    client().files(ID, sha)
    kept = listing.read_text()
    rows = json.loads(kept)["files"]
    rows[0]["size"] = 1 << 49
    listing.write_text(json.dumps(rows))
    fetch._load_listing.cache_clear()
    with pytest.raises(EmbarkError, match=rf"The disk is full: .* needs {(1 << 49):,} bytes, [\d,]+ are free\. Make"):
        client().get(ID, sha, "a.bin")
    assert not hub.asked("/resolve/")
    assert client().get(ID, sha, "b.bin").read_bytes() == b"b"
    listing.write_text(kept)
    fetch._load_listing.cache_clear()
    assert client().get(ID, sha, "a.bin").read_bytes() == b"a" * 1000
