"""A preparation that stalls in a thread is named within its limit, and costs its item or its model, not the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import embark
from embark import folder_task, items
from embark.engine import activity as of_activity
from embark.engine.activity import Activity
from embark.engine.workers import watch
from embark.engine.workers.watch import Stalled
from embark.models.encoder import Capabilities
from embark.run import evaluate
from embark.store import Store
from embark.types import Content, Item
from lengths import CARD, Lengths, needs, picture, run, stored_numbers, text

Pictures = Callable[..., Path]
LIMIT = 1  # second
SOON = 20.0  # seconds, on a machine that is busy
ENDED = threading.Event()  # for threads that were left behind


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A limit of a second for the preparation of an item."""
    monkeypatch.setenv("EMBARK_ITEM_SECONDS", str(LIMIT))
    ENDED.clear()
    yield
    ENDED.set()


class Hanging(Lengths):
    """Never prepares these numbers, in none of `stages`."""

    def __init__(self, numbers: Sequence[int], together: bool = False) -> None:
        super().__init__()
        self.numbers = numbers
        self.calls = 0
        if together:
            self.capabilities = Capabilities(prepare_many=self._prepare_many)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        self.calls += 1
        value = contents[0].value
        number = int(value.split()[0]) if isinstance(value, str) else value.getpixel((0, 0))[0]
        if number in self.numbers:
            ENDED.wait()
        return value

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[Any]:
        return [self.prepare(contents, mode) for contents, mode in zip(batch, modes, strict=True)]


@pytest.mark.parametrize("together", [False, True])
def test_an_item_that_stalls_is_named_and_the_others_are_embedded(store: Store, together: bool) -> None:
    encoder = Hanging([7], together)
    wanted = needs(encoder, [text(n) for n in range(1, 101)])
    start = time.monotonic()
    report, _ = run(store, encoder, wanted, workers=2)
    assert time.monotonic() - start < SOON
    stalled = wanted[6].key
    assert report.unreadable == {
        stalled: "test/engine stalls in prepare: it took longer than 1 s; EMBARK_ITEM_SECONDS raises the limit"
    }
    assert stored_numbers(store, encoder, wanted) == [row for row in range(100) if row != 6]


def test_pictures_that_stall_are_left_out(store: Store) -> None:
    encoder = Hanging([50, 90])
    wanted = needs(encoder, [picture((n, 1, 1)) for n in range(1, 101)])
    report, _ = run(store, encoder, wanted, workers=2)
    assert set(report.unreadable) == {wanted[49].key, wanted[89].key}
    assert report.embedded == 98


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_model_that_prepares_nothing_is_an_error_within_a_few_limits(store: Store, workers: int) -> None:
    encoder = Hanging(range(1000))
    start = time.monotonic()
    with pytest.raises(Stalled, match=r"test/engine stalls in prepare: item \d+ took longer than 1 s, as did \d other"):
        run(store, encoder, needs(encoder, [text(n) for n in range(1, 500)]), workers=workers)
    assert time.monotonic() - start < SOON
    assert encoder.calls <= 4


def test_many_items_that_stall_are_an_error(store: Store) -> None:
    encoder = Hanging(range(50, 1000))
    with pytest.raises(Stalled, match=f"as did {watch.MOST_STALLED - 1} others"):
        run(store, encoder, needs(encoder, [text(n) for n in range(1, 500)]), workers=4)


@pytest.mark.parametrize("check", [False, True])
def test_the_self_check_names_what_stalls(store: Store, check: bool) -> None:
    encoder = Hanging([34])
    wanted = needs(encoder, [items.text(f"{n} x") for n in range(1, 101)])
    report, _ = run(store, encoder, wanted, workers=2, self_check=check)
    assert set(report.unreadable) == {wanted[33].key}
    assert report.embedded == 99


def test_slow_preparation_together_is_done_one_by_one(store: Store) -> None:
    class Slow(Hanging):
        def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[Any]:
            if len(batch) > 1:
                time.sleep(LIMIT + 1)
            return super()._prepare_many(batch, modes)

    encoder = Slow([], together=True)
    wanted = needs(encoder, [text(n) for n in range(1, 2001)])
    report, _ = run(store, encoder, wanted, workers=2)
    assert (report.embedded, report.unreadable) == (2000, {})


def test_the_progress_names_the_stage_and_the_item(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "NAMED_AFTER_SECONDS", 0.3)
    monkeypatch.setattr(of_activity, "SHORT", 0.0)
    lines: list[str] = []
    activity = Activity(show=False)
    activity.stage("embed").add(total=40, left=0.0)

    def look() -> None:
        while not ENDED.wait(0.1):
            lines.append(activity.line())

    thread = threading.Thread(target=look)
    thread.start()
    encoder = Hanging([13])
    run(store, encoder, needs(encoder, [text(n) for n in range(1, 41)]), workers=2, activity=activity)
    ENDED.set()
    thread.join()
    assert any("waiting for: prepare (" in line and "prepare of item 12 has taken 1 s" in line for line in lines), lines
    assert "has taken" not in activity.line()


def test_slow_decoding_is_named_and_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(Activity, "log", lambda self, line: lines.append(line))
    encoder = Hanging([])

    def slow() -> bytes:
        time.sleep(LIMIT + 1.5)
        return fast

    wanted = needs(encoder, [picture((n, 1, 1)) for n in range(1, 9)])
    fast = wanted[3].item.parts[0].chunks[0]  # type: ignore[union-attr]
    slowly = replace(wanted[3], item=Item((replace(wanted[3].item.parts[0], chunks=(slow,)),)))  # type: ignore[call-arg]
    report, _ = run(store, encoder, [*wanted[:3], slowly, *wanted[4:]], workers=2, activity=Activity(show=False))
    assert (report.embedded, report.unreadable) == (8, {})
    assert lines == ["Decoding item 3 has taken 1 s; it is waited for."]


def test_the_policy_of_the_row_decides(pictures: Pictures) -> None:
    class Rejecting(Lengths):
        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            value = contents[0].value
            if not isinstance(value, str) and value.getpixel((0, 0))[0] > 200:
                ENDED.wait()
            return value

        def embed(self, batch: Sequence[Any]) -> Any:
            return super().embed([f"{len(value)} {value}" if isinstance(value, str) else value for value in batch])

    tasks = folder_task(pictures())
    stalls = r"1 unreadable items: .*'red\.png': test/engine stalls in prepare: it took longer than 1 s; EMBARK_ITEM"
    with pytest.raises(embark.EmbarkError, match=stalls):
        evaluate(Rejecting(card=CARD), tasks, show_progress=False)
    run = evaluate(Rejecting(card=CARD), [replace(task, unreadable="skip") for task in tasks], show_progress=False)
    warnings = [warning for result in run.results for record in result.records for warning in record.warnings]
    assert any("1 unreadable items" in warning and "'red.png'" in warning for warning in warnings)
