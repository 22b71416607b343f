"""The writer thread over a real store: few commits, nothing waits longer than the window, no error is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from embark.engine.workers import sink
from embark.engine.workers.sink import Sink
from embark.store import Space, Writer
from embark.types import EmbarkError
from segments import holds, keys, vectors

NEVER = 1e6  # seconds
SOON = 20.0  # seconds within which even a busy machine does it


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No commit is due by time."""
    monkeypatch.setattr(sink, "COMMIT_SECONDS", NEVER)
    return monkeypatch


def put(target: Sink, numbers: range) -> None:
    target.put(keys(numbers), vectors(numbers))


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether something becomes true soon."""
    limit = time.monotonic() + SOON
    while not condition() and time.monotonic() < limit:
        time.sleep(0.005)
    return condition()


@contextmanager
def in_thread(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """A thread that must end within the block, or soon after."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield thread
    thread.join(SOON)
    assert not thread.is_alive()


class SlowWriter(Writer):
    """A writer whose disk is slow: a commit waits until it may go on."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.go_on = threading.Event()
        self.commits = 0

    def commit(self) -> None:
        self.commits += bool(self._parts)
        assert self.go_on.wait(SOON)
        super().commit()


# ── when commits are due ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("patient")
def test_thousands_of_batches_are_one_commit_on_leaving_the_block(space: Space) -> None:
    with space.writer() as writer, Sink(writer) as target:
        for number in range(2000):
            put(target, range(number, number + 1))
        assert not space.path.exists()
    assert len(list(space.path.iterdir())) == 1
    assert holds(Space(space.path), range(2000))


def test_a_batch_waits_no_longer_than_the_window(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "COMMIT_SECONDS", 0.3)
    with space.writer() as writer, Sink(writer) as target:
        start = time.monotonic()
        put(target, range(3))
        assert wait_for(lambda: holds(Space(space.path), range(3)))
        assert time.monotonic() - start >= 0.3
        put(target, range(3, 5))
        assert wait_for(lambda: holds(Space(space.path), range(5)))


def test_many_bytes_wait_for_nothing(space: Space, patient: pytest.MonkeyPatch) -> None:
    patient.setattr(sink, "BYTES", 50 * (32 + 12))
    with space.writer() as writer, Sink(writer) as target:
        put(target, range(49))
        time.sleep(0.05)
        assert not space.path.exists()
        put(target, range(49, 50))
        assert wait_for(lambda: holds(Space(space.path), range(50)))


@pytest.mark.usefixtures("patient")
def test_flush_returns_when_all_is_durable(space: Space) -> None:
    with space.writer() as writer, Sink(writer) as target:
        target.flush()  # of nothing
        for number in range(10):
            put(target, range(number, number + 1))
        target.flush()
        assert holds(Space(space.path), range(10))
        put(target, range(10, 12))
        assert len(Space(space.path)) == 10  # the window begins anew
    assert holds(Space(space.path), range(12))


@pytest.mark.usefixtures("patient")
def test_what_costs_money_is_durable_when_put_returns(space: Space) -> None:
    with space.writer() as writer, Sink(writer, every_batch=True) as target:
        for number in range(5):
            put(target, range(number, number + 1))
            assert holds(Space(space.path), range(number + 1))


@pytest.mark.usefixtures("patient")
def test_an_error_of_the_block_loses_nothing_that_was_put(space: Space) -> None:
    def fail() -> None:
        with space.writer() as writer, Sink(writer) as target:
            put(target, range(3))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert holds(Space(space.path), range(3))


def test_several_threads_put(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "BYTES", 100 * 44)
    with space.writer() as writer, Sink(writer) as target:

        def work(first: int) -> None:
            for number in range(first, first + 300):
                put(target, range(number, number + 1))
            target.flush()

        threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 1200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
    assert holds(Space(space.path), range(1200))


# ── a slow disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_put_waits_only_when_the_disk_is_far_behind(space: Space, patient: pytest.MonkeyPatch) -> None:
    size = 10 * (32 + 12)
    patient.setattr(sink, "BYTES", size)
    patient.setattr(sink, "WAITING", 5 * size)
    writer = SlowWriter(space)
    accepted = []
    with writer, Sink(writer) as target:

        def work() -> None:
            for first in range(0, 100, 10):
                put(target, range(first, first + 10))
                accepted.append(first)

        with in_thread(work):
            assert wait_for(lambda: len(accepted) == 5)
            time.sleep(0.1)
            assert len(accepted) == 5  # in memory: the one that is written, and four that wait
            writer.go_on.set()
    assert len(accepted) == 10
    assert writer.commits < 10  # what waited was committed together
    assert holds(Space(space.path), range(100))


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["put", "flush", "leave"])
def test_an_error_of_the_writer_comes_out_and_nobody_waits(space: Space, patient: pytest.MonkeyPatch, way: str) -> None:
    patient.setattr(sink, "BYTES", 1)
    reached = []

    def fail() -> None:
        with space.writer() as writer, Sink(writer) as target:
            put(target, range(3))
            target.put(keys([3]), vectors([3], 4))
            if way == "put":
                assert wait_for(lambda: not target._thread.is_alive())
                put(target, range(4, 5))
            if way == "flush":
                target.flush()
            reached.append(way)

    with pytest.raises(EmbarkError, match="4 dimensions cannot be added"):
        fail()
    assert reached == (["leave"] if way == "leave" else [])
    assert not [thread for thread in threading.enumerate() if thread.name == "embark-writer"]


def test_an_error_ends_a_put_that_waits_for_the_disk(space: Space, patient: pytest.MonkeyPatch) -> None:
    patient.setattr(sink, "BYTES", 1)
    patient.setattr(sink, "WAITING", 1)

    class Failing(SlowWriter):
        def commit(self) -> None:
            super().commit()
            raise OSError("the disk is gone")

    writer = Failing(space)
    target = Sink(writer)

    def work() -> None:
        with pytest.raises(OSError, match="the disk is gone"):
            target.put(keys([2]), vectors([2]))

    put(target, range(1))
    with in_thread(work):
        time.sleep(0.05)
        writer.go_on.set()
    with pytest.raises(OSError, match="the disk is gone"), target:
        pass


@pytest.mark.usefixtures("patient")
def test_vectors_are_written_from_where_they_are(space: Space) -> None:
    matrix = vectors(range(100), 512, "float16")
    with space.writer() as writer, Sink(writer) as target:
        target.put(keys(range(100)), matrix)
        writer.commit = lambda: None  # type: ignore[method-assign]
        target.flush()
        assert np.shares_memory(writer._parts[0][1], matrix)
        del writer.commit  # type: ignore[method-assign]
    assert len(Space(space.path)) == 100
