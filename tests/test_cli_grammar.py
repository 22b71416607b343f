"""One grammar for all commands: formats, heads, short helps, and the earlier names of commands and options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from embark.catalogue import UnknownName
from embark.cli import Commands, app
from embark.models import MODELS
from embark.tasks import TASKS
from embark.types import EmbarkError

SCREEN = 40  # lines
LARGE = {("run",): 50, ("plan",): 42, ("analyze",): 50, (): 46}  # what takes everything, and lists of commands


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
    names = [name for names in Commands.HEADS.values() for name in names]
    assert sorted(names) == sorted(words[0] for words in ALL if len(words) == 1)
    shown = run("--help").stdout
    for head, under in Commands.HEADS.items():
        section = shown[shown.index(f"\n{head}:\n") :]
        assert all(f"\n  {name} " in section for name in under)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_options_have_one_meaning(words: tuple[str, ...]) -> None:
    options = {option for parameter in LEAVES[words].params for option in parameter.opts}
    assert not options & {"--json", "--models", "--licence"}  # earlier names
    if words not in (("export", "mteb"), ("export", "inputs"), ("report",), ("site",), ("serve",)):  # one line
        assert "--format" in options
    if "--model" in options:
        assert "-m" in options
    if "--kind" in options:
        assert words in (("models",), ("run",), ("plan",))  # embedder, reranker, generator; of own tasks, an evaluator


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (("tasks", "ARK/*", "--json"), ("tasks", "ARK/*", "--format", "json")),
        (("tasks", "Pocket*", "--type", "sts"), ("tasks", "Pocket*", "--evaluator", "sts")),
        (("tasks", "--licence=*CC BY-NC-SA*"), ("tasks", "--license", "*CC BY-NC-SA*")),
        (("leaderboard", "-b", "ARK", "--models", "*siglip*"), ("leaderboard", "-b", "ARK", "--model", "*siglip*")),
        (
            ("analyze", "correlate", "-b", "ARK", "--kind", "pearson"),
            ("analyze", "correlate", "-b", "ARK", "--correlation", "pearson"),
        ),
        (("analyze", "distil", "-b", "ARK"), ("analyze", "distill", "-b", "ARK")),
    ],
    ids=lambda words: " ".join(words),
)
def test_earlier_names_are_understood(earlier: tuple[str, ...], now: tuple[str, ...]) -> None:
    before, after = run(*earlier), run(*now)
    assert (before.exit_code, after.exit_code) == (0, 0)
    assert before.stdout == after.stdout


@pytest.mark.parametrize(
    ("words", "choice"),
    [((), False), (("--compile",), True), (("--no-compile",), False), (("--compile", "auto"), "auto"),
     (("--compile=auto",), "auto"), (("--compile", "no"), False), (("--compile", "--device", "cpu"), True)],
)  # fmt: skip
def test_compile_stands_alone_or_has_a_word(
    words: tuple[str, ...], choice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's name after it is no such word."""
    examined = []

    def doctor(model: str, **options: Any) -> Any:
        examined.append((model, options["compile"]))
        raise EmbarkError("examined")

    monkeypatch.setattr("embark.doctor", doctor)
    run("doctor", *words, "org/model")
    assert examined == [("org/model", choice)]
    assert isinstance(run("doctor", "--compile=fast", "org/model").exception, UnknownName)


def test_a_name_that_a_command_has_is_not_an_earlier_one() -> None:
    kinds = json.loads(run("models", "--kind", "reranker", "--format", "json").stdout)
    assert {card["kind"] for card in kinds} == {"reranker"}
    types = json.loads(run("models", "--type", "late", "--json").stdout)
    assert [card["name"] for card in types] == [
        card.name for card in MODELS.values() if card.loader in ("late", "colbert")
    ]
    assert run("analyze", "quantise", "--help").exit_code == 0


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
