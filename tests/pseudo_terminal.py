"""Python code run in a process of its own, on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from typing import Any

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  # so that Ctrl-C reaches the process
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor


@dataclass(frozen=True)
class Session:
    """What a process wrote to its terminal, its status, and the terminal's modes before and after."""

    output: str
    status: int
    modes: tuple[Any, Any]
    seconds: float  # from the key to the end

    @property
    def text(self) -> str:
        """The output without codes."""
        return CODES.sub("", self.output)

    @property
    def is_sane(self) -> bool:
        """Whether the cursor is shown and the terminal is in its modes."""
        return self.output.rfind(SHOW) >= self.output.rfind(HIDE) and self.modes[0] == self.modes[1]


def on_terminal(code: str, key: bytes = b"", after: str = "", limit: float = 30.0) -> Session:
    """Run code; press a key once the output has the text `after`."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 100))
    before = termios.tcgetattr(slave)
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL + code],
        stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
    )  # fmt: skip
    output = b""
    pressed = time.monotonic()
    os.set_blocking(master, False)
    deadline = time.monotonic() + limit
    try:
        while process.poll() is None:
            assert time.monotonic() < deadline, output.decode(errors="replace")
            output += _read(master)
            if key and after.encode() in output:
                os.write(master, key)
                key = b""
                pressed = time.monotonic()
            time.sleep(0.01)
        seconds = time.monotonic() - pressed
        output += _read(master)
        modes = before, termios.tcgetattr(slave)
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
    return Session(output.decode(), process.returncode, modes, seconds)


def _read(terminal: int) -> bytes:
    """What there is to read now."""
    output = b""
    try:
        while part := os.read(terminal, 65536):
            output += part
    except OSError:  # nothing, or nobody writes any more
        pass
    return output
