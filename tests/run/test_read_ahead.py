"""Reading ahead of embedding: order, bounds, and failures that cost one task."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from embark.run import read_ahead
from embark.run.read_ahead import Opened, ReadAhead
from embark.tasks import TASKS
from embark.types import Task

TASK = TASKS["PocketNameSTS"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine must not change the order."""
    monkeypatch.setattr(read_ahead, "WAIT_SECONDS", 20.0)


def named(count: int) -> list[Task]:
    return [replace(TASK, name=f"task {number}") for number in range(count)]


def waves(reading: ReadAhead) -> Iterator[list[Opened]]:
    while wave := reading.take():
        yield wave
        for opened in wave:
            reading.release(opened)


def names(taken: list[Opened]) -> list[str]:
    return [opened.task.name for opened in taken]


def test_tasks_come_in_order_and_each_once() -> None:
    tasks = named(20)

    def read(task: Task) -> Opened:
        time.sleep(0.02 if task is tasks[0] else 0.0)  # the first takes longest
        return Opened(task, ())

    with ReadAhead(tasks, read, limit=1) as reading:
        taken = [opened for wave in waves(reading) for opened in wave]
    assert names(taken) == [task.name for task in tasks]


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    tasks = named(12)
    held: dict[str, int] = {}
    most = []

    def read(task: Task) -> Opened:
        held[task.name] = 10
        most.append(sum(held.values()))
        return Opened(task, (), bytes=10)

    with ReadAhead(tasks, read, limit=20) as reading:
        for wave in iter(reading.take, []):
            time.sleep(0.02)  # readers go as far ahead as they may
            for opened in wave:
                del held[opened.task.name]
                reading.release(opened)
    assert len(most) == 12
    assert max(most) <= 20 + 10 * read_ahead.READERS  # each reader may have begun when there was room


def test_a_task_larger_than_the_limit_is_read_alone() -> None:
    reading_now = []
    most = []

    def read(task: Task) -> Opened:
        reading_now.append(task)
        time.sleep(0.01)
        most.append(len(reading_now))
        return Opened(task, (), bytes=1000)

    with ReadAhead(named(4), read, limit=10) as reading:
        for wave in iter(reading.take, []):
            for opened in wave:
                reading_now.remove(opened.task)
                reading.release(opened)
    assert len(most) == 4
    assert max(most) <= read_ahead.READERS


def test_an_error_is_the_content_of_its_task_alone() -> None:
    def read(task: Task) -> Opened:
        if task.name == "task 1":
            raise RuntimeError("cannot be read")
        return Opened(task, ())

    with ReadAhead(named(3), read, limit=1) as reading:
        taken = [opened for wave in iter(reading.take, []) for opened in wave]
    assert [isinstance(opened.content, RuntimeError) for opened in taken] == [False, True, False]


def test_a_slow_task_does_not_hold_back_those_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "WAIT_SECONDS", 0.05)
    tasks = named(3)
    go_on = threading.Event()

    def read(task: Task) -> Opened:
        if task is tasks[0]:
            assert go_on.wait(20)
        return Opened(task, ())

    with ReadAhead(tasks, read, limit=1) as reading:
        taken = [*names(reading.take())]
        while len(taken) < 2:
            taken += names(reading.take())
        go_on.set()
        taken += names(reading.take())
    assert taken == ["task 1", "task 2", "task 0"]


def test_downloads_go_ahead_but_not_far_where_the_disk_is_short() -> None:
    tasks = named(6)
    fetched: list[str] = []
    read_names: list[str] = []
    ahead = []

    def fetch(task: Task) -> None:
        fetched.append(task.name)
        ahead.append(len(fetched) - len(read_names))

    def read(task: Task) -> Opened:
        assert task.name in fetched
        read_names.append(task.name)
        return Opened(task, (), bytes=1)

    with ReadAhead(tasks, read, limit=1, fetch=fetch, fetch_ahead=2) as reading:
        for wave in iter(reading.take, []):
            time.sleep(0.02)
            for opened in wave:
                reading.release(opened)
    assert len(fetched) == 6
    assert max(ahead) <= 2 + read_ahead.READERS


def test_leaving_early_waits_for_no_download() -> None:
    begun = threading.Event()

    def fetch(task: Task) -> Any:
        begun.set()
        time.sleep(30)

    start = time.monotonic()
    with ReadAhead(named(2), lambda task: Opened(task, ()), limit=1, fetch=fetch):
        assert begun.wait(20)
    assert time.monotonic() - start < 15


def test_waves_are_bounded_in_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Opened, "items", property(lambda opened: 100_000))
    with ReadAhead(named(7), lambda task: Opened(task, ()), limit=1) as reading:
        sizes = [len(wave) for wave in iter(reading.take, [])]
    assert sum(sizes) == 7
    assert max(sizes) * 100_000 <= read_ahead.WAVE
