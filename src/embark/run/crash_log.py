"""Why a task has no score, in a sentence; the traceback of what nobody foresaw goes to a log file."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from uuid import uuid4

from embark.readers import UnexpectedData
from embark.settings import Settings
from embark.types import EmbarkError


@dataclass
class CrashLog:
    """The tracebacks of one run, in `home/logs/<id>.log`; the file is made when there is a first one."""

    settings: Settings
    id: str = field(default_factory=lambda: uuid4().hex[:12])
    _lock: Lock = field(default_factory=Lock, repr=False)  # tasks are scored in several threads

    @property
    def path(self) -> Path:
        """Where the log is."""
        return self.settings.home / "logs" / f"{self.id}.log"

    def reason(self, error: Exception, place: str) -> str:
        """Why something failed, for people. `place` is where it happened, for the log."""
        if isinstance(error, EmbarkError) and not isinstance(error, UnexpectedData):
            return str(error)
        what = str(error) if isinstance(error, UnexpectedData) else _in_a_line(error)
        return f"{what} (its traceback {self._write(error, place)})"

    def _write(self, error: Exception, place: str) -> str:
        text = "".join(traceback.format_exception(error))
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8", errors="replace") as log:
                    log.write(f"{place}\n{text}\n")
        except OSError as refused:
            return f"could not be written to {self.path}: {refused.strerror}"
        return f"is in {self.path}"


def _in_a_line(error: Exception) -> str:
    """The kind of error, the first line of what it says, and the notes on where it happened."""
    first = str(error).strip().partition("\n")[0]
    return " ".join([f"{type(error).__name__}{': ' if first else ''}{first}", *getattr(error, "__notes__", ())])
