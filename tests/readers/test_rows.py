"""Rows of every format, and media in them: read by cell when needed, with digests that outlive the run."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
import threading
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embark.items import lazy_media
from embark.items.lazy_media import StoredMedia
from embark.readers import rows
from embark.types import EmbarkError, Media, Source
from hub import FakeHub, client, parquet, png, tar, zipped

ID = "org/sample"
RED, GREEN, BLUE = png("red"), png("green"), png("blue")
SHARD = "data/test-00000-of-00001.parquet"


def opened(hub: FakeHub, files: dict[str, bytes | str], split: str = "test", **options: Any) -> rows.Rows:
    return rows.open_rows(Source(ID, hub.add(ID, files)), split, client(), **options)


def read(media: list[Media | None]) -> list[bytes | None]:
    return [None if one is None else one.read()[0] for one in media]


def npy(value: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shards_make_one_table(hub: FakeHub) -> None:
    files = {f"data/test-{at:05d}-of-00012.parquet": parquet({"n": [2 * at, 2 * at + 1]}) for at in range(12)}
    found = opened(hub, files | {"data/train-00000-of-00001.parquet": parquet({"n": [99]})}, expected=24)
    assert len(found) == 24
    assert found.values("n") == list(range(24))


def test_another_number_of_rows_is_an_error_that_names_both(hub: FakeHub) -> None:
    with pytest.raises(EmbarkError, match=r"org/sample \(big/test\) has 2 rows at revision \w+, expected 1,000"):
        opened(hub, {"big/test-0.parquet": parquet({"n": [1, 2]})}, config="big", expected=1000)


def test_a_missing_column_is_an_error_that_names_those_there(hub: FakeHub) -> None:
    found = opened(hub, {SHARD: parquet({"image": [RED], "label": [0]})})
    for ask in (found.values, found.class_names, lambda name: found.media("image", name)):
        with pytest.raises(EmbarkError, match="has no column 'caption'; its columns are image, label"):
            ask("caption")


def test_values_of_every_kind(hub: FakeHub) -> None:
    columns = {"text": ["a", None], "list": [[1, 2], []], "struct": [{"x": 1}, {"x": 2}], "a.b": [1.5, 2.5]}
    found = opened(hub, {SHARD: parquet(columns)})
    assert {name: found.values(name) for name in found.column_names} == columns
    assert found.values("struct.x") == [1, 2]


def test_class_names_are_those_that_the_file_stores(hub: FakeHub) -> None:
    sample = parquet({"label": [0, 1], "text": ["a", "b"]}, classes={"label": ["cat", "dog"]})
    found = opened(hub, {SHARD: sample})
    assert found.class_names("label") == ("cat", "dog")
    assert found.class_names("text") is None


@pytest.mark.parametrize(
    "feature",
    [
        {"feature": {"names": ["a", "b"], "_type": "ClassLabel"}, "_type": "Sequence"},
        [{"names": ["a", "b"], "_type": "ClassLabel"}],
    ],
)
def test_class_names_of_lists_of_labels(hub: FakeHub, feature: Any) -> None:
    stored = {"huggingface": json.dumps({"info": {"features": {"labels": feature}}})}
    out = io.BytesIO()
    pq.write_table(pa.table({"labels": [[0], [1]]}).replace_schema_metadata(stored), out)
    assert opened(hub, {SHARD: out.getvalue()}).class_names("labels") == ("a", "b")


LINES = '{"id": 1, "text": "a\u2028b"}\n\n{"id": 2, "extra": [3]}\n'
TEXTS = {
    "test.jsonl": LINES,
    "test.json": '[{"id": 1, "text": "a\u2028b"}, {"id": 2, "extra": [3]}]',
    "test.jsonl.gz": gzip.compress(LINES.encode()),
    "data/test.json": json.dumps({"id": [1, 2], "text": ["a\u2028b", None], "extra": [None, [3]]}, indent=1),
}


@pytest.mark.parametrize("name", TEXTS)
def test_json(hub: FakeHub, name: str) -> None:
    found = opened(hub, {name: TEXTS[name]})
    assert found.column_names == ("id", "text", "extra")
    assert [found.values(column) for column in found.column_names] == [[1, 2], ["a\u2028b", None], [None, [3]]]


@pytest.mark.parametrize(
    ("name", "text"), [("test.csv", 'id,text\n1,"a, ""b""\nc"\n'), ("test.tsv", 'id\ttext\n1\t"a, ""b""\nc"\n')]
)
def test_separated_values_are_texts(hub: FakeHub, name: str, text: str) -> None:
    found = opened(hub, {name: "\ufeff" + text})
    assert [found.values(column) for column in ("id", "text")] == [["1"], ['a, "b"\nc']]


@pytest.mark.parametrize(("name", "between"), [("test.csv", ","), ("test.tsv", "\t")])
def test_an_empty_cell_holds_nothing(hub: FakeHub, name: str, between: str) -> None:
    rows = [["id", "text", "more"], ["1", "", "x"], ["2", '""', ""], ["3", " "]]
    found = opened(hub, {name: "\n".join(map(between.join, rows))})
    assert found.values("text") == [None, None, " "]
    assert found.values("more") == ["x", None, None]


PACKED = gzip.compress(json.dumps([{"n": at, "text": str(at**5)} for at in range(999)]).encode())
DAMAGED = PACKED[:900] + bytes(byte ^ 255 for byte in PACKED[900:910]) + PACKED[910:]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("test.json.gz", PACKED[:900]),
        ("test.json.gz", DAMAGED),
        ("test.jsonl", b'{"a": 1}\n{"a"'),
        ("test.json", b"[1, 2]"),
        ("test.csv", b"a,b\n1,2,3\n"),
        ("test.csv", b"\xff\xfe"),
        ("test.parquet", b"PAR1 and then nothing"),
        ("test.tar", b"not a tar"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(hub: FakeHub, name: str, data: bytes) -> None:
    with pytest.raises(EmbarkError, match=rf"{name} cannot be read: .*\. Repair the file, or replace it"):
        opened(hub, {name: data})


def test_so_is_one_that_is_broken_in_the_middle(hub: FakeHub) -> None:
    whole = parquet({"text": [f"{at} {at**5}" for at in range(999)]})
    found = opened(hub, {SHARD: whole[:900] + b"\xff" * 300 + whole[1200:]})
    with pytest.raises(EmbarkError, match=r"\.parquet cannot be read: .* Repair the file"):
        found.values("text")


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [None, pa.binary(), pa.large_binary()])
def test_media_of_structs_and_of_plain_bytes(hub: FakeHub, kind: pa.DataType | None) -> None:
    pictures = [RED, None, GREEN, BLUE, RED]
    if kind is None:
        sample = parquet({"image": pictures}, rows=2)
    else:
        out = io.BytesIO()
        pq.write_table(pa.table({"image": pa.array(pictures, kind)}), out, row_group_size=2)
        sample = out.getvalue()
    media = opened(hub, {SHARD: sample}).media("image", "image")
    assert read(media) == pictures
    assert [one and one.digest for one in media] == [one and Media("image", (one,)).digest for one in pictures]
    assert media[0] == media[0] != media[4]


def test_empty_cells_are_found_without_statistics_too(hub: FakeHub) -> None:
    table = pa.table({"image": [{"bytes": RED, "path": None}, {"bytes": None, "path": "x"}, None]})
    out = io.BytesIO()
    pq.write_table(table, out, write_statistics=False)
    assert read(opened(hub, {SHARD: out.getvalue()}).media("image", "image")) == [RED, None, None]


def test_lists_of_media(hub: FakeHub) -> None:
    cells_ = [[RED, BLUE], [], [GREEN]]
    found = opened(hub, {SHARD: parquet({"images": cells_}, rows=2)}).list_media("image", "images")
    assert [read(list(several)) for several in found] == cells_
    assert found[0][1].digest == Media("image", (BLUE,)).digest
    assert pickle.loads(pickle.dumps(found))[2][0].read() == (GREEN,)


def test_lists_of_plain_bytes(hub: FakeHub) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"images": pa.array([[RED, BLUE], None], pa.list_(pa.binary()))}), out)
    found = opened(hub, {SHARD: out.getvalue()}).list_media("image", "images")
    assert [read(list(several)) for several in found] == [[RED, BLUE], []]


def test_sounds_that_were_stored_decoded(hub: FakeHub) -> None:
    sound = {"array": [0.0, 0.5, -1.0, 2.0], "sampling_rate": 8000}
    columns = pa.table({"audio": [sound, None, sound]})
    out = io.BytesIO()
    pq.write_table(columns, out, row_group_size=2)
    media = opened(hub, {SHARD: out.getvalue()}).media("audio", "audio")
    (first,), none, last = (one and one.read() for one in media)
    assert none is None
    assert first == last[0]
    with wave.open(io.BytesIO(first)) as heard:
        assert (heard.getframerate(), heard.getnchannels(), heard.getsampwidth()) == (8000, 1, 2)
        assert np.frombuffer(heard.readframes(4), "<i2").tolist() == [0, 16384, -32768, 32767]
    assert media[0] is not None
    assert media[0].digest == Media("audio", (first,)).digest


def test_a_column_without_media_is_an_error(hub: FakeHub) -> None:
    found = opened(hub, {SHARD: parquet({"text": ["a"], "images": [[RED]]})})
    with pytest.raises(EmbarkError, match="column 'text' holds string, not media"):
        found.media("image", "text")
    with pytest.raises(EmbarkError, match=r"column 'images' holds list<.* not media"):
        found.media("image", "images")
    with pytest.raises(EmbarkError, match="column 'text' holds string, not lists of media"):
        found.list_media("image", "text")


def test_media_hold_no_bytes_and_can_be_pickled(hub: FakeHub) -> None:
    sample = parquet({"image": [png((at, 0, 0), (200, 200)) * 50 for at in range(20)]})
    media = opened(hub, {SHARD: sample}).media("image", "image")
    packed = pickle.dumps(media)
    assert len(packed) < len(sample) / 10
    assert read(pickle.loads(packed)) == read(media)


def test_rows_in_order_decode_each_row_group_once(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, str, int]] = []
    load = lazy_media._RowGroups._load
    monkeypatch.setattr(lazy_media._RowGroups, "_load", lambda self, *key: loaded.append(key) or load(self, *key))
    monkeypatch.setattr(lazy_media, "ROW_GROUP_BYTES", 1)  # nothing but the newest is kept
    media = opened(hub, {SHARD: parquet({"image": [RED, GREEN, BLUE] * 10}, rows=7)}).media("image", "image")
    assert read(media) == [RED, GREEN, BLUE] * 10
    assert [group for _, _, group in loaded] == [0, 1, 2, 3, 4]
    threads = [threading.Thread(target=read, args=(media[7:14],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [group for _, _, group in loaded[5:]] == [1]  # asked for by all at once


def test_a_row_group_that_cannot_be_read_is_tried_again(hub: FakeHub, elsewhere: Path) -> None:
    media = opened(hub, {SHARD: parquet({"image": [RED]})}).media("image", "image")
    path = next(elsewhere.rglob("*.parquet"))
    path.rename(path.with_suffix(".away"))
    with pytest.raises(EmbarkError, match=rf"{path} cannot be read: .*No such file"):
        read(media)
    path.with_suffix(".away").rename(path)
    assert read(media) == [RED]


def test_digests_are_kept_for_the_next_run(hub: FakeHub, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_media, "FILE_HASHES", 4)
    pictures = [RED, GREEN, BLUE] * 3
    media = opened(hub, {SHARD: parquet({"image": pictures})}).media("image", "image")
    wanted = [Media("image", (one,)).digest for one in pictures]
    assert [one.digest for one in media if one] == wanted
    kept = sorted((elsewhere / "home" / "digests").glob("*.facts"))
    assert len(kept) == 3

    def again() -> list[bytes]:
        lazy_media._facts.cache_clear()
        fresh = rows.open_rows(Source(ID, hub.branches[ID, "main"]), "test", client()).media("image", "image")
        return [one.digest for one in fresh if one]

    with monkeypatch.context() as patch:
        for name in ("read", "read_in_order"):
            patch.setattr(lazy_media.ParquetColumn, name, lambda self, at: pytest.fail("read again"))
        assert again() == wanted
    whole = kept[0].read_bytes()
    for spoilt in (b"", b"spoilt", whole[:-1], bytes(len(whole)), whole[:5] + b"?" + whole[6:]):  # by a loss of power
        kept[0].write_bytes(spoilt)
        assert again() == wanted
        assert kept[0].read_bytes() == whole


def test_digests_need_no_writable_home(hub: FakeHub, elsewhere: Path) -> None:
    media = opened(hub, {SHARD: parquet({"image": [RED]})}).media("image", "image")
    shutil.rmtree(elsewhere / "home" / "digests")
    (elsewhere / "home" / "digests").write_bytes(b"a file in the way")
    assert media[0] is not None
    assert media[0].digest == Media("image", (RED,)).digest


def test_a_film_of_pictures(hub: FakeHub) -> None:
    found = opened(hub, {SHARD: parquet({"image": [RED, BLUE], "images": [[GREEN], [RED]]})})
    pictures = [one for one in found.media("image", "image") if one]
    film = lazy_media.video_from_frames([*pictures, *found.list_media("image", "images")[0]])
    assert film.kind == "video"
    assert film.read() == (RED, BLUE, GREEN)
    assert film.digest == Media("video", (RED, BLUE, GREEN)).digest


# ── webdataset ───────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES = {
    "./s0.jpg": RED,
    "s0.cls": b"3",
    "s0.json": b'{"a": [1]}',
    "s1.JPG": GREEN,
    "s1.cls": b"7\n",
    "s1.seg.npy": npy([1, 2]),
    "sub/s0.png": BLUE,
    "sub/s0.cls": b"9",
    "__meta__.json": b"{}",
    ".hidden": b"",
}


def test_webdataset_shards(hub: FakeHub) -> None:
    shards = {"test/10.tar": tar({"z.jpg": RED, "z.cls": b"10"}), "test/2.tar": tar(SAMPLES), "test/nshards.txt": b"2"}
    found = opened(hub, shards, expected=4)
    assert found.column_names == ("__key__", "jpg", "cls", "json", "seg.npy", "png")
    assert found.values("__key__") == ["s0", "s1", "sub/s0", "z"]
    assert found.values("cls") == [3, 7, 9, 10]
    assert found.values("json") == [{"a": [1]}, None, None, None]
    assert np.array_equal(found.values("seg.npy")[1], [1, 2])
    assert read(found.media("image", "jpg")) == [RED, GREEN, None, RED]
    media = found.media("image", "png;jpg")
    assert read(media) == [RED, GREEN, BLUE, RED]
    assert isinstance(media[0], StoredMedia)
    assert [one and one.digest for one in media] == [Media("image", (one,)).digest for one in (RED, GREEN, BLUE, RED)]


def test_media_in_a_tar_need_no_index(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pickle.dumps(opened(hub, {"test/0.tar": tar(SAMPLES)}).media("image", "png;jpg"))
    monkeypatch.setattr(lazy_media, "archive_index", lambda path: pytest.fail("scanned again"))
    assert read(pickle.loads(packed)) == [RED, GREEN, BLUE]


def test_pickled_objects_are_not_loaded(hub: FakeHub) -> None:
    words = npy(np.array(["a", "bc"]))
    objects = npy(np.array([{"a": 1}], dtype=object))
    found = opened(hub, {"test/0.tar": tar({"s0.npy": words, "s1.txt": "ü".encode()})})
    assert found.values("npy")[0].tolist() == ["a", "bc"]
    assert found.values("txt") == [None, "ü"]
    found = opened(hub, {"test/0.tar": tar({"s0.npy": objects})})
    with pytest.raises(EmbarkError, match=r"'s0.npy' cannot be read: it is an array of pickled objects"):
        found.values("npy")


# ── files and archives ───────────────────────────────────────────────────────────────────────────────────────────────

MEMBERS = {"images/a.png": RED, "images/b.png": GREEN, "notes.txt": b"hello" * 1000}
ARCHIVES = {
    "all.zip": {"all.zip": zipped(MEMBERS)},
    "stored.zip": {"stored.zip": zipped(MEMBERS, zipfile.ZIP_STORED)},
    "all.tar": {"all.tar": tar(MEMBERS)},
    "all.tar.gz": {"all.tar.gz": tar(MEMBERS, "w:gz")},
    "all.tar.xz": {"all.tar.xz": tar(MEMBERS, "w:xz")},
    "all.tar.bz2": {"all.tar.bz2": tar(MEMBERS, "w:bz2")},
    "cut.tar.part-*": {"cut.tar.part-a": tar(MEMBERS)[:1000], "cut.tar.part-b": tar(MEMBERS)[1000:]},
    "cut.tar.gz-*": {"cut.tar.gz-0": tar(MEMBERS, "w:gz")[:100], "cut.tar.gz-1": tar(MEMBERS, "w:gz")[100:]},
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(hub: FakeHub, name: str) -> None:
    source = Source(ID, hub.add(ID, ARCHIVES[name]))
    archive = rows.open_archive(source, name, client())
    assert archive.names() == list(MEMBERS)
    picture = archive.media("image", "images/b.png")
    assert picture.read() == (GREEN,)
    assert picture.digest == Media("image", (GREEN,)).digest
    assert archive.read("notes.txt") == MEMBERS["notes.txt"]
    assert pickle.loads(pickle.dumps(picture)).read() == (GREEN,)
    with pytest.raises(EmbarkError, match=r"has no file 'images/c\.png'. Did you mean images/"):
        archive.media("image", "images/c.png")
    assert rows.open_archive(source, name, client()).read("images/a.png") == RED


def test_what_is_no_archive_is_an_error(hub: FakeHub) -> None:
    source = Source(ID, hub.add(ID, {"all.zip": b"nothing", "all.tar.gz": b"\x1f\x8bnothing"}))
    with pytest.raises(EmbarkError, match=r"all\.zip cannot be read as an archive"):
        rows.open_archive(source, "all.zip", client()).names()
    with pytest.raises(EmbarkError, match=r"Cannot unpack .*all\.tar\.gz"):
        rows.open_archive(source, "all.tar.gz", client())
    with pytest.raises(EmbarkError, match=r"no file 'all\.rar'"):
        rows.open_archive(source, "all.rar", client())


def test_one_file(hub: FakeHub) -> None:
    source = Source(ID, hub.add(ID, {"classnames.txt": "cat\ndog\n", SHARD: parquet({"n": [1]})}))
    assert client().get(source.id, source.revision, "classnames.txt").read_text() == "cat\ndog\n"
    assert not hub.asked("/lfs/")
