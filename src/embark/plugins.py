"""Plug-ins: packages that bring models, loader families, tasks and benchmarks of their own.

A package names a function (or a `Plugin`) under the entry-point group "embark" in its pyproject.toml:

    [project.entry-points.embark]
    mine = "my_package:plugin"

Plug-ins are looked for when a catalogue is first used. One that fails is named in a warning and left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from embark.types import Benchmark, EmbarkError, ModelCard, Task

GROUP = "embark"
T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """What a package adds. A loader is "module:function", taking a `ModelCard` and a `Loading`; cards name it.

    Where torch runs it, `embark.models.loading.Loader("module:function", "torch")` lets it stand on several devices.
    """

    cards: tuple[ModelCard, ...] = ()
    loaders: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()


def found() -> Mapping[str, Plugin]:
    """Installed plug-ins by name."""
    return dict(_load())


def after(own: Iterable[T], kind: str, name: Callable[[T], str]) -> Iterator[T]:
    """Our rows, then those of plug-ins ("cards", "tasks", "benchmarks"); a name that is taken stays with its first."""
    seen = set()
    for row in own:
        seen.add(name(row))
        yield row
    for plugin, brought in _load().items():
        for row in getattr(brought, kind):
            if name(row) in seen:
                _warn(plugin, f"its row '{name(row)}' is left out: there is one of that name already")
                continue
            seen.add(name(row))
            yield row


@cache
def loaders(own: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Loader families of plug-ins: name → "module:function"; a name that is taken, or our own, stays with its first."""
    out: dict[str, Any] = {}
    for plugin, brought in _load().items():
        for name, given in brought.loaders.items():
            if name in own or name in out:
                _warn(plugin, f"its loader '{name}' is left out: there is one of that name already")
            else:
                out[name] = given
    return out


_LOADING: list[str] = []


@cache
def _load() -> dict[str, Plugin]:
    if _LOADING:
        raise EmbarkError(
            "it looks something up in a catalogue, which is not complete before it is loaded: take rows from the "
            "tables, such as embark.tasks.pocket.TASKS"
        )
    out = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        _LOADING.append(point.name)
        try:
            brought: Any = point.load()
            brought = brought() if callable(brought) else brought
            if not isinstance(brought, Plugin):
                raise TypeError(f"{point.value} is no embark.plugins.Plugin, nor a function that returns one")
            _check(brought)
            out[point.name] = brought
        except (Exception, SystemExit) as error:  # whatever a stranger's code does, ours goes on
            _warn(point.name, f"it is left out ({type(error).__name__}: {error})")
        finally:
            _LOADING.pop()
    return out


ROWS = {"cards": ModelCard, "tasks": Task, "benchmarks": Benchmark}


def _check(brought: Plugin) -> None:
    for kind, row in ROWS.items():
        rows = getattr(brought, kind)
        if not (isinstance(rows, (tuple, list)) and all(isinstance(one, row) for one in rows)):
            raise TypeError(f"its {kind} are no tuple of {row.__name__}; one alone needs its comma, as in (one,)")
    if not isinstance(brought.loaders, Mapping):
        raise TypeError("its loaders are no mapping of names to 'module:function'")
    for name, given in brought.loaders.items():
        path = getattr(given, "path", given)  # of a Loader
        if not (isinstance(name, str) and isinstance(path, str) and ":" in path):
            raise TypeError(f"its loader {name!r} is neither 'module:function' nor a Loader of one")


def _warn(plugin: str, what: str) -> None:
    warnings.warn(f"The embark plug-in '{plugin}': {what}.", stacklevel=2)
