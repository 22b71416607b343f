"""Every study that is declared is a public, typed function, and a command; wrong declarations are refused."""

from __future__ import annotations

import inspect
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from typer.main import get_command

import embark
from embark import analyze
from embark.catalogue import UnknownName
from embark.cli import app
from embark.seams import Study
from embark.studies import STUDIES
from embark.studies.analysis import Analysis
from embark.studies.stored_tasks import SharedArguments
from embark.types import EmbarkError, Option
from matrix import every

OURS = [STUDIES[name] for name in STUDIES.own]
ROOT = Path(__file__).parents[2]
PAGES = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("analysis.md", "analysis-vectors.md"))
STUB = inspect.getsource(analyze)


def kinds(hint: Any) -> list[Any]:
    """The kinds of options that an argument of this type takes: str | None takes str, Sequence[int] takes list[int]."""
    members = get_args(hint) if type(None) in get_args(hint) or len(get_args(hint)) > 1 else (hint,)
    return [list[get_args(member)] if get_origin(member) else member for member in members]


@every(OURS)
def test_a_study_is_a_public_documented_function_that_returns_an_analysis(study: Study) -> None:
    assert getattr(analyze, study.name).__wrapped__ is study.function
    assert f" as {study.name}\n" in STUB  # for type checkers
    assert (study.function.__doc__ or "").strip()
    returned = get_type_hints(study.function)["return"]
    assert all(issubclass(member, Analysis) for member in get_args(returned) or (returned,))
    assert f"embark analyze {study.name} " in PAGES


@every(OURS)
def test_options_are_those_of_the_function(study: Study) -> None:
    hints = get_type_hints(study.function)
    arguments = {*Study.ARGUMENTS[study.needs], "show_progress", "shared", "return"}
    assert set(hints) - arguments == set(study.options)
    for name, option in study.options.items():
        assert (str if isinstance(option.kind, tuple) else option.kind) in kinds(hints[name]), name


@every(OURS)
def test_examples_are_accepted(study: Study) -> None:
    assert any(example.startswith(f"embark analyze {study.name} ") for example in study.examples)
    for example in study.examples:
        command: Any = get_command(app)
        words = shlex.split(example)[1:]
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context("embark", words).close()


def test_the_arguments_of_studies_of_vectors_are_those_that_they_share() -> None:
    assert {*Study.ARGUMENTS["vectors"], "show_progress"} == {"model", "tasks", *get_type_hints(SharedArguments)}


def test_names_of_options_are_free() -> None:
    used = set()
    for study in OURS:
        parameters = get_command(app).commands["analyze"].commands[study.name].params  # type: ignore[attr-defined]
        names = {parameter.name for parameter in parameters}
        names |= {flag.strip("-").replace("-", "_") for parameter in parameters for flag in parameter.opts}
        used |= names - {*study.options, *Study.ARGUMENTS[study.needs]}
    assert used - {"m", "b", "t", "prompt"} == set(Study.COMMAND) - {"help", "places"}


def spread(tasks: Any = None, *, top: int = 3, include: str = "all", settings: Any = None) -> Any:
    """A study of scores."""


def required(top: int, **shared: Any) -> None:
    """A function with an argument that no study has."""


def flagged(log: bool = True, **shared: Any) -> None:
    """A function with a flag that is on."""


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ({"name": "My Study"}, "its `name` must have small letters, digits and hyphens alone"),
        ({"about": " "}, "its `about` must not be empty"),
        ({"needs": "models"}, "its `needs` must be scores, outcomes, vectors or generators, not 'models'"),
        ({"run": "spread"}, "its `run` must be a function or 'module:function', not 'spread'"),
        ({"run": int}, "<class 'int'> is no function"),
        ({"run": "..:spread"}, "its `run` must be a function or 'module:function', not '..:spread'"),
        ({"options": {"class": Option(int, "")}}, "its option 'class' has a name that is not free"),
        ({"run": 7}, "its `run` must be a function or a text, not 7"),
        ({"options": {"top": int}}, "its `options` must be a table of Options, not {'top': <class 'int'>}"),
        ({"options": {"top": Option(dict, "")}}, "its option 'top' cannot be <class 'dict'>"),
        ({"options": {"tasks": Option(str, "")}}, "its option 'tasks' has a name that is not free"),
        ({"options": {"plot": Option(str, "")}}, "its option 'plot' has a name that is not free"),
        ({"options": {"task": Option(str, "")}}, "its option 'task' has a name that is not free"),
        ({"needs": "vectors", "options": {"models": Option(str, "")}},
         "its option 'models' has a name that is not free"),
        ({"options": {"least": Option(int, "")}}, "its function does not take least"),
        ({"run": lambda tasks: None}, "its function does not take include, settings"),
        ({"run": required}, "the argument 'top' has no default"),
        ({"run": flagged, "options": {"log": Option(bool, "")}}, "its option 'log' is a flag, whose default is False"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_wrong_declaration_is_refused(declared: dict[str, Any], fault: str) -> None:
    arguments: dict[str, Any] = {"name": "spread", "about": "How far.", "run": spread, "needs": "scores"} | declared
    with pytest.raises(EmbarkError) as error:
        Study(**arguments)
    assert str(error.value) == f"The study '{arguments['name']}' is declared wrongly: {fault}."


@pytest.mark.parametrize("kind", ["int", bytes, list[bytes], (), [1, 2], {}, None])
def test_an_option_is_of_a_type_that_has_a_name_or_has_values(kind: Any) -> None:
    with pytest.raises(EmbarkError, match=r"^The `kind` of an option must be str, bool, int, .*, or a tuple of values"):
        Option(kind, "What it does.")


def test_the_values_of_options_are_told_in_words() -> None:
    words = {name: option.values for study in OURS for name, option in study.options.items()}
    assert [words[name] for name in ("size", "threshold", "table", "matrix", "models", "dims", "correlation")] == [
        "whole number", "number", "file", "true or false", "list of texts", "list of whole numbers",
        '"pearson", "spearman"',
    ]  # fmt: skip
    assert Option(list[int], "").accepts((1, 2))
    assert not Option(list[int], "").accepts(["1"])


def test_a_function_by_name_is_checked_when_it_is_imported() -> None:
    study = Study("spread", "How far.", "embark.analyze:no_such_study", "scores")
    with pytest.raises(EmbarkError, match=r"'spread' cannot import embark\.analyze:no_such_study: module"):
        _ = study.function
    study = Study("spread", "How far.", f"{required.__module__}:required", "scores")
    with pytest.raises(EmbarkError, match="the argument 'top' has no default"):
        _ = study.function


def test_a_study_runs_by_its_name() -> None:
    by_name = analyze.run("pareto", "ARK", against="dim")
    assert by_name.table() == analyze.pareto("ARK", against="dim").table()
    with pytest.raises(UnknownName, match=r"no study named 'paretto'\. Did you mean pareto"):
        analyze.run("paretto")
    with pytest.raises(UnknownName, match=r"no against of the study pareto named 'sizes'"):
        analyze.run("pareto", "ARK", against="sizes")
    with pytest.raises(AttributeError, match=r"module 'embark.analyze' has no attribute 'paretto'"):
        _ = analyze.paretto  # type: ignore[attr-defined]
    assert {"run", "diagnose_ark", "diagnose_omni", *STUDIES} == set(dir(embark.analyze))


@pytest.mark.parametrize(
    "words", ["--help", "analyze --help", "analyze correlate --help", "leaderboard -b ARK --top 1"]
)
def test_help_and_boards_import_no_study(words: str) -> None:
    code = (
        "import sys; from embark.cli import main; sys.argv = ['embark', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('embark.studies.')))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)
    declarations = ["embark.studies." + name for name in ("mieb", "options", "registry", "unibench")]
    assert done.stdout.splitlines()[-1] == str(declarations)
