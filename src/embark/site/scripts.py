"""Data as classic scripts: from the disk, a page may neither fetch a file nor import a module, but it may add scripts.

embark("board/pocket-1a2b3c", {"models": [...]})
"""

from __future__ import annotations

import hashlib
import re
import time
from math import isfinite
from pathlib import Path
from typing import Any

from embark import escape
from embark.outgoing import json_text, write_text
from embark.redaction import Content, Private, this_machine
from embark.results import finite
from embark.tables import in_points, signed_points

Points = tuple[float, str] | None  # a number in full, and the text that people read, the same as on the command line


def script(name: str, data: Any, private: Private) -> str:
    """The text of a script that hands data to the page under a name, without what must not leave this machine."""
    text = json_text([Content(name), finite(data)], private, separators=(",", ":"))
    return f"embark(...{escape.json(text)});\n"


def write_script(folder: Path, name: str, data: Any, private: Private | None = None) -> None:
    """Write data/<name>.js."""
    private = private or this_machine()
    write_text(folder / "data" / f"{name}.js", Content(script(name, data, private)), private)


def minute(seconds: float) -> str:
    """A time since 1970 as a date and a time of day in UTC; nothing for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return ""


def slug(name: str) -> str:
    """A file name for whatever somebody called a thing: readable, and another one for every name."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{words}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def points(value: float | None) -> Points:
    """A score from 0 to 1 in full, and in points; None where there is none."""
    return (value, in_points(value)) if value is not None and isfinite(value) else None


def signed(value: float | None) -> Points:
    """A difference of scores in full, and in points with its sign; None where there is none."""
    return (value, signed_points(value).text) if value is not None and isfinite(value) else None
