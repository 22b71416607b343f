"""Tables and texts within an archive, as MMEB packs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from embark.readers import _mmeb
from embark.readers.rows import open_archive
from embark.types import EmbarkError, Source
from hub import FakeHub, client, tar


def packed(hub: FakeHub, held: dict[str, bytes]) -> _mmeb.ArchiveFolder:
    source = Source("org/packed", hub.add("org/packed", {"set.tar": tar(held)}))
    return _mmeb.ArchiveFolder(open_archive(source, "set.tar", client()), "set")


def test_lines_end_in_line_feeds_alone(hub: FakeHub) -> None:
    line = '{"caption": "a\u2028b\x85c"}'
    held = {"./set/a.jsonl": f"{line}\r\n\n{line}".encode(), "./set/b.txt": "a\u2028b\r\n\nc\n".encode()}
    files = packed(hub, held)
    assert files.table("a.jsonl").records() == [{"caption": "a\u2028b\x85c"}] * 2
    assert files.lines("b.txt") == ["a\u2028b", "c"]


def test_tables_are_unpacked_in_blocks_into_home(
    hub: FakeHub, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embark.items.limits.BLOCK_BYTES", 7)
    files = packed(hub, {"set/first.txt": b"before", "set/a.csv": b"n,text\n1,one\n2,two\n", "set/last.txt": b"after"})
    assert files.table("*.csv").records() == [{"n": "1", "text": "one"}, {"n": "2", "text": "two"}]
    assert [path.relative_to(client().home).parts[0] for path in elsewhere.rglob("a.csv")] == ["unpacked"]


def test_tables_stay_in_their_folder(hub: FakeHub, elsewhere: Path) -> None:
    files = packed(hub, {"set/../../../evil.csv": b"n\n1\n", "set/a.csv": b"n\n1\n"})
    with pytest.raises(EmbarkError, match="not a path inside a dataset"):
        files.table("*evil.csv")
    assert not list(elsewhere.rglob("evil.csv"))
