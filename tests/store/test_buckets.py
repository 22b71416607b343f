"""A store in a bucket: a real S3 server, real processes that are killed, and connections that are cut."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from buckets import CREDENTIALS, ObjectPath, Proxy, answer, new_store, use_server
from embark import http
from embark.settings import load_settings
from embark.store import Space, Store
from embark.store import buckets as bucket_module
from embark.store import index as index_module
from embark.store import opening as opening_module
from embark.store.buckets import Bucket, open_store
from embark.types import EmbarkError
from segments import files, flip, holds, keys, place, reopened, vectors, write

# ── any address ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    """A store by an address that is a folder: all but the network."""
    return Store(tmp_path / "mirror", Bucket(f"file://{tmp_path}/bucket/prefix", tmp_path / "mirror"))


def forget() -> None:
    """What this process knows about segments: another one has read nothing."""
    opening_module.OPENED.clear()
    index_module.INDEXES.clear()
    bucket_module._RENEWED.clear()


def test_a_bucket_holds_what_was_committed_and_a_mirror_only_copies(disk: Store, tmp_path: Path) -> None:
    space = disk.space("5face")
    assert (len(space), disk.spaces(), list(tmp_path.iterdir())) == (0, [], [])
    write(space, range(5), range(5, 9))
    assert holds(space, range(9))
    assert disk.spaces() == ["5face"]
    assert space.size == sum(path.stat().st_size for path in files(space))
    assert space.place == f"file://{tmp_path}/bucket/prefix/5face"
    shutil.rmtree(disk.root)
    assert holds(space, range(9))  # between two reads
    shutil.rmtree(disk.root)
    forget()
    assert holds(disk.space("5face"), range(9))
    assert space.verify() == []
    write(space, range(9))
    assert space.collect(age=0) > 0
    assert len(files(space)) == len(list(space.path.iterdir())) == 1
    assert holds(disk.space("5face"), range(9))


def test_looking_up_keys_fetches_no_rows(disk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_module, "WHOLE", 0)
    monkeypatch.setattr(bucket_module, "TOP_BYTES", 1000)
    space = disk.space("5face")
    write(space, range(3))
    write(space, range(3, 103))  # its top is longer than the first request
    shutil.rmtree(disk.root)
    forget()
    space = disk.space("5face")
    assert space.has(keys(range(104))).sum() == 103
    assert [path.suffix for path in space.path.iterdir()] == [".top"] * 2
    np.testing.assert_array_equal(space.read(keys([50]))[:], vectors([50]))
    assert sorted(path.suffix for path in space.path.iterdir()) == [".top", ".top", ".vectors"]
    assert holds(space, range(103))


@pytest.mark.parametrize("position", [4096, 20, 100])
def test_a_damaged_copy_is_fetched_again(disk: Store, position: int) -> None:
    space = disk.space("5face")
    write(space, range(9))
    (copy,) = space.path.iterdir()
    flip(copy, position)
    forget()
    space = disk.space("5face")
    assert holds(space, range(9))
    assert space.discard(keys(range(9))) == 0
    copy.unlink()
    copy.touch()  # as a power cut may leave it
    assert holds(reopened(space), range(9))


def test_copies_of_what_is_gone_are_collected(disk: Store) -> None:
    space = disk.space("5face")
    write(space, range(3)).unlink()
    assert space.collect() == 0
    assert len(list(space.path.iterdir())) == 1  # it is young: another process may have put it just now
    space.collect(age=0)
    assert list(space.path.iterdir()) == []


def test_a_store_can_be_sent_to_another_process(disk: Store, tmp_path: Path) -> None:
    for store in (disk, Store(tmp_path)):
        assert pickle.loads(pickle.dumps(store)) == store


def test_addresses_that_are_none_say_so() -> None:
    install = r"pip install 'embark-bench\[object-store\]'"
    for url, why in [("nosuch://x/y", "is no address of a store"), ("oci://x/y", install)]:
        with pytest.raises(EmbarkError, match=why):
            open_store(load_settings(store=url)).spaces()


def test_a_mirror_that_cannot_be_written_says_so(disk: Store) -> None:
    disk.root.write_text("no folder")
    with pytest.raises(EmbarkError, match=rf"cannot be written to {disk.root} \(.*set EMBARK_HOME"):
        write(disk.space("5face"), range(3))


def test_a_run_keeps_its_vectors_at_an_address(monkeypatch: pytest.MonkeyPatch, elsewhere: Path) -> None:
    monkeypatch.setenv("EMBARK_STORE", "memory://bucket/prefix")
    run_twice(elsewhere)


def run_twice(elsewhere: Path) -> None:
    """The second run, on another machine, embeds nothing; what tends the store finds it."""
    counts = []
    for name in ("one", "two"):
        settings = load_settings(elsewhere / name, elsewhere / f"{name}-results")
        run = embark.evaluate("embark/random", ["PocketNameSTS"], settings=settings, show_progress=False)
        counts.append(run.embedded)
        assert not (settings.home / "store").exists()
    assert counts[0] > 0 == counts[1]
    (health,) = embark.store.check(settings).spaces
    assert (health.vectors, health.damage) == (counts[0], ())
    assert embark.store.size(settings).folder == settings.store
    assert embark.store.clean(settings).spaces[0].vectors == counts[0]
    assert embark.store.repair(settings).spaces[0].mended == 0


# ── S3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def space(bucket: Store) -> Space:
    """An empty space in a bucket."""
    return bucket.space("5face")


@pytest.fixture
def proxy(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What stands between this process and the server."""
    proxy = Proxy()
    use_server(monkeypatch, proxy.address)
    bucket_module._filesystem.cache_clear()
    yield proxy
    proxy.close()
    bucket_module._filesystem.cache_clear()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a bucket is asked for what."""
    counts: Counter[str] = Counter()
    call = Bucket._call

    def counted(bucket: Bucket, method: str, *places: Any, **options: Any) -> Any:
        counts[method] += 1
        return call(bucket, method, *places, **options)

    monkeypatch.setattr(Bucket, "_call", counted)
    return counts


CHILD = """
import sys
import numpy as np
from embark.items import as_keys
from embark.store.buckets import open_store
from embark.settings import load_settings
import hashlib
first = int(sys.argv[2])
with open_store(load_settings(home=sys.argv[3], store=sys.argv[1])).space("5face").writer() as writer:
    for start in range(first, first + 100_000, 100):
        numbers = range(start, start + 100)
        writer.add(as_keys([hashlib.sha256(b"%d" % n).digest() for n in numbers]),
                   np.array([[n % 240 + d for d in range(2000)] for n in numbers], np.float32))
        writer.commit()
        print(start + 100, flush=True)
"""


@pytest.mark.slow
def test_two_writers_that_are_killed_lose_nothing_that_they_committed(space: Space, tmp_path: Path) -> None:
    for attempt in range(3):
        firsts = {number: (2 * attempt + number) * 100_000 for number in range(2)}
        processes = {
            first: subprocess.Popen(
                [sys.executable, "-c", CHILD, space.disk.url, str(first), str(tmp_path / f"home-{number}")],  # type: ignore[attr-defined]
                stdout=subprocess.PIPE, text=True,
            )
            for number, first in firsts.items()
        }  # fmt: skip
        committed = {}
        for first, process in processes.items():
            assert process.stdout is not None
            committed[first] = int(process.stdout.readline())
        time.sleep(0.1 + 0.04 * attempt)
        for process in processes.values():
            process.kill()
        for first, process in processes.items():
            lines, _ = process.communicate(timeout=60)
            committed[first] = max([committed[first], *map(int, lines.split("\n")[:-1])])
        space.refresh()
        for first, end in committed.items():
            assert space.has(keys(range(first, end))).all()
            numbers = np.arange(first, end + 300)
            stored = numbers[space.has(keys(numbers))]  # what it had no time to report is sound as well
            np.testing.assert_array_equal(np.asarray(space.read(keys(stored))), vectors(stored, 2000))


@pytest.mark.slow
@pytest.mark.parametrize("sent", [3000, 100_000, 700_000])
def test_an_upload_that_is_cut_is_tried_again_or_leaves_nothing_that_is_read(
    space: Space, proxy: Proxy, sent: int
) -> None:
    def commit(numbers: range) -> None:
        with space.writer() as writer:
            writer.add(keys(numbers), vectors(numbers, 2000))

    commit(range(100))
    proxy.cut = sent
    with pytest.raises(EmbarkError, match=f"Writing {space.place}/.* failed 6 times: .* go on where it stopped"):
        commit(range(100, 200))
    assert proxy.cuts >= 6
    proxy.cut = None
    for opened in (space, elsewhere_opened(space)):
        opened.refresh()
        stored = np.flatnonzero(opened.has(keys(range(200))))
        np.testing.assert_array_equal(np.asarray(opened.read(keys(stored))), vectors(stored, 2000))
        assert set(range(100)) <= set(stored)
    space.repair()
    proxy.cut, proxy.cuts, proxy.most_cuts = sent, 0, 2
    commit(range(100, 200))
    assert proxy.cuts == 2
    proxy.cut = None
    space.refresh()
    assert space.verify() == []
    np.testing.assert_array_equal(np.asarray(space.read(keys(range(200)))), vectors(range(200), 2000))


@pytest.mark.slow
def test_a_download_that_is_cut_is_tried_again(space: Space, proxy: Proxy) -> None:
    with space.writer() as writer:
        writer.add(keys(range(100)), vectors(range(100), 2000))
    proxy.cut, proxy.back, proxy.most_cuts = 300_000, True, 2
    opened = elsewhere_opened(space)
    np.testing.assert_array_equal(np.asarray(opened.read(keys(range(100)))), vectors(range(100), 2000))
    assert proxy.cuts == 2
    shutil.rmtree(opened.path)
    proxy.cuts, proxy.most_cuts = 0, 1000
    with pytest.raises(EmbarkError, match=r"Reading s3://.*\.vectors failed 6 times"):
        opened.read(keys(range(100)))[:]
    assert [path.suffix for path in opened.path.iterdir() if path.suffix != ".top"] == []


def elsewhere_opened(space: Space) -> Space:
    """The space as a machine without its mirror has it."""
    assert isinstance(space.disk, Bucket)
    mirror = space.disk.mirror.with_name("another")
    return Space(mirror / space.path.name, Bucket(space.disk.url, mirror))


@pytest.mark.slow
def test_thousands_of_segments_take_one_listing_and_a_request_each(space: Space, calls: Counter[str]) -> None:
    content = write(space, [0]).read_bytes()
    folder = place(space)
    assert isinstance(folder, ObjectPath)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: (folder / f"2099-{number:04d}.vectors").write_bytes(content), range(2499)))
    assert len(files(space)) == 2500
    calls.clear()
    opened = elsewhere_opened(space)
    assert (opened.segments, len(opened)) == (2500, 1)
    assert calls == {"ls": 1, "get_file": 2500}
    calls.clear()
    assert elsewhere_opened(space).segments == 2500
    assert holds(elsewhere_opened(space), [0])
    assert calls == {"ls": 2}


@pytest.mark.slow
def test_a_server_that_is_busy_twice_is_asked_again(
    space: Space, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    busy = [answer(503, "Slow Down", "SlowDown"), answer(503, "Service Unavailable", "ServiceUnavailable")]
    proxy.answers = list(busy)
    write(space, range(3))
    proxy.answers = list(busy)
    assert holds(elsewhere_opened(space), range(3))
    assert not proxy.answers
    assert "hidden" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "message"),
    [
        (answer(403, "Access Denied", "AccessDenied"), r"Access to s3://.* is denied \(.*AWS_ACCESS_KEY_ID"),
        (answer(403, "No such key id", "InvalidAccessKeyId"), r"Access to s3://.* is denied \(.*AWS_ACCESS_KEY_ID"),
        (answer(503, "Slow Down", "SlowDown"), r"Listing s3://.*/5face failed 6 times: .*Slow Down.* Run the same"),
    ],
)
def test_a_refusal_says_where_and_what_to_do(space: Space, proxy: Proxy, page: bytes, message: str) -> None:
    proxy.answers = [page] * 30
    with pytest.raises(EmbarkError, match=message) as error:
        reopened(space)
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(error.value)


@pytest.mark.slow
def test_a_server_that_never_answers_is_an_error(space: Space, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy.silent = True
    monkeypatch.setattr(bucket_module, "TIMEOUT", 0.3)
    monkeypatch.setattr(http, "TRIES", 2)
    with pytest.raises(EmbarkError, match=r"Listing .* failed 2 times"):
        reopened(space)
    assert proxy.connections <= 4


@pytest.mark.slow
def test_no_server_no_bucket_no_credentials(bucket: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbarkError, match="There is no bucket for s3://nobody/x, or you may not see it"):
        Store(tmp_path, Bucket("s3://nobody/x", tmp_path)).space("ab")
    with pytest.raises(EmbarkError, match="There is no bucket for s3://nobody/x, or you may not see it"):
        Bucket("s3://nobody/x", tmp_path).put(tmp_path / "ab" / "1.vectors", [b"x"])
    use_server(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(EmbarkError, match=r"Listing s3://nowhere/x/ab failed 6 times: .*127\.0\.0\.1:9"):
        Store(tmp_path, Bucket("s3://nowhere/x", tmp_path)).space("ab")
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(EmbarkError, match=r"There are no valid credentials for s3://.*Set AWS_ACCESS_KEY_ID"):
        Store(tmp_path, Bucket("s3://nobody/y", tmp_path)).space("ab")


@pytest.mark.slow
def test_a_large_segment_is_uploaded_in_parts(bucket: Store) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 10_000)).astype(np.float32)  # 120 MB
    space = bucket.space("ab")
    with space.writer() as writer:
        writer.add(keys(range(3000)), rows, copy=False)
    shutil.rmtree(space.path)
    space.refresh()
    np.testing.assert_array_equal(np.asarray(space.read(keys(range(3000)))), rows)


@pytest.mark.slow
def test_a_run_keeps_its_vectors_in_a_bucket(
    bucket: Store, monkeypatch: pytest.MonkeyPatch, elsewhere: Path, tmp_path: Path
) -> None:
    assert isinstance(bucket.disk, Bucket)
    monkeypatch.setenv("EMBARK_STORE", bucket.disk.url)
    run_twice(elsewhere)
    assert new_store(tmp_path).spaces() == []  # another bucket
