"""Lanes: several batches in an encoder's hands at once; what holds for one batch after another holds for them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embark import items
from embark.engine.batching.batches import HOPELESS
from embark.engine.batching.forward import turns_of
from embark.engine.local import begin, embed
from embark.engine.workers.lanes import Lanes
from embark.items import as_keys
from embark.models.device import own_stream
from embark.models.encoder import Capabilities, Encoder, Interrupted
from embark.store import Store
from embark.types import Array, EmbarkError
from lengths import Lengths, name, needs, number, picture, run, stored_numbers, text


class Parallel(Lengths):
    """Three lanes; counts the batches that are in `embed` at once, each of which takes some time."""

    capabilities = Capabilities(lanes=3)

    def __init__(self, seconds: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.seconds = seconds
        self.inside = 0
        self.most = 0
        self.lock = threading.Lock()

    def embed(self, batch: Sequence[Any]) -> Any:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            self.pause(batch)
            return super().embed(batch)
        finally:
            with self.lock:
                self.inside -= 1

    def pause(self, batch: Sequence[Any]) -> None:
        time.sleep(self.seconds)


class NoDisk:
    """A writer that forgets."""

    def add(self, keys: Array, vectors: Any, copy: bool = True) -> None: ...

    def commit(self) -> None: ...


def lane_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("embark-lane")]


@pytest.mark.parametrize("batch_size", [None, 1, 7])
def test_everything_is_embedded_and_can_be_read(store: Store, batch_size: int | None) -> None:
    encoder, done = Parallel(0.001), list[int]()
    wanted = needs(encoder, [text(n) for n in range(1, 101)] + [picture((9, 8, 7))])
    report, space = run(
        store, encoder, wanted, batch_size=batch_size, self_check=True, advance=lambda items, left: done.append(items)
    )
    assert (report.embedded, report.unreadable, sum(done)) == (101, {}, 101)
    vectors = np.asarray(space.read(as_keys([need.key for need in wanted])))
    assert vectors[:100, 0].tolist() == list(range(1, 101))
    assert vectors[100].tolist() == [9, 8, 7]
    assert space.verify() == []
    assert lane_threads() == []


def test_three_lanes_are_nearly_three_times_as_fast_as_one() -> None:
    def seconds(lanes: int) -> float:
        encoder = Parallel(0.05)
        encoder.capabilities = Capabilities(lanes=lanes)
        wanted = needs(encoder, [text(n) for n in range(1, 145)])
        report = embed(encoder, wanted, NoDisk(), batch_size=8)  # type: ignore[arg-type]
        assert (report.embedded, encoder.most) == (144, lanes)
        return report.seconds

    ratios = []
    while len(ratios) < 3 and max(ratios, default=0) < 2.5:  # the machine may be busy with something else
        ratios.append(seconds(1) / seconds(3))
    assert max(ratios) >= 2.5, ratios


class Gated(Parallel):
    """Batches of pictures wait until the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def pause(self, batch: Sequence[Any]) -> None:
        if not isinstance(batch[0], str):
            assert self.gate.wait(30)
        super().pause(batch)


def test_the_next_needs_are_handed_over_while_the_last_batches_are_embedded(store: Store) -> None:
    encoder = Gated()
    encoder.seconds = 0.01
    space = store.space("ab")
    first = needs(encoder, [picture((n, 8, 7)) for n in range(4)])
    second = needs(encoder, [text(n) for n in range(1, 101)])
    with space.writer() as writer, space.writer() as other:
        embedding = begin(encoder, first, writer, batch_size=4)  # one batch, which waits
        assert embed(encoder, second, other, batch_size=10).embedded == 100
        assert not embedding.report.embedded
        assert encoder.most == 3  # as in one call: the device has the memory for so many batches
        encoder.gate.set()
        assert embedding.finish().embedded == 4
    space.refresh()
    assert space.has(as_keys([need.key for need in (*first, *second)])).all()
    assert lane_threads() == []


def test_an_error_of_the_last_batches_is_raised_at_the_end(store: Store) -> None:
    class Failing(Gated):
        def pause(self, batch: Sequence[Any]) -> None:
            super().pause(batch)
            raise EmbarkError("the last batch failed")

    encoder = Failing()
    with store.space("ab").writer() as writer:
        embedding = begin(encoder, needs(encoder, [picture((n, 8, 7)) for n in range(4)]), writer, batch_size=4)
        encoder.gate.set()
        with pytest.raises(EmbarkError, match="the last batch failed"):
            embedding.finish()
    assert lane_threads() == []


def test_a_pass_that_must_be_alone_is_so_among_all_calls(store: Store) -> None:
    assert turns_of(encoder := Parallel()) is turns_of(encoder)
    assert turns_of(Parallel()) is not turns_of(encoder)

    class Unhashable(Parallel):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return self is other

    other = Unhashable()
    report, _ = run(store, other, needs(other, [text(n) for n in range(1, 31)]), batch_size=4)
    assert report.embedded == 30


def test_one_lane_is_the_callers_own_thread(store: Store) -> None:
    threads = set()

    class Noting(Lengths):
        def embed(self, batch: Sequence[Any]) -> Any:
            threads.add(threading.current_thread())
            return super().embed(batch)

    encoder: Encoder = Noting()
    assert encoder.capabilities.lanes == 1
    run(store, encoder, needs(encoder, [text(n) for n in range(1, 101)]))
    assert threads == {threading.current_thread()}


def test_the_size_of_batches_is_tried_on_one_batch_at_a_time(store: Store) -> None:
    class Slow(Parallel):
        def pause(self, batch: Sequence[Any]) -> None:
            at_once.append(self.inside)
            time.sleep(1e-5 * len(batch) ** 2)  # larger ones are slower

    at_once: list[int] = []
    encoder = Slow()
    run(store, encoder, needs(encoder, [items.text(f"{n:04} x") for n in range(800)]))
    assert set(at_once[:3]) == {1}
    assert max(at_once) == 3


def test_an_error_in_one_lane_stops_the_others_and_is_raised_once(store: Store) -> None:
    class Failing(Parallel):
        def embed(self, batch: Sequence[Any]) -> Any:
            if "13" in {value.split()[0] for value in batch}:
                raise KeyError("a bug in the model")
            return super().embed(batch)

    encoder = Failing(0.02)
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(10, 1000)])
    with pytest.raises(KeyError, match="a bug in the model"):
        run(store, encoder, wanted, batch_size=2)
    assert len(encoder.batches) < 20
    assert lane_threads() == []


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Any) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    encoder = Parallel(0.001)
    with pytest.raises(EmbarkError, match="could not be written"):
        run(Store(tmp_path / "store"), encoder, needs(encoder, [text(n) for n in range(1, 300)]), batch_size=2)
    assert lane_threads() == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send")
def test_an_interrupt_does_not_wait_for_a_pass_that_hangs() -> None:
    released = threading.Event()

    class Hanging(Parallel):
        def embed(self, batch: Sequence[Any]) -> Any:
            released.wait(30)
            return super().embed(batch)

    encoder = Hanging()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            embed(encoder, needs(encoder, [text(n) for n in range(99)]), NoDisk(), batch_size=2)  # type: ignore[arg-type]
        assert time.monotonic() - start < 10
        assert all(thread.daemon for thread in lane_threads())
    finally:
        released.set()
        timer.join()
    for thread in lane_threads():
        thread.join(10)
    assert lane_threads() == []


def test_what_a_provider_charged_for_is_stored_when_it_fails(store: Store) -> None:
    class Provider(Parallel):
        def embed(self, batch: Sequence[Any]) -> Any:
            vectors = super().embed(batch)
            if number(batch[0]) >= 14:
                raise Interrupted("no more credit", {0: vectors[0]})
            return vectors

    encoder = Provider()
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(10, 18)])
    with pytest.raises(Interrupted, match="no more credit"):
        run(store, encoder, wanted, batch_size=4)
    stored = stored_numbers(store, encoder, wanted)
    assert 4 in stored
    assert not {5, 6, 7} & set(stored)


def test_items_that_do_not_fit_beside_others_are_embedded_alone(store: Store) -> None:
    """Memory for eight items: three batches of six do not fit at once, and an item of eight fits alone."""

    class Small(Parallel):
        used = 0

        def embed(self, batch: Sequence[Any]) -> Any:
            weight = sum(8 if number(value) == 150 else 1 for value in batch)
            with self.lock:
                if self.used + weight > 8:
                    raise MemoryError
                self.used += weight
            try:
                time.sleep(0.01)
                return super().embed(batch)
            finally:
                with self.lock:
                    self.used -= weight

    encoder = Small()
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(100, 200)])
    report, _ = run(store, encoder, wanted, batch_size=6)
    assert (report.embedded, report.too_large) == (100, {})
    assert stored_numbers(store, encoder, wanted) == list(range(100))


def test_an_item_that_never_fits_is_named(store: Store) -> None:
    class Small(Parallel):
        def embed(self, batch: Sequence[Any]) -> Any:
            if any(number(value) == 150 for value in batch):
                raise MemoryError
            return super().embed(batch)

    encoder = Small(0.001)
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(100, 200)])
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert report.too_large == {wanted[50].key: "test/engine has not enough memory for one item: item 50"}
    assert report.embedded == 99


def test_a_kind_without_one_valid_vector_is_given_up(store: Store) -> None:
    encoder = Parallel(0.001, change=lambda out, texts: out * np.nan)
    wanted = needs(encoder, [text(n) for n in range(4 * HOPELESS)])
    report, _ = run(store, encoder, wanted, batch_size=16)
    assert (report.embedded, len(report.invalid)) == (0, len(wanted))
    assert HOPELESS <= sum(encoder.batches) <= HOPELESS + 16 * 6  # those in lanes and before them go on


def test_unreadable_pictures_are_counted_in_any_lane(store: Store) -> None:
    encoder = Parallel(0.001)
    pictures = [items.media("image", bytes([n])) if n % 3 else picture((n, 8, 7)) for n in range(60)]
    report, _ = run(store, encoder, needs(encoder, pictures), batch_size=4)
    assert (report.embedded, len(report.unreadable)) == (20, 40)


def test_a_lane_works_in_its_surroundings() -> None:
    entered = []

    def enter() -> Any:
        entered.append(threading.current_thread().name)
        return own_stream("cuda:0")  # without CUDA it changes nothing

    done: list[int] = []
    with Lanes(3, done.append, enter) as lanes:
        for job in range(20):
            lanes.put(job)
    assert sorted(done) == list(range(20))
    assert sorted(entered) == ["embark-lane-0", "embark-lane-1", "embark-lane-2"]


def test_surroundings_that_cannot_be_entered_are_an_error() -> None:
    def enter() -> Any:
        raise RuntimeError("no stream")

    def hand_over() -> None:
        with Lanes(2, print, enter) as lanes:
            lanes.put("a job")

    with pytest.raises(RuntimeError, match="no stream"):
        hand_over()


def test_names_are_those_of_the_run() -> None:
    encoder = Parallel(change=lambda out, texts: out[:-1])
    with pytest.raises(EmbarkError, match=r"returned \d+ rows for a batch"):
        embed(encoder, needs(encoder, [text(1), text(2)]), NoDisk(), name=name)  # type: ignore[arg-type]
