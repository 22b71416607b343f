"""A disk without room for a download is a clean stop before it begins."""

from __future__ import annotations

import json
import resource

import pytest

from embark.hub.listing import listing_checksum, load_listing
from embark.types import EmbarkError
from hub import FakeHub, client

ID = "org/data"


def test_a_download_that_does_not_fit_names_what_it_needs(
    hub: FakeHub,
) -> None:
    sha = hub.add(ID, {"a.bin": b"a" * 1000, "b.bin": b"b"})
    listing = client()._folder(ID) / f"{sha}.json"
    client().files(ID, sha)
    kept = listing.read_text()
    rows = json.loads(kept)["files"]
    rows[0]["size"] = 1 << 49
    listing.write_text(json.dumps({"files": rows, "checksum": listing_checksum(rows)}))
    load_listing.cache_clear()
    with pytest.raises(EmbarkError, match=rf"The disk is full: .* needs {(1 << 49):,} bytes, [\d,]+ are free\. Make"):
        client().get(ID, sha, "a.bin")
    assert not hub.asked("/resolve/")
    assert client().get(ID, sha, "b.bin").read_bytes() == b"b"
    listing.write_text(kept)
    load_listing.cache_clear()
    assert client().get(ID, sha, "a.bin").read_bytes() == b"a" * 1000


def test_a_disk_that_fills_during_a_download_is_a_clean_stop_and_resumes(hub: FakeHub) -> None:
    sha = hub.add(ID, {"a.bin": b"a" * 300_000, "b.bin": b"b"})
    client().files(ID, sha)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # files of this process end there
    try:
        with pytest.raises(EmbarkError, match=r"The disk is full: .* needs 300,000 bytes, [\d,]+ are free\. Make"):
            client().get(ID, sha, "a.bin")
        assert client().get(ID, sha, "b.bin").read_bytes() == b"b"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert client().get(ID, sha, "a.bin").read_bytes() == b"a" * 300_000
