"""Modules that are switched between compiled and plain, and loaders that note them."""

from __future__ import annotations

from typing import Any

import pytest

from embark.models.compilation import Compilation, note, noted_modules
from embark.models.device import compile_children, to_device
from embark.models.loading import Loading
from embark.types import EmbarkError, ModelCard

torch = pytest.importorskip("torch")
CARD = ModelCard("tiny/x", "1", "own", ("text",))


class Doubled(torch.nn.Module):  # type: ignore[misc]
    """A module of our own: torch compiles none of its own layers alone."""

    def forward(self, rows: Any) -> Any:
        return 2 * rows + 1


def test_a_module_runs_compiled_and_plain_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        return lambda *inputs: runs.append(graph) or graph.forward(*inputs)

    compile_plainly = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: compile_plainly(module, backend=backend))
    torch._dynamo.reset()
    module = Doubled()
    compilation = Compilation([module])
    row = torch.ones(1, 3)
    with torch.inference_mode():
        plain = module(row)
        for on, count in ((True, 1), (False, 1), (True, 2), (True, 3), (False, 3)):
            compilation.switch(on)
            assert torch.equal(module(row), plain)
            assert (compilation.on, len(runs)) == (on, count)
    assert len(set(map(id, runs))) == 1  # compiled once


def test_loaders_note_modules_for_the_trial() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with noted_modules() as modules:
        assert to_device(model, CARD, Loading("cpu", compile="auto")) is model
        compile_children(model, Loading("cpu", compile="auto"))
        to_device(torch.nn.Linear(2, 2), CARD, Loading("cpu"))
    assert modules == [model, model[0]]
    assert model._compiled_call_impl is None
    note(model)  # nobody asked
    assert modules == [model, model[0]]


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(EmbarkError, match="True, False or 'auto', not 'fast'"):
        Loading(compile="fast")  # type: ignore[arg-type]
