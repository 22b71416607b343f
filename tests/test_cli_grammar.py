"""One grammar for all commands: formats, heads and short helps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from embark.catalogue import UnknownName
from embark.cli import CommandGroup, app
from embark.models import MODELS
from embark.tasks import TASKS
from embark.types import EmbarkError

SCREEN = 54  # lines
LARGE = {("run",): 60, ("plan",): 56, ("analyze",): 74, (): 66}  # what takes everything, and lists of commands


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group that is not hidden, with the words that name it."""
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from commands(inner, (*words, name))


ALL = dict(commands(get_command(app)))
LEAVES = {words: command for words, command in ALL.items() if not hasattr(command, "commands")}


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_no_help_is_longer_than_a_screen(words: tuple[str, ...]) -> None:
    shown = run(*words, "--help")
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) <= LARGE.get(words, SCREEN)


def test_every_command_stands_under_a_head() -> None:
    names = [name for names in CommandGroup.HEADS.values() for name in names]
    assert sorted(names) == sorted(words[0] for words in ALL if len(words) == 1)
    shown = run("--help").stdout
    for head, under in CommandGroup.HEADS.items():
        section = shown[shown.index(f"\n{head}:\n") :]
        assert all(f"\n  {name} " in section for name in under)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_options_have_one_meaning(words: tuple[str, ...]) -> None:
    options = {option for parameter in LEAVES[words].params for option in parameter.opts}
    without = (("export", "mteb"), ("export", "ranked"), ("export", "inputs"), ("report",), ("site",), ("serve",))
    if words not in without:  # one line
        assert "--format" in options
    if "--model" in options:
        assert "-m" in options
    if "--kind" in options:
        assert words in (("models",), ("run",), ("plan",))  # embedder, reranker, generator; of own tasks, an evaluator


@pytest.mark.parametrize(
    ("words", "choice"),
    [((), False), (("--compile",), True), (("--compile", "auto"), "auto"),
     (("--compile=auto",), "auto"), (("--compile", "no"), False), (("--compile", "--device", "cpu"), True)],
)  # fmt: skip
def test_compile_stands_alone_or_has_a_word(
    words: tuple[str, ...], choice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's name after it is no such word."""
    examined = []

    def doctor(model: str, **options: Any) -> Any:
        examined.append((model, options["loading"].compile))
        raise EmbarkError("examined")

    monkeypatch.setattr("embark.doctor", doctor)
    run("doctor", *words, "org/model")
    assert examined == [("org/model", choice)]
    assert isinstance(run("doctor", "--compile=fast", "org/model").exception, UnknownName)


def test_kinds_and_types_of_models_are_two_options() -> None:
    kinds = json.loads(run("models", "--kind", "reranker", "--format", "json").stdout)
    assert {card["kind"] for card in kinds} == {"reranker"}
    types = json.loads(run("models", "--type", "late", "--format", "json").stdout)
    assert [card["name"] for card in types] == [
        card.name for card in MODELS.values() if card.loader in ("late", "colbert")
    ]


@pytest.mark.parametrize("style", ["json", "csv", "markdown", "latex", "html"])
def test_listings_in_every_format(style: str) -> None:
    for words in (("tasks",), ("benchmarks",), ("models",), ("show", "Pocket"), ("published", "list")):
        shown = run(*words, "--format", style)
        assert shown.exit_code == 0, shown.exception
        assert len(shown.stdout) > 100
    assert len(run("tasks", "--format", "csv").stdout.splitlines()) == len(TASKS) + 1


def test_an_unknown_format_is_refused_before_the_work() -> None:
    refused = run("run", "-m", "nobody/nothing", "--format", "latx")
    assert isinstance(refused.exception, UnknownName)
    assert "Did you mean latex" in str(refused.exception)
