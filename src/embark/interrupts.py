"""Ctrl-C ends everything soon: an end for a process that does not find its own."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130  # the exit status after Ctrl-C
END_SECONDS = 1.5  # seconds after Ctrl-C in which a process may end by itself


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
        with ours:
            while (numbers := ours.recv(64)) and signal.SIGINT not in numbers:
                pass
        if numbers:
            time.sleep(END_SECONDS)
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
        time.sleep(END_SECONDS)  # the other thread is ending the process


def _end(message: str) -> None:
    """End the process, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        os.write(2, f"{message}\n".encode())
    os._exit(INTERRUPTED)
