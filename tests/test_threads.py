"""How threads share the interpreter."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from embark.threads import THRESHOLDS, TURN, rare_garbage_collection, repeating, short_turns


def test_work_is_repeated_until_the_block_ends() -> None:
    rounds: list[str] = []
    thrice = threading.Event()

    def work() -> None:
        rounds.append(threading.current_thread().name)
        if len(rounds) == 3:
            thrice.set()

    with repeating("a-name", 0.001, work):
        assert thrice.wait(60)
    assert set(rounds) == {"a-name"}
    assert "a-name" not in {thread.name for thread in threading.enumerate()}


def test_turns_are_short_within_the_block() -> None:
    usual = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN)
        with short_turns():
            pass
        assert sys.getswitchinterval() == pytest.approx(TURN)
    assert sys.getswitchinterval() == usual


def test_garbage_is_collected_rarely_within_the_block() -> None:
    usual = gc.get_threshold()
    frozen = gc.get_freeze_count()
    with rare_garbage_collection():
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > frozen
        with rare_garbage_collection():
            pass
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("block", [short_turns, rare_garbage_collection])
def test_the_last_of_several_threads_sets_all_back(block: Callable[[], AbstractContextManager[None]]) -> None:
    def state() -> tuple[object, ...]:
        return sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count() > 0

    usual = state()
    with block():
        within = state()
    assert within != usual
    first, second = block(), block()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert state() == within
    second.__exit__(None, None, None)
    assert state() == usual


def test_what_others_have_frozen_stays_so() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with rare_garbage_collection():
            assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() == pytest.approx(frozen, rel=0.01)  # some of them have ended
    finally:
        gc.unfreeze()
