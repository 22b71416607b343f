"""What actors of a cluster do, without a cluster: who begins what, and which items they die of."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import numpy as np
import pytest

from embark.engine.batching.self_check import Inconsistent
from embark.engine.ray import actors as ray_actors
from embark.engine.ray.actors import Dispatcher, Job
from embark.types import EmbarkError

KEY = b"k" * 32


def run(*calls: Any) -> list[Any]:
    async def one_after_the_other() -> list[Any]:
        return [await call for call in calls]

    return asyncio.run(one_after_the_other())


def test_a_feed_that_is_repeated_goes_on_where_it_was() -> None:
    dispatcher = Dispatcher()
    first = run(dispatcher.put(b"a"), dispatcher.put(b"b"), dispatcher.get(0), dispatcher.get(1))
    assert first[2:] == [b"a", b"b"]
    again = run(dispatcher.put(b"c"), dispatcher.put(None), *(dispatcher.get(place) for place in range(4)))
    assert again[2:] == [b"", b"", b"c", None]


def test_an_item_is_lost_when_actors_died_of_it_twice() -> None:
    dispatcher = Dispatcher()

    def attempt() -> Any:
        return run(dispatcher.begin("embed", 7, 60.0), dispatcher.work_on("embed", 7, KEY))[0]

    assert attempt() == (1, {})
    assert attempt() == (2, {})  # one death may be a node's
    assert attempt() == (3, {KEY: "killed its worker 2 times"})
    run(dispatcher.forget(7))
    assert attempt()[0] == 1


def test_an_item_that_stalled_is_lost_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher = Dispatcher()
    now = 100.0
    monkeypatch.setattr(ray_actors.time, "monotonic", lambda: now)
    run(dispatcher.begin("prepare", 7, 2.0), dispatcher.work_on("prepare", 7, KEY))
    now = 103.0
    assert run(dispatcher.begin("prepare", 7, 2.0)) == [(2, {KEY: "took longer than 2 s"})]


def test_a_stage_that_is_done_suspects_nothing() -> None:
    dispatcher = Dispatcher()
    run(dispatcher.begin("prepare", 7, 2.0), dispatcher.work_on("prepare", 7, KEY), dispatcher.end("prepare", 7))
    assert run(dispatcher.begin("prepare", 7, 2.0), dispatcher.begin("embed", 7, 2.0)) == [(2, {}), (1, {})]


def test_errors_arrive_as_what_they_are() -> None:
    class Odd(EmbarkError):
        def __init__(self, left: str, right: str) -> None:
            super().__init__(left + right)

    assert isinstance(ray_actors._portable(Inconsistent("mixed up")), Inconsistent)
    assert type(ray_actors._portable(Odd("a", "b"))) is EmbarkError
    unforeseen = ValueError("odd")
    unforeseen.add_note("It was item 3.")
    assert str(ray_actors._portable(unforeseen, "org/model: ")) == "org/model: ValueError: odd It was item 3."


def test_the_model_gets_no_items() -> None:
    job = Job(3, ("text",), np.zeros(2, "V32"), texts=["a", "b"], check=True, batch_size=8)
    light = pickle.loads(pickle.dumps(job.without_items()))
    assert (light.number, light.check, light.batch_size, light.texts, len(light.keys)) == (3, True, 8, None, 0)
