"""What a run is doing: counts of many threads, the device's time, a display on a real terminal, lines in a real log."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from embark.engine import activity as module
from embark.engine import progress as of_progress
from embark.engine.activity import SILENT, Activity
from embark.store import Store
from embark.types import Content
from lengths import Lengths, needs, run, text
from pseudo_terminal import HIDE, on_terminal

STAMP = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d "


class Clock:
    """The time as a test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for place in (module, of_progress):
            monkeypatch.setattr(place, "time", SimpleNamespace(monotonic=lambda: self.now, strftime=time.strftime))

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_count_together() -> None:
    activity = Activity(show=False)

    def count() -> None:
        for _ in range(1000):
            activity.stage("embed").add(done=2, total=3)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (activity.stage("embed").done, activity.stage("embed").total) == (16_000, 24_000)


def test_rates_and_the_time_left_are_those_of_the_last_half_minute(clock: Clock) -> None:
    activity = Activity(show=False)
    clock.wait(500)  # before the stage began
    activity.stage("embed").add(total=100_000)
    for _ in range(100):
        clock.wait(1)
        activity.stage("embed").add(done=10)
    for _ in range(40):
        clock.wait(1)
        activity.stage("embed").add(done=100)
    assert str(activity.stage("embed")) == "5,000 of 100,000 items, 100/s, 16 min left"
    clock.wait(60)
    assert str(activity.stage("embed")) == "5,000 of 100,000 items"  # it stands still: nobody knows


def test_the_time_left_is_as_told_where_the_caller_knows_better(clock: Clock) -> None:
    stage = Activity(show=False).stage("embed")
    stage.add(total=100)
    clock.wait(10)
    stage.add(done=50, left=600.0)
    clock.wait(60)
    assert stage.time_left() == "9 min left"


def test_the_device_is_busy_while_any_lane_is_in_the_encoder(clock: Clock) -> None:
    activity = Activity(show=False)
    with activity.busy():
        clock.wait(5)
        with activity.busy():
            clock.wait(10)
    clock.wait(5)
    assert activity.busy_share() == pytest.approx(0.75)
    clock.wait(100)
    assert activity.busy_share() < 0.15


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        (("decode",), {"decode": 0.5}),
        (("device", "decode"), {"decode": 0.5}),  # who waits for the device waits for what the device waits for
        (("reading", "download"), {"download": 0.5}),
        (("reading",), {"reading": 0.5}),
        (("disk", "reading"), {"disk": 0.5}),
    ],
)
def test_waits_count_for_what_holds_the_device_back(
    waits: Sequence[Any], expected: dict[str, float], clock: Clock
) -> None:
    activity = Activity(show=False)
    with activity.busy(), activity.waiting("decode"):  # another lane works meanwhile: this holds nobody back
        clock.wait(5)
    with ExitStack() as threads:
        for reason in waits:
            threads.enter_context(activity.waiting(reason))
        clock.wait(5)
    shares = {reason: share for reason, share in activity.idle_shares().items() if share}
    assert shares == pytest.approx(expected)
    assert activity.busy_share() == pytest.approx(0.5)


def test_an_error_ends_a_wait(clock: Clock) -> None:
    activity = Activity(show=False)
    with pytest.raises(KeyError), activity.waiting("disk"), activity.busy():
        raise KeyError
    clock.wait(5)
    assert activity.busy_share() == 0
    assert not any(activity.idle_shares().values())


def test_the_engine_tells_whether_it_waits_for_decoding_or_for_the_device(tmp_path: Path) -> None:
    class Slow(Lengths):
        def __init__(self, preparing: float, embedding: float) -> None:
            super().__init__()
            self.preparing = preparing
            self.embedding = embedding

        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            time.sleep(self.preparing)
            return super().prepare(contents, mode)

        def embed(self, batch: Sequence[Any]) -> Any:
            time.sleep(self.embedding * len(batch))
            return super().embed(batch)

    def shares(encoder: Slow) -> tuple[float, float]:
        activity = Activity(show=False)
        wanted = needs(encoder, [text(n) for n in range(1, 101)])
        store = Store(tmp_path / str(encoder.embedding))
        report, _ = run(store, encoder, wanted, batch_size=10, workers=1, activity=activity)
        assert report.embedded == 100
        assert activity.stage("write").done == 100 * (3 * 4 + 32)
        return activity.busy_share(), activity.idle_shares()["decode"]

    busy, decode = shares(Slow(0.005, 0.0))
    assert decode > 3 * busy
    busy, decode = shares(Slow(0.0, 0.005))
    assert busy > 3 * decode


def test_counting_is_cheap() -> None:
    for activity in (Activity(show=False), SILENT):
        start = time.perf_counter()
        for _ in range(1000):
            with activity.waiting("decode"):
                pass
            with activity.busy():
                pass
            activity.stage("embed").add(done=1)
        assert time.perf_counter() - start < 1.0  # a millisecond a batch, on a machine that is busy
    assert (SILENT.stage("embed").done, SILENT.busy_share()) == (0, 0)


# ── one line ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_tells_the_stages_and_what_is_waited_for(clock: Clock) -> None:
    activity = Activity("model 2 of 3, test/model")
    activity.stage("read").add(total=40, done=12)
    activity.stage("embed").add(total=480_000)
    with activity.busy():
        clock.wait(20)
    with activity.waiting("decode"):
        clock.wait(8)
    activity.stage("embed").add(done=120_000, left=120.0)
    activity.stage("write").add(done=1_500_000_000)
    activity.stage("score").add(done=9)
    assert activity.line() == (
        "model 2 of 3, test/model: embed 120,000 of 480,000+ items, 4,286/s, 2 min left · read 12 of 40 tasks · "
        "write 1.5 GB · score 9 tasks · device busy 71 %, waiting for: decode (29 %)"
    )
    activity.stage("read").add(done=28)
    assert "of 480,000 items" in activity.line()  # all tasks are read: there will be no more


def test_a_title_is_inert() -> None:
    activity = Activity("bad\x1b[2J\nname")
    assert activity.title == r"bad\x1b[2J\nname"
    activity.title = "worse\r"
    assert activity.title == r"worse\r"


# ── a log file ───────────────────────────────────────────────────────────────────────────────────────────────────────

WORK = """
import time
from embark.engine import activity as module
from embark.engine.progress import progress
module.SHORT, module.LINE_SECONDS = {short}, {every}
with module.Activity("test/model", show={show}) as activity:
    activity.stage("read").add(total=4, done=1)
    activity.stage("embed").add(total=1000)
    with progress("Downloading org/data", 3_000_000, {show}, "bytes") as advance:
        advance(1_500_000)
        for _ in range({steps}):
            with activity.busy():
                time.sleep(0.06)
            with activity.waiting("decode"):
                time.sleep(0.04)
            activity.stage("embed").add(done=10, left=95.0)
    activity.log("a score")
    {last}
print("the end")
"""


def work(show: bool = True, steps: int = 10, every: float = 0.25, short: float = 0.0, last: str = "pass") -> str:
    return WORK.format(show=show, steps=steps, every=every, short=short, last=last)


def test_a_log_file_gets_a_line_now_and_then(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", work()], stderr=file, stdout=subprocess.PIPE, text=True, timeout=60, check=True
        )
    assert done.stdout == "the end\n"
    *lines, last = (tmp_path / "log").read_text().splitlines()
    assert 1 <= len(lines) <= 5
    assert re.fullmatch(STAMP + "a score", last)
    assert re.fullmatch(
        STAMP + r"test/model: embed \d+ of 1,000\+ items, \d+(\.\d)?/s, 9\d s left · "
        r"fetch 1\.5 of 3\.0 MB, [\d.]+ MB/s, \d+ s left · read 1 of 4 tasks · "
        r"device busy \d+ %, waiting for: decode \(\d+ %\)",
        lines[-1],
    )


@pytest.mark.parametrize("show", [False, True])
def test_a_short_run_or_a_silent_one_prints_no_progress(show: bool) -> None:
    code = work(show, steps=3, every=0.05 if not show else 30.0)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert re.fullmatch((STAMP + "a score\n") * show, done.stderr)


@pytest.mark.parametrize("closed", [False, True])
def test_a_process_without_standard_error_goes_on(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if closed else None)
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    with Activity("test/model") as activity, of_progress.progress("work", 3) as advance:
        activity.stage("embed").add(total=3, done=1)
        time.sleep(0.05)
        advance(3)
        activity.log("a score")


def test_a_reader_that_went_away_ends_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", work()], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stderr
        assert process.stdout
        process.stderr.close()
        assert process.stdout.read() == b"the end\n"


def test_a_download_that_was_cut_off_is_not_waited_for() -> None:
    def download() -> None:
        with of_progress.progress("Downloading", 3_000_000, what="bytes") as advance:
            advance(1_000_000)
            raise OSError("cut off")

    with Activity() as activity:
        with pytest.raises(OSError, match="cut off"):
            download()
        assert (activity.stage("fetch").done, activity.stage("fetch").total) == (1_000_000, 1_000_000)
    assert of_progress.FETCHES == []


# ── a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_terminal_shows_a_line_a_stage_and_scores_above() -> None:
    session = on_terminal(work(short=0.2))
    assert session.status == 0
    assert session.is_sane
    text = session.text
    assert re.search(r"read +━\S+ +1 of 4 tasks", text)
    assert re.search(r"embed +━\S+ +\d+ of 1,000\+ items +\d+(\.\d)?/s +9\d s left", text)
    assert re.search(r"fetch +━\S+ +1\.5 of 3\.0 MB", text)
    assert re.search(r"Downloading org/data +━\S+ +1\.5 of 3\.0 MB", text)  # in the same display
    assert re.search(r"device busy \d+ %, waiting for: decode \(\d+ %\)", text)
    assert session.output.count(HIDE) == 1
    assert "a score\r\ntest/model" in text
    assert session.output.endswith("the end\r\n")
    erased = session.output.rsplit("a score", 1)[1].rsplit("\x1b[2K", 1)[1]
    assert erased == "the end\r\n"  # nothing of the display is left


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from embark.engine import activity as module
from embark.engine.progress import log, progress
module.SHORT = 0.0
def work(number):
    for step in range(20):
        with progress(f"Downloading {number}", 2_000, what="bytes") as advance:
            advance(1_000)
            log(f"score {number}-{step}.")
            advance(1_000)
with module.Activity("test/model") as activity, ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
    assert activity.stage("fetch").done == activity.stage("fetch").total == 4 * 20 * 2_000
"""


def test_threads_share_one_display() -> None:
    session = on_terminal(THREADS)
    assert session.status == 0, session.text
    assert session.is_sane
    assert session.output.count(HIDE) == 1
    lines = [line.strip() for line in session.text.replace("\r", "\n").splitlines()]
    assert {f"score {number}-{step}." for number in range(4) for step in range(20)} <= set(lines)


def test_a_short_run_leaves_no_trace_on_a_terminal() -> None:
    session = on_terminal(work(steps=2, short=10.0).replace("3_000_000, True", "3_000_000, False"))
    assert session.text.replace("\r", "") == "a score\nthe end\n"
    assert session.is_sane


def test_ctrl_c_leaves_the_terminal_sane() -> None:
    session = on_terminal(work(short=0.0, last="time.sleep(60)"), b"\x03", after="a score")
    assert session.status not in (0, -9)
    assert "KeyboardInterrupt" in session.text
    assert session.seconds < 10
    assert HIDE in session.output
    assert session.is_sane
