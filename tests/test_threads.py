"""How threads share the interpreter."""

from __future__ import annotations

import gc
import sys

import pytest

from embark.threads import THRESHOLDS, TURN, rare_garbage_collection, short_turns


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
