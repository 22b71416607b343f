"""How the values of all seams are checked when they are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING
from itertools import chain
from typing import Any, ClassVar

from embark.field_types import defaults, misfits
from embark.types import EmbarkError


class Declared:
    """A value of a seam. The first of its fields that cannot be used is an error that names the value."""

    name: str
    NAMES: ClassVar[tuple[str, str]] = (r"[\w.-]+", "letters, digits, dots and dashes")  # that names may have

    def __post_init__(self) -> None:
        self.refuse(chain(misfits(self), _out_of_range(self), self.faults()))

    def faults(self) -> Iterable[str]:
        """A message for each fault that types do not show."""
        return ()

    def refuse(self, faults: Iterable[str]) -> None:
        """Raise an error with the first fault, if there is any."""
        for fault in faults:
            raise EmbarkError(f"The {type(self).__name__.lower()} '{self.name}' is declared wrongly: {fault}.")


def _out_of_range(value: Any) -> Iterator[str]:
    """A message for an empty field that has no default, a number below 1, and a name that no command takes."""
    for name, default in defaults(value.__class__).items():
        stated = getattr(value, name)
        empty = not (stated.strip() if isinstance(stated, str) else stated)
        if empty and default is MISSING:
            yield f"its `{name}` must not be empty"
        if type(stated) is int and stated < 1:
            yield f"its `{name}` must be a whole number from 1, not {stated}"
    pattern, words = value.NAMES
    if not re.fullmatch(pattern, value.name):
        yield f"its `name` must have {words} alone"


def misnamed(function: Any, field: str) -> Iterator[str]:
    """A message, unless this is a function or the "module:function" that is imported at use."""
    if isinstance(function, str) and not re.fullmatch(r"\w+(\.\w+)*:\w+", function):
        yield f"its `{field}` must be a function or 'module:function', not {function!r}"
