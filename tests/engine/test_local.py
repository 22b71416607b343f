"""The local engine over a real store: all that is sound is kept, all that is not is named."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark import items
from embark.engine import local
from embark.engine.batching.batches import FIRST_BATCH, LARGEST_BATCH, BatchSize, by_kind
from embark.engine.workers.preparing import MOST_BYTES, byte_size
from embark.items import as_keys
from embark.models.encoder import Capabilities, UnreadableRows
from embark.store import Store
from embark.types import Array, Audio, Content, EmbarkError
from lengths import CARD, Lengths, needs, number, picture, run, stored_numbers, text

# ── what goes well ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("batch_size", [None, 1, 7])
def test_everything_is_embedded_and_can_be_read(store: Store, batch_size: int | None) -> None:
    encoder, done = Lengths(), list[int]()
    wanted = needs(encoder, [text(n) for n in range(1, 101)] + [picture((9, 8, 7))])
    report, space = run(
        store, encoder, wanted, batch_size=batch_size, workers=3, advance=lambda items, left: done.append(items)
    )
    assert (report.embedded, report.unreadable, sum(done)) == (101, {}, 101)
    assert report.seconds > 0
    found = np.asarray(space.read(as_keys([need.key for need in wanted])))
    assert found[:100, 0].tolist() == list(range(1, 101))
    assert found[100].tolist() == [9, 8, 7]
    assert space.verify() == []
    if batch_size:
        assert max(encoder.batches) == batch_size


def test_the_time_that_is_left_knows_what_each_kind_of_item_costs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts come first and cost nothing; the pictures that follow are a hundred times dearer."""
    clock = 0.0
    monkeypatch.setattr(local, "time", SimpleNamespace(perf_counter=lambda: clock))

    class Slow(Lengths):
        def embed(self, batch: Sequence[Any]) -> Any:
            nonlocal clock
            clock += sum(0.01 if isinstance(value, str) else 1.0 for value in batch)
            return super().embed(batch)

    encoder, left = Slow(), list[float | None]()
    wanted = needs(encoder, [text(n) for n in range(1, 201)] + [picture((n, 8, 7)) for n in range(100)])
    run(store, encoder, wanted, batch_size=10, advance=lambda items, seconds: left.append(seconds))
    remaining = 200 * 0.01 + 100 * 1.0
    assert left[1] == pytest.approx(remaining - 10 * 0.01 - 10 * 1.0)  # after a few items of each kind
    assert left[-1] == 0
    assert left[2] == pytest.approx(left[1] - 10 * 0.01)


def test_the_order_of_needs_does_not_matter(tmp_path: Path) -> None:
    encoder = Lengths()
    wanted = needs(encoder, [text(n) for n in range(1, 60)])
    keys = as_keys([need.key for need in wanted])
    _, one = run(Store(tmp_path / "one"), encoder, wanted)
    _, other = run(Store(tmp_path / "other"), encoder, wanted[::-1], batch_size=4, workers=5)
    np.testing.assert_array_equal(one.read(keys), other.read(keys))


def test_kinds_are_kept_apart_and_short_texts_come_first() -> None:
    mixture = [text(3), picture((1, 1, 1)), text(5), items.mixed(text(1), picture((2, 2, 2)))]
    groups = by_kind(needs(Lengths(), mixture))
    assert [(kind, [need.row for need in group]) for kind, group in groups] == [
        (("text",), [2, 0]), (("image",), [1]), (("text", "image"), [3])
    ]  # fmt: skip


def test_vectors_are_stored_in_the_precision_of_the_card(store: Store) -> None:
    encoder = Lengths(lambda out, texts: out + 1 / 3, replace(CARD, stored="float16"))
    _, space = run(store, encoder, needs(encoder, [text(1)]))
    assert space.head is not None
    assert space.head.dtype == "float16"


def test_ragged_vectors_are_kept_as_they_are(store: Store) -> None:
    encoder = Lengths(lambda out, texts: [np.full((1 + len(t), 3), number(t)) for t in texts])
    wanted = needs(encoder, [text(2), text(1)])
    _, space = run(store, encoder, wanted)
    assert [m.shape for m in space.read(as_keys([n.key for n in wanted]))[:]] == [(7, 3), (5, 3)]


def test_no_needs_are_no_work(store: Store) -> None:
    encoder = Lengths()
    report, space = run(store, encoder, [])
    assert (report.embedded, len(space), encoder.batches) == (0, 0, [])


def test_the_encoders_own_exceptions_come_out_as_they_are(store: Store) -> None:
    def change(out: Array, texts: list[str]) -> Array:
        if number(texts[0]) > 4:
            raise KeyError("a bug in the model")
        return out

    encoder = Lengths(change)
    wanted = needs(encoder, [items.text(f"{n:02} x") for n in range(1, 9)])
    with pytest.raises(KeyError, match="a bug in the model"):
        run(store, encoder, wanted, batch_size=4)
    assert stored_numbers(store, encoder, wanted) == [0, 1, 2, 3]


def test_an_exception_in_a_worker_comes_out_as_it_is(store: Store) -> None:
    class Clumsy(Lengths):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            raise ZeroDivisionError("in a worker")

    with pytest.raises(ZeroDivisionError, match="in a worker") as error:
        run(store, Clumsy(), needs(Clumsy(), [text(1)]))
    assert error.value.__notes__[0].startswith("test/engine was preparing ")


def test_an_item_that_a_model_refuses_is_named(store: Store) -> None:
    class Choosy(Lengths):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            raise EmbarkError("the text is empty.")

    wanted = needs(Choosy(), [text(1)])
    with pytest.raises(EmbarkError, match="test/engine cannot embed item 0: the text is empty"):
        run(store, Choosy(), wanted)


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried …"),
    ],
)
def test_a_batch_that_does_not_fit_is_halved_until_it_does(store: Store, error: Exception) -> None:
    def change(out: Array, texts: list[str]) -> Array:
        if len(out) > 5:
            raise error
        return out

    encoder = Lengths(change)
    wanted = needs(encoder, [items.text(f"{n:03} x") for n in range(100)])
    report, _ = run(store, encoder, wanted)
    assert report.embedded == 100
    assert stored_numbers(store, encoder, wanted) == list(range(100))
    assert set(encoder.batches[-10:]) == {4}  # it stays at what fits, neither more nor less


def test_one_item_that_never_fits_is_named_and_the_others_go_on(store: Store) -> None:
    def change(out: Array, texts: list[str]) -> Array:
        if any(number(t) == 7 for t in texts):
            raise MemoryError
        return out

    encoder = Lengths(change)
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(1, 10)])
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert report.too_large == {wanted[6].key: "test/engine has not enough memory for one item: item 6"}
    assert (report.embedded, report.batch_size) == (8, 1)
    assert stored_numbers(store, encoder, wanted) == [0, 1, 2, 3, 4, 5, 7, 8]


def test_a_batch_grows_while_that_makes_an_item_cheaper() -> None:
    size = BatchSize(4, limit=64)
    size.record_time(4, 1.0)
    assert size.now == 8
    size.record_time(8, 1.0)
    assert size.now == 16
    size.record_time(16, 2.0)  # no cheaper an item
    assert (size.now, size.growing) == (16, True)  # it may have been disturbed
    size.record_time(16, 2.0)
    assert (size.now, size.growing, size.fastest) == (16, False, 8)
    size.record_time(16, 0.1)
    assert size.now == 16


def test_a_batch_stops_growing_at_the_limit() -> None:
    size = BatchSize(FIRST_BATCH, limit=1000)
    for _ in range(20):
        size.record_time(size.budget, 0.001)
    assert (size.now, size.growing) == (1000, False)


def test_a_batch_that_takes_long_does_not_grow() -> None:
    size = BatchSize(8)
    size.record_time(8, 11.0)
    assert (size.now, size.growing, size.fastest) == (8, False, 8)


def test_a_batch_that_was_disturbed_does_not_stop_growth() -> None:
    size = BatchSize(8)
    for seconds in (1.0, 9.0, 1.0):
        size.record_time(size.budget, seconds)
    assert (size.now, size.growing) == (32, True)


def test_a_batch_has_fewer_items_where_each_costs_more() -> None:
    assert BatchSize(1 << 20, unit=8).now == LARGEST_BATCH
    assert BatchSize(1 << 20, unit=1000).now == LARGEST_BATCH // 4
    assert BatchSize(1 << 20, unit=1 << 16).now == 16
    assert BatchSize(10, unit=100).now == 1


def test_a_short_last_batch_says_nothing_about_speed() -> None:
    size = BatchSize(8)
    size.record_time(3, 100.0)
    assert (size.now, size.growing, size.best, size.doubted) == (8, True, 0.0, False)


def test_a_batch_shrinks_for_good_and_never_below_one() -> None:
    size = BatchSize(8)
    size.record_out_of_memory(8)
    size.record_time(4, 1e-6)
    assert (size.now, size.limit) == (4, 4)
    size.record_out_of_memory(8)  # the other half of the batch that failed before: nothing new
    assert size.now == 4
    for _ in range(5):
        size.record_out_of_memory(size.now)
    assert size.now == 1


class Heavy(Lengths):
    """Prepares a picture to so many bytes, and counts those that are alive; address space alone, nothing is written."""

    def __init__(self, weight: int) -> None:
        super().__init__()
        self.weight, self.alive, self.most, self.lock = weight, 0, 0, threading.Lock()

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        value = {"colour": contents[0].value.getpixel((0, 0)), "pixels": np.empty(self.weight, np.uint8)}
        self.count(1)
        weakref.finalize(value["pixels"], self.count, -1)
        return value

    def count(self, change: int) -> None:
        with self.lock:
            self.alive += change
            self.most = max(self.most, self.alive)

    def embed(self, batch: Sequence[Any]) -> Any:
        self.batches.append(len(batch))
        time.sleep(0.05)  # the workers run ahead
        return np.array([value["colour"] for value in batch], np.float64)


def coloured(count: int) -> list[Any]:
    return [picture((at, at // 2, 7)) for at in range(count)]


@pytest.mark.parametrize("batch_size", [None, 64])
def test_large_items_are_bounded_by_their_bytes(store: Store, batch_size: int | None) -> None:
    encoder = Heavy(MOST_BYTES // 16)
    wanted = needs(encoder, coloured(120))
    report, space = run(store, encoder, wanted, batch_size=batch_size, workers=3)
    assert report.embedded == 120
    assert max(encoder.batches) == 16
    # A batch and as much behind it, no less; and what is in hands: one item of each worker, one chunk.
    assert 16 + 16 <= encoder.most <= 16 + 16 + 3 + 4
    found = np.asarray(space.read(as_keys([need.key for need in wanted])))
    assert found.tolist() == [[at, at // 2, 7] for at in range(120)]


def test_items_larger_than_all_that_is_allowed_go_one_by_one(store: Store) -> None:
    encoder = Heavy(MOST_BYTES + 1)
    report, _ = run(store, encoder, needs(encoder, coloured(9)), workers=2)
    assert (report.embedded, encoder.batches) == (9, [1] * 9)


@pytest.mark.parametrize("error", [KeyboardInterrupt, KeyError])
def test_workers_that_wait_for_room_do_not_outlive_an_error(store: Store, error: type[BaseException]) -> None:
    class Failing(Heavy):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            if contents[0].value.getpixel((0, 0))[0] in (4, 8):
                time.sleep(0.3)  # still at work when all is over
            return super().prepare(contents, mode)

        def embed(self, batch: Sequence[Any]) -> Any:
            super().embed(batch)
            raise error

    encoder, before = Failing(MOST_BYTES // 4), threading.active_count()
    with pytest.raises(error):
        run(store, encoder, needs(encoder, coloured(120)), workers=3)
    assert threading.active_count() == before
    assert encoder.most < 30


def test_workers_that_wait_for_room_do_not_outlive_the_error_of_another(store: Store) -> None:
    class Failing(Heavy):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            if contents[0].value.getpixel((0, 0))[0] == 9:
                time.sleep(0.2)  # until the others are full
                raise ZeroDivisionError("in a worker")
            return super().prepare(contents, mode)

    encoder, before = Failing(MOST_BYTES // 4), threading.active_count()
    with pytest.raises(ZeroDivisionError, match="in a worker"):
        run(store, encoder, needs(encoder, coloured(120)), workers=3, batch_size=2)
    assert threading.active_count() == before


def test_prepared_values_are_weighed() -> None:
    image, samples = Image.new("RGB", (30, 20)), np.zeros(100, np.float32)
    assert byte_size(image) == 2400
    assert byte_size(samples) == 400
    assert byte_size(b"12345") == 5
    assert byte_size([("image", image), ("text", "words")]) == 2400
    assert byte_size({"pixels": [samples, samples], "ids": [1, 2, 3]}) == 800
    assert byte_size([Content("video", [image, image]), Content("audio", Audio(samples, 16_000))]) == 5200
    assert [byte_size(value) for value in ("words", 7, None, [], [1, 2], object(), Audio)] == [0] * 7


def test_tensors_are_weighed() -> None:
    torch = pytest.importorskip("torch")
    assert byte_size({"pixels": torch.zeros(3, 10, dtype=torch.float16)}) == 60


# ── media and disk ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unreadable_picture_is_reported_and_the_others_are_embedded(store: Store) -> None:
    broken = picture((1, 2, 3)).parts[0].read()[0][:40]  # type: ignore[union-attr]
    encoder, done = Lengths(), list[int]()
    wanted = needs(encoder, [picture((5, 5, 5)), items.media("image", broken), picture((6, 6, 6))])
    report, space = run(store, encoder, wanted, advance=lambda items, left: done.append(items))
    assert list(report.unreadable) == [wanted[1].key]
    assert "image of 40 bytes does not decode" in report.unreadable[wanted[1].key]
    assert (report.embedded, sum(done)) == (2, 3)
    assert space.has(as_keys([need.key for need in wanted])).tolist() == [True, False, True]


def test_a_batch_of_nothing_but_unreadable_pictures_never_reaches_the_encoder(store: Store) -> None:
    encoder = Lengths()
    report, _ = run(store, encoder, needs(encoder, [items.media("image", b"no"), items.media("image", b"picture")]))
    assert (len(report.unreadable), encoder.batches) == (2, [])


@pytest.mark.parametrize("count", [3, 300])
def test_a_store_that_cannot_be_written_is_an_error_and_nobody_waits(tmp_path: Path, count: int) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    encoder = Lengths()
    with pytest.raises(EmbarkError, match="could not be written"):
        run(Store(tmp_path / "store"), encoder, needs(encoder, [text(n) for n in range(1, count)]), batch_size=2)
    assert not [thread for thread in threading.enumerate() if thread.name == "embark-writer"]


# ── what must not hang, be lost, or pass unseen ──────────────────────────────────────────────────────────────────────


def test_an_error_does_not_wait_for_what_was_queued_behind_it(store: Store) -> None:
    prepared = []

    class Slow(Lengths):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            prepared.append(contents)
            if len(prepared) > 3:
                time.sleep(0.02)
            if len(prepared) == 2:
                raise RuntimeError("a worker failed")
            return super().prepare(contents, mode)

    encoder = Slow()
    wanted = needs(encoder, [text(n) for n in range(3000)])
    with pytest.raises(RuntimeError, match="a worker failed"):
        run(store, encoder, wanted, workers=2)
    assert len(prepared) < 1000


def test_an_interrupt_keeps_what_was_committed(store: Store) -> None:
    def interrupt(out: Array, texts: list[str]) -> Array:
        if len(encoder.batches) == 3:
            raise KeyboardInterrupt
        return out

    encoder = Lengths(interrupt)
    wanted = needs(encoder, [text(n) for n in range(40)])
    with pytest.raises(KeyboardInterrupt):
        run(store, encoder, wanted, batch_size=10)
    assert len(stored_numbers(store, encoder, wanted)) == 20


def test_a_pass_that_ran_out_of_memory_lets_go_of_what_it_held(store: Store) -> None:
    """The error's traceback keeps the frame of the failed pass, and with it everything on the device."""
    held: list[Any] = []

    class Large(Lengths):
        def embed(self, batch: Sequence[Any]) -> Any:
            assert all(reference() is None for reference in held)
            activations = np.ones(8)
            held.append(weakref.ref(activations))
            if len(batch) > 2:
                raise MemoryError
            return super().embed(batch)

    encoder = Large()
    wanted = needs(encoder, [text(n) for n in range(8)])
    run(store, encoder, wanted, batch_size=8)
    assert stored_numbers(store, encoder, wanted) == list(range(8))


@pytest.mark.parametrize("lanes", [1, 2])
def test_items_that_the_model_cannot_read_advance_once(store: Store, lanes: int) -> None:
    class Refusing(Lengths):
        def embed(self, batch: Sequence[Any]) -> Any:
            if rows := {row: "refused" for row, value in enumerate(batch) if number(value) % 10 == 3}:
                raise UnreadableRows(rows)
            return super().embed(batch)

    encoder = Refusing()
    encoder.capabilities = Capabilities(lanes=lanes)
    steps: list[int] = []
    left: list[float] = []

    def advance(items: int, seconds: float | None) -> None:
        steps.append(items)
        left.append(seconds or 0.0)

    report, _ = run(store, encoder, needs(encoder, [text(n) for n in range(100)]), batch_size=8, advance=advance)
    assert (report.embedded, len(report.unreadable)) == (90, 10)
    assert sum(steps) == 100
    assert min(left) >= 0
