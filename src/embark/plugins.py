"""Plug-ins: packages that bring rows (models, tasks, benchmarks) and values of the seams (`embark.seams`) of their own.

A package names a function (or a `Plugin`) under the entry-point group "embark" in its pyproject.toml:

    [project.entry-points.embark]
    mine = "my_package:plugin"

A plug-in is code of somebody else, so it runs only where the user allows its distribution by name: EMBARK_PLUGINS,
`plugins` in the user's settings file, `--plugins`, or `allow`. Plug-ins are loaded when a catalogue is first used. One
that is not allowed, or fails, is named in a warning and left out.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_args, get_type_hints

from embark import public
from embark.catalogue import N, Registry
from embark.seams import Evaluator, Loader, Reader, Rule, Study
from embark.settings import ALLOWED, allowed_plugins
from embark.types import Benchmark, EmbarkError, ModelCard, Task

__dir__ = public.names_of("plugins")[1]

GROUP = "embark"
T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """The rows (`embark.types`) and values of the seams (`embark.seams`) that a package adds, each kind in a tuple.

    Rows name the values: a card its loader, a task its reader and its evaluator, a benchmark its rule.
    """

    cards: tuple[ModelCard, ...] = ()
    loaders: tuple[Loader, ...] = ()
    tasks: tuple[Task, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    readers: tuple[Reader, ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    rules: tuple[Rule, ...] = ()
    studies: tuple[Study, ...] = ()


def allow(*distributions: str) -> None:
    """Let the plug-ins of these distributions run in this process, and in those that it starts: workers that prepare or
    embed, and a cluster of its own. To be called before a catalogue is used.
    """
    names = (*os.environ.get(ALLOWED, "").split(","), *distributions)
    os.environ[ALLOWED] = ",".join(dict.fromkeys(filter(None, map(_normalized, map(str.strip, names)))))


def with_plugins(own: Iterable[T], kind: str, name: Callable[[T], str]) -> Iterator[T]:
    """Our rows, then those of plug-ins. `kind` is "cards", "tasks" or "benchmarks"; of equal names the first counts."""
    rows = list(own)
    yield from rows
    own_names = set(map(name, rows))
    yield from _added("row", own_names, lambda added: [(name(row), row) for row in getattr(added, kind)]).values()


def registry(what: str, own: Mapping[str, N | str], kind: str, hint: str = "") -> Registry[N]:
    """The registry of a seam: our values by name, then those that plug-ins add as their field `kind`."""

    @cache
    def added() -> dict[str, N]:
        return _added(what, own, lambda plugin: [(value.name, value) for value in getattr(plugin, kind)])

    return Registry(what, own, added, hint)


def _added(what: str, own: Collection[str], rows: Callable[[Plugin], Iterable[tuple[str, T]]]) -> dict[str, T]:
    """The rows of plug-ins by name; those whose name is one of our `own`, or an earlier plug-in's, are left out."""
    out: dict[str, T] = {}
    for plugin, added in _load().items():
        for name, row in rows(added):
            if name in own or name in out:
                _warn(plugin, f"its {what} '{name}' is left out: there is one of that name already")
            else:
                out[name] = row
    return out


_LOADING: list[str] = []  # the plug-in that is being loaded


@cache
def _load() -> dict[str, Plugin]:
    if _LOADING:
        raise EmbarkError(
            "it looks something up in a catalogue, which is not complete before it is loaded: take rows from the "
            "tables, such as embark.tasks.pocket.TASKS"
        )
    out = {}
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    allowed = set(map(_normalized, allowed_plugins())) if points else set()
    for point in points:
        distribution = point.dist.name if point.dist else ""
        if _normalized(distribution) not in allowed:
            _warn(point.name, f"it is not run; if you trust it, allow it with EMBARK_PLUGINS={distribution}")
            continue
        _LOADING.append(point.name)
        try:
            plugin: Any = point.load()
            plugin = plugin() if callable(plugin) else plugin
            if not isinstance(plugin, Plugin):
                raise TypeError(f"{point.value} is no embark.plugins.Plugin, nor a function that returns one")
            _check(plugin)
            out[point.name] = plugin
        except (Exception, SystemExit) as error:  # a plug-in's fault must not stop embark
            _warn(point.name, f"it is left out ({type(error).__name__}: {error})")
        finally:
            _LOADING.pop()
    return out


def _check(plugin: Plugin) -> None:
    """Raise an error that names the field, unless each field holds the type that `Plugin` states."""
    for kind, hint in get_type_hints(Plugin).items():
        row_type = get_args(hint)[0]
        rows = getattr(plugin, kind)
        if not (isinstance(rows, (tuple, list)) and all(isinstance(row, row_type) for row in rows)):
            raise TypeError(f"its {kind} are no tuple of {row_type.__name__}; one alone needs its comma, as in (one,)")


def _normalized(distribution: str) -> str:
    """The name of a distribution as package indexes compare it."""
    return re.sub("[-_.]+", "-", distribution).lower()


def _warn(name: str, message: str) -> None:
    """A warning; where the user turned warnings into errors, a line: a plug-in's fault must not stop embark."""
    try:
        warnings.warn(f"The embark plug-in '{name}': {message}.", stacklevel=2)
    except UserWarning as warning:
        print(warning, file=sys.stderr)
