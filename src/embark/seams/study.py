"""The seam of studies: what one declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal

from embark.seams.checks import Declared, misnamed
from embark.types import EmbarkError, Option


@dataclass(frozen=True)
class Study(Declared):
    """An analysis by name: the command `embark analyze NAME`, and `embark.analyze.run(NAME)` in Python.

    `run` is a typed, public function that returns an `embark.types.Analysis`, or its "module:function", imported at
    use. It takes the `ARGUMENTS` of what the study needs (`model` and `tasks` by position), then its
    options.
    """

    name: str
    about: str  # in a sentence or two, as `embark analyze` and `embark show` print it
    run: Callable[..., Any] | str
    needs: Literal["scores", "outcomes", "vectors", "generators"]
    options: Mapping[str, Option] = field(default_factory=dict)  # keyword arguments of the function, by name
    examples: tuple[str, ...] = ()  # command lines, for its help

    NAMES: ClassVar[tuple[str, str]] = ("[a-z][a-z0-9-]*", "small letters, digits and hyphens")
    ARGUMENTS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "scores": ("tasks", "include", "settings"),
        "outcomes": ("tasks", "settings"),
        "vectors": ("model", "tasks", "protocol", "embed", "loading", "settings"),
        "generators": ("model", "tasks", "loading", "settings"),
    }
    KINDS: ClassVar[tuple[Any, ...]] = (str, int, float, bool, Path, list[str], list[int], list[float])
    COMMAND: ClassVar[tuple[str, ...]] = (  # what else every command of a study takes
        "benchmark", "task", "folder", "tasks_file", "allow_outside", "model", "device", "dtype", "stored_dtype",
        "pixels", "compile", "trust", "home", "store", "results", "offline", "places",
        "style", "format", "select", "plot", "save", "help",
    )  # fmt: skip

    def faults(self) -> Iterator[str]:
        """A message for an option that no command could have, and for what is wrong with the function."""
        arguments = self.ARGUMENTS[self.needs]
        taken = (*arguments, *self.COMMAND, *(f"{name}s" for name in arguments))  # --model is of model and of models
        for name, option in self.options.items():
            if not name.isidentifier() or iskeyword(name) or name in taken:
                yield f"its option '{name}' has a name that is not free"
            texts = isinstance(option.kind, tuple) and all(isinstance(value, str) for value in option.kind)
            if not (texts or option.kind in self.KINDS):
                yield f"its option '{name}' cannot be {option.kind}"
        yield from misnamed(self.run, "run") if isinstance(self.run, str) else self._function_faults(self.run)

    @property
    def function(self) -> Callable[..., Any]:
        """The function, imported where it is given by name."""
        if not isinstance(self.run, str):
            return self.run
        try:
            function: Callable[..., Any] = resolve_name(self.run)
        except (ImportError, AttributeError) as error:
            raise EmbarkError(f"The study '{self.name}' cannot import {self.run}: {error}.") from error
        self.refuse(self._function_faults(function))
        return function

    def _function_faults(self, function: Callable[..., Any]) -> Iterator[str]:
        """A message for each argument or option that the function lacks or that must have a default or be off."""
        if not callable(function) or isinstance(function, type):
            yield f"{self.run} is no function"
        parameters = dict(inspect.signature(function).parameters)
        kinds = {parameter.kind for parameter in parameters.values()}
        arguments = self.ARGUMENTS[self.needs]
        missing = [name for name in (*arguments, *self.options) if name not in parameters]
        if missing and inspect.Parameter.VAR_KEYWORD not in kinds:
            yield f"its function does not take {', '.join(missing)}"
        for name, parameter in parameters.items():
            named = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if named and name not in arguments and parameter.default is parameter.empty:
                yield f"the argument '{name}' has no default"
            if name in self.options and self.options[name].kind is bool and parameter.default is not False:
                yield f"its option '{name}' is a flag, whose default is False"
