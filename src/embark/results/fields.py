"""Values of a JSON file with their place in it: each is read as the type that its reader expects, or is an error that
names the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

LONGEST_NAME = 1_000  # characters of a name: of a model, a task, a measure…
LONGEST_TEXT = 1_000_000  # characters of any other text
LARGEST_NUMBER = 1 << 53  # whole numbers up to here are exact as floats, too
LARGEST_DATE = 253_402_300_800  # the end of the year 9999, in seconds since 1970
LEVELS = 12  # of lists and tables within one another
SHOWN_CHARACTERS = 60  # characters of a wrong value in a message
Read = TypeVar("Read")


class Malformed(ValueError):
    """A value that a file of ours may not hold; the message names its field."""


def load_json(data: bytes) -> Value:
    """The content of a JSON file; NaN and Infinity are no JSON."""

    def refuse(token: str) -> NoReturn:
        raise Malformed(f"{token} is no number of JSON")

    return Value(json.loads(data, parse_constant=refuse))


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a JSON file; `place` names it, as in scores.test[0].main_score."""

    value: object
    place: str = ""

    def wrong(self, expected: str) -> NoReturn:
        """Raise the error for a value that is not what was expected."""
        shown = ascii(self.value) if isinstance(self.value, (str, int, float)) else type(self.value).__name__
        shown = shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}…"
        raise Malformed(f"{self.place or 'its content'} must be {expected}, not {shown}")

    def text(self, longest: int = LONGEST_TEXT) -> str:
        """A text without lone surrogates, which no file could hold."""
        if not isinstance(self.value, str):
            self.wrong("a text")
        if len(self.value) > longest:
            self.wrong(f"a text of at most {longest:,} characters")
        if not self.value.isascii():
            try:
                self.value.encode()
            except UnicodeEncodeError:
                self.wrong("a text without lone surrogates")
        return self.value

    def name(self) -> str:
        """A text that names something, so it is not empty."""
        return self.text(LONGEST_NAME) or self.wrong("a name")

    def number(self) -> float:
        """A finite number, or NaN where JSON has null."""
        if self.value is None:
            return math.nan
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            self.wrong("a number or null")
        return self.value if abs(self.value) <= LARGEST_NUMBER else self.wrong("a number of usual size")

    def amount(self) -> float:
        """A number that is not negative."""
        number = self.number()
        return number if number >= 0 else self.wrong("a number that is not negative")

    def date(self) -> float:
        """Seconds since 1970, up to the year 9999."""
        date = self.amount()
        return date if date < LARGEST_DATE else self.wrong("a date in seconds since 1970")

    def count(self) -> int:
        """A whole number that is not negative."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not 0 <= self.value <= LARGEST_NUMBER:
            self.wrong("a whole number that is not negative")
        return self.value

    def ends(self) -> tuple[float, float]:
        """The two ends of an interval, either of which may be unknown (NaN)."""
        ends = self.entries()
        if len(ends) != 2:
            self.wrong("two numbers")
        low, high = (end.number() for end in ends)
        return (low, high) if not low > high else self.wrong(f"an interval from low to high, not from {low} to {high}")

    def entries(self) -> list[Value]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        return [Value(entry, f"{self.place}[{number}]") for number, entry in enumerate(self.value)]

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(entry.text() for entry in self.entries())

    def fields(self) -> dict[str, Value]:
        """The fields of a table, by name."""
        if not isinstance(self.value, Mapping):
            self.wrong("a table of fields")
        prefix = f"{self.place}." if self.place else ""
        for name in self.value:
            if len(name) > LONGEST_NAME or not name.isascii():
                Value(name, f"a field of {self.place or 'the file'}").text(LONGEST_NAME)
        return {name: Value(value, f"{prefix}{name}") for name, value in self.value.items()}

    def record(self, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Value]:
        """The fields of a table that has all of the required ones, and no others than the optional ones."""
        fields = self.fields()
        where = self.place or "the file"
        if missing := [name for name in required if name not in fields]:
            raise Malformed(f"{where} lacks {', '.join(missing)}")
        if unknown := [name for name in fields if name not in required and name not in optional]:
            raise Malformed(f"{where} has unknown fields: {', '.join(unknown)}"[:LONGEST_NAME])
        return fields

    def table(self, read: Callable[[Value], Read]) -> dict[str, Read]:
        """A table whose values are all of one type, read by a method of this class."""
        return {name: read(value) for name, value in self.fields().items()}

    def plain(self, levels: int = LEVELS) -> Any:
        """A value of any type that JSON has: nested at most so deep, its numbers and texts as above."""
        if levels == 0:
            self.wrong(f"nested at most {LEVELS} deep")
        if isinstance(self.value, Mapping):
            return {name: value.plain(levels - 1) for name, value in self.fields().items()}
        if isinstance(self.value, (list, tuple)):
            return [entry.plain(levels - 1) for entry in Value(list(self.value), self.place).entries()]
        if isinstance(self.value, str):
            return self.text()
        if isinstance(self.value, bool):
            return self.value
        return None if self.value is None else self.number()
