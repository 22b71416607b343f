"""The registry of everything that has a name: look-up with suggestions and globs, and names in groups and messages."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pkgutil import resolve_name
from typing import Generic, Protocol, TypeVar

from embark.types import EmbarkError

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
LISTED_NAMES = 12  # names that a message can list


class Named(Protocol):
    """A value that has a name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


class UnknownName(EmbarkError, KeyError):
    """A name that is not in the catalogue; the message suggests the nearest ones."""

    def __init__(self, what: str, name: object, known: Iterable[str], hint: str = "") -> None:
        name = str(name)  # users may give anything
        self.missing = f"there is no {what} named '{name}'"
        by_lower = {other.lower(): other for other in known}
        near = difflib.get_close_matches(name.lower(), by_lower, n=3)
        near += [lower for lower in by_lower if name.lower() in lower and lower not in near][: 3 - len(near)]
        advice = f" Did you mean {' or '.join(by_lower[n] for n in near)}?" if near else ""
        if not (advice or hint) and 0 < len(by_lower) <= LISTED_NAMES:
            advice = f" There are {', '.join(by_lower.values())}."
        super().__init__(f"There is no {what} named '{name}'.{advice}{' ' + hint if hint else ''}")

    def __str__(self) -> str:
        return str(self.args[0])


class Catalogue(Mapping[str, T], Generic[T]):
    """Name → row, in the order of the rows it was made from; a function that returns rows is called at first use.

    `what` is what messages call a row ("model"), `hint` what they add about an unknown name.
    """

    def __init__(
        self, what: str, rows: Iterable[T] | Callable[[], Iterable[T]], name: Callable[[T], str], hint: str = ""
    ) -> None:
        self.what = what
        self.hint = hint
        self._name = name
        self._rows = rows if callable(rows) else self._by_name(rows).values

    @cached_property
    def _values(self) -> dict[str, T]:
        return self._by_name(self._rows())

    def _by_name(self, rows: Iterable[T]) -> dict[str, T]:
        by_name: dict[str, T] = {}
        for row in rows:
            if self._name(row) in by_name:
                raise EmbarkError(f"Two rows of the {self.what} catalogue are named '{self._name(row)}'.")
            by_name[self._name(row)] = row
        return by_name

    def __getitem__(self, name: str) -> T:
        check_name(self.what, name, self, self.hint)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def with_rows(self, rows: Iterable[T]) -> Catalogue[T]:
        """The catalogue with further rows, of a user's; a name that it has already is an error."""
        own = list(rows)
        if not own:
            return self
        if taken := [name for name in map(self._name, own) if name in self]:
            raise EmbarkError(f"A built-in {self.what} is named {taken[0]}, too: rename yours.")
        return Catalogue(self.what, [*self.values(), *own], self._name, self.hint)

    def match(self, patterns: str | Iterable[str]) -> list[T]:
        """The rows whose names match a pattern or several, each once, patterns in order; no match is an error."""
        names: dict[str, None] = {}
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if pattern in self:
                hits = [pattern]
            else:
                hits = [n for n in self._values if isinstance(pattern, str) and fnmatchcase(n, pattern)]
            if not hits:
                raise UnknownName(self.what, pattern, self._values, self.hint)
            names.update(dict.fromkeys(hits))
        return [self._values[name] for name in names]


class Registry(Mapping[str, N], Generic[N]):
    """Name → value, of ours and of plug-ins. A value may be "module:NAME", which is imported when it is asked for.

    `added` returns the values of plug-ins; it is called when a name is not one of ours, or when all are listed.
    """

    def __init__(
        self, what: str, own: Mapping[str, N | str], added: Callable[[], Mapping[str, N]], hint: str = ""
    ) -> None:
        self.what = what
        self.hint = hint
        self.own = own
        self._added = added

    def __getitem__(self, name: str) -> N:
        check_name(self.what, name, self, self.hint)
        if name not in self.own:
            return self._added()[name]
        stated = self.own[name]
        value: N = resolve_name(stated) if isinstance(stated, str) else stated
        if value.name != name:
            raise EmbarkError(f"The registry has {stated} as the {self.what} '{name}', and its name is '{value.name}'.")
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.own or name in self._added())

    def __iter__(self) -> Iterator[str]:
        return iter((*self.own, *self._added()))

    def __len__(self) -> int:
        return len(self.own) + len(self._added())


def check_name(what: str, name: object, known: Collection[str], hint: str = "") -> None:
    """An error that suggests known names, unless this is one of them."""
    if name not in known:
        raise UnknownName(what, name, known, hint)


def match_words(what: str, known: Iterable[str], patterns: str | Iterable[str] | None) -> set[str] | None:
    """The known words that match a pattern or several; None where there are no patterns. No match is an error."""
    if patterns is None:
        return None
    words = dict.fromkeys(known)
    return set(Catalogue(what, words, str, hint=f"There are {listed(list(words))}.").match(patterns))


def group_values(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """All values of each key, in order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def listed(names: Sequence[str], most: int = LISTED_NAMES) -> str:
    """Names separated by commas; of many, only the first."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
