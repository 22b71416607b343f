"""`compile="auto"`: a trial on one batch decides, and never changes what vectors are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from embark import items
from embark.engine.batching import compiling
from embark.models.compilation import Compilation
from embark.models.encoder import Capabilities
from embark.store import Store
from embark.types import Array
from lengths import CARD, Lengths, needs, picture, run, stored_numbers

PLAIN, COMPILED = 0.004, 0.001  # seconds of a pass


class Compilable(Lengths):
    """A model whose pass is quicker when it is compiled; `change` is what compiling does to vectors."""

    def __init__(self, change: Callable[[Array], Array] = lambda out: out, compiled: float = COMPILED) -> None:
        super().__init__(card=replace(CARD, loaded={"compile": "auto"}))
        self.compilation = Compilation([])
        self.capabilities = Capabilities(compilation=self.compilation)
        self.of_compiled = change
        self.seconds = {False: PLAIN, True: compiled}
        self.modes: list[tuple[bool, bool]] = []  # compiled, and whether of texts

    def embed(self, batch: Sequence[Any]) -> Any:
        self.modes.append((self.compilation.on, isinstance(batch[0], str)))
        time.sleep(self.seconds[self.compilation.on])
        vectors = super().embed(batch)
        return self.of_compiled(vectors) if self.compilation.on else vectors


@pytest.fixture(autouse=True)
def _always_worth_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PAYS", 0.0)


def texts(encoder: Lengths, count: int = 60) -> Any:
    return needs(encoder, [items.text(f"{n:03} x") for n in range(count)])


@pytest.mark.parametrize("lanes", [1, 3])
def test_what_is_faster_is_taken_and_recorded(store: Store, lanes: int) -> None:
    encoder = Compilable()
    encoder.capabilities = replace(encoder.capabilities, lanes=lanes)
    wanted = texts(encoder, 100)
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert (report.embedded, report.warnings) == (100, ())
    assert encoder.modes[0] == (False, True)
    assert encoder.modes[-1] == (True, True)
    assert encoder.card.loaded["compile"] == "auto: compiled for text"
    assert stored_numbers(store, encoder, wanted) == list(range(100))


def test_what_is_no_faster_is_not_taken(store: Store) -> None:
    encoder = Compilable(compiled=2 * PLAIN)
    report, _ = run(store, encoder, texts(encoder), batch_size=4)
    assert (report.embedded, report.warnings) == (60, ())
    assert encoder.modes[-1] == (False, True)
    assert encoder.card.loaded["compile"] == "auto: plain"
    assert sum(compiled for compiled, _ in encoder.modes) == 1 + compiling.REPEATS  # one trial


def test_other_vectors_are_refused(store: Store) -> None:
    encoder = Compilable(lambda out: out[:, ::-1])
    wanted = texts(encoder)
    report, _ = run(store, encoder, wanted, batch_size=4)
    assert encoder.modes[-1] == (False, True)
    assert "runs without being compiled: its vectors would differ" in report.warnings[0]
    assert stored_numbers(store, encoder, wanted) == list(range(60))


def test_vectors_that_are_no_numbers_are_refused(store: Store) -> None:
    encoder = Compilable(lambda out: out * float("nan"))
    report, _ = run(store, encoder, texts(encoder), batch_size=4)
    assert (report.embedded, len(report.warnings)) == (60, 1)


def test_a_compiler_that_fails_costs_nothing_but_the_trial(store: Store) -> None:
    def fail(out: Array) -> Array:
        raise RuntimeError("no compiler here\n  and a long explanation")

    encoder = Compilable(fail)
    report, _ = run(store, encoder, texts(encoder), batch_size=4)
    assert report.embedded == 60
    assert report.warnings == ("test/engine runs without being compiled: no compiler here",)


def test_a_model_that_fails_plain_fails_as_it_would(store: Store) -> None:
    class Failing(Compilable):
        def embed(self, batch: Sequence[Any]) -> Any:
            if "050 x" in batch:
                raise KeyError("a bug in the model")
            return super().embed(batch)

    encoder = Failing()
    with pytest.raises(KeyError, match="a bug in the model"):
        run(store, encoder, texts(encoder), batch_size=4)


def test_each_kind_has_its_own_trial(store: Store) -> None:
    class OnlyPictures(Compilable):
        def embed(self, batch: Sequence[Any]) -> Any:
            if isinstance(batch[0], str):
                time.sleep(0.02 * self.compilation.on)
            return super().embed(batch)

    encoder = OnlyPictures()
    pictures = needs(encoder, [picture((n, 3, 4)) for n in range(60)])
    run(store, encoder, [*texts(encoder), *pictures], batch_size=4)
    assert encoder.compilation.decisions == {("text",): False, ("image",): True}
    assert encoder.card.loaded["compile"] == "auto: compiled for image"
    later = len(encoder.modes)
    run(store, encoder, [*texts(encoder), *pictures], batch_size=4)  # the next call goes on as decided
    assert set(encoder.modes[later:]) == {(False, True), (True, False)}


def test_little_work_is_not_worth_a_trial(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PAYS", 600.0)
    encoder = Compilable()
    run(store, encoder, texts(encoder), batch_size=4)
    assert {compiled for compiled, _ in encoder.modes} == {False}
    assert encoder.card.loaded["compile"] == "auto"
