"""Patience has an end, and those who wait do not come back at once."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from embark import http
from embark.http import TemporaryFailure, with_retries
from embark.types import EmbarkError


def failing(times: int, wait: float | None = None) -> Callable[[], str]:
    """Works after so many failures."""
    left = iter(range(times))

    def attempt() -> str:
        for _ in left:
            raise TemporaryFailure("busy", wait)
        return "done"

    return attempt


def test_pauses_double_until_it_works() -> None:
    waited: list[float] = []
    assert with_retries("It", failing(4), waited.append) == "done"
    assert waited == [1, 2, 4, 8]


def test_jitter_lengthens_pauses_by_different_amounts() -> None:
    waited: list[float] = []
    for _ in range(20):
        with_retries("It", failing(1), waited.append, jitter=0.5)
    assert all(1 <= seconds <= 1.5 for seconds in waited)
    assert len(set(waited)) > 1


def test_what_fails_every_time_is_an_error_that_counts() -> None:
    with pytest.raises(EmbarkError, match=f"It failed {http.TRIES} times: busy"):
        with_retries("It", failing(100), lambda seconds: None)


def test_no_attempt_begins_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: sum(waited))
    with pytest.raises(EmbarkError, match="It failed once: busy"):
        with_retries("It", failing(100, wait=60), waited.append, deadline=10)
    assert waited == []
    with pytest.raises(EmbarkError, match="It failed 3 times: busy"):
        with_retries("It", failing(100, wait=0.1), waited.append, deadline=0.25)
    assert waited == [0.1, 0.1]
