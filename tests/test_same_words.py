"""Every public function and command takes the same words for the same thing, and refuses other types."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.matrix import every
from typer.main import get_command
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.studies import STUDIES
from embark.types import EmbarkError

ONE_TYPE = {
    "tasks": ("Tasks",),
    "settings": ("Settings | None",),
    "loading": ("Loading | None",),
    "include": ("Include",),
    "protocol": ("str | None",),
    "limit": ("int | None",),
    "stages": ("Stages | None",),
}
# What these stood for is part of `tasks`, `include`, `loading` and `settings`.
REPLACED = {
    "benchmark", "benchmarks", "own", "published", "captions", "device", "dtype", "stored_dtype", "pixels", "trust",
    "home", "results", "store", "offline",
}  # fmt: skip
ONE_FLAG = {
    "-m": "--model", "-b": "--benchmark", "-t": "--task", "-o": "--out",
}  # fmt: skip
READ_OR_MAKE_SCORES = {
    "run", "plan", "fetch", "check", "leaderboard", "compare", "verify", "recommend", "report", "site", "serve", "card",
    "push", "export mteb", "export ranked", "export inputs", "diagnose omni", "diagnose ark",
}  # fmt: skip


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function by its name, and every study."""
    public = {name: getattr(embark, name) for name in embark.__all__}
    studies = {f"analyze.{name}": study.function for name, study in STUDIES.items()}
    return {name: value for name, value in (public | studies).items() if inspect.isfunction(value)}


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that is not a group, by its words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(words), command
    for name in inner or ():
        yield from leaves(inner[name], (*words, name))


COMMANDS = dict(leaves(get_command(app)))


@every(functions().items())
def test_an_argument_of_one_name_has_one_type(function: tuple[str, Callable[..., Any]]) -> None:
    for name, parameter in inspect.signature(function[1]).parameters.items():
        if name in ONE_TYPE and function[0] != "load_settings":
            assert parameter.annotation in ONE_TYPE[name], f"{name}: {parameter.annotation}"


@every(functions().items())
def test_no_function_takes_what_another_argument_has(function: tuple[str, Callable[..., Any]]) -> None:
    if function[0] != "load_settings":
        assert not REPLACED & set(inspect.signature(function[1]).parameters)


@every(functions().items())
def test_what_takes_tasks_takes_settings(function: tuple[str, Callable[..., Any]]) -> None:
    """All but `get_tasks`, which reads no results."""
    parameters = inspect.signature(function[1]).parameters
    shared = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    if "tasks" in parameters and function[0] != "get_tasks":
        assert "settings" in parameters or shared


@every(COMMANDS.items())
def test_a_flag_has_one_name_and_one_type(command: tuple[str, Any]) -> None:
    for parameter in command[1].params:
        for short, long in ONE_FLAG.items():
            assert (short in parameter.opts) == (long in parameter.opts), parameter.opts
        assert not {"--own", "--published", "--captions"} & set(parameter.opts)
        if {"--benchmark"} & set(parameter.opts):
            assert parameter.multiple


@every(sorted(READ_OR_MAKE_SCORES) + [f"analyze {name}" for name in STUDIES])
def test_tasks_are_chosen_alike(name: str) -> None:
    flags = {flag for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert {"-b", "-t", "--folder", "--tasks-file", "--results", "--home"} <= flags


@every(COMMANDS.items())
def test_groups_of_options_are_whole(command: tuple[str, Any]) -> None:
    """A command that loads models takes all that decides how."""
    flags = {flag for parameter in command[1].params for flag in parameter.opts}
    loading = {"--device", "--dtype", "--stored-dtype", "--pixels", "--compile", "--trust"}
    assert loading <= flags or not loading & flags
    stages = {"--rewrite", "--caption", "--rerank"}
    assert stages <= flags or not stages & flags


@every([(), *(tuple(name.split()) for name in COMMANDS), ("analyze",), ("export",), ("diagnose",)])
def test_no_help_is_cut_or_shows_a_type(words: tuple[str, ...]) -> None:
    lines = CliRunner().invoke(app, [*words, "--help"]).stdout.splitlines()
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")]
    assert not [line for line in lines if re.search(r"--[a-z-]+ <", line)]


# ── types of arguments ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: embark.evaluate("embark/pocket", "Pocket", limit="5"), "`limit` of evaluate must be a whole number"),
        (lambda: embark.evaluate("embark/pocket", 5), "`tasks` of evaluate must be a text or a Task or a Benchmark"),
        (lambda: embark.evaluate(3, "PocketFlagZeroShot"), "3 is no model"),
        (lambda: embark.evaluate("embark/pocket", loading="cpu"), "`loading` of evaluate must be a Loading, not 'cpu'"),
        (lambda: embark.evaluate("embark/pocket", ["Pocket", 5]), "not by 5"),
        (lambda: embark.leaderboard(models=3), "`models` of leaderboard must be a text or a list of texts, not 3"),
        (lambda: embark.leaderboard(include="mine"), "There is no choice of results named 'mine'"),
        (lambda: embark.analyze.correlate(threshold="high"), "`threshold` of correlate must be a number, not 'high'"),
        (lambda: embark.analyze.run("correlate", tasks=7), "`tasks` of correlate must be"),
        (lambda: embark.load_results(settings="here"), "`settings` of load_results must be a Settings, not 'here'"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_an_error_that_names_the_right_one(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(EmbarkError) as error:
        call()
    assert message in str(error.value)


# ── completion ───────────────────────────────────────────────────────────────────────────────────────────────────────


def completed(shell: str, line: str) -> list[str]:
    """What the command line offers a shell for the last word of a line."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    code = "from embark.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked, "_EMBARK_COMPLETE": f"complete_{shell}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("embark leade", "leaderboard"),
        ("embark run --stored", "--stored-dtype"),
        ("embark run -m embark/po", "embark/pocket"),
        ("embark leaderboard -t PocketFlagZ", "PocketFlagZeroShot"),
        ("embark run -t Nothing,PocketFlagZ", "Nothing,PocketFlagZeroShot"),
        ("embark analyze gains -b UniB", "UniBench"),
        ("embark run --device cp", "cpu"),
        ("embark show PocketFlagZ", "PocketFlagZeroShot"),
    ],
)
def test_bash_completes_commands_options_and_names(line: str, offered: str) -> None:
    assert offered in completed("bash", line)


@pytest.mark.parametrize(
    ("shell", "offered"), [("bash", r"MIEB\(lite\)"), ("zsh", "MIEB(lite)"), ("fish", "MIEB(lite)")]
)
def test_every_shell_gets_names_as_it_takes_them(shell: str, offered: str) -> None:
    assert any(offered in line for line in completed(shell, "embark run -b MIEB"))


def test_a_word_in_quotes_is_completed_as_it_is() -> None:
    assert completed("bash", "embark run -b 'MIEB(li") == ["MIEB(lite)"]
