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
def loaders() -> Mapping[str, Any]:
    """Loader families of plug-ins: name → "module:function"."""
    return {name: path for plugin in _load().values() for name, path in plugin.loaders.items()}


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
            out[point.name] = brought
        except Exception as error:  # whatever a stranger's code does, ours goes on
            _warn(point.name, f"it is left out ({type(error).__name__}: {error})")
        finally:
            _LOADING.pop()
    return out


def _warn(plugin: str, what: str) -> None:
    warnings.warn(f"The embark plug-in '{plugin}': {what}.", stacklevel=2)
