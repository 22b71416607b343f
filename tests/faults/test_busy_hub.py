"""A busy hub is asked again, and a line says why nothing moves."""

from __future__ import annotations

import time

import pytest

from embark import http
from hub import FakeHub, client

ID = "org/data"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_hub_is_asked_again_and_the_wait_is_shown(
    hub: FakeHub, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(http.with_retries, "__defaults__", (pauses.append,))
    sha = hub.add(ID, {"x.txt": "x"})
    hub.busy, hub.retry_after = [status, status], "7"
    assert len(client().files(ID, sha)) == 1
    assert pauses == [7, 7]
    assert f"about dataset {ID}: HTTP {status}" in caplog.text
    assert "Waiting 7 s (try 2 of 6)" in caplog.text


def test_a_short_pause_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    attempts = iter([http.TemporaryFailure("busy", 0.01)])

    def attempt() -> float:
        for failure in attempts:
            raise failure
        return time.monotonic()

    assert http.with_retries("Asking", attempt)
    assert caplog.text == ""
