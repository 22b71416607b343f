"""Modules of a loaded model that can be compiled, and run plain again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from embark.types import Modality

NOTED: ContextVar[list[Any] | None] = ContextVar("modules noted by the loader that is at work", default=None)


@contextmanager
def noted_modules() -> Iterator[list[Any]]:
    """A block in which a model is loaded; yields the modules that its loader notes as worth compiling."""
    modules: list[Any] = []
    token = NOTED.set(modules)
    try:
        yield modules
    finally:
        NOTED.reset(token)


def note(module: Any) -> None:
    """Note a module as worth compiling."""
    if (modules := NOTED.get()) is not None:
        modules.append(module)


class Compilation:
    """Switches a model's modules of torch between compiled and plain; `decisions` are by kind of item.

    Nothing is compiled before the first pass with it switched on, and what is compiled stays so.
    """

    def __init__(self, modules: Sequence[Any]) -> None:
        self.on = False
        self.decisions: dict[tuple[Modality, ...], bool] = {}
        self._modules = tuple(modules)
        self._compiled: list[Any] = []  # the modules' compiled calls

    def switch(self, on: bool) -> None:
        """Have the next passes run compiled, or plain; none may be running."""
        if on and not self._compiled:
            for module in self._modules:
                module.compile()  # in place: methods and names stay as they are
            self._compiled = [module._compiled_call_impl for module in self._modules]
        for module, compiled in zip(self._modules, self._compiled, strict=True) if self._compiled else ():
            module._compiled_call_impl = compiled if on else None  # torch's own switch, without a public name
        self.on = on
