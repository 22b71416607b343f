"""The seam of studies: what one declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal

from embark.types import EmbarkError, Option


@dataclass(frozen=True)
class Study:
    """An analysis by name: the command `embark analyze NAME`, and `embark.analyze.run(NAME)` in Python.

    `run` is a typed, public function that returns an `embark.Analysis`, or its "module:function", imported at use. It
    takes the `ARGUMENTS` of what the study needs (`model`, `benchmark` and `tasks` by position), then its options.
    """

    name: str
    about: str  # in a sentence or two, as `embark analyze` and `embark show` print it
    run: Callable[..., Any] | str
    needs: Literal["scores", "outcomes", "vectors", "generators"]
    options: Mapping[str, Option] = field(default_factory=dict)  # keyword arguments of the function, by name
    examples: tuple[str, ...] = ()  # command lines, for its help

    ARGUMENTS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "scores": ("benchmark", "tasks", "own", "settings"),
        "outcomes": ("benchmark", "tasks", "settings"),
        "vectors": ("model", "tasks", "protocol", "embed", "loading", "settings"),
        "generators": ("model", "tasks", "loading", "settings"),
    }
    KINDS: ClassVar[tuple[Any, ...]] = (str, int, float, bool, Path, list[str], list[int], list[float])
    COMMAND: ClassVar[tuple[str, ...]] = (  # what else every command of a study takes
        "folder", "tasks_file", "allow_outside", "dtype", "trust", "home", "store", "results",
        "style", "format", "select", "plot", "save", "help", "model", "task",
    )  # fmt: skip

    def __post_init__(self) -> None:
        self._check(bool(re.fullmatch("[a-z][a-z0-9-]*", self.name)), "a name has small letters, digits and hyphens")
        self._check(bool(self.about.strip()), "it has no `about`")
        self._check(self.needs in self.ARGUMENTS, f"it needs {' or '.join(self.ARGUMENTS)}, not {self.needs!r}")
        arguments = self.ARGUMENTS[self.needs]
        taken = (*arguments, *self.COMMAND, *(f"{name}s" for name in arguments))  # --model is of model and of models
        for name, option in self.options.items():
            self._check(name.isidentifier() and name not in taken, f"its option '{name}' has a name that is not free")
            self._check(isinstance(option, Option), f"its option '{name}' is no embark.types.Option")
            texts = isinstance(option.kind, tuple) and all(isinstance(value, str) for value in option.kind)
            self._check(texts or option.kind in self.KINDS, f"its option '{name}' cannot be {option.kind}")
        if isinstance(self.run, str):
            self._check(":" in self.run, f"{self.run!r} is no 'module:function'")
        else:
            self._check_function(self.run)

    @property
    def function(self) -> Callable[..., Any]:
        """The function, imported where it is given by name."""
        if not isinstance(self.run, str):
            return self.run
        try:
            function: Callable[..., Any] = resolve_name(self.run)
        except (ImportError, AttributeError) as error:
            raise EmbarkError(f"The study '{self.name}' cannot import {self.run}: {error}.") from error
        self._check_function(function)
        return function

    def _check_function(self, function: Callable[..., Any]) -> None:
        """An error unless the function takes all arguments and options, requires no others, and flags are off."""
        self._check(callable(function), f"{function!r} is no function")
        parameters = dict(inspect.signature(function).parameters)
        kinds = {parameter.kind for parameter in parameters.values()}
        arguments = self.ARGUMENTS[self.needs]
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            missing = [name for name in (*arguments, *self.options) if name not in parameters]
            self._check(not missing, f"its function does not take {', '.join(missing)}")
        for name, parameter in parameters.items():
            named = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if named and name not in arguments:
                self._check(parameter.default is not parameter.empty, f"the argument '{name}' has no default")
            if name in self.options and self.options[name].kind is bool:
                self._check(parameter.default is False, f"its option '{name}' is a flag, whose default is False")

    def _check(self, valid: bool, fault: str) -> None:
        if not valid:
            raise EmbarkError(f"The study '{self.name}' is declared wrongly: {fault}.")
