"""Ctrl-C ends everything soon: threads that nobody waits for, and an end for a process that does not find its own."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

INTERRUPTED = 130  # the exit status after Ctrl-C
PATIENCE = 1.5  # seconds after Ctrl-C in which a process may end by itself
GRACE = 0.5  # seconds for threads to end after an error

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Daemons(Executor):
    """A pool of daemon threads, to be used in a `with` block: after an error or Ctrl-C, nobody waits for their work.

    The threads of `ThreadPoolExecutor` keep a process from ending until they are done.
    """

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._lock = threading.Lock()

    def submit(
        self, function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Have a thread call the function."""
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("The threads have been told to end.")
            self._jobs.put((future, partial(function, *args, **kwargs)))
            if len(self._threads) < self._most:
                name = f"embark-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del job, future, call  # with what they hold

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; wait for what there is, or cancel what has not begun."""
        with self._lock:
            self._closed = True
        while cancel_futures:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is not None:
                job[0].cancel()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self.shutdown(wait=kind is None, cancel_futures=kind is not None)
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


@contextmanager
def end_soon(message: str) -> Iterator[None]:
    """A block that ends soon after Ctrl-C, and the process with it: with this message, and status 130.

    What the block must clean up, it may: but a call of a library that runs on for minutes, or threads that wait for a
    download, are not waited for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    ended = threading.Lock()  # whoever has it ends the process

    def watch() -> None:
        while (numbers := ours.recv(64)) and signal.SIGINT not in numbers:
            pass
        if numbers:
            time.sleep(PATIENCE)
            if ended.acquire(blocking=False):
                _end(message)

    threading.Thread(target=watch, name="embark-interrupts", daemon=True).start()
    interrupted = False
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True
    except SystemExit as stopped:
        if stopped.code != INTERRUPTED:  # the one that typer leaves with after Ctrl-C
            raise
        interrupted = True
    finally:
        if not interrupted:
            ended.acquire(blocking=False)
            signal.set_wakeup_fd(before)
            theirs.close()
    if interrupted:
        with suppress(Exception):
            atexit._run_exitfuncs()
        if ended.acquire(blocking=False):
            _end(message)
        time.sleep(PATIENCE)  # the other thread is ending the process


def _end(message: str) -> None:
    """End the process, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        os.write(2, f"{message}\n".encode())
    os._exit(INTERRUPTED)
