"""Worker processes: what they return, what they survive, and that nothing of them is left."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import worker_functions
from embark import processes
from embark.processes import INLINE, NoWorkers, WorkerLost, Workers, next_try
from embark.types import EmbarkError

SECONDS = 30  # for anything here, on a busy machine


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers([worker_functions.items] * 2) as pool:
        yield pool


def results(pool: Workers, *items: tuple[str, Any]) -> list[Any]:
    return pool.submit(items).result(SECONDS)


def wait_for(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_jobs_are_tried_whole_then_item_by_item_until_the_culprit_is_known() -> None:
    assert [next_try(alone=False, lost=lost) for lost in (1, 2)] == ["singly", "singly"]
    assert [next_try(alone=True, lost=lost) for lost in (1, 2)] == ["same", "none"]
    assert [next_try(False, lost, whole=2, most=4) for lost in (1, 2)] == ["same", "singly"]
    assert [next_try(True, lost, whole=2, most=4) for lost in (3, 4)] == ["same", "none"]


def test_results_come_in_order_from_several_processes(workers: Workers) -> None:
    jobs = [workers.submit([("echo", number), ("pid", None)]) for number in range(40)]
    values = [job.result(SECONDS) for job in jobs]
    assert [value for value, _ in values] == list(range(40))
    assert {pid for _, pid in values} <= set(workers.pids)
    assert os.getpid() not in workers.pids
    assert workers.submit([]) is not None


@pytest.mark.parametrize("size", [0, 1, 100, INLINE // 8, 1_000_000])
def test_arrays_go_both_ways(workers: Workers, size: int) -> None:
    (array,) = results(workers, ("array", size))
    np.testing.assert_array_equal(array, np.arange(size))
    assert array.flags.writeable
    assert results(workers, ("sum", np.arange(size)), ("echo", b"x" * size)) == [size * (size - 1) // 2, b"x" * size]
    fortran = np.asfortranarray(np.arange(2 * size, dtype=np.float32).reshape(2, -1))
    (same,) = results(workers, ("echo", {"values": fortran, "few": fortran[:, :3]}))
    np.testing.assert_array_equal(same["values"], fortran)


@pytest.mark.slow
def test_shared_memory_is_let_go_with_the_last_array(workers: Workers) -> None:
    def mapped() -> int:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("memfd:embark")

    before = mapped()
    files = len(os.listdir("/proc/self/fd"))
    arrays = [results(workers, ("array", 100_000))[0] for _ in range(20)]
    assert before + 20 >= mapped() > before
    assert len(os.listdir("/proc/self/fd")) <= files + 4  # a map needs no open file
    part = arrays[3][5:7]
    arrays.clear()
    assert part.tolist() == [5, 6]
    del part
    assert mapped() == before


def test_an_error_is_the_jobs_own(workers: Workers) -> None:
    with pytest.raises(ValueError, match="odd") as error:
        results(workers, ("echo", 1), ("raise", ValueError("odd")))
    assert "worker_functions.py" in error.value.__notes__[0]
    with pytest.raises(MemoryError):
        results(workers, ("raise", MemoryError("out of memory")))
    with pytest.raises(worker_functions.Odd) as odd:
        results(workers, ("odd", {3: "why"}))
    assert (odd.value.rows, str(odd.value)) == ({3: "why"}, "why")
    with pytest.raises(FileNotFoundError) as missing:
        results(workers, ("open", "nowhere"))
    assert missing.value.filename == "nowhere"
    with pytest.raises(Exception, match="local object"):  # pickle's words, in Python 3.11 and in 3.13
        results(workers, ("echo", lambda: None))
    assert results(workers, ("echo", 2)) == [2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGILL])
def test_the_item_that_kills_is_named_and_the_others_go_on(workers: Workers, number: signal.Signals) -> None:
    beside = [workers.submit([("echo", row)]) for row in range(10)]
    first, culprit, last = results(workers, ("echo", 1), ("kill", number), ("echo", 2))
    assert (first, last) == (1, 2)
    assert isinstance(culprit, WorkerLost)
    assert str(culprit) == f"killed its worker twice ({number.name})"
    assert [job.result(SECONDS) for job in beside] == [[row] for row in range(10)]
    assert wait_for(lambda: len(workers.pids) == 2)


@pytest.mark.slow
def test_a_death_by_chance_costs_nothing(workers: Workers, tmp_path: Path) -> None:
    once = str(tmp_path / "once")
    deaths = len(workers.deaths)
    assert results(workers, ("echo", 1), ("once", once), ("echo", 2)) == [1, once, 2]
    assert workers.deaths[deaths:] == ["SIGKILL"]
    assert wait_for(lambda: len(workers.pids) == 2)
    for pid in workers.pids:
        os.kill(pid, signal.SIGKILL)  # while it waits for work
    assert results(workers, ("echo", 3)) == [3]
    (culprit,) = results(workers, ("exit", 3))
    assert str(culprit) == "killed its worker twice (exit status 3)"


def test_an_item_that_stalls_is_named() -> None:
    with Workers([worker_functions.items] * 2, seconds=0.5) as pool:
        first, culprit, last = results(pool, ("echo", 1), ("sleep", 60), ("echo", 2))
        assert (first, last) == (1, 2)
        assert str(culprit) == "took longer than 0.5 s"
        assert results(pool, *[("sleep", 0.2)] * 4) == [0.2] * 4  # the limit is for an item, not for a job


def test_workers_that_cannot_start_are_an_error_with_the_reason() -> None:
    with Workers([worker_functions.broken] * 2) as pool:
        with pytest.raises(NoWorkers, match=r"can be started: ValueError: no such model\.$"):
            results(pool, ("echo", 1))
        with pytest.raises(NoWorkers, match="no such model"):
            pool.submit([("echo", 1)])
    with Workers([worker_functions.deadly]) as pool, pytest.raises(NoWorkers, match=r"it died .* \(exit status 7\)\.$"):
        results(pool, ("echo", 1))
    assert issubclass(NoWorkers, EmbarkError)


def test_a_worker_that_does_not_start_again_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    factories = [partial(worker_functions.dies_again, str(tmp_path / "there")), worker_functions.items]
    with caplog.at_level(logging.WARNING), Workers(factories) as pool:
        assert wait_for(lambda: (tmp_path / "there").exists() and len(pool.pids) == 2)
        assert results(pool, ("echo", 1)) == [1]
        os.kill(pool._pool.workers[0].process.pid, signal.SIGKILL)
        assert wait_for(lambda: results(pool, ("echo", 1)) == [1] and "is given up" in caplog.text)
        assert results(pool, *[("echo", 1)] * 5) == [1] * 5
    assert "is given up, the others go on: ValueError: the device is gone" in caplog.text


def test_workers_that_always_die_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HOPELESS", 4)
    with Workers([worker_functions.items] * 2) as pool:
        jobs = [pool.submit([("exit", 1)]) for _ in range(40)]
        errors = [str(job.exception(SECONDS)) for job in jobs]
        assert errors[-1] == "4 worker processes died one after the other, the last of exit status 1."


def test_closing_does_not_wait() -> None:
    pool = Workers([worker_functions.items] * 2)
    busy = [pool.submit([("spin", 10**11)]) for _ in range(5)]
    results_before = pool.pids
    assert wait_for(lambda: len(pool.pids) == 2)
    time.sleep(0.3)
    pids = pool.pids
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 2
    assert not any(map(is_alive, (*pids, *results_before)))
    with pytest.raises(CancelledError):
        busy[0].result(SECONDS)
    with pytest.raises(NoWorkers, match="closed"):
        pool.submit([("echo", 1)])


@pytest.mark.slow
def test_forgotten_workers_end() -> None:
    pool = Workers([worker_functions.items])
    assert results(pool, ("echo", 1)) == [1]
    (pid,) = pool.pids
    del pool
    gc.collect()
    assert wait_for(lambda: not is_alive(pid))


PARENT = """
import sys, time, worker_functions
from embark.processes import Workers
pool = Workers([worker_functions.items] * 2)
pool.submit([("echo", 1)]).result()
while len(pool.pids) < 2: time.sleep(0.01)
for _ in range(4): pool.submit([("spin", 10**11)])
print(*pool.pids, flush=True)
if sys.argv[1] == "wait": time.sleep(60)
"""


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_workers_end_with_their_parent(how: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PARENT, "exit" if how == "exit" else "wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert parent.stdout is not None
    pids = list(map(int, parent.stdout.readline().split()))
    if how == "kill":
        parent.kill()
    _, errors = parent.communicate(timeout=SECONDS)
    assert len(pids) == 2, errors
    assert wait_for(lambda: not any(map(is_alive, pids)))
    assert errors == ""  # no traceback, and nothing about leaked memory


def test_a_worker_imports_little_and_leaves_the_main_module_alone(workers: Workers) -> None:
    (modules,) = results(workers, ("modules", None))
    assert not {"torch", "transformers", "pyarrow", "PIL", "pytest", "multiprocessing"} & set(modules)


STRANGERS = """
import sys
from embark.processes import Workers
import worker_functions
with Workers([worker_functions.items]) as pool:
    print(pool.submit([("echo", 1)]).result(30))
"""


@pytest.mark.parametrize("options", [("-P",), ("-I",)])
def test_a_worker_imports_nothing_of_the_working_folder_or_of_the_environment(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()\n")
    script = tmp_path / "script" / "main.py"
    script.parent.mkdir()
    script.write_text(f"import sys; sys.path = {sys.path!r}\n{STRANGERS}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path) if options == ("-I",) else ""}
    ran = subprocess.run(
        [sys.executable, *options, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ran.stdout == "[1]\n", ran.stderr
    assert not (tmp_path / "executed").exists()


def test_a_result_that_cannot_be_read_leaves_nobody_waiting(workers: Workers) -> None:
    assert isinstance(workers.submit([("ending", None)]).exception(SECONDS), SystemExit)
    assert results(workers, ("echo", 1)) == [1]


def test_a_worker_that_stalls_before_it_starts_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(processes, "START_SECONDS", 0.5)
    with Workers([worker_functions.items], environment={"PYTHONPATH": str(tmp_path)}) as pool:
        error = pool.submit([("echo", 1)]).exception(SECONDS)
    assert isinstance(error, NoWorkers)
    assert "it died while it started (took longer than 0.5 s)" in str(error)
