"""What libraries raise about damaged files, as one error of ours that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embark.types import EmbarkError

MEND = "Repair the file, or replace it by a complete copy."


@contextmanager
def errors_about(place: str | Path, kind: str = "") -> Iterator[None]:
    """Whatever the block raises is an EmbarkError that names the place; errors of ours pass as they are."""
    try:
        yield
    except EmbarkError:
        raise
    except Exception as error:  # damage makes libraries raise whatever they like
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise EmbarkError(f"{place} cannot be read{kind}: {reason}. {MEND}") from error
