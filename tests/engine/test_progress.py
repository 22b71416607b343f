"""Progress: silence, lines or a bar, never on standard output."""

from __future__ import annotations

import io
import re
import sys

import pytest

from embark.engine import progress as module
from embark.engine.progress import log, progress, span

STAMP = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d "


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_tell_how_far_and_how_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    with progress("test/model", 2000) as advance:
        advance(500)
        advance(1500)
    out, err = capsys.readouterr()
    first, last = err.splitlines()
    assert re.match(STAMP + "test/model: 500 of 2,000 items, ", first)
    assert re.match(STAMP + "test/model: 2,000 of 2,000 items, ", last)
    assert last.endswith("/s, 0 s left")
    assert out == ""


def test_short_work_away_from_a_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("test/model", 10) as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("total", "show"), [(10, False), (0, True)])
def test_nothing_is_shown_when_nobody_asked_or_nothing_is_to_do(
    total: int, show: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress("test/model", total, show) as advance:
        advance(1)
    assert screen.getvalue() == ""


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("test/model", 10) as advance:
        advance(10)
    assert "test/model" in screen.getvalue()
    assert "10 of 10 items" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_a_bar_shows_the_time_that_is_left_and_lines_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("test/model", 10) as advance:
        advance(5, 95.0)
        log("a score")
    assert "95 s" in screen.getvalue()
    assert "a score\n" in screen.getvalue()


def test_logs_have_the_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    with progress("test/model", 1000) as advance:
        advance(500, 7200.0)
    log("a score")
    first, last = capsys.readouterr().err.splitlines()
    assert re.match(STAMP + r"test/model: 500 of 1,000 items, .*/s, 2 h 0 min left$", first)
    assert re.match(STAMP + "a score$", last)


def test_bytes_are_shown_as_sizes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    with progress("Downloading org/data", 3_000_000, what="bytes") as advance:
        advance(1_500_000)
    assert re.match(STAMP + r"Downloading org/data: 1\.5 of 3\.0 MB, .* MB/s, 0 s left$", capsys.readouterr().err)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("Downloading org/data", 3_000_000, what="bytes") as advance:
        advance(1_500_000)
    assert "1.5 of 3.0 MB" in screen.getvalue()


def test_a_download_is_shown_while_tasks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("reading", 2, what="tasks") as read:
        with progress("Downloading org/data", 3_000_000, what="bytes") as advance:
            advance(3_000_000)
        read(2)
    assert "2 of 2 tasks" in screen.getvalue()
    assert "3.0 of 3.0 MB" in screen.getvalue()


def test_an_error_inside_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError, match="inside"), progress("test/model", 10):
        raise KeyError("inside")


@pytest.mark.parametrize(("seconds", "told"), [(0.4, "0 s"), (99, "99 s"), (750, "12 min"), (12_030, "3 h 20 min")])
def test_times_are_told_as_people_say_them(seconds: float, told: str) -> None:
    assert span(seconds) == told
